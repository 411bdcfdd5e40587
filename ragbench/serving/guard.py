"""The guard of the HTTP service: refuses unknown callers, bodies too large or slow, too many requests of a caller."""

from __future__ import annotations

import re
from collections import Counter

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.boundary.access import Access
from ragbench.boundary.guard import MISDIRECTED, TooLarge, read_body, replay
from ragbench.serving.limits import Limits
from ragbench.serving.messages import Problem
from ragbench.serving.metrics import Metrics

_BODILESS = frozenset({"GET", "HEAD"})
OPEN = frozenset({"/", "/static/search.css", "/static/search.js", "/livez", "/readyz"})
"""Paths that anybody may ask for: whether the service is alive and ready, and a page without data."""

_QUEUED = re.compile("/documents(/.*)?")
"""Paths of requests without a body that wait for a worker."""


def problem(status: int, sentence: str, retry_after: int | None = None) -> Response:
    """A refusal as JSON."""
    # Half of a surrogate pair, quoted from a request, cannot be written as UTF-8.
    body = Problem(error=sentence.encode("utf-8", "replace").decode("utf-8")).model_dump_json()
    headers = None if retry_after is None else {"Retry-After": str(retry_after)}
    return Response(body, status, headers, "application/json")


class Guard:
    """ASGI middleware: reads the body of a request within the limits of size and time, and counts responses.

    Requests that are answered at once (health, metrics) do not wait and do not count as requests under way.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, access: Access) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._access = access
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 400, 401, 403, 408, 413 or 429."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.responses.labels(str(message["status"])).inc()
            await send(message)

        caller = await self._admit(scope)
        scope.setdefault("state", {})["caller"] = "" if isinstance(caller, Response) else caller
        if isinstance(caller, Response):
            await caller(scope, receive, count_and_send)
        elif scope["method"] not in _BODILESS:
            await self._in_turn(caller, self._whole, scope, receive, count_and_send)
        elif _QUEUED.fullmatch(scope.get("path", "")):
            await self._in_turn(caller, self._app, scope, receive, count_and_send)
        else:
            await self._app(scope, receive, count_and_send)

    async def _admit(self, scope: Scope) -> str | Response:
        """The caller, or the refusal."""
        headers = dict(scope["headers"])
        address = (scope.get("client") or ("",))[0]
        # Starlette's TrustedHostMiddleware would answer in plain text; all refusals here are JSON.
        if not self._access.is_addressed(headers.get(b"host", b"")):
            return _last(400, MISDIRECTED)
        if not self._access.is_invited(headers.get(b"origin")):
            return _last(403, "the request comes from a web page of another host, which may not search here")
        if scope.get("path", "") in OPEN and scope["method"] in _BODILESS:
            return address
        caller = self._access.caller(headers.get(b"authorization"), address)
        if caller is None:
            refusal = _last(401, "no known token: send the header Authorization: Bearer TOKEN")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            return refusal
        wait = await self._access.rate.wait(caller) if self._access.rate else 0
        if wait:
            return _last(429, f"{caller} may make {self._access.rate} requests: wait {wait} s", wait)
        return caller

    async def _in_turn(self, caller: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on unless its caller has too many under way."""
        if self._under_way[caller] >= self._limits.per_client:
            self._metrics.searches.labels("busy").inc()
            sentence = f"{self._limits.per_client} requests of this client are under way: wait for one of them"
            await _last(429, sentence, 1)(scope, receive, send)
            return
        self._under_way[caller] += 1
        try:
            await app(scope, receive, send)
        finally:
            self._under_way[caller] -= 1
            self._under_way += Counter()  # forgets callers that have none

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then pass the request on."""
        seconds = self._limits.time_limit
        try:
            body = await read_body(scope, receive, self._limits.max_body, seconds)
        except TooLarge as error:
            await _last(413, f"the request is larger than {error.limit} bytes: send less")(scope, receive, send)
        except TimeoutError:
            await _last(408, f"the request took longer than {seconds:g} s to arrive")(scope, receive, send)
        else:
            if body is not None:  # else the client has gone
                await self._app(scope, replay(body, receive), send)


def _last(status: int, sentence: str, retry_after: int | None = None) -> Response:
    """A refusal that ends the connection, since the rest of the body is not read."""
    refusal = problem(status, sentence, retry_after)
    refusal.headers["Connection"] = "close"
    return refusal
