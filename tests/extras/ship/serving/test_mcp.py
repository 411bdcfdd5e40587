"""The MCP server, asked by the SDK's own client in this process, in the old way of connecting and the new."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import threading
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from ragbench.extras.ship.access import Access, Tokens
from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.mcp import METRICS, create_server
from ragbench.extras.ship.serving.messages import SearchAnswer, SearchFilters
from ragbench.extras.ship.serving.service import SearchService
from ragbench.extras.ship.serving.tools import HypothesisTool, search_request
from ragbench.search.engine.context import count_tokens
from ragbench.search.engine.request import SearchOptions


@asynccontextmanager
async def over_http(service: SearchService, mode: str, access: Access | None = None, **options):
    """A client of the service's HTTP application."""
    app = create_app(service, access)
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, **options) as http,
        Client(streamable_http_client("http://localhost:8000/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture(params=["legacy", "auto", "legacy over http", "auto over http"])
def talk(request, service):
    mode, _, http = request.param.partition(" over ")

    def run(conversation, with_service=service):
        async def session():
            async with (
                over_http(with_service, mode) if http else Client(create_server(with_service), mode=mode) as client
            ):
                return await conversation(client)

        return asyncio.run(session())

    return run


def test_tools_are_small_and_offer_every_option(talk, service) -> None:
    listed = talk(lambda client: client.list_tools())
    tools = {tool.name: tool for tool in listed.tools}
    assert list(tools) == ["search", "read", "outline", "related", "search_with_hypothesis"]
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) <= 6000
    assert list(tools["search"].input_schema["properties"]) == ["query", "max_tokens", "options"]
    described = tools["search"].input_schema["properties"]["options"]["description"]
    options = {field.name for field in dataclasses.fields(SearchOptions)} - {"hypothesis"}
    assert all(name in described for name in {"top_n", "explain", "format", *options, *SearchFilters.model_fields})
    assert tools["search_with_hypothesis"].input_schema["required"] == ["hypothesis"]
    assert tools["search"].annotations.read_only_hint
    assert "19 documents" in tools["search"].description


def test_an_agent_searches_reads_and_cites(talk, service) -> None:
    async def conversation(client):
        assert "path#heading:lines" in client.instructions
        found = await client.call_tool("search", {"query": "how do programs prove their identity", "max_tokens": 300})
        assert found.structured_content is None
        text = found.content[0].text
        citation, _, passage = text.split("\n\n[2]")[0].partition("\n")
        assert re.fullmatch(r"\[1\] authentication\.md#.+:\d+-\d+", citation) and count_tokens(text) <= 300
        read = (await client.call_tool("read", {"path": citation})).content[0].text
        assert passage in read and read.startswith("authentication.md:")
        outline = (await client.call_tool("outline", {"path": "authentication.md"})).content[0].text
        assert citation.partition("#")[2].rpartition(":")[0] in outline
        contents = (await client.call_tool("outline", {})).content[0].text
        assert contents.startswith("all: 19 documents") and "authentication.md (" in contents
        related = (await client.call_tool("related", {"path": "authentication.md"})).content[0].text
        assert "similar: " in related and "authentication.md (" not in related.partition("\n")[2]
        (cut,) = (await client.call_tool("read", {"path": "authentication.md", "max_tokens": 60})).content
        assert count_tokens(cut.text) <= 60 and "continue with lines" in cut.text
        resource = await client.read_resource("docs:///authentication.md")
        assert passage in resource.contents[0].text

    talk(conversation)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        *(("search", {"query": "a", "max_tokens": n}, "max_tokens: input should be") for n in (0, -1, 10**9)),
        ("search", {"query": "programs", "max_tokens": 1}, "No passage fits into 1 tokens"),
        ("search", {"query": "a", "options": {"top_n": 0}}, "top_n: input should be greater"),
        ("search", {"query": "a", "options": {"colour": "red"}}, "colour: extra inputs are not permitted"),
        ("read", {"path": "../../etc/passwd"}, "document '../../etc/passwd' does not exist"),
        ("read", {"path": "authentication.md", "lines": "900-990"}, "lines must be between"),
        ("read", {"path": "authentication.md", "heading": "None such"}, "heading 'None such' does not exist"),
        ("outline", {"path": "nowhere"}, "document or folder 'nowhere' does not exist"),
    ],
)
def test_hostile_arguments_get_a_sentence(service, tool: str, arguments: dict, said: str) -> None:
    async def session():
        async with Client(create_server(service)) as client:
            return await client.call_tool(tool, arguments)

    assert said in asyncio.run(session()).content[0].text


def test_search_answers_as_over_http(talk, post) -> None:
    asked = {"query": "how do programs prove their identity", "top_n": 3, "filters": {"min_bytes": 10}}
    options = {name: value for name, value in asked.items() if name != "query"} | {"format": "json"}
    for arguments in (asked, {"query": asked["query"], "options": options}):  # as in 0.1, and now
        result = talk(lambda client, arguments=arguments: client.call_tool("search", arguments))
        assert not result.is_error
        assert result.structured_content["hits"] == post(asked).json()["hits"]
        SearchAnswer.model_validate_json(result.content[0].text)
        assert json.loads(result.content[0].text) == result.structured_content


def test_a_model_may_read_the_answer_as_xml(talk, post) -> None:
    asked = {"query": "how do programs prove their identity", "top_n": 2, "format": "xml"}
    result = talk(lambda client: client.call_tool("search", asked))
    text = result.content[0].text
    assert text == result.structured_content["context"] == post(asked).json()["context"]
    assert text.startswith("<searchResults>\n<document>\n<id>1</id>") and text.count("<modified>") == 2
    assert post({**asked, "format": "json"}).json()["context"] is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "query: field required"),
        ({"query": "a", "top_n": 101}, "top_n: input should be less than or equal to 100"),
        ({"query": " "}, "the query is empty"),
        ({"query": "a", "filters": {"doc_type": "poem"}}, "filters.doc_type must be one of"),
        ({"query": "a", "filters": {"colour": "red"}}, "extra inputs are not permitted"),
    ],
)
def test_bad_input_is_told_to_the_model(talk, asked: dict, said: str) -> None:
    result = talk(lambda client: client.call_tool("search", asked))
    assert result.is_error
    assert said in result.content[0].text


def test_a_tool_of_its_own_takes_a_hypothesis(talk) -> None:
    asked = {"query": "tokens", "hypothesis": "Programs prove who they are with tokens."}
    (refused,) = talk(lambda client: client.call_tool("search_with_hypothesis", asked)).content
    assert "hypothesis" in refused.text  # this pipeline embeds none
    without = talk(lambda client: client.call_tool("search_with_hypothesis", {"query": "tokens"}))
    assert without.is_error and "hypothesis: field required" in without.content[0].text


def test_a_hypothesis_alone_is_searched_for_five_hits(make_service) -> None:
    """Seed 001, HyDE: `hypothesis` is required, `top_n` is optional, 5 without it."""
    request = search_request(make_service(), {"hypothesis": "Programs use tokens."}, HypothesisTool)
    assert (request.query, request.hypothesis, request.top_n) == ("Programs use tokens.", "Programs use tokens.", 5)
    given = {"hypothesis": "Programs use tokens.", "query": "tokens", "options": {"top_n": 7}}
    request = search_request(make_service(), given, HypothesisTool)
    assert (request.query, request.top_n) == ("tokens", 7)


def test_health_and_metrics(talk) -> None:
    assert talk(lambda client: client.call_tool("health", {})).structured_content["documents"] == 19
    resources = [str(each.uri) for each in talk(lambda client: client.list_resources()).resources]
    assert len(resources) == 20 and resources[-1] == METRICS and "docs:///authentication.md" in resources
    assert "ragbench_documents 19.0" in talk(lambda client: client.read_resource(METRICS)).contents[0].text


def test_what_does_not_exist(talk) -> None:
    async def conversation(client):
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("delete", {})
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("file:///etc/passwd")

    talk(conversation)


def test_no_room_and_errors_of_ours(talk, make_service, monkeypatch) -> None:
    service = make_service(queue=1)
    gate = threading.Event()

    def broken(*words, **options):
        gate.wait()
        raise OSError("/srv/secret")

    monkeypatch.setattr(service._current.active.bundle, "answer", broken)

    async def many(client):
        calls = [asyncio.create_task(client.call_tool("search", {"query": "a"})) for _ in range(8)]
        await asyncio.wait(calls, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        gate.set()
        return await asyncio.gather(*calls)

    said = [result.content[0].text for result in talk(many, service)]
    assert any("too many requests wait already" in sentence for sentence in said)
    assert "the request failed; see the log of the service" in said
    assert not any("secret" in sentence for sentence in said)


def test_over_http_an_agent_needs_the_token(service, tmp_path) -> None:
    (tmp_path / "tokens").write_text("s3cret" * 4)
    access = Access(None, Tokens(tmp_path / "tokens"))

    async def ask(**options):
        async with over_http(service, "auto", access, **options) as client:
            return await client.call_tool("search", {"query": "keys", "top_n": 1})

    known = asyncio.run(ask(headers={"authorization": "Bearer " + "s3cret" * 4}))
    assert len(known.structured_content["hits"]) == 1
    with pytest.raises(BaseExceptionGroup):
        asyncio.run(ask())


def test_only_messages_are_taken_and_nothing_is_kept(service, ask) -> None:
    async def talk(client):
        app = client._transport.app
        async with app.router.lifespan_context(app):
            page = {"origin": "https://evil.example"}
            accept = {"accept": "application/json, text/event-stream"}
            hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            return [
                await client.get("/mcp"),
                await client.delete("/mcp"),
                await client.post("/mcp", json=hello, headers=page),
                await client.post("/mcp", content=b"{", headers={**accept, "content-type": "application/json"}),
                await client.post("/mcp", json=hello, headers=accept),
            ]

    *refused, answered = ask(service, talk)
    assert [each.status_code for each in refused] == [405, 405, 403, 400]
    assert answered.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in answered.headers
    assert len(answered.json()["result"]["tools"]) == 5
