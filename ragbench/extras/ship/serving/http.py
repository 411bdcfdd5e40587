"""The service over HTTP: POST /search, GET /documents/ID, GET /health, GET /openapi.json, and MCP at /mcp."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any

import anyio
from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ragbench.extras.ship.access import LOOPBACK, MCP, Guard
from ragbench.extras.ship.serving import messages
from ragbench.extras.ship.serving.mcp import create_server
from ragbench.extras.ship.serving.search_log import session_of
from ragbench.extras.ship.serving.service import SearchService

_LOG = logging.getLogger(__name__)

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
        500: "The search failed.",
        503: "Too many requests wait; Retry-After has the time to wait.",
        504: "The search took too long.",
    }.items()
}


class _McpEndpoint:
    """MCP over streamable HTTP: an ASGI application that answers while its manager runs.

    No session is kept between requests, and every answer is one JSON object, so a service may be restarted, or asked
    through a proxy that distributes requests to several services.
    """

    manager: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.manager.handle_request(scope, receive, send)


def create_app(service: SearchService, token: str | None = None) -> FastAPI:
    """The application; without a token, it answers all requests to the host names of this machine."""
    server, agents = create_server(service), _McpEndpoint()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        agents.manager = StreamableHTTPSessionManager(
            server, stateless=True, json_response=True, max_request_body_size=service.limits.max_body
        )
        async with agents.manager.run(), anyio.create_task_group() as group:
            group.start_soon(service.follow)
            yield
            group.cancel_scope.cancel()

    app = FastAPI(
        lifespan=lifespan,
        title="ragbench",
        version=version("ragbench"),
        description="Search a documentation with a measured pipeline.",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        max_body_size=service.limits.max_body,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if token else [],  # described here, asked by Guard
    )

    async def search(request: messages.SearchRequest, asking: Request) -> Response:
        """The best hits for a query."""
        answer = await service.search(request, session_of(asking))
        return _json(answer.model_copy(update={"hits": []}) if request.format == "markdown" else answer)

    search.__annotations__["request"] = messages.request_type(service.limits)  # so that the schema states the limits
    app.post("/search", response_model=messages.SearchAnswer, responses=_REFUSALS)(search)

    @app.get("/documents/{docno:path}", response_model=messages.DocumentAnswer, responses=_REFUSALS)
    async def document(
        docno: Annotated[str, Path(min_length=1, max_length=2000)],
        lines: Annotated[messages.Lines, Query()],
        asking: Request,
    ) -> Response:
        """A document, or some lines of its file."""
        request = messages.DocumentRequest(docno=docno, **lines.model_dump())
        return _json(await service.document(request, session_of(asking)))

    @app.get("/health", response_model=messages.Health)
    async def health() -> Response:
        """What is being searched, and how."""
        return _json(service.health())

    app.router.routes.append(Route(MCP, agents, methods=["POST"]))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # The first part of a location is body, query or path.
        errors = [{**detail, "loc": detail["loc"][1:]} for detail in error.errors()]
        return _problem(422, messages.first_sentence(errors))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return _problem(error.status_code, error.detail, error.headers)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        _LOG.error("a request failed", exc_info=error)
        return _problem(500, "the request failed; see the log of the service")

    app.add_middleware(Guard, token=token, seconds=service.limits.time_limit)
    if token is None:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)
    return app


def _json(answer: BaseModel) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")


def _problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    # Half of a surrogate pair, quoted from a request, cannot be written as UTF-8.
    problem = messages.Problem(error=sentence.encode("utf-8", "replace").decode("utf-8"))
    return Response(problem.model_dump_json(), status, headers, "application/json")
