"""The doorkeeper of the HTTP service: bodies too large or too slow, and too many of one client, never reach it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.serving.limits import Limits
from ragbench.serving.messages import Problem
from ragbench.serving.metrics import Metrics

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names by which a service on this machine is asked; any other comes from a web page that pretends to be it."""

_BODILESS = frozenset({"GET", "HEAD"})
_QUEUED = re.compile("/documents(/.*)?")
"""What waits for a worker though it has no body."""


def problem(status: int, sentence: str, retry_after: int | None = None) -> Response:
    """A refusal as JSON."""
    # Half of a surrogate pair, quoted from a request, cannot be written as UTF-8.
    body = Problem(error=sentence.encode("utf-8", "replace").decode("utf-8")).model_dump_json()
    headers = None if retry_after is None else {"Retry-After": str(retry_after)}
    return Response(body, status, headers, "application/json")


class Guard:
    """ASGI middleware: reads the body of a request within the limits of size and time, and counts responses.

    `hosts`: the names a request may be addressed to, None for any. What is told at once (health, metrics) waits
    for nothing and is not limited.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._hosts = hosts
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 400, 408, 413 or 429."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.responses.labels(str(message["status"])).inc()
            await send(message)

        # Not by Starlette's TrustedHostMiddleware: it answers in plain text, what else is refused here in JSON.
        host = re.sub(r":\d*$", "", dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower())
        if self._hosts is not None and host not in self._hosts:
            elsewhere = problem(400, "the request is addressed to another host: ask 127.0.0.1 or localhost")
            await elsewhere(scope, receive, counted)
        elif scope["method"] not in _BODILESS:
            await self._in_turn(self._whole, scope, receive, counted)
        elif _QUEUED.fullmatch(scope.get("path", "")):
            await self._in_turn(self._app, scope, receive, counted)
        else:
            await self._app(scope, receive, counted)

    async def _in_turn(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """As many requests at once as one client may have."""
        client = (scope.get("client") or ("",))[0]
        if self._under_way[client] >= self._limits.per_client:
            self._metrics.searches.labels("busy").inc()
            sentence = f"{self._limits.per_client} requests of this client are under way: wait for one of them"
            await _last(429, sentence, 1)(scope, receive, send)
            return
        self._under_way[client] += 1
        try:
            await app(scope, receive, send)
        finally:
            self._under_way[client] -= 1
            self._under_way += Counter()  # forgets clients that have none

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then pass the request on."""
        limit, seconds = self._limits.max_body, self._limits.time_limit
        too_large = _last(413, f"the request is larger than {limit} bytes: send less")
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced[:20]) > limit:
            await too_large(scope, receive, send)
            return
        try:
            async with asyncio.timeout(seconds):
                body = await _read(receive, limit)
        except TimeoutError:
            await _last(408, f"the request took longer than {seconds:g} s to arrive")(scope, receive, send)
            return
        if body is None:
            return  # whoever asked has gone
        if len(body) > limit:
            await too_large(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)


def _last(status: int, sentence: str, retry_after: int | None = None) -> Response:
    """A refusal that ends the connection: what is left of the body is not read."""
    refusal = problem(status, sentence, retry_after)
    refusal.headers["Connection"] = "close"
    return refusal


async def _read(receive: Receive, limit: int) -> bytes | None:
    """The body, at most one message beyond `limit` bytes of it; None when the client went away."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > limit or not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first and then whatever comes."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
