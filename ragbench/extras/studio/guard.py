"""The guard of the studio: who is answered, and what a page may do.

A request is answered when it has the session's token, in the printed address or in the cookie that this address sets.
A form must also come from a page of the studio. The policy of every page allows only the studio's scripts and styles:
no inline script, no other host.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlencode

from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Without a referrer browsers would send forms with the origin null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def cookie_of(token: str) -> str:
    """The cookie's name: cookies ignore ports, and two studios must not overwrite each other's cookie."""
    return f"ragbench-studio-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


class StudioGuard(BaseHTTPMiddleware):
    """Refuses, with 403 as text, who has no token, and forms of other pages; sets the headers that restrict a page."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        super().__init__(app)
        self._token = token
        self._cookie = cookie_of(token)

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Pass on, refuse, or set the cookie and leave the token out of the address."""
        response = self._entrance(request) or await call_next(request)
        response.headers.update(_HEADERS)
        return response

    def _entrance(self, request: Request) -> Response | None:
        """The answer to a request that is not passed on."""
        if request.method == "GET" and "token" in request.query_params:
            if not self._is_token(request.query_params["token"]):
                return _refused("this token is of another session: open the address that ragbench studio printed")
            query = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
            path = "/" + request.url.path.lstrip("/\\")  # two slashes would name another host
            response = RedirectResponse(f"{path}?{query}" if query else path, 303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return _refused("open the address that ragbench studio printed; it holds the token of this session")
        own = f"http://{request.headers.get('host', '')}"
        if request.method != "GET" and request.headers.get("origin", "").lower() != own.lower():
            return _refused("the form comes from another page: open the page of the studio")
        return None

    def _is_token(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode("utf-8", "replace"), self._token.encode())


def _refused(sentence: str) -> Response:
    return PlainTextResponse(f"{sentence}\n", 403)
