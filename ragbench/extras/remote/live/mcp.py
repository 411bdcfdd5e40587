"""One call of a search tool of an MCP server."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal

from ragbench.base.types import ConfigError
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.boundary.json import read_json
from ragbench.extras.remote.live.client import NO_FILTER, Ask, RequestFailed, fill_in

if TYPE_CHECKING:
    from mcp.types import CallToolResult

_LARGEST_ANSWER = 20_000_000


def asking(server: str | Sequence[str], tool: str, arguments: Mapping[str, Any], timeout_s: float) -> Ask:
    """A function that calls the tool and gives its structured content, else the JSON or the text of its content.

    `server` is the address of a server over HTTP, or the program of one over standard input and output, which is
    started with the first call and ended with this process. Raises ConfigError without the package mcp.
    """
    if find_spec("mcp") is None:
        raise ConfigError("a search by an MCP server needs the package mcp: pip install mcp")
    connected: list[_Session] = []

    def close() -> None:
        for session in connected:
            session.close()

    def ask(query: str, depth: int, conditions: QueryFilter = NO_FILTER, /) -> Any:
        if not connected:
            connected.append(_Session(server, timeout_s))
        return _value(connected[0].call(tool, fill_in(arguments, query, depth, conditions)))

    weakref.finalize(ask, close)
    return ask


class _Session:
    """A connection to a server, on an event loop of its own thread, until it is closed or the process ends."""

    def __init__(self, server: str | Sequence[str], timeout_s: float) -> None:
        from mcp import Client

        self._open = contextlib.ExitStack()
        try:
            self._portal = self._open.enter_context(start_blocking_portal())
            client = Client(server if isinstance(server, str) else _started(server), read_timeout_seconds=timeout_s)
            self._client = self._open.enter_context(self._portal.wrap_async_context_manager(client))
        except Exception as error:
            self.close()
            raise RequestFailed(f"no connection ({_reason(error)})") from None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The tool's result. RequestFailed when there is none."""
        try:
            result: CallToolResult = self._portal.call(self._client.call_tool, tool, dict(arguments))
            return result
        except Exception as error:
            raise RequestFailed(_reason(error)) from None

    def close(self) -> None:
        """End the connection, and the server's process where there is one."""
        with contextlib.suppress(Exception):
            self._open.close()


def _started(program: Sequence[str]) -> Any:
    """A program as a server, whose messages go to the error stream of this process: a notebook's has no file."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=program[0], args=list(program[1:]))
    return stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr)


def _value(result: CallToolResult) -> Any:
    text = "\n".join(getattr(part, "text", "") for part in result.content)
    if result.is_error:
        raise RequestFailed(f"the tool says: {text[:120]}", again=False)
    if result.structured_content is not None:
        return result.structured_content
    try:
        return read_json(text, max_bytes=_LARGEST_ANSWER)
    except ValueError:
        return text


def _reason(error: BaseException) -> str:
    """The first sentence of an error, of the first inside a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error).splitlines() or [""])[0][:160] or type(error).__name__
