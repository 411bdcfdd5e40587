"""The guard of everything that listens: hosts, bodies within limits of size and time, refusals in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.extras.ship.access import Access

MISDIRECTED = "the request is addressed to another host: ask 127.0.0.1 or localhost"
READS = frozenset({"GET", "HEAD"})
"""Methods of requests without a body."""


class Refusal(Exception):
    """A request is refused: `status` as in HTTP, a sentence for the caller, further headers."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})


class Guard:
    """ASGI middleware: passes a request on when it is addressed to a known host, admitted, and not too large or slow.

    A body has `limit` bytes and `seconds` to arrive. What listens says by overriding the methods below whom it admits,
    what it makes of a body, and how its refusals look.
    """

    def __init__(self, app: ASGIApp, access: Access, limit: int, seconds: float) -> None:
        self._app = app
        self._access = access
        self._limit = limit
        self._seconds = seconds

    async def admit(self, scope: Scope, headers: Mapping[str, str]) -> str | Response:
        """The caller's name, or an answer at once. Raises Refusal. Nothing of a body has been read."""
        raise NotImplementedError

    def refuse(self, scope: Scope, refusal: Refusal) -> Response:
        """What a refused caller gets."""
        raise NotImplementedError

    def turn(self, caller: str, scope: Scope) -> AbstractContextManager[None]:
        """Holds a place for the request while it is read and answered. Raises Refusal when there is none."""
        return nullcontext()

    def read(self, scope: Scope, body: bytes) -> None:
        """Check a body that has arrived. Raises Refusal."""

    def answering(self, scope: Scope, message: Message) -> None:
        """Note or extend the head of an answer or refusal."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse; a caller that has gone gets nothing."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answering(scope, message)
            await send(message)

        try:
            headers = headers_of(scope)
            # Starlette's TrustedHostMiddleware would answer in plain text, whatever form other refusals have.
            if not self._access.is_addressed(headers.get("host", "").encode("latin-1")):
                raise Refusal(400, MISDIRECTED)
            admitted = await self.admit(scope, headers)
            if isinstance(admitted, Response):
                await admitted(scope, receive, answer)
                return
            with self.turn(admitted, scope):
                if scope["method"] not in READS:
                    body = await self._body(scope, receive)
                    if body is None:
                        return
                    self.read(scope, body)
                    receive = _replay(body, receive)
                await self._app(scope, receive, answer)
        except Refusal as refusal:
            response = self.refuse(scope, refusal)
            response.headers.update(refusal.headers)
            response.headers["Connection"] = "close"  # the rest of the body is not read
            await response(scope, receive, answer)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        try:
            return await _read_body(scope, receive, self._limit, self._seconds)
        except TimeoutError:
            raise Refusal(408, f"the request took longer than {self._seconds:g} s to arrive") from None


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by name, in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def _read_body(scope: Scope, receive: Receive, limit: int, seconds: float) -> bytes | None:
    """The body of a request; None when the client has gone. Raises Refusal, and TimeoutError after `seconds`."""
    too_large = Refusal(413, f"the request is larger than {limit} bytes: send less")
    announced = headers_of(scope).get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise too_large
    parts: list[bytes] = []
    size = 0
    async with asyncio.timeout(seconds):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > limit:
                raise too_large
            if not message.get("more_body", False):
                return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first, and then further messages."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
