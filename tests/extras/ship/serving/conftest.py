"""A service over the small bundle, made once; further ones where limits or failures are tried."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.messages import MessageLimits
from ragbench.extras.ship.serving.service import SearchService


@pytest.fixture(scope="session")
def service(small_bundle: Path) -> Iterator[SearchService]:
    service = SearchService(small_bundle)
    yield service
    service.close()


@pytest.fixture
def make_service(small_bundle: Path) -> Iterator[Callable[..., SearchService]]:
    services = []

    def make(folder: Path = small_bundle, **limits: Any) -> SearchService:
        services.append(SearchService(folder, MessageLimits(**limits)))
        return services[-1]

    yield make
    for service in services:
        service.close()


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Run a function that takes an HTTP client of a service."""

    def run(
        service: SearchService, talk: Callable[[httpx.AsyncClient], Awaitable[Any]], token: str | None = None
    ) -> Any:
        async def session() -> Any:
            transport = httpx.ASGITransport(create_app(service, token), raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
                return await talk(client)

        return asyncio.run(session())

    return run


@pytest.fixture
def post(service: SearchService, ask) -> Callable[..., httpx.Response]:
    """One search."""

    def run(body: Any = None, **options: Any) -> httpx.Response:
        return ask(service, lambda client: client.post("/search", **(options or {"json": body})))

    return run
