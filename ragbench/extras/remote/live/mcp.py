"""One call of a search tool of an MCP server."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import ConfigError
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.boundary.json import read_json
from ragbench.extras.remote.live.client import NO_FILTER, Ask, RequestFailed, fill_in

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

_CLOSING_S = 5.0
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
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        opened: Future[Client] = Future()
        self._ended = asyncio.run_coroutine_threadsafe(self._hold(server, timeout_s, opened), self._loop)
        try:
            self._client = opened.result()
        except Exception as error:
            self.close()
            raise RequestFailed(f"no connection ({_reason(error)})") from None

    async def _hold(self, server: str | Sequence[str], timeout_s: float, opened: Future[Client]) -> None:
        try:
            from mcp import Client

            target = server if isinstance(server, str) else _started(server)
            async with Client(target, read_timeout_seconds=timeout_s) as client:
                opened.set_result(client)
                await self._stop.wait()
        except Exception as error:
            if not opened.done():
                opened.set_exception(error)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The tool's result. RequestFailed when there is none."""
        try:
            future = asyncio.run_coroutine_threadsafe(self._client.call_tool(tool, dict(arguments)), self._loop)
            return future.result()
        except Exception as error:
            raise RequestFailed(_reason(error)) from None

    def close(self) -> None:
        """End the connection, and the server's process where there is one."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            with contextlib.suppress(Exception):
                self._ended.result(_CLOSING_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSING_S)
            self._loop.close()


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
