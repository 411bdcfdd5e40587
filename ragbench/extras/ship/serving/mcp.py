"""The service over MCP: tools to search, to read and to list documents, the resource `ragbench://metrics`."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import anyio
from mcp import MCPError, types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ValidationError

from ragbench.extras.ship.serving.messages import (
    DocumentAnswer,
    DocumentList,
    DocumentRequest,
    Health,
    ListRequest,
    Nothing,
    SearchAnswer,
    first_sentence,
    hypothesis_request_type,
    request_type,
)
from ragbench.extras.ship.serving.search_log import new_session, session_of
from ragbench.extras.ship.serving.service import LOG, Refused, SearchService

METRICS = "ragbench://metrics"


@dataclass(frozen=True)
class _Tool:
    """A tool: its request and its answer as models of messages, and the function that answers in a session."""

    name: str
    title: str
    description: str
    request_model: type[BaseModel]
    answer_model: type[BaseModel]
    call: Callable[[Any, str], Awaitable[BaseModel]]

    def describe(self) -> types.Tool:
        """The tool as clients see it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.request_model.model_json_schema(),
            output_schema=self.answer_model.model_json_schema(mode="serialization"),
            annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        )


def create_server(service: SearchService) -> Server[Any]:
    """An MCP server whose tools have the same requests and answers as the HTTP service."""
    request = request_type(service.limits)
    about = service.health()
    session = new_session()
    offered = [
        _Tool(
            "search",
            "Search the documentation",
            f"Search {about.documents} documents. Answers with passages, best first, each with its document, headings, "
            "lines and what is known about the document.",
            request,
            SearchAnswer,
            service.search,
        ),
        _Tool(
            "search_with_hypothesis",
            "Search by a supposed answer",
            "Like `search`, but embeds the passage `hypothesis`, which might answer the query, in place of the query "
            "(HyDE). Refused where the pipeline embeds none.",
            hypothesis_request_type(service.limits),
            SearchAnswer,
            service.search,
        ),
        _Tool(
            "get_document",
            "Read a document",
            "Read a document that a hit names by its `docno`, whole or some lines of its file.",
            DocumentRequest,
            DocumentAnswer,
            service.get_document,
        ),
        _Tool(
            "list_documents",
            "List documents",
            "List documents by the beginning of their ids (folders) and by what is known about them.",
            ListRequest,
            DocumentList,
            lambda wanted, _: service.list_documents(wanted),
        ),
        _Tool(
            "health",
            "What is being searched",
            "Says how many documents can be found and by which steps hits are ranked.",
            Nothing,
            Health,
            lambda _, __: _at_once(service.health()),
        ),
    ]
    tools = {tool.name: tool for tool in offered}

    def session_name(request: Any) -> str:
        return session if request is None else session_of(request)

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.describe() for tool in offered])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"there is no such tool: the tools are {', '.join(tools)}")
        tool = tools[params.name]
        try:
            return _answer_result(
                await tool.call(
                    tool.request_model.model_validate(params.arguments or {}), session_name(context.request)
                )
            )
        except ValidationError as error:
            return _error_result(first_sentence(error.errors()))
        except Refused as refusal:
            return _error_result(refusal.sentence)
        except Exception:
            LOG.exception("a tool failed")
            return _error_result("the request failed; the log of the service says why")

    async def list_resources(_: Any, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        described = "Counters and times in Prometheus' text form."
        return types.ListResourcesResult(
            resources=[types.Resource(uri=METRICS, name="metrics", description=described, mime_type="text/plain")]
        )

    async def read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if str(params.uri) != METRICS:
            raise MCPError(types.INVALID_PARAMS, f"there is no such resource: the only one is {METRICS}")
        text = service.metrics.text().decode()
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=METRICS, text=text, mime_type="text/plain")]
        )

    return Server(
        "ragbench",
        version=version("ragbench"),
        instructions=f"Search a documentation of {about.documents} documents with the tool `search`.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def run(service: SearchService) -> None:
    """Serve over standard input and output until the input ends, SIGTERM or Ctrl-C."""
    anyio.run(_run, service)


async def _run(service: SearchService) -> None:
    server = create_server(service)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, service)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _stop_on_signal(service: SearchService) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            await anyio.to_thread.run_sync(service.close)
            os._exit(0)  # the thread that reads standard input cannot be interrupted otherwise


async def _at_once(answer: BaseModel) -> BaseModel:
    return answer


def _answer_result(answer: BaseModel) -> types.CallToolResult:
    """The answer as structured content, and as text: JSON, or the XML that the request asked for."""
    text = types.TextContent(type="text", text=getattr(answer, "context", None) or answer.model_dump_json())
    return types.CallToolResult(content=[text], structured_content=answer.model_dump(mode="json"))


def _error_result(sentence: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=sentence.encode("utf-8", "replace").decode("utf-8"))
    return types.CallToolResult(content=[text], is_error=True)
