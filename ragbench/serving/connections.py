"""Connections that cannot block the service: heads of requests must arrive in time, and a new connection finds room.

A connection *waits* from its beginning, or from the end of a response, until the head of the next request is complete.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from ragbench.serving.limits import Limits
from ragbench.serving.search_log import SESSION, new_session

MOST = 512
"""Connections at once."""


class Connection(H11Protocol):
    """An HTTP/1.1 connection with a time limit for the head of each request.

    When there are more than `MOST`, the client that has most of them loses the one that has waited longest, so a client
    that opens connections without requests closes only its own.
    """

    def __init__(self, *arguments: Any, limits: Limits, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limit = limits.head_limit
        self._deadline: asyncio.TimerHandle | None = None
        self.since = self.loop.time()
        self.app_state = {**self.app_state, SESSION: new_session()}

    @property
    def waits(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; make room when there is none."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > MOST:
            _make_room([each for each in self.connections if isinstance(each, Connection)])

    def data_received(self, data: bytes) -> None:
        """Limit the time of a head from its first byte to its last."""
        if self.waits and self._deadline is None:
            self._expect()
        super().data_received(data)
        if not self.waits:
            self._relax()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the time limit."""
        self._relax()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait again."""
        self.since = self.loop.time()
        super().on_response_complete()

    def leave(self) -> None:
        """Close at once, since no request is under way."""
        self.transport.abort()

    def _expect(self) -> None:
        self._deadline = self.loop.call_later(self._limit, self.leave)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def connection_class(limits: Limits) -> Any:
    """The factory with which uvicorn makes a connection."""
    return partial(Connection, limits=limits)


def _make_room(connections: list[Connection]) -> None:
    """Close the connection that has waited longest of the client that has most."""
    held = Counter(each.client and each.client[0] for each in connections)
    waiting = [each for each in connections if each.waits and not each.transport.is_closing()]
    if waiting:  # the newest is among them
        min(waiting, key=lambda each: (-held[each.client and each.client[0]], each.since)).leave()
