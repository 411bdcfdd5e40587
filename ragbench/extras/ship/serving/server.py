"""Run the HTTP service on a socket until a signal stops it; TLS and slow clients are left to a proxy in front."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragbench.base.errors import ConfigError
from ragbench.extras.ship.serving.messages import Limits
from ragbench.extras.ship.serving.search_log import SESSION, new_session


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to an address (port 0: any that is free); ConfigError when the address cannot be used."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port must be between 0 and 65535, got {port}")
    try:
        # With the protocol named, asyncio switches off Nagle's algorithm, which would cost 40 ms per answer.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
    except (OSError, UnicodeError):
        raise ConfigError(f"--host {host} is not an address of this machine: the default is 127.0.0.1") from None
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"cannot listen on {host} port {port} ({(error.strerror or 'refused').lower()}): choose another with --port"
        ) from None
    return bound


def is_local(bound: socket.socket) -> bool:
    """Whether only this machine can reach a bound socket."""
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback


class _Connection(H11Protocol):
    """A connection whose requests have one session in the log of searches."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.app_state = {**self.app_state, SESSION: new_session()}

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing for an upgrade to WebSocket, which any client may ask for; it is answered as if it had not."""


class _Announcing(uvicorn.Server):
    """A server that calls back when it is ready and when it shuts down, and still answers for `limits.drain` s."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], leaving: Callable[[], None], limits: Limits
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._leaving = leaving
        self._limits = limits
        self._end: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after `limits.drain` seconds, at the second signal at once."""
        self._leaving()
        if self._limits.drain and self._end is None:
            self._end = time.monotonic() + self._limits.drain
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._end is not None and time.monotonic() >= self._end:
            self.should_exit = True
        return await super().on_tick(counter)


def run(
    app: FastAPI,
    bound: socket.socket,
    ready: Callable[[], None],
    limits: Limits,
    leaving: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way may end within their limit.

    `ready` is called at the start, `leaving` from a signal handler when the service receives a signal to end. It then
    still takes requests for `limits.drain` seconds."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,  # its messages go to the same place as those of ragbench
        log_level=logging.WARNING,
        loop="asyncio",
        server_header=False,
        http=_Connection,
        ws="none",
        timeout_graceful_shutdown=max(1, round(limits.time_limit)),
    )
    # uvicorn raises the signal that stopped it again when it is done; this must not end the process.
    handlers = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Announcing(config, ready, leaving, limits).run(sockets=[bound])
    finally:
        for number, previous in handlers.items():
            signal.signal(number, previous)
