"""The service over HTTP: POST /search, GET /documents, GET /health, GET /metrics, GET /openapi.json, MCP at /mcp."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from ragbench.extras.ship.access import Access
from ragbench.extras.ship.serving.endpoint import McpEndpoint
from ragbench.extras.ship.serving.guard import MCP, Guard, problem
from ragbench.extras.ship.serving.messages import (
    DocumentAnswer,
    DocumentList,
    DocumentRequest,
    Health,
    Lines,
    ListRequest,
    Problem,
    SearchAnswer,
    SearchRequest,
    first_sentence,
    request_type,
)
from ragbench.extras.ship.serving.metrics import CONTENT_TYPE
from ragbench.extras.ship.serving.page import page, routes, wants_page
from ragbench.extras.ship.serving.search_log import session_of
from ragbench.extras.ship.serving.service import LOG, Refused, SearchService

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
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


class Life(BaseModel):
    """Whether the service is alive, is ready, or is about to end."""

    status: Literal["alive", "ready", "leaving"]


class Welcome(BaseModel):
    """What is served, and what can be asked."""

    ragbench: str
    ask: dict[str, str]


def create_app(service: SearchService, access: Access | None = None) -> FastAPI:
    """The application; without `access`, it answers all requests to the host names of this machine."""
    access = access or Access()
    agents = McpEndpoint(service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with agents.open():
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

    async def search(request: SearchRequest, asking: Request) -> Response:
        """The best hits for a query."""
        answer = await service.search(request, session_of(asking))
        return _json(answer.model_copy(update={"hits": []}) if request.format == "markdown" else answer)

    search.__annotations__["request"] = request_type(service.limits)  # so that the schema states the limits
    app.post("/search", response_model=SearchAnswer, responses=_REFUSALS)(search)

    @app.get("/documents", response_model=DocumentList, responses=_REFUSALS)
    async def list_documents(request: Annotated[ListRequest, Query()]) -> Response:
        """The documents, in the order of their ids."""
        return _json(await service.list_documents(request))

    @app.get("/documents/{docno:path}", response_model=DocumentAnswer, responses=_REFUSALS)
    async def get_document(
        docno: Annotated[str, Path(min_length=1, max_length=2000)], lines: Annotated[Lines, Query()], asking: Request
    ) -> Response:
        """A document, or some lines of its file."""
        request = DocumentRequest(docno=docno, **lines.model_dump())
        return _json(await service.get_document(request, session_of(asking)))

    @app.get("/", response_model=Welcome)
    async def welcome(asking: Request) -> Response:
        """What can be asked here; in a browser, a page to search with."""
        if wants_page(asking.headers.get("accept", "")):
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

    @app.get("/health", response_model=Health, responses={503: {"model": Health, "description": "Searches fail."}})
    async def health() -> Response:
        """What is being searched, and how; 503 while golden queries fail."""
        answer = _json(status := service.health())
        answer.status_code = 200 if status.status == "ok" else 503
        return answer

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters and times in Prometheus' text form."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    app.router.routes += routes()
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
        return problem(422, first_sentence(errors))

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: HTTPException) -> Response:
        response = problem(error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        LOG.error("a request failed", exc_info=error)
        return problem(500, "the request failed; see the log of the service")

    app.add_middleware(Guard, limits=service.limits, metrics=service.metrics, access=access)
    return app


def _json(answer: BaseModel) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")
