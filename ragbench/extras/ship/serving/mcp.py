"""The service over MCP: the tools for agents."""

from __future__ import annotations

import logging
import os
import signal
from importlib.metadata import version
from typing import Any

import anyio
from mcp import MCPError, types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from ragbench.extras.ship.serving.messages import first_sentence
from ragbench.extras.ship.serving.search_log import new_session, session_of
from ragbench.extras.ship.serving.service import SearchService
from ragbench.extras.ship.serving.tools import INSTRUCTIONS, Tool, tools

_LOG = logging.getLogger(__name__)


def create_server(service: SearchService) -> Server[Any]:
    """An MCP server with tools for agents."""
    session = new_session()
    offered = {tool.name: tool for tool in tools(service)}

    def session_name(request: Any) -> str:
        return session if request is None else session_of(request)

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in offered.values()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"no such tool: the tools are {', '.join(offered)}")
        try:
            arguments = tool.parameters.model_validate(params.arguments or {})
            result = await tool.call(arguments, session_name(context.request))
        except ValidationError as error:
            return _refusal(first_sentence(error.errors()))
        except HTTPException as refusal:
            return _refusal(refusal.detail)
        except Exception:
            _LOG.exception("a tool failed")
            return _refusal("the request failed; see the log of the service")
        structured = None if result.answer is None else result.answer.model_dump(mode="json")
        text = types.TextContent(type="text", text=result.text)
        return types.CallToolResult(content=[text], structured_content=structured)

    return Server(
        "ragbench",
        version=version("ragbench"),
        instructions=INSTRUCTIONS.format(documents=service.health().documents),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def run(service: SearchService) -> None:
    """Serve over standard input and output until the input ends, SIGTERM or Ctrl-C."""
    anyio.run(_run, service)


async def _run(service: SearchService) -> None:
    server = create_server(service)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, service)
        group.start_soon(service.follow)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _stop_on_signal(service: SearchService) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            service.close()
            os._exit(0)  # the thread that reads standard input cannot be interrupted otherwise


def _described(tool: Tool) -> types.Tool:
    """The tool as clients see it, without what a model does not need to call it."""
    schema = tool.parameters.model_json_schema()
    for described in (schema, *schema["properties"].values()):
        described.pop("title", None)
    schema.pop("description", None)
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )


def _refusal(sentence: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=sentence.encode("utf-8", "replace").decode("utf-8"))
    return types.CallToolResult(content=[text], is_error=True)
