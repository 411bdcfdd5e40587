"""The service over MCP: tools to search and read, documents as resources, the resource `ragbench://metrics`."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio
from mcp import MCPError, types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ValidationError

from ragbench.corpus.reader import docno_of
from ragbench.extras.ship.serving import tools
from ragbench.extras.ship.serving.messages import DocumentRequest, ListRequest, Nothing, first_sentence
from ragbench.extras.ship.serving.search_log import new_session, session_of
from ragbench.extras.ship.serving.service import Refused, SearchService

_LOG = logging.getLogger(__name__)

METRICS = "ragbench://metrics"
DOCUMENTS = "docs:///"
_PAGE = 500
T = TypeVar("T")


@dataclass(frozen=True)
class _Tool:
    """A tool: its parameters, and the function that answers a call in a session. Hidden tools are those of 0.1."""

    name: str
    description: str
    parameters: type[BaseModel]
    call: Callable[[dict[str, Any], str], Awaitable[types.CallToolResult]]
    hidden: bool = False

    def describe(self) -> types.Tool:
        """The tool as clients see it, without what a model does not need to call it."""
        schema = self.parameters.model_json_schema()
        for described in (schema, *schema["properties"].values()):
            described.pop("title", None)
        schema.pop("description", None)
        return types.Tool(
            name=self.name,
            description=self.description,
            input_schema=schema,
            annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        )


def _tools(service: SearchService) -> list[_Tool]:
    """The tools: first those that are listed."""
    agents = tools.AgentTools(service)

    def searching(name: str, description: str, model: type[tools.SearchTool] | type[tools.HypothesisTool]) -> _Tool:
        async def search(arguments: dict[str, Any], session: str) -> types.CallToolResult:
            request = tools.search_request(service, arguments, model)
            answer = await service.search(request, session)
            return _result(tools.search_text(request, answer), None if request.format == "markdown" else answer)

        return _Tool(name, description, model, search)

    def text(name: str, description: str, model: type[BaseModel], call: Callable[[Any, str], Awaitable[str]]) -> _Tool:
        async def answer(arguments: dict[str, Any], session: str) -> types.CallToolResult:
            return _result(await call(model.model_validate(arguments), session))

        return _Tool(name, description, model, answer)

    def earlier(name: str, model: type[BaseModel], call: Callable[[Any, str], Awaitable[BaseModel]]) -> _Tool:
        async def answer(arguments: dict[str, Any], session: str) -> types.CallToolResult:
            result = await call(model.model_validate(arguments), session)
            return _result(result.model_dump_json(), result)

        return _Tool(name, "", model, answer, hidden=True)

    async def health(_: Any, __: str) -> BaseModel:
        return service.health()

    documents = service.health().documents
    return [
        searching(
            "search",
            f"Search {documents} documents. Returns the best passages that fit into max_tokens, each below its "
            "citation `[n] path#heading:lines`.",
            tools.SearchTool,
        ),
        text("read", "Read a document, or a part of it.", tools.ReadTool, agents.read),
        text(
            "outline",
            "List the headings of a document, or the contents of a folder.",
            tools.OutlineTool,
            agents.outline,
        ),
        text("related", "List the links of a document, and similar documents.", tools.RelatedTool, agents.related),
        searching(
            "search_with_hypothesis",
            "Search with a hypothetical answer (HyDE), if the pipeline supports it.",
            tools.HypothesisTool,
        ),
        earlier("get_document", DocumentRequest, service.get_document),
        earlier("list_documents", ListRequest, lambda request, _: service.list_documents(request)),
        earlier("health", Nothing, health),
    ]


def create_server(service: SearchService) -> Server[Any]:
    """An MCP server with tools for agents, and the documents as resources."""
    session = new_session()
    offered = {tool.name: tool for tool in _tools(service)}

    def session_name(request: Any) -> str:
        return session if request is None else session_of(request)

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.describe() for tool in offered.values() if not tool.hidden])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in offered:
            listed = ", ".join(tool.name for tool in offered.values() if not tool.hidden)
            raise MCPError(types.INVALID_PARAMS, f"no such tool: the tools are {listed}")
        try:
            return await offered[params.name].call(params.arguments or {}, session_name(context.request))
        except ValidationError as error:
            return _error_result(first_sentence(error.errors()))
        except Refused as refusal:
            return _error_result(refusal.sentence)
        except Exception:
            _LOG.exception("a tool failed")
            return _error_result("the request failed; see the log of the service")

    async def list_resources(_: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = params.cursor or "" if params else ""
        page = await _refusing(service.list_documents(ListRequest.model_validate({"after": cursor, "limit": _PAGE})))
        metrics = types.Resource(
            uri=METRICS, name="metrics", description="Counters and times for Prometheus.", mime_type="text/plain"
        )
        documents = [
            types.Resource(
                uri=f"{DOCUMENTS}{quote(document.path)}",
                name=document.path,
                title=document.title,
                mime_type="text/markdown",
            )
            for document in page.documents
        ]
        return types.ListResourcesResult(
            resources=[*documents, *([] if page.next else [metrics])], next_cursor=page.next
        )

    async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri, mime_type = str(params.uri), "text/markdown"
        if uri == METRICS:
            text, mime_type = service.metrics.text().decode(), "text/plain"
        elif uri.startswith(DOCUMENTS):
            request = DocumentRequest.model_validate(
                {"docno": docno_of(unquote(uri.removeprefix(DOCUMENTS)))[:2000] or " "}
            )
            text = (await _refusing(service.get_document(request, session_name(context.request)))).document.text
        else:
            raise MCPError(types.INVALID_PARAMS, f"no such resource: addresses begin with {DOCUMENTS}")
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=mime_type)])

    return Server(
        "ragbench",
        version=version("ragbench"),
        instructions=tools.INSTRUCTIONS.format(documents=service.health().documents),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


async def _refusing(answer: Awaitable[T]) -> T:
    """The answer; MCPError with the sentence of a refusal."""
    try:
        return await answer
    except Refused as refusal:
        raise MCPError(types.INVALID_PARAMS, refusal.sentence) from None


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


def _result(text: str, answer: BaseModel | None = None) -> types.CallToolResult:
    """A text, and the answer as structured content."""
    structured = None if answer is None else answer.model_dump(mode="json")
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=structured)


def _error_result(sentence: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=sentence.encode("utf-8", "replace").decode("utf-8"))
    return types.CallToolResult(content=[text], is_error=True)
