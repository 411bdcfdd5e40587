"""The service over HTTP: POST /search, GET /documents, GET /health, GET /metrics, GET /openapi.json, MCP at /mcp.

In a browser, GET / is a page to search with. It contains no data: it asks for them with the token that is typed in.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.extras.ship import access
from ragbench.extras.ship.access import READS, Access, Refusal
from ragbench.extras.ship.serving import messages
from ragbench.extras.ship.serving.mcp import create_server
from ragbench.extras.ship.serving.metrics import CONTENT_TYPE, Metrics
from ragbench.extras.ship.serving.search_log import session_of
from ragbench.extras.ship.serving.service import Refused, SearchService

_LOG = logging.getLogger(__name__)

OPEN = frozenset({"/", "/static/search.css", "/static/search.js", "/livez", "/readyz"})
"""Public paths: whether the service is alive and ready, and a page without data."""
MCP = "/mcp"
"""The path of MCP over HTTP."""
_INVALID_REQUEST = -32600  # https://www.jsonrpc.org/specification, section 5.1
_QUEUED = re.compile("/documents(/.*)?")
"""Paths of requests without a body that wait for a worker."""
FILES = {"search.css": "text/css", "search.js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.Problem, "description": description}
    for status, description in {
        400: "The request is not readable.",
        401: "The token is missing or unknown.",
        403: "A web page of another host asks.",
        404: "No such document.",
        408: "The request took too long to arrive.",
        413: "The request is too large.",
        422: "A value cannot be used.",
        429: "The caller has too many requests under way, or asks too often; Retry-After has the time to wait.",
        500: "The search failed.",
        503: "Too many requests wait; Retry-After has the time to wait.",
        504: "The search took too long.",
    }.items()
}
_ASK = {
    "POST /search": '{"query": "...", "top_n": 10}',
    "GET /documents": "the documents",
    "GET /documents/{docno}": "one of them",
    "GET /health": "what is served",
    "GET /livez": "whether the service lives",
    "GET /readyz": "whether it takes requests",
    "GET /metrics": "counters and times",
    "GET /openapi.json": "all of this in full",
    "POST /mcp": "the same for agents: MCP over streamable HTTP",
}


def problem(status: int, sentence: str, retry_after: int | None = None) -> Response:
    """A refusal as JSON."""
    # Half of a surrogate pair, quoted from a request, cannot be written as UTF-8.
    body = messages.Problem(error=sentence.encode("utf-8", "replace").decode("utf-8")).model_dump_json()
    headers = None if retry_after is None else {"Retry-After": str(retry_after)}
    return Response(body, status, headers, "application/json")


class Guard(access.Guard):
    """The guard of the service: refuses with 400, 401, 403, 408, 413 or 429 as JSON, and counts responses.

    Requests that are answered at once (health, metrics) do not wait and do not count as requests under way.
    """

    def __init__(self, app: ASGIApp, limits: messages.Limits, metrics: Metrics, access: Access) -> None:
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


def page() -> Response:
    """The page itself."""
    return Response(_read("search.html"), headers={**_HEADERS, "Vary": "Accept"}, media_type="text/html")


async def static(request: Request) -> Response:
    """Its style or its script."""
    name = request.url.path.rpartition("/")[2]
    return Response(_read(name), headers=_HEADERS, media_type=FILES[name])


@cache
def _read(name: str) -> bytes:
    return files("ragbench.extras.ship.serving").joinpath("static", name).read_bytes()


class Life(BaseModel):
    """Whether the service is alive, is ready, or is about to end."""

    status: Literal["alive", "ready", "leaving"]


class Welcome(BaseModel):
    """What is served, and what can be asked."""

    ragbench: str
    ask: dict[str, str]


class _McpEndpoint:
    """MCP over streamable HTTP: an ASGI application that answers while its manager runs.

    No session is kept between requests, and every answer is one JSON object, so a service may be restarted, or asked
    through a proxy that distributes requests to several services.
    """

    manager: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.manager.handle_request(scope, receive, send)


def create_app(service: SearchService, access: Access | None = None) -> FastAPI:
    """The application; without `access`, it answers all requests to the host names of this machine."""
    access = access or Access()
    agents = _McpEndpoint()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        limit = service.limits.max_body
        agents.manager = StreamableHTTPSessionManager(
            create_server(service), stateless=True, json_response=True, max_request_body_size=limit
        )
        async with agents.manager.run():
            yield

    app = FastAPI(
        lifespan=lifespan,
        title="ragbench",
        version=version("ragbench"),
        description="Search a documentation with a measured pipeline.",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if access.tokens else [],  # described here, asked by Guard
    )

    async def search(request: messages.SearchRequest, asking: Request) -> Response:
        """The best hits for a query."""
        answer = await service.search(request, session_of(asking))
        return _json(answer.model_copy(update={"hits": []}) if request.format == "markdown" else answer)

    search.__annotations__["request"] = messages.request_type(service.limits)  # so that the schema states the limits
    app.post("/search", response_model=messages.SearchAnswer, responses=_REFUSALS)(search)

    @app.get("/documents", response_model=messages.DocumentList, responses=_REFUSALS)
    async def list_documents(request: Annotated[messages.ListRequest, Query()]) -> Response:
        """The documents, in the order of their ids."""
        return _json(await service.list_documents(request))

    @app.get("/documents/{docno:path}", response_model=messages.DocumentAnswer, responses=_REFUSALS)
    async def get_document(
        docno: Annotated[str, Path(min_length=1, max_length=2000)],
        lines: Annotated[messages.Lines, Query()],
        asking: Request,
    ) -> Response:
        """A document, or some lines of its file."""
        request = messages.DocumentRequest(docno=docno, **lines.model_dump())
        return _json(await service.get_document(request, session_of(asking)))

    @app.get("/", response_model=Welcome)
    async def welcome(asking: Request) -> Response:
        """What can be asked here; in a browser, a page to search with."""
        if "text/html" in asking.headers.get("accept", ""):
            return page()
        answer = _json(Welcome(ragbench="a search service", ask=_ASK))
        answer.headers["Vary"] = "Accept"
        return answer

    @app.get("/livez")
    async def lives() -> Life:
        """The process answers; if it does not, restart it."""
        return Life(status="alive")

    @app.get("/readyz", responses={503: {"model": Life, "description": "The service is about to end."}})
    async def ready() -> Response:
        """Whether to send requests here; False once the service is shutting down."""
        answer = _json(Life(status="leaving" if service.leaving else "ready"))
        answer.status_code = 503 if service.leaving else 200
        return answer

    @app.get(
        "/health",
        response_model=messages.Health,
        responses={503: {"model": messages.Health, "description": "Searches fail."}},
    )
    async def health() -> Response:
        """What is being searched, and how; 503 while golden queries fail."""
        answer = _json(status := service.health())
        answer.status_code = 200 if status.status == "ok" else 503
        return answer

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters and times in Prometheus' text form."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    app.router.routes += [Route(f"/static/{name}", static) for name in FILES]
    app.router.routes.append(Route(MCP, agents, methods=["POST"]))

    @app.exception_handler(Refused)
    async def refused(_: Request, refusal: Refused) -> Response:
        return problem(refusal.status, refusal.sentence, refusal.retry_after)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        service.metrics.searches.labels("refused").inc()
        errors = [
            {**detail, "loc": detail["loc"][1:]} for detail in error.errors()
        ]  # the first part is body, query or path
        return problem(422, messages.first_sentence(errors))

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: HTTPException) -> Response:
        response = problem(error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        _LOG.error("a request failed", exc_info=error)
        return problem(500, "the request failed; see the log of the service")

    app.add_middleware(Guard, limits=service.limits, metrics=service.metrics, access=access)
    return app


def _json(answer: BaseModel) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")
