"""MCP over streamable HTTP, behind the same guard as all other requests.

No session is kept between requests, and every answer is one JSON object, so a service may be restarted, or asked
through a proxy that distributes requests to several services.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from ragbench.extras.ship.serving.service import SearchService

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class McpEndpoint:
    """An ASGI application that answers while it is open."""

    def __init__(self, service: SearchService) -> None:
        self._service = service
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer as long as the block lasts."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from ragbench.extras.ship.serving.mcp import create_server

        limit = self._service.limits.max_body
        self._manager = StreamableHTTPSessionManager(
            create_server(self._service), stateless=True, json_response=True, max_request_body_size=limit
        )
        async with self._manager.run():
            yield
        self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        assert self._manager is not None, "the endpoint is not open"
        await self._manager.handle_request(scope, receive, send)
