"""Run the HTTP service on a socket until it is told to stop."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from ragbench.errors import ConfigError
from ragbench.serving.connections import connection_class
from ragbench.serving.limits import Limits


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to an address (port 0: any that is free); ConfigError when that cannot be had."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port must be between 0 and 65535, got {port}")
    try:
        # Naming the protocol is what makes asyncio switch off Nagle's algorithm, which costs 40 ms an answer.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
    except (OSError, UnicodeError):
        raise ConfigError(f"--host {host} is no address of this machine: the default is 127.0.0.1") from None
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


class _Announcing(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def run(app: FastAPI, bound: socket.socket, ready: Callable[[], None], limits: Limits) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way may end within their limit. `ready` is called at the start."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level=logging.WARNING,
        server_header=False,
        http=connection_class(limits),
        timeout_graceful_shutdown=max(1, round(limits.time_limit)),
    )
    # uvicorn raises the signal that stopped it once more when it is done; that one must not end the process.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _Announcing(config, ready).run(sockets=[bound])
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
