"""The pages of the studio: links and forms. Requests have passed the guard before they come here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from ragbench.base.document_names import readable
from ragbench.base.types import RagbenchError
from ragbench.extras.collect.judge import GRADES
from ragbench.extras.report import html
from ragbench.extras.ship.access import LOOPBACK
from ragbench.extras.studio.guard import StudioGuard
from ragbench.extras.studio.judging import Judging
from ragbench.extras.studio.searching import Searching, Side, experiments
from ragbench.report import cells

_STATIC = Path(__file__).resolve().parent / "static"
_MENU = (("/judging", "Judging"), ("/search", "Search"))
_MAX_BODY = 65_536


def _new_token() -> str:
    return token_urlsafe(24)


@dataclass
class Studio:
    """What the pages show: the results below `root`; `words` are the settings that every search begins with.

    `token` is the secret of the session, in the address that opens it and in its cookie.
    """

    root: Path
    words: tuple[str, ...] = ()
    token: str = field(default_factory=_new_token, repr=False)

    def __post_init__(self) -> None:
        self.judging = Judging(self.root)
        self.searching = Searching(self.words)
        self._templates = Environment(
            loader=PackageLoader("ragbench.extras.studio"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(readable=readable)
        self._templates.globals.update(plain=cells.plain, isnan=math.isnan, url=_url, menu=_MENU)

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page of a template."""
        return HTMLResponse(self._templates.get_template(template).render(**values), status)


def create_app(studio: Studio) -> FastAPI:
    """The application."""
    app = FastAPI(title="ragbench studio", docs_url=None, redoc_url=None, openapi_url=None, max_body_size=_MAX_BODY)
    app.state.studio = studio
    app.mount("/static", StaticFiles(directory=_STATIC))
    app.include_router(_ROUTES)

    @app.exception_handler(RequestValidationError)
    def incomplete(_: Request, error: Exception) -> Response:
        return studio.page("error.html.j2", 422, sentence="the address or form is not complete: start from a page")

    @app.exception_handler(RagbenchError)
    def refused(_: Request, error: Exception) -> Response:
        return studio.page("error.html.j2", 422, sentence=str(error))

    @app.exception_handler(HTTPException)
    def unknown(_: Request, error: HTTPException) -> Response:
        sentence = "no such page" if error.status_code == 404 else "the request cannot be answered"
        return studio.page("error.html.j2", error.status_code, sentence=sentence)

    app.add_middleware(StudioGuard, token=studio.token)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)
    return app


async def _studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


_Studio = Annotated[Studio, Depends(_studio_of)]
"""The studio of the application, as a parameter of a route."""
_Field = Annotated[str, Form()]
"""A field of a form."""
_ROUTES = APIRouter()


@_ROUTES.get("/")
def _start() -> Response:
    return _see("/judging")


@_ROUTES.get("/report.css")
def _report_style() -> Response:
    return FileResponse(html.STYLE, media_type="text/css")


@_ROUTES.get("/judging")
def _judging(studio: _Studio) -> Response:
    pools = studio.judging.pools()
    agreements = {name: studio.judging.agreements(name) for name in pools}
    return studio.page("judging.html.j2", pools=pools, agreements=agreements, runs=studio.judging.runs())


@_ROUTES.post("/judging/pool")
def _make_pool(studio: _Studio, run: _Field, depth: Annotated[int, Form(ge=1, le=1000)]) -> Response:
    studio.judging.make(run, depth)
    return _see("/judging")


@_ROUTES.post("/judging/begin")
def _begin(studio: _Studio, pool: _Field, judge: _Field) -> Response:
    judge = judge.strip()
    studio.judging.begin(pool, judge)
    return _see(_url("/judging/pair", pool=pool, judge=judge))


@_ROUTES.get("/judging/pair")
def _pair(studio: _Studio, pool: str, judge: str) -> Response:
    judging = studio.judging
    item = judging.item(pool, judge)
    return studio.page(
        "pair.html.j2",
        pool=pool,
        item=item,
        progress=judging.progress(pool, judge),
        neighbours=judging.neighbours(pool, item.section) if item else None,
        agreements=judging.agreements(pool),
        grades=GRADES,
    )


@_ROUTES.post("/judging/grade")
def _grade(
    studio: _Studio,
    pool: _Field,
    judge: _Field,
    act: _Field,
    qid: _Field = "",
    section: _Field = "",
    note: _Field = "",
) -> Response:
    studio.judging.act(pool, judge, (qid, section), act, note)
    return _see(_url("/judging/pair", pool=pool, judge=judge))


@_ROUTES.get("/search")
def _show_search(studio: _Studio, q: str = "", left: str = "", right: str = "") -> Response:
    """The form only: an address must not open a configuration, which may import code or ask a server."""
    return _search_page(studio, q, left, right)


@_ROUTES.post("/search")
def _search(studio: _Studio, q: _Field = "", left: _Field = "", right: _Field = "") -> Response:
    try:
        sides = [studio.searching.search(q, words) for words in (left, right)]
    except RagbenchError as error:
        return _search_page(studio, q, left, right, problem=str(error))
    return _search_page(studio, q, left, right, sides)


def _search_page(
    studio: Studio,
    query: str,
    left: str,
    right: str,
    sides: list[Side] | None = None,
    problem: str = "",
) -> Response:
    sides = sides or []
    return studio.page(
        "search.html.j2",
        query=query,
        left=left,
        right=right,
        sides=sides,
        ranks=[{hit.chunk_id: hit.rank for hit in side.answer.hits} for side in reversed(sides)],
        problem=problem,
        presets=experiments(),
    )


def _url(path: str, **values: Any) -> str:
    """An address with values."""
    return f"{path}?{urlencode(values)}" if values else path


def _see(path: str) -> Response:
    """Redirect to another page after a form."""
    return RedirectResponse(path, 303)
