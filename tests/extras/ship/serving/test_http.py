"""The HTTP service in this process: answers, refusals, and what a fuzzer makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.service import SearchService

FAST = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))

TOKEN = "s3cret" * 4
HEADERS = {"authorization": f"Bearer {TOKEN}"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="session")
def schema(service: SearchService):
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(service, TOKEN), headers=HEADERS)


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        ("POST /search", schemathesis.GenerationMode.POSITIVE),
        ("POST /search", schemathesis.GenerationMode.NEGATIVE),
        ("GET /documents/{docno}", schemathesis.GenerationMode.POSITIVE),
        ("GET /documents/{docno}", schemathesis.GenerationMode.NEGATIVE),
        ("GET /health", schemathesis.GenerationMode.POSITIVE),
    ],
)
def test_fuzzed_requests_get_documented_answers(schema, operation: str, mode) -> None:
    method, path = operation.split()
    # In an address every value is a text: `tags=false` is a list of one, though the fuzzer meant a truth value.
    checks = [*CHECKS, negative_data_rejection] if method == "POST" and not mode.is_positive else CHECKS

    @FAST
    @given(schema[path][method].as_strategy(generation_mode=mode))
    def fuzz(case) -> None:
        case.call_and_validate(checks=checks, headers=HEADERS)

    fuzz()


def test_filters_reach_the_search(post) -> None:
    answer = post({"query": "keys", "top_n": 100, "filters": {"max_bytes": 800}}).json()
    everything = post({"query": "keys", "top_n": 100}).json()
    filtered, unfiltered = ({hit["docno"] for hit in body["hits"]} for body in (answer, everything))
    handbook = Path(__file__).parents[3] / "data" / "phases"
    assert filtered == {docno for docno in unfiltered if (handbook / f"{docno}.md").stat().st_size <= 800}
    assert filtered < unfiltered


@pytest.mark.parametrize(
    ("body", "status", "reason"),
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
def test_invalid_request_gets_the_reason(post, body: bytes, status: int, reason: str) -> None:
    response = post(content=body, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert reason in response.json()["error"]


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
def test_unusual_request_is_answered(post, body: dict) -> None:
    assert post(body).status_code == 200


def test_unknown_path_is_404_and_method_405(service, ask) -> None:
    assert ask(service, lambda client: client.get("/etc/passwd")).json() == {"error": "Not Found"}
    response = ask(service, lambda client: client.get("/search"))
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert ask(service, lambda client: client.get("/docs")).status_code == 404


def test_document_is_returned_by_lines(service, ask) -> None:
    async def talk(client):
        return [
            (await client.get("/documents/security")).json()["document"],
            (await client.get("/documents/security", params={"start_line": 10, "end_line": 12})).json()["document"],
            await client.get("/documents/nowhere"),
            await client.get("/documents/security", params={"start_line": 3, "end_line": 2}),
        ]

    whole, part, missing, reversed_lines = ask(service, talk)
    lines = whole["text"].splitlines(keepends=True)
    assert part["text"] == "".join(lines[10 - whole["first_line"] : 13 - whole["first_line"]]) != ""
    assert (missing.status_code, missing.json()["error"]) == (404, "no such document")
    assert reversed_lines.status_code == 422 and "end_line" in reversed_lines.json()["error"]


def test_form_of_a_web_page_cannot_search(post) -> None:
    response = post(content=b'{"query": "a"}', headers={"content-type": "text/plain"})
    assert response.status_code == 422


def test_health_describes_the_bundle_without_its_path(service, ask, small_bundle: Path) -> None:
    response = ask(service, lambda client: client.get("/health"))
    assert response.json()["documents"] == 19
    assert response.json()["status"] == "ok"
    assert str(small_bundle.parent) not in response.text
