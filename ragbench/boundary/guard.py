"""What every guard of something that listens does: headers by name, and bodies within limits of size and time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope

MISDIRECTED = "the request is addressed to another host: ask 127.0.0.1 or localhost"


@dataclass(frozen=True)
class TooLarge(Exception):
    """A body of more than `limit` bytes."""

    limit: int


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by name, in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def read_body(scope: Scope, receive: Receive, limit: int, seconds: float) -> bytes | None:
    """The body of a request; None when the client has gone. Raises TooLarge, and TimeoutError after `seconds`."""
    announced = headers_of(scope).get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise TooLarge(limit)
    parts: list[bytes] = []
    size = 0
    async with asyncio.timeout(seconds):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > limit:
                raise TooLarge(limit)
            if not message.get("more_body", False):
                return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first, and then further messages."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
