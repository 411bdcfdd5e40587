"""The guard of the studio: who is answered, who may write, and what a page may do.

A request is answered when it is addressed to a known host and has the session's token, in the printed address or in the
cookie that this address sets. A request that writes must also have the token of its form, which a page of another
origin cannot read, and must come from this origin if the browser names one. The policy of every page allows only the
studio's scripts and styles: no inline script, no other host.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.boundary.access import Addressed
from ragbench.boundary.capabilities import EVERYTHING, Capability
from ragbench.boundary.guard import MISDIRECTED, TooLarge, headers_of, read_body

MAX_BODY = 65_536
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FRAMED = "sandbox allow-scripts; frame-ancestors 'self'"
"""For a report in a frame: its scripts run in a separate origin, under the policy in the report."""

_MOST_FIELDS = 1000
_SECONDS = 30.0  # of a form
_READS = frozenset({"GET", "HEAD"})
_OPEN = "/static/"
_FORM = "application/x-www-form-urlencoded"


def _new_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Access(Addressed):
    """Who may do what in the studio; `token`: the secret of the session.

    `commands`: forms may also name programs to start, and classes to import.
    """

    read_only: bool = False
    commands: bool = False
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
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


class Guard:
    """ASGI middleware: passes a request on or refuses it with 400, 403, 413 or 415, and sets security headers.

    The values of a form are in the request's `state.form`, by name.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", POLICY)
                headers["X-Content-Type-Options"] = "nosniff"
                # Without a referrer browsers would send forms with the origin null.
                headers["Referrer-Policy"] = "same-origin"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                if not scope["path"].startswith(_OPEN):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and scope["method"] not in _READS:
            refusal = await self._refusal_of_form(scope, receive)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = headers_of(scope)
        if not self._access.is_addressed(headers.get("host", "").encode("latin-1")):
            return _text(400, MISDIRECTED)
        if scope["path"].startswith(_OPEN):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if "token" in query and scope["method"] in _READS:
            if not self._access.knows(query.pop("token")[0]):
                return _text(403, "this token is of another session: open the address that ragbench studio printed")
            rest = urlencode(query, doseq=True)
            path = "/" + scope["path"].lstrip("/\\")  # two slashes would name another host
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(self._access.cookie, self._access.token, httponly=True, samesite="strict")
            return answer
        if not self._access.knows(_cookies(headers).get(self._access.cookie, "")):
            return _text(403, "open the address that ragbench studio printed; it holds the token of this session")
        return None

    async def _refusal_of_form(self, scope: Scope, receive: Receive) -> Response | None:
        """The refusal of a request that writes; None after its form was read and accepted."""
        if self._access.read_only:
            return _text(403, "this studio is read-only")
        headers = headers_of(scope)
        origin = headers.get("origin", "")
        if origin and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            return _text(403, "the form comes from another page: open the page of the studio")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            return _text(415, f"a form is sent as {_FORM}")
        try:
            body = await read_body(scope, receive, MAX_BODY, _SECONDS)
        except TooLarge:
            return _text(413, f"the form is larger than {MAX_BODY} bytes: send less")
        except TimeoutError:
            return _text(408, f"the form took longer than {_SECONDS:g} s to arrive")
        if body is None:
            return _text(400, "the request broke off")
        try:
            form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            return _text(413, f"the form has more than {_MOST_FIELDS} fields: send less")
        given = (form.pop("csrf", [""])[0]).encode("utf-8", "replace")
        if not hmac.compare_digest(given, self._access.csrf.encode()):
            return _text(403, "the form is of another session: load the page again")
        scope.setdefault("state", {})["form"] = form
        return None


def _cookies(headers: dict[str, str]) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _text(status: int, sentence: str) -> Response:
    return PlainTextResponse(f"{sentence}\n", status)
