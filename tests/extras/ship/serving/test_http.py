"""The HTTP service in this process: answers, refusals, and what a fuzzer makes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

import ragbench
from ragbench.extras.ship.access import Access
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.service import SearchService

FAST = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

JSON = st.recursive(st.none() | st.text() | st.floats(), st.lists)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="session")
def schema(service: SearchService):
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(service, Access(hosts=None)))


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        ("POST /search", schemathesis.GenerationMode.POSITIVE),
        ("POST /search", schemathesis.GenerationMode.NEGATIVE),
        ("GET /documents", schemathesis.GenerationMode.POSITIVE),
        ("GET /documents", schemathesis.GenerationMode.NEGATIVE),
        ("GET /documents/{docno}", schemathesis.GenerationMode.POSITIVE),
        ("GET /documents/{docno}", schemathesis.GenerationMode.NEGATIVE),
        ("GET /health", schemathesis.GenerationMode.POSITIVE),
        ("GET /metrics", schemathesis.GenerationMode.POSITIVE),
        ("GET /livez", schemathesis.GenerationMode.POSITIVE),
        ("GET /readyz", schemathesis.GenerationMode.POSITIVE),
    ],
)
def test_a_fuzzer_finds_no_500_and_nothing_undocumented(schema, operation: str, mode) -> None:
    method, path = operation.split()
    # In an address every value is a text: `tags=false` is a list of one, though the fuzzer meant a truth value.
    checks = [*CHECKS, negative_data_rejection] if method == "POST" and not mode.is_positive else CHECKS

    @FAST
    @given(schema[path][method].as_strategy(generation_mode=mode))
    def fuzz(case) -> None:
        case.call_and_validate(checks=checks)

    fuzz()


def test_an_answer_is_that_of_the_library(post, small_bundle: Path) -> None:
    response = post({"query": "how do programs prove their identity", "top_n": 3})
    answer = response.json()
    with ragbench.load(small_bundle) as loaded:
        expected = loaded.search("how do programs prove their identity", 3)
    assert response.status_code == 200
    assert [(hit["rank"], hit["chunk_id"], hit["text"]) for hit in answer["hits"]] == [
        (hit.rank, hit.chunk_id, hit.text) for hit in expected
    ]
    assert [hit["score"] for hit in answer["hits"]] == [hit.score for hit in expected]
    assert answer["bundle"] == "small"


def test_filters_reach_the_search(post) -> None:
    answer = post({"query": "keys", "top_n": 100, "filters": {"max_bytes": 800}}).json()
    everything = post({"query": "keys", "top_n": 100}).json()
    found, all_found = ({hit["docno"] for hit in each["hits"]} for each in (answer, everything))
    handbook = Path(__file__).parents[3] / "data" / "phases"
    assert found == {docno for docno in all_found if (handbook / f"{docno}.md").stat().st_size <= 800}
    assert found < all_found


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 422, "the request is not valid JSON"),
        (b'{"query": "\xff"}', 400, "There was an error parsing the body"),
        (b"[" * 30_000, 400, "There was an error parsing the body"),
        (b"[]", 422, "the request: must be an object"),
        (b'{"query": "a", "top_n": 1000}', 422, "top_n: input should be less than or equal to 100"),
        (b'{"query": "a", "max_tokens": 0}', 422, "max_tokens: input should be greater than or equal to 1"),
        (b'{"query": "a", "max_tokens": -1}', 422, "max_tokens: input should be greater than or equal to 1"),
        (b'{"query": "a", "max_tokens": 1000000000}', 422, "max_tokens: input should be less than or equal to 100000"),
        (b'{"query": "a", "top_n": ' + b"9" * 5000 + b"}", 400, "There was an error parsing the body"),
        (b'{"query": "a\\ud800"}', 422, "query: input should be a valid string"),
        (b'{"query": "a", "colour": 1}', 422, "colour: extra inputs are not permitted"),
        (b'{"query": "a", "\\ud800": 1}', 422, "valid string"),
        (b'{"query": "a", "filters": 7}', 422, "filters: must be an object"),
        (b'{"query": " \\u0000"}', 422, "the query is empty"),
        (b'{"query": "a", "filters": {"modified_after": "\\ud800"}}', 422, "filters.modified_after"),
        (b'{"query": "a", "filters": {"modified_after": "soon"}}', 422, "filters.modified_after must be a date"),
        (b'{"query": "a", "hypothesis": "b"}', 422, "hypothesis cannot be used"),
        (b'{"query": "a", "filters": {"tags": ["a", "a"]}}', 422, "filters.tags must be different tags"),
    ],
)
def test_bad_requests_are_told_why(post, body: bytes, status: int, said: str) -> None:
    response = post(content=body, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        {"query": "a\x00b \u202e \U0001f600 ' OR 1=1 -- \\ + - && || ! ( ) { } [ ] ^ \" ~ * ? : /"},
        {"query": "x" * 2000},
        {"query": "a " * 1000},
        {"query": "a", "filters": {"modified_after": "0001-01-01", "modified_before": "9999-12-31"}},
        {"query": "a", "filters": {"max_bytes": 2**63 - 1}},
        {"query": "a", "filters": {}},
    ],
)
def test_odd_requests_are_answered(post, body: dict) -> None:
    assert post(body).status_code == 200


@pytest.mark.slow
@FAST
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(json.dumps).map(str.encode)
)
def test_any_body_is_refused_without_a_500(post, body: bytes) -> None:
    response = post(content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert set(response.json()) == {"error"}


def test_other_paths_and_methods(service, ask) -> None:
    assert ask(service, lambda client: client.get("/etc/passwd")).json() == {"error": "Not Found"}
    response = ask(service, lambda client: client.get("/search"))
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert ask(service, lambda client: client.get("/docs")).status_code == 404


def test_a_form_of_a_web_page_cannot_search(post) -> None:
    response = post(content=b'{"query": "a"}', headers={"content-type": "text/plain"})
    assert response.status_code == 422


def test_health_names_no_place(service, ask, small_bundle: Path) -> None:
    response = ask(service, lambda client: client.get("/health"))
    assert response.json()["documents"] == 19
    assert response.json()["status"] == "ok"
    assert str(small_bundle.parent) not in response.text


def test_health_fails_while_a_golden_query_fails(make_service, ask, monkeypatch: pytest.MonkeyPatch) -> None:
    service, states = make_service(), []

    def broken(*given: object, **options: object) -> None:
        raise RuntimeError("disk")

    async def talk(client):
        for patched in (True, False):
            with monkeypatch.context() as patch:
                if patched:
                    patch.setattr(LoadedBundle, "answer", broken)
                monkeypatch.setattr(service, "_checked", -1e9)
                await client.get("/health")
                for _ in range(500):
                    if service.failing == patched:
                        break
                    await asyncio.sleep(0.01)
                states.append((response := await client.get("/health")).status_code)
                states.append(response.json()["status"])

    ask(service, talk)
    assert states == [503, "failing", 200, "ok"]


def test_the_front_door_says_what_can_be_asked(service, ask) -> None:
    response = ask(service, lambda client: client.get("/"))
    assert response.status_code == 200
    assert {"POST /search", "GET /documents", "GET /health", "GET /metrics"} <= set(response.json()["ask"])


def test_metrics_are_prometheus_text_and_count(make_service, ask) -> None:
    service = make_service()

    async def talk(client):
        await client.post("/search", json={"query": "keys"})
        await client.post("/search", json={"query": " "})
        await client.post("/search", json={})
        return await client.get("/metrics")

    response = ask(service, talk)
    assert response.headers["content-type"].startswith("text/plain")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    assert samples["ragbench_searches_total", "answered"] == 1
    assert samples["ragbench_searches_total", "refused"] == 2
    assert samples["ragbench_answers_total", "hits"] == 1 and samples["ragbench_answers_total", "filters"] == 0
    assert samples["ragbench_http_responses_total", "422"] == 2
    assert samples["ragbench_request_seconds_count",] == 2
    assert samples["ragbench_search_seconds_count",] == 1
    assert samples["ragbench_documents",] == 19
    assert samples["ragbench_queue_length",] == 0
