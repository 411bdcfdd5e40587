"""The MCP server, asked by the SDK's own client in this process, in the old way of connecting and the new."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import threading
import traceback
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.mcp import create_server
from ragbench.extras.ship.serving.messages import SearchAnswer, SearchFilters
from ragbench.extras.ship.serving.service import WAITING, SearchService
from ragbench.extras.ship.serving.tools import AgentTools, HypothesisTool
from ragbench.search.engine.answer import SearchOptions
from ragbench.search.engine.context import count_tokens


@asynccontextmanager
async def over_http(service: SearchService, mode: str, token: str | None = None, **options):
    """A client of the service's HTTP application."""
    app = create_app(service, token)
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


def test_agent_searches_reads_and_cites(talk, service) -> None:
    async def conversation(client):
        assert "path#heading:lines" in client.instructions
        result = await client.call_tool("search", {"query": "how do programs prove their identity", "max_tokens": 300})
        assert result.structured_content is None
        text = result.content[0].text
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

    talk(conversation)


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
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
def test_hostile_arguments_get_a_sentence(service, tool: str, arguments: dict, reason: str) -> None:
    async def session():
        async with Client(create_server(service)) as client:
            return await client.call_tool(tool, arguments)

    assert reason in asyncio.run(session()).content[0].text


def test_search_as_xml_answers_as_over_http(talk, post) -> None:
    query, options = "how do programs prove their identity", {"top_n": 2, "format": "xml"}
    result = talk(lambda client: client.call_tool("search", {"query": query, "options": options}))
    text = result.content[0].text
    assert text == result.structured_content["context"] == post({"query": query, **options}).json()["context"]
    assert text.startswith("<searchResults>\n<document>\n<id>1</id>") and text.count("<modified>") == 2
    assert post({"query": query, "top_n": 2}).json()["context"] is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "query: field required"),
        ({"query": "a", "top_n": 1}, "top_n: extra inputs are not permitted"),
        ({"query": "a", "options": {"top_n": 101}}, "top_n: input should be less than or equal to 100"),
        ({"query": " "}, "the query is empty"),
        ({"query": "a", "options": {"filters": {"doc_type": "poem"}}}, "filters.doc_type must be one of"),
        ({"query": "a", "options": {"filters": {"colour": "red"}}}, "no document has 'colour' in its frontmatter"),
    ],
)
def test_invalid_arguments_get_the_reason(talk, arguments: dict, reason: str) -> None:
    result = talk(lambda client: client.call_tool("search", arguments))
    assert result.is_error
    assert reason in result.content[0].text


def test_hypothesis_tool_requires_a_hypothesis_and_a_pipeline_that_embeds_it(talk) -> None:
    arguments = {"query": "tokens", "hypothesis": "Programs prove who they are with tokens."}
    (refused,) = talk(lambda client: client.call_tool("search_with_hypothesis", arguments)).content
    assert "hypothesis cannot be used" in refused.text
    without = talk(lambda client: client.call_tool("search_with_hypothesis", {"query": "tokens"}))
    assert without.is_error and "hypothesis: field required" in without.content[0].text


@pytest.mark.parametrize(
    ("arguments", "query", "top_n"),
    [
        ({}, "Programs use tokens.", 5),
        ({"query": "tokens", "top_n": 7}, "tokens", 7),
        ({"options": {"top_n": 8}}, "Programs use tokens.", 8),
    ],
)
def test_hypothesis_alone_is_searched_for_five_hits(service, monkeypatch, arguments, query: str, top_n: int) -> None:
    """Seed 001, HyDE: `hypothesis` is required, `top_n` is optional, 5 without it."""
    requests = []

    async def search(request, session):
        requests.append(request)
        return SearchAnswer.model_construct(context="text", hits=[])

    monkeypatch.setattr(service, "search", search)
    tool = HypothesisTool.model_validate({"hypothesis": "Programs use tokens.", **arguments})
    asyncio.run(AgentTools(service).search_with_hypothesis(tool, ""))
    assert [(request.query, request.hypothesis, request.top_n) for request in requests] == [
        (query, "Programs use tokens.", top_n)
    ]


def test_unknown_tool_is_an_error(talk) -> None:
    async def conversation(client):
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("delete", {})

    talk(conversation)


def test_full_queue_and_internal_errors_get_a_sentence(talk, make_service, monkeypatch) -> None:
    service = make_service()
    gate = threading.Event()

    def broken(*given, **options):
        gate.wait()
        raise OSError("/srv/secret")

    monkeypatch.setattr(service._opened.bundle, "answer", broken)

    async def many(client):
        calls = [asyncio.create_task(client.call_tool("search", {"query": "a"})) for _ in range(WAITING + 8)]
        await asyncio.wait(calls, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        gate.set()
        return await asyncio.gather(*calls)

    sentences = {result.content[0].text for result in talk(many, service)}
    assert sentences == {
        "too many requests wait already: try again in 1 s",
        "the request failed; see the log of the service",
    }


def test_agent_over_http_needs_the_token(service) -> None:
    token = "s3cret" * 4

    async def call(**options):
        async with over_http(service, "auto", token, **options) as client:
            return await client.call_tool("outline", {})

    answer = asyncio.run(call(headers={"authorization": f"Bearer {token}"}))
    assert answer.content[0].text.startswith("all: 19 documents")
    with pytest.raises(BaseExceptionGroup) as refused:
        asyncio.run(call())
    assert "no known token" in "".join(traceback.format_exception(refused.value))


def test_mcp_over_http_takes_messages_only_and_keeps_no_session(service, ask) -> None:
    async def talk(client):
        app = client._transport.app
        async with app.router.lifespan_context(app):
            page = {"origin": "https://evil.example"}
            accept = {"accept": "application/json, text/event-stream"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            return [
                await client.get("/mcp"),
                await client.delete("/mcp"),
                await client.post("/mcp", json=message, headers=page),
                await client.post("/mcp", content=b"{", headers={**accept, "content-type": "application/json"}),
                await client.post("/mcp", json=message, headers=accept),
            ]

    *refused, answered = ask(service, talk)
    assert [response.status_code for response in refused] == [405, 405, 403, 400]
    assert answered.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in answered.headers
    assert len(answered.json()["result"]["tools"]) == 5
