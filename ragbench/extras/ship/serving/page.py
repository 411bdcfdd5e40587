"""A page to search with in a browser. It contains no data: it asks for them with the token that is typed in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FILES = {"search.css": "text/css", "search.js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def page() -> Response:
    """The page itself."""
    return Response(_read("search.html"), headers={**_HEADERS, "Vary": "Accept"}, media_type="text/html")


def routes() -> list[Route]:
    """The routes of its style and its script."""

    async def static(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        return Response(_read(name), headers=_HEADERS, media_type=FILES[name])

    return [Route(f"/static/{name}", static) for name in FILES]


def wants_page(accept: str) -> bool:
    """Whether a browser asks, which accepts HTML."""
    return "text/html" in accept


@cache
def _read(name: str) -> bytes:
    return files("ragbench.extras.ship.serving").joinpath("static", name).read_bytes()
