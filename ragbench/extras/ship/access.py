"""Who may ask what listens: by which host names, with which tokens or cookie, how often, and what they may do.

The guard of everything that listens reads bodies within limits of size and time, and refuses in one place.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.base.errors import ConfigError
from ragbench.base.files import why_unreadable
from ragbench.boundary.permissions import EVERYTHING, Capability

_LOG = logging.getLogger(__name__)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Host names of a service on this machine; with any other, a web page pretends to be this machine."""
_SHORTEST, _LONGEST = 16, 512
MISDIRECTED = "the request is addressed to another host: ask 127.0.0.1 or localhost"
READS = frozenset({"GET", "HEAD"})
"""Methods of requests without a body."""


class Tokens:
    """The tokens of a file, by name; read again when the file changes, so that tokens are replaced without a pause.

    A line has a token, or a name and a token; `#` begins a comment. If a changed file cannot be used, that is logged
    and the earlier tokens stay valid. Raises ConfigError when the file cannot be used at the start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _version(path)
        self._digests = _read(path)

    def name_of(self, token: bytes) -> str | None:
        """The name of a token, None for an unknown one; takes the same time for every token."""
        self._refresh()
        token_digest, owner = hashlib.sha256(token).digest(), None
        for name, digest in self._digests.items():
            if hmac.compare_digest(token_digest, digest):
                owner = name
        return owner

    def _refresh(self) -> None:
        version = _version(self._path)
        if version == self._seen:
            return
        self._seen = version
        try:
            self._digests = _read(self._path)
        except ConfigError as error:
            _LOG.error("the earlier tokens stay valid: %s", error)


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def _read(path: Path) -> dict[str, bytes]:
    """Digests of the tokens, by name. No message quotes a token."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--token-file {path} cannot be read ({why_unreadable(error)}): name a file with one token on each line"
        ) from None
    tokens: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        location = f"--token-file {path}, line {number}"
        if len(fields) > 2:
            raise ConfigError(f"{location} has {len(fields)} words: write a token, or a name and a token")
        name, token = fields if len(fields) == 2 else (f"token-{number}", fields[0])
        if not _SHORTEST <= len(token) <= _LONGEST or not token.isascii():
            raise ConfigError(
                f"{location}: a token has {_SHORTEST} to {_LONGEST} ASCII characters: "
                "make one with openssl rand -hex 32"
            )
        digest = hashlib.sha256(token.encode()).digest()
        if name in tokens or digest in tokens.values():
            raise ConfigError(f"{location} repeats a name or a token of an earlier line: delete one of the two")
        tokens[name] = digest
    if not tokens:
        raise ConfigError(f"--token-file {path} holds no token: write one on a line, made with openssl rand -hex 32")
    return tokens


class Rate:
    """How many requests a caller may make in a moving window of time, such as `600/minute`."""

    def __init__(self, text: str) -> None:
        import limits
        from limits.aio.storage import MemoryStorage
        from limits.aio.strategies import MovingWindowRateLimiter

        try:
            self._item = limits.parse(text)
        except ValueError:
            raise ConfigError(f"--rate must be a number and a time such as 600/minute, got {text}") from None
        if self._item.amount < 1:
            raise ConfigError(f"--rate must let at least 1 request pass, got {text}")
        self._window = MovingWindowRateLimiter(MemoryStorage())

    def __str__(self) -> str:
        return str(self._item)

    async def wait(self, caller: str) -> int:
        """Count a request of a caller; returns the seconds to wait (at least 1) when there were too many, else 0."""
        if await self._window.hit(self._item, caller):
            return 0
        free, _ = await self._window.get_window_stats(self._item, caller)
        return max(1, math.ceil(free - time.time()))


@dataclass(frozen=True)
class Access:
    """Who may ask a service. `tokens`, `rate`: None for no limit.

    `hosts`: the host names that a request may use, None for any; another one is of a page that pretends.
    """

    hosts: frozenset[str] | None = LOOPBACK
    tokens: Tokens | None = None
    rate: Rate | None = None

    def is_addressed(self, host: bytes) -> bool:
        """Whether a request with this header `Host` is meant for the service."""
        return self.hosts is None or _hostname(host) in self.hosts

    def is_invited(self, origin: bytes | None) -> bool:
        """Whether the web page that asks, if the header `Origin` names one, is on this machine."""
        return self.hosts is None or origin is None or _hostname(origin) in self.hosts

    def caller(self, authorization: bytes | None, address: str) -> str | None:
        """Who asks: the name of the token, or the address if no tokens are needed; None for an unknown token."""
        if self.tokens is None:
            return address
        scheme, _, token = (authorization or b"").partition(b" ")
        return self.tokens.name_of(token.strip()) if scheme.lower() == b"bearer" else None


def _new_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Session(Access):
    """Access of the browsers that opened an address with `token`, the secret of the session, and keep its cookie.

    `read_only`: nothing may be written. `commands`: forms may also name programs to start, and classes to import.
    `encrypted`: browsers send the cookie only over TLS.
    """

    read_only: bool = False
    commands: bool = False
    encrypted: bool = False
    token: str = field(default_factory=_new_token, repr=False)

    @property
    def cookie(self) -> str:
        """The cookie's name: cookies ignore ports, and two studios must not overwrite each other's cookie."""
        return f"ragbench-studio-{hashlib.sha256(self.token.encode()).hexdigest()[:8]}"

    @property
    def csrf(self) -> str:
        """The token that every form sends."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()

    @property
    def may(self) -> frozenset[Capability]:
        """What a form may do that has passed the guard; a page that is only read may do nothing."""
        return EVERYTHING if self.commands else EVERYTHING - {Capability.EXECUTES}

    def knows(self, token: str) -> bool:
        """Whether this is the session's token."""
        return _same(token, self.token)

    def knows_form(self, csrf: str) -> bool:
        """Whether this is the token of the session's forms."""
        return _same(csrf, self.csrf)


def _same(candidate: str, secret: str) -> bool:
    return hmac.compare_digest(candidate.encode("utf-8", "replace"), secret.encode())


def _hostname(text: bytes) -> str:
    return re.sub(r"^https?://|:\d*$", "", text.decode("latin-1").lower())


class Refusal(Exception):
    """A request is refused: `status` as in HTTP, a sentence for the caller, further headers."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})


class Guard:
    """ASGI middleware: passes a request on when it is addressed to a known host, admitted, and not too large or slow.

    A body has `limit` bytes and `seconds` to arrive. What listens says by overriding the methods below whom it admits,
    what it makes of a body, and how its refusals look.
    """

    def __init__(self, app: ASGIApp, access: Access, limit: int, seconds: float) -> None:
        self._app = app
        self._access = access
        self._limit = limit
        self._seconds = seconds

    async def admit(self, scope: Scope, headers: Mapping[str, str]) -> str | Response:
        """The caller's name, or an answer at once. Raises Refusal. Nothing of a body has been read."""
        raise NotImplementedError

    def refuse(self, scope: Scope, refusal: Refusal) -> Response:
        """What a refused caller gets."""
        raise NotImplementedError

    def turn(self, caller: str, scope: Scope) -> AbstractContextManager[None]:
        """Holds a place for the request while it is read and answered. Raises Refusal when there is none."""
        return nullcontext()

    def read(self, scope: Scope, body: bytes) -> None:
        """Check a body that has arrived. Raises Refusal."""

    def answering(self, scope: Scope, message: Message) -> None:
        """Note or extend the head of an answer or refusal."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse; a caller that has gone gets nothing."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answering(scope, message)
            await send(message)

        try:
            headers = headers_of(scope)
            # Starlette's TrustedHostMiddleware would answer in plain text, whatever form other refusals have.
            if not self._access.is_addressed(headers.get("host", "").encode("latin-1")):
                raise Refusal(400, MISDIRECTED)
            admitted = await self.admit(scope, headers)
            if isinstance(admitted, Response):
                await admitted(scope, receive, answer)
                return
            with self.turn(admitted, scope):
                if scope["method"] not in READS:
                    body = await _read_body(scope, receive, self._limit, self._seconds)
                    if body is None:
                        return
                    self.read(scope, body)
                    receive = _replay(body, receive)
                await self._app(scope, receive, answer)
        except Refusal as refusal:
            response = self.refuse(scope, refusal)
            response.headers.update(refusal.headers)
            response.headers["Connection"] = "close"  # the rest of the body is not read
            await response(scope, receive, answer)


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by name, in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def _read_body(scope: Scope, receive: Receive, limit: int, seconds: float) -> bytes | None:
    """The body of a request, which has `seconds` to arrive; None when the client has gone. Raises Refusal."""
    too_large = Refusal(413, f"the request is larger than {limit} bytes: send less")
    announced = headers_of(scope).get("content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > limit:
                    raise too_large
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refusal(408, f"the request took longer than {seconds:g} s to arrive") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body first, and then further messages."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
