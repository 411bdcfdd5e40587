"""HTTP to others: one exchange within limits of time, size and depth, and a key that goes to one origin only.

Redirections are not followed: the next server would receive the key and the text. An address may not hold a name and
password, since addresses stand in configurations, messages and results.
"""

from __future__ import annotations

import asyncio
import email.utils
import errno
import json
import os
import threading
import time
import weakref
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ragbench.base.types import BoundaryError
from ragbench.boundary import paths
from ragbench.boundary.json import MAX_DEPTH, read_json, size_in_words

if TYPE_CHECKING:
    import httpx

_MAX_ANSWER = 20_000_000
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed later."""

_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_SHOWN = 80
T = TypeVar("T")


class HttpError(BoundaryError):
    """An exchange without a usable answer.

    `again`: the same request may succeed later; `after_s`: not before these seconds; `status`: 0 without an answer;
    `body`: the beginning of a refusal in one line.
    """

    def __init__(self, reason: str, again: bool = False, after_s: float = 0.0, status: int = 0, body: str = "") -> None:
        super().__init__(reason)
        self.again, self.after_s, self.status, self.body = again, after_s, status, body


@dataclass(frozen=True)
class Reply:
    """The body of a successful answer."""

    content: bytes

    def json(self, max_depth: int = MAX_DEPTH) -> Any:
        """The body as JSON. Raises BoundaryError."""
        return read_json(self.content, max_depth=max_depth)


def origin(address: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address. Raises BoundaryError for what is not an address."""
    parts = paths.split_address(address)
    return parts.scheme, str(parts.hostname), parts.port or paths.PORTS[parts.scheme]


class Client:
    """Sends requests to one origin, that of `address`; connections are kept open between them.

    `headers` may hold a key; a request to another origin is refused. `timeout_s` bounds a whole exchange, from looking
    up the name to the last byte. `close` it, or let it be collected. May be used from several threads.
    """

    def __init__(
        self, address: str, headers: Mapping[str, str] | None = None, *, timeout_s: float, max_bytes: int = _MAX_ANSWER
    ) -> None:
        self._origin = origin(address)
        self._headers = _checked_headers(headers or {})
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._open: dict[int, httpx.AsyncClient] = {}
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, _close, self._open)
        self.close.atexit = False  # the system closes what is open at the end of the process

    def send(self, method: str, address: str, body: Any = None, *, timeout_s: float | None = None) -> Reply:
        """The answer to a request with `body` as JSON (None for no body; bytes are lines of JSON). Raises HttpError."""
        try:
            is_elsewhere = origin(address) != self._origin
        except BoundaryError as error:
            raise HttpError(str(error)) from None
        if is_elsewhere:
            raise HttpError(f"'{address[:_SHOWN]}' is on another host: nothing was sent to it")
        seconds = self._timeout_s if timeout_s is None else timeout_s
        return _on_loop(self._exchange(method, address, body, max(seconds, 0.001), self._client()))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _client(self) -> httpx.AsyncClient:
        import httpx

        with self._lock:
            if os.getpid() not in self._open:
                self._open.clear()  # of a process that forked this one
                self._open[os.getpid()] = httpx.AsyncClient(
                    headers=self._headers, timeout=None, follow_redirects=False, trust_env=True
                )
            return self._open[os.getpid()]

    async def _exchange(self, method: str, address: str, body: Any, seconds: float, client: httpx.AsyncClient) -> Reply:
        import httpx

        lines = isinstance(body, bytes)
        sent = body if body is None or lines else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": f"application/{'x-ndjson' if lines else 'json'}"}
        try:
            exchange = client.stream(method, address, content=sent, headers=kind)
            async with asyncio.timeout(seconds), exchange as response:
                # What is not asked for compressed could still come so, and grow to any size in one step.
                if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
                    raise HttpError("the answer is compressed, which was not asked for")
                content = await _content(response, self._max_bytes)
                _check_status(response, content)
                return Reply(content)
        except (TimeoutError, httpx.TimeoutException):
            raise HttpError(f"no answer within {seconds:g} s", again=True) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
            again = isinstance(error, (httpx.TransportError, OSError))
            raise HttpError(_first_line(error), again and not isinstance(error, httpx.UnsupportedProtocol)) from None


async def _content(response: httpx.Response, limit: int) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise HttpError(f"the answer is larger than {size_in_words(limit)}")
    return b"".join(parts)


def _check_status(response: httpx.Response, content: bytes) -> None:
    status = response.status_code
    after_s = _seconds(response.headers.get("retry-after", ""))
    if status in _REDIRECTIONS:
        raise HttpError(
            f"status {status}, a redirection, which is not followed: name the address that it leads to",
            after_s=after_s,
            status=status,
        )
    if not response.is_success:
        body = " ".join(content[:1000].decode("utf-8", "replace").split())[:120]
        raise HttpError(f"status {status}", status in AGAIN, after_s, status, body)


def _seconds(retry_after: str) -> float:
    """The seconds of a Retry-After header, a number or a date; 0 for anything else."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with no compression asked for. Raises HttpError, without the value, for one that cannot be sent."""
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise HttpError(f"the header {name} has a character that cannot be sent: is its key complete, on one line?")
    return {"Accept-Encoding": "identity", **headers}


def _first_line(error: Exception) -> str:
    """The first line of an error; of a failed connection what the system says, such as `Connection refused`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.strerror:
            has_code = cause.errno in errno.errorcode  # asyncio puts words of its own instead of the system's
            return (os.strerror(cause.errno) if has_code and cause.errno else cause.strerror).lower()
        cause = cause.__cause__ or cause.__context__
    return (str(error).splitlines() or [""])[0][:160] or type(error).__name__


@cache
def _loop_of(process: int) -> asyncio.AbstractEventLoop:
    """The event loop of a process, in a thread: `asyncio.timeout` bounds a whole exchange there, names included."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="ragbench-http").start()
    return loop


_lock = threading.Lock()


def _on_loop(task: Coroutine[Any, Any, T]) -> T:
    with _lock:
        loop = _loop_of(os.getpid())
    future = asyncio.run_coroutine_threadsafe(task, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _close(clients: dict[int, httpx.AsyncClient]) -> None:
    """Close connections without waiting: the loop's thread may be the one that collects."""
    client = clients.pop(os.getpid(), None)
    if client is not None and not (loop := _loop_of(os.getpid())).is_closed():
        asyncio.run_coroutine_threadsafe(client.aclose(), loop)
