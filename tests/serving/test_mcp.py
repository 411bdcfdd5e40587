"""The MCP server, asked by the SDK's own client in this process, in the old way of connecting and the new."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading

import pytest
from mcp import Client, MCPError

from ragbench.engine.request import SearchOptions
from ragbench.serving.mcp import METRICS, create_server
from ragbench.serving.messages import SearchAnswer


@pytest.fixture(params=["legacy", "auto"])
def talk(request, service):
    def run(conversation, with_service=service):
        async def session():
            async with Client(create_server(with_service), mode=request.param) as client:
                return await conversation(client)

        return asyncio.run(session())

    return run


def test_tools_are_described_by_the_schemas_of_the_service(talk, service) -> None:
    tools = {tool.name: tool for tool in talk(lambda client: client.list_tools()).tools}
    assert set(tools) == {"search", "get_document", "list_documents", "health"}
    properties = tools["search"].input_schema["properties"]
    options = {field.name for field in dataclasses.fields(SearchOptions)}
    assert set(properties) == {"query", "top_n", "filters", "explain", *options}
    assert properties["top_n"]["maximum"] == service.limits.max_top
    assert tools["search"].annotations.read_only_hint
    assert "19 documents" in tools["search"].description


def test_search_answers_as_over_http(talk, post) -> None:
    asked = {"query": "how do programs prove their identity", "top_n": 3, "filters": {"min_bytes": 10}}
    result = talk(lambda client: client.call_tool("search", asked))
    assert not result.is_error
    assert result.structured_content["hits"] == post(asked).json()["hits"]
    SearchAnswer.model_validate_json(result.content[0].text)
    assert json.loads(result.content[0].text) == result.structured_content


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


def test_health_and_metrics(talk) -> None:
    assert talk(lambda client: client.call_tool("health", {})).structured_content["documents"] == 19
    assert [str(each.uri) for each in talk(lambda client: client.list_resources()).resources] == [METRICS]
    assert "ragbench_documents 19.0" in talk(lambda client: client.read_resource(METRICS)).contents[0].text


def test_what_does_not_exist(talk) -> None:
    async def conversation(client):
        with pytest.raises(MCPError, match="there is no such tool"):
            await client.call_tool("delete", {})
        with pytest.raises(MCPError, match="there is no such resource"):
            await client.read_resource("file:///etc/passwd")

    talk(conversation)


def test_no_room_and_errors_of_ours(talk, make_service, monkeypatch) -> None:
    service = make_service(queue=1)
    gate = threading.Event()

    def broken(*words, **options):
        gate.wait()
        raise OSError("/srv/secret")

    monkeypatch.setattr(service._current.opened.bundle, "answer", broken)

    async def many(client):
        calls = [asyncio.create_task(client.call_tool("search", {"query": "a"})) for _ in range(8)]
        await asyncio.wait(calls, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        gate.set()
        return await asyncio.gather(*calls)

    said = [result.content[0].text for result in talk(many, service)]
    assert any("too many requests wait already" in sentence for sentence in said)
    assert "the request failed; the log of the service says why" in said
    assert not any("secret" in sentence for sentence in said)
