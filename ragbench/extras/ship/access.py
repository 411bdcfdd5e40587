"""Who may ask what listens: pages and programs of this machine, or anyone with the bearer token."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.base.types import ConfigError, why_unreadable

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Host names of a service on this machine; with any other, a web page pretends to be this machine."""
MCP = "/mcp"
"""The path of MCP over HTTP."""
_SHORTEST, _LONGEST = 16, 512
_INVALID_REQUEST = -32600  # https://www.jsonrpc.org/specification, section 5.1


def read_token(path: Path) -> str:
    """The bearer token in a file, which contains nothing else. Raises ConfigError; no message quotes a token."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = why_unreadable(error)
        raise ConfigError(f"--token-file {path} cannot be read ({reason}): name a file with a token") from None
    if not _SHORTEST <= len(token) <= _LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"--token-file {path} must contain one token of {_SHORTEST} to {_LONGEST} ASCII characters: "
            "make one with openssl rand -hex 32"
        )
    return token


def _is_local(origin: str) -> bool:
    """Whether the value of the header `Origin` names a page of this machine."""
    return re.sub(r"^https?://|:\d*$", "", origin.lower()) in LOOPBACK


class Guard:
    """ASGI middleware: refuses requests without the token, pages of other hosts, and bodies that arrive too slowly.

    Without a token, a page of another host may not ask: its requests come from the user's browser. A body has `seconds`
    to arrive.
    """

    def __init__(self, app: ASGIApp, token: str | None, seconds: float) -> None:
        self._app = app
        self._token = token
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif (refusal := self._refusal(scope["path"], Headers(scope=scope))) is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, self._in_time(receive), send)

    def _refusal(self, path: str, headers: Headers) -> JSONResponse | None:
        if self._token is None:
            if "origin" not in headers or _is_local(headers["origin"]):
                return None
            return _refuse(path, 403, "the request comes from a web page of another host, which may not search here")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token.encode()):
            return None
        sentence = "no known token: send the header Authorization: Bearer TOKEN"
        return _refuse(path, 401, sentence, {"WWW-Authenticate": "Bearer"})

    def _in_time(self, receive: Receive) -> Receive:
        """`receive` with a limit of time for the messages of the body."""
        deadline = time.monotonic() + self._seconds
        complete = False

        async def receive_in_time() -> Message:
            nonlocal complete
            if complete:
                return await receive()
            try:
                with anyio.fail_after(max(0.0, deadline - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"the request took longer than {self._seconds:g} s to arrive") from None
            complete = not message.get("more_body", False)
            return message

        return receive_in_time


def _refuse(path: str, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal as JSON; for MCP as an error of JSON-RPC, which clients show."""
    if path != MCP:
        return JSONResponse({"error": sentence}, status, headers)
    error = {"code": _INVALID_REQUEST, "message": sentence}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status, headers)
