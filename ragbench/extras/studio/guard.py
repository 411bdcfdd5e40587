"""The guard of the studio: who is answered, who may write, and what a page may do.

A request is answered when it is addressed to a known host and has the session's token, in the printed address or in the
cookie that this address sets. A request that writes must also have the token of its form, which a page of another
origin cannot read, and must come from this origin if the browser names one. The policy of every page allows only the
studio's scripts and styles: no inline script, no other host.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Scope

from ragbench.extras.ship import access as guard
from ragbench.extras.ship.access import READS, Refusal, Session

_MAX_BODY = 65_536
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FRAMED = "sandbox allow-scripts; frame-ancestors 'self'"
"""For a report in a frame: its scripts run in a separate origin, under the policy in the report."""

_MOST_FIELDS = 1000
_SECONDS = 30.0  # of a form
_OPEN = "/static/"
_FORM = "application/x-www-form-urlencoded"
_CALLER = "session"


class Guard(guard.Guard):
    """The guard of the studio: refuses with 400, 403, 408, 413 or 415 as text, and sets security headers.

    The values of a form are in the request's `state.form`, by name.
    """

    def __init__(self, app: ASGIApp, access: Session) -> None:
        super().__init__(app, access, _MAX_BODY, _SECONDS)
        self._session = access

    async def admit(self, scope: Scope, headers: Mapping[str, str]) -> str | Response:
        """Who has the cookie of the session, and a form that may be read; the printed address sets the cookie."""
        session = self._session
        if not scope["path"].startswith(_OPEN):
            query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            if "token" in query and scope["method"] in READS:
                if not session.knows(query.pop("token")[0]):
                    sentence = "this token is of another session: open the address that ragbench studio printed"
                    raise Refusal(403, sentence)
                return self._entrance(scope["path"], urlencode(query, doseq=True))
            if not session.knows(cookie_parser(headers.get("cookie", "")).get(session.cookie, "")):
                sentence = "open the address that ragbench studio printed; it holds the token of this session"
                raise Refusal(403, sentence)
        if scope["method"] not in READS:
            if session.read_only:
                raise Refusal(403, "this studio is read-only")
            origin = headers.get("origin", "")
            if origin and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
                raise Refusal(403, "the form comes from another page: open the page of the studio")
            if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
                raise Refusal(415, f"a form is sent as {_FORM}")
        return _CALLER

    def _entrance(self, path: str, path_rest: str) -> Response:
        path = "/" + path.lstrip("/\\")  # two slashes would name another host
        answer = RedirectResponse(f"{path}?{path_rest}" if path_rest else path, 303)
        session = self._session
        answer.set_cookie(session.cookie, session.token, secure=session.encrypted, httponly=True, samesite="strict")
        return answer

    def read(self, scope: Scope, body: bytes) -> None:
        """The form, with the token of the session's forms."""
        try:
            form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise Refusal(413, f"the form has more than {_MOST_FIELDS} fields: send less") from None
        if not self._session.knows_form(form.pop("csrf", [""])[0]):
            raise Refusal(403, "the form is of another session: load the page again")
        scope["state"]["form"] = form

    def refuse(self, scope: Scope, refusal: Refusal) -> Response:
        """A refusal as text."""
        return PlainTextResponse(f"{refusal.sentence}\n", refusal.status)

    def answering(self, scope: Scope, message: Message) -> None:
        """Set the headers that restrict a page."""
        headers = MutableHeaders(scope=message)
        headers.setdefault("Content-Security-Policy", POLICY)
        headers["X-Content-Type-Options"] = "nosniff"
        # Without a referrer browsers would send forms with the origin null.
        headers["Referrer-Policy"] = "same-origin"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if not scope["path"].startswith(_OPEN):
            headers["Cache-Control"] = "no-store"
