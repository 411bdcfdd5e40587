"""Run an application on a socket until a signal stops it; TLS is left to a proxy in front."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket

import uvicorn
from fastapi import FastAPI

from ragbench.base.types import ConfigError

_CONNECTIONS = 1000
"""The most connections; a request on a further one is answered with 503."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on an address (port 0: any that is free); ConfigError when the address cannot be used."""
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


def run(app: FastAPI, bound: socket.socket, seconds: float) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way may take `seconds` to end."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,  # its messages go to the same place as those of ragbench
        log_level=logging.WARNING,
        loop="asyncio",
        server_header=False,
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=max(1, round(seconds)),
    )
    server = uvicorn.Server(config)

    # uvicorn raises the signal that stopped it again when it is done; this must not end the process. One that comes
    # before it listens to signals must stop it.
    def stop(*_: object) -> None:
        server.should_exit = True

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[bound])
    finally:
        for number, previous in handlers.items():
            signal.signal(number, previous)
