"""Whom the HTTP service admits: known callers, not too often, and each with so many requests at the same time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Scope

from ragbench.extras.ship import admission as guard
from ragbench.extras.ship.access import Access
from ragbench.extras.ship.admission import READS, Refusal
from ragbench.extras.ship.serving.limits import Limits
from ragbench.extras.ship.serving.messages import Problem
from ragbench.extras.ship.serving.metrics import Metrics

OPEN = frozenset({"/", "/static/search.css", "/static/search.js", "/livez", "/readyz"})
"""Public paths: whether the service is alive and ready, and a page without data."""

MCP = "/mcp"
"""The path of MCP over HTTP."""

_INVALID_REQUEST = -32600  # https://www.jsonrpc.org/specification, section 5.1

_QUEUED = re.compile("/documents(/.*)?")
"""Paths of requests without a body that wait for a worker."""


def problem(status: int, sentence: str, retry_after: int | None = None) -> Response:
    """A refusal as JSON."""
    # Half of a surrogate pair, quoted from a request, cannot be written as UTF-8.
    body = Problem(error=sentence.encode("utf-8", "replace").decode("utf-8")).model_dump_json()
    headers = None if retry_after is None else {"Retry-After": str(retry_after)}
    return Response(body, status, headers, "application/json")


class Guard(guard.Guard):
    """The guard of the service: refuses with 400, 401, 403, 408, 413 or 429 as JSON, and counts responses.

    Requests that are answered at once (health, metrics) do not wait and do not count as requests under way.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, access: Access) -> None:
        super().__init__(app, access, limits.max_body, limits.time_limit)
        self._most = limits.per_client
        self._metrics = metrics
        self._under_way: Counter[str] = Counter()

    async def admit(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """The name of the token, or the address."""
        access, address = self._access, (scope.get("client") or ("",))[0]
        sent = {name: value.encode("latin-1") for name, value in headers.items()}
        if not access.is_invited(sent.get("origin")):
            raise Refusal(403, "the request comes from a web page of another host, which may not search here")
        if scope.get("path", "") in OPEN and scope["method"] in READS:
            return str(address)
        caller = access.caller(sent.get("authorization"), address)
        if caller is None:
            sentence = "no known token: send the header Authorization: Bearer TOKEN"
            raise Refusal(401, sentence, {"WWW-Authenticate": "Bearer"})
        wait = await access.rate.wait(caller) if access.rate else 0
        if wait:
            sentence = f"{caller} may make {access.rate} requests: wait {wait} s"
            raise Refusal(429, sentence, {"Retry-After": str(wait)})
        return caller

    @contextmanager
    def turn(self, caller: str, scope: Scope) -> Iterator[None]:
        """One of the requests that a caller may have under way."""
        if scope["method"] in READS and not _QUEUED.fullmatch(scope.get("path", "")):
            yield
            return
        if self._under_way[caller] >= self._most:
            self._metrics.searches.labels("busy").inc()
            sentence = f"{self._most} requests of this client are under way: wait for one of them"
            raise Refusal(429, sentence, {"Retry-After": "1"})
        self._under_way[caller] += 1
        try:
            yield
        finally:
            self._under_way[caller] -= 1
            self._under_way += Counter()  # forgets callers that have none

    def refuse(self, scope: Scope, refusal: Refusal) -> Response:
        """A refusal as JSON; for MCP as an error of JSON-RPC, which clients show."""
        if scope.get("path") != MCP:
            return problem(refusal.status, refusal.sentence)
        error = {"code": _INVALID_REQUEST, "message": refusal.sentence}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, refusal.status)

    def answering(self, scope: Scope, message: Message) -> None:
        """Count it."""
        self._metrics.responses.labels(str(message["status"])).inc()
