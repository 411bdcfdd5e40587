"""The library, HTTP, MCP in a process and over HTTP, and the command answer alike, for every kind of hit.

MCP on standard input and output is in tests/commands/test_mcp.py.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from ragbench.base.types import Hit
from ragbench.commands import cli
from ragbench.extras.export import measured_arm
from ragbench.extras.ship.deployment import load
from ragbench.extras.ship.documents import StoredDocument
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.mcp import create_server
from ragbench.extras.ship.serving.service import SearchService
from tests.answers import as_mapping

# A preset and a question that has hits of this kind there.
QUESTIONS = {
    "baseline": "how do programs prove their identity",
    "lexical_v3": "[[authentication]] clock skew",
    "librarian_rerank": "cache",
    "phase4": "why are requests slow",
}


# Each of them is a bundle, asked by six ways.
SLOW = ("lexical_v3", "librarian_rerank")


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(QUESTIONS)]
)
def asked(request: pytest.FixtureRequest, bundle_of) -> Iterator[tuple[SearchService, LoadedBundle, str]]:
    service = SearchService(bundle_of(request.param))
    with load(bundle_of(request.param)) as loaded:
        yield service, loaded, QUESTIONS[request.param]
    service.close()


def over_http(service: SearchService, method: str, path: str, **options) -> dict:
    async def session() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    response = asyncio.run(session())
    assert response.status_code == 200, response.text
    return response.json()


def call(service: SearchService, tool: str, arguments: dict) -> CallToolResult:
    async def session():
        async with Client(create_server(service)) as client:
            return await client.call_tool(tool, arguments)

    result = asyncio.run(session())
    assert not result.is_error, result.content
    return result


def mcp_text(service: SearchService, tool: str, arguments: dict) -> str:
    return call(service, tool, arguments).content[0].text


def over_mcp(service: SearchService, tool: str, arguments: dict) -> dict:
    result = call(service, tool, arguments)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def over_mcp_over_http(service: SearchService, tool: str, arguments: dict) -> dict:
    async def session():
        app = create_app(service)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
            Client(streamable_http_client("http://localhost:8000/mcp", http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    return asyncio.run(session()).structured_content


@pytest.mark.parametrize("explain", [False, True])
def test_hits_are_the_same_over_http_and_mcp(asked, explain: bool) -> None:
    service, loaded, question = asked
    expected = as_mapping(loaded.answer(question, 5, explain=explain))["hits"]
    options = {"top_n": 5, "explain": explain}
    arguments = {"query": question, "options": options | {"format": "json"}}
    assert over_http(service, "POST", "/search", json={"query": question, **options})["hits"] == expected
    assert over_mcp(service, "search", arguments)["hits"] == expected
    assert over_mcp_over_http(service, "search", arguments)["hits"] == expected
    assert list(expected[0]) == [field.name for field in dataclasses.fields(Hit)]
    assert all((hit["explanation"] is not None) == explain for hit in expected)


def test_command_gives_the_same_hits(asked, finished, capsys: pytest.CaptureFixture[str]) -> None:
    _, loaded, question = asked
    overrides = measured_arm.find(finished.folder, loaded.name).settings.overrides
    assert cli.main(["search", question, "--top", "5", "--json", "--quiet", *overrides]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert hits == as_mapping(loaded.answer(question, 5, explain=True))["hits"]


# What a search may ask for, by the preset of `QUESTIONS` that can do it.
OPTIONS = {
    "baseline": {"mode": "keyword", "filters": {"file_types": [".md"]}},
    "lexical_v3": {"phrasings": ["clock"], "salient_terms": ["skew", "#security"], "return_all": True},
    "librarian_rerank": {"mode": "semantic"},
    "phase4": {"mode": "hybrid"},
}


def test_options_reach_the_pipeline_over_http_and_mcp(asked) -> None:
    service, loaded, question = asked
    options = OPTIONS[next(name for name, text in QUESTIONS.items() if text == question)]
    expected = as_mapping(loaded.answer(question, 5, **options))
    for given in (
        over_http(service, "POST", "/search", json={"query": question, "top_n": 5, **options}),
        over_mcp(service, "search", {"query": question, "options": {"top_n": 5, "format": "json", **options}}),
    ):
        for name in ("hits", "filter_results", "total", "filters_applied"):
            assert given[name] == expected[name]
    assert expected["filters_applied"] == options.get("filters", {})
    assert set(OPTIONS) == set(QUESTIONS)


def test_hit_has_every_field_over_http_and_mcp(asked) -> None:
    """HTTP describes them; MCP, whose schemas must stay small, returns all of them as structured content."""
    service, _, question = asked
    schemas = over_http(service, "GET", "/openapi.json")["components"]["schemas"]
    names = {field.name for field in dataclasses.fields(Hit)}
    assert set(schemas["Hit"]["properties"]) == names
    hits = over_mcp(service, "search", {"query": question, "options": {"top_n": 3, "format": "json"}})["hits"]
    assert hits and all(set(hit) == names for hit in hits)
    for hit in hits:  # its chunk as note and number, its score, what found it
        assert re.fullmatch(r"p?\d+", hit["chunk_id"].removeprefix(f"{hit['docno']}#"))
        assert 0 < hit["score"] <= 1 and hit["matches"]
    stored = {field.name for field in dataclasses.fields(StoredDocument)}
    assert set(schemas["StoredDocument"]["properties"]) == stored


def test_guaranteed_note_is_returned_whole(bundle_of, handbook_folder: Path) -> None:
    service = SearchService(bundle_of("lexical_v3"))
    try:
        first, *_ = over_http(service, "POST", "/search", json={"query": "[[authentication]] clock skew"})["hits"]
    finally:
        service.close()
    assert (first["guaranteed"], first["matches"][0]) == (True, "title-match")
    lines = (handbook_folder / "notes" / first["path"]).read_text(encoding="utf-8").rstrip().splitlines()
    assert len(first["context"]) > len(first["text"])
    assert first["context"].splitlines()[-1] == lines[-1]


def test_document_is_the_same_over_http_and_mcp(asked, handbook_folder: Path) -> None:
    service, loaded, _ = asked
    for listed in loaded.documents()[:3]:
        document = over_http(service, "GET", f"/documents/{listed.docno}")["document"]
        file = (handbook_folder / "notes" / document["path"]).read_text(encoding="utf-8")
        assert file.endswith(document["text"])
        assert document["text"] == loaded.document(listed.docno).text
        options = {"start_line": 2, "end_line": 3}
        lines = over_http(service, "GET", f"/documents/{listed.docno}", params=options)["document"]
        first = max(2, document["first_line"])
        assert lines["text"] == "".join(file.splitlines(keepends=True)[first - 1 : 3])
        assert lines["first_line"] == first
        read = mcp_text(service, "read", {"path": listed.path, "max_tokens": 100_000})
        assert read.partition("\n")[2] == document["text"].rstrip()
