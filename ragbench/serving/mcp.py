"""The service over MCP: the tools `search` and `health`, the resource `ragbench://metrics`."""

from __future__ import annotations

import os
import signal
from importlib.metadata import version
from typing import Any

import anyio
from mcp import MCPError, types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ValidationError

from ragbench.serving.http import first_sentence
from ragbench.serving.messages import Health, SearchAnswer, request_type
from ragbench.serving.service import LOG, Refused, SearchService

METRICS = "ragbench://metrics"


def create_server(service: SearchService) -> Server[Any]:
    """An MCP server whose tools take and give what the HTTP service does."""
    request = request_type(service.limits)
    about = service.health()
    reads_only = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    tools = [
        types.Tool(
            name="search",
            title="Search the documentation",
            description=f"Search {about.documents} documents. Answers with passages, best first, each with its "
            "document and headings.",
            input_schema=request.model_json_schema(),
            output_schema=SearchAnswer.model_json_schema(),
            annotations=reads_only,
        ),
        types.Tool(
            name="health",
            title="What is being searched",
            description="Says how many documents can be found and by which steps hits are ranked.",
            input_schema={"type": "object", "properties": {}, "additionalProperties": False},
            output_schema=Health.model_json_schema(),
            annotations=reads_only,
        ),
    ]

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if params.name == "health":
                return _answered(service.health())
            if params.name == "search":
                return _answered(await service.search(request.model_validate(params.arguments or {})))
        except ValidationError as error:
            return _refused(first_sentence(error.errors()))
        except Refused as refusal:
            return _refused(refusal.sentence)
        except Exception:
            LOG.exception("a tool failed")
            return _refused("the request failed; the log of the service says why")
        raise MCPError(types.INVALID_PARAMS, "there is no such tool: the tools are search and health")

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


def _answered(answer: BaseModel) -> types.CallToolResult:
    text = types.TextContent(type="text", text=answer.model_dump_json())
    return types.CallToolResult(content=[text], structured_content=answer.model_dump(mode="json"))


def _refused(sentence: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=sentence.encode("utf-8", "replace").decode("utf-8"))
    return types.CallToolResult(content=[text], is_error=True)
