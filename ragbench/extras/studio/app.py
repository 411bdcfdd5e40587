"""The pages of the studio: links and forms. Requests that write have passed the guard before they come here."""

from __future__ import annotations

import asyncio
import json
import math
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles

from ragbench.base.errors import ConfigError, RagbenchError
from ragbench.base.formatting import counted
from ragbench.boundary.permissions import NOTHING, Capability
from ragbench.corpus.words import readable
from ragbench.evaluation.measures import DOCUMENT, PASSAGE, PRIMARY
from ragbench.extras.atlas import advice
from ragbench.extras.collect.judge import GRADES
from ragbench.extras.ship.access import Session
from ragbench.extras.studio import leaderboard, queries
from ragbench.extras.studio.guard import FRAMED, Guard
from ragbench.extras.studio.jobs import COMMANDS, Job, Jobs
from ragbench.extras.studio.judging import LOOK_EVERY, Judging
from ragbench.extras.studio.runs import ArmId, Runs
from ragbench.extras.studio.searching import Found, Searching, compose_for, experiments, split
from ragbench.report import html, screen
from ragbench.report.page_tables import MARKS, interval, plain, signed
from ragbench.results import store
from ragbench.results.measurements import ARMS

_STATIC = Path(__file__).resolve().parent / "static"
_MENU = (("/", "Runs"), ("/search", "Search"), ("/judging", "Judging"), ("/experiments", "Experiments"))
_FILTERS = {
    "product": "first folder",
    "component": "second folder",
    "doc_type": "type",
    "category": "category",
    "author": "author",
    "tags": "tags, with commas",
    "modified_after": "modified after",
    "modified_before": "modified before",
}
_EVENTS = 20
_MOST_ROWS = 400
"""The most rows of one page; filters show others."""


@dataclass
class Studio:
    """What the pages show: the results below `root`; `words` are the settings that every command begins with."""

    root: Path
    words: tuple[str, ...] = ()
    access: Session = field(default_factory=Session)

    def __post_init__(self) -> None:
        self.runs = Runs(self.root)
        self.judging = Judging(self.runs)
        self.searching = Searching(self.root, self.words, self.access.read_only)
        self.jobs = Jobs(self.root)


def create_app(studio: Studio) -> FastAPI:
    """The application."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(studio.jobs.close)

    app = FastAPI(title="ragbench studio", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    pages = Pages(studio)
    app.mount("/static", StaticFiles(directory=_STATIC))

    @app.get("/report.css")
    def report_style() -> Response:
        return FileResponse(html.STYLE, media_type="text/css")

    @app.get("/")
    def board(request: Request) -> Response:
        return _leaderboard(pages, request.query_params)

    @app.get("/compare")
    def compare(request: Request) -> Response:
        return _compare(pages, request.query_params)

    @app.get("/queries")
    def browser(request: Request) -> Response:
        return _queries(pages, request.query_params)

    @app.get("/runs/{name}")
    def run(name: str) -> Response:
        studio.runs.folder(name)
        return pages.page("run.html.j2", name=name)

    @app.get("/runs/{name}/advice")
    def advised(name: str, arm: str = "") -> Response:
        return _advice(pages, name, arm)

    @app.get("/runs/{name}/report")
    def report(name: str) -> Response:
        folder = studio.runs.folder(name)
        written = folder / html.FILE
        text = written.read_text(encoding="utf-8") if written.is_file() else html.render(studio.runs.results(name))
        return HTMLResponse(text, headers={"Content-Security-Policy": FRAMED})

    @app.get("/judging")
    def judging() -> Response:
        judging_service = studio.judging
        pools = judging_service.pools()
        agreements = {name: judging_service.agreements(name) for name in pools}
        runs = studio.runs.all()[0]
        return pages.page("judging.html.j2", pools=pools, agreements=agreements, runs=runs)

    @app.post("/judging/pool")
    def pool(request: Request) -> Response:
        studio.judging.make(_form_value(request, "run"), _number(request, "depth"))
        return see("/judging")

    @app.post("/judging/begin")
    def begin(request: Request) -> Response:
        name, judge = _form_value(request, "pool"), _form_value(request, "judge").strip()
        studio.judging.begin(name, judge)
        return see(url("/judging/pair", pool=name, judge=judge))

    @app.get("/judging/pair")
    def pair(pool: str, judge: str) -> Response:
        return _pair(pages, pool, judge)

    @app.post("/judging/grade")
    def grade(request: Request) -> Response:
        name, judge = _form_value(request, "pool"), _form_value(request, "judge")
        pair = _form_value(request, "qid", ""), _form_value(request, "section", "")
        studio.judging.act(name, judge, pair, _form_value(request, "act"), _form_value(request, "note", ""))
        return see(url("/judging/pair", pool=name, judge=judge))

    @app.get("/judging/outlook")
    def outlook(pool: str, judge: str) -> Response:
        stability = studio.judging.outlook(pool, judge)
        return pages.page("outlook.html.j2", pool=pool, judge=judge, outlook=stability)

    @app.get("/search")
    def search(request: Request) -> Response:
        return _search(pages, request.query_params, NOTHING)

    @app.post("/search")
    def search_form(request: Request) -> Response:
        values = _only_values(request)
        if all(studio.searching.is_pure(values.get(side, "")) for side in ("left", "right")):
            return see(url("/search", **{name: values.get(name, "") for name in ("q", "left", "right", *_FILTERS)}))
        return _search(pages, values, studio.access.may)

    @app.post("/search/topic")
    def topic(request: Request) -> Response:
        query = _form_value(request, "query")
        kept_query = studio.searching.keep(query, request.state.form.get("relevant", []))
        return see(
            url(
                "/search",
                q=query,
                left=_form_value(request, "left", ""),
                right=_form_value(request, "right", ""),
                kept=kept_query,
            )
        )

    @app.get("/experiments")
    def jobs(request: Request) -> Response:
        return _experiments(pages, request.query_params, NOTHING)

    @app.post("/experiments")
    def show(request: Request) -> Response:
        return _experiments(pages, _only_values(request), studio.access.may)

    @app.post("/experiments/start")
    def start(request: Request) -> Response:
        started = studio.jobs.start(
            _checked_words(studio, _form_value(request, "command"), _form_value(request, "words"), studio.access.may)
        )
        return see(f"/experiments/{started.id}")

    @app.get("/experiments/{job}")
    def job(job: str) -> Response:
        return pages.page("job.html.j2", job=studio.jobs.find(job))

    @app.get("/experiments/{job}/events")
    def events(job: str) -> Response:
        return StreamingResponse(_events(studio.jobs.find(job)), media_type="text/event-stream")

    @app.post("/experiments/cancel")
    def cancel(request: Request) -> Response:
        job = _form_value(request, "job")
        studio.jobs.cancel(job)
        return see(f"/experiments/{job}")

    @app.exception_handler(RequestValidationError)
    def incomplete(_: Request, error: Exception) -> Response:
        return pages.page("error.html.j2", 422, sentence="the address is not complete: start from a page's links")

    @app.exception_handler(RagbenchError)
    def refused(_: Request, error: Exception) -> Response:
        return pages.page("error.html.j2", 422, sentence=str(error))

    @app.exception_handler(HTTPException)
    def unknown(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "no such page" if status == 404 else "the request cannot be answered"
        return pages.page("error.html.j2", status, sentence=sentence)

    app.add_middleware(Guard, access=studio.access)
    return app


class Pages:
    """The templates, and the values that all of them use."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self._templates = Environment(
            loader=PackageLoader("ragbench.extras.studio"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["readable"] = readable
        self._templates.filters["counted"] = counted
        self._templates.globals.update(
            access=studio.access,
            marks=MARKS,
            signed=signed,
            plain=plain,
            interval=interval,
            isnan=math.isnan,
            url=url,
            menu=_MENU,
        )

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page of a template."""
        return HTMLResponse(self._templates.get_template(template).render(**values), status)


def url(path: str, *parameter_values: Any, **values: Any) -> str:
    """An address; `parameter_values` are (name, value) pairs before `values`; empty values are excluded."""
    pairs = [(name, str(value)) for name, value in (*parameter_values, *values.items()) if value not in ("", None)]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def see(path: str) -> Response:
    """Redirect to another page after a form."""
    return RedirectResponse(path, 303)


def _form_value(request: Request, name: str, default: str | None = None) -> str:
    """A field of the form that the guard has passed. Raises ConfigError when it is missing."""
    values: list[str] = request.state.form.get(name, [])
    if not values and default is None:
        raise ConfigError(f"the form has no '{name}': load the page again")
    return values[0] if values else str(default)


def _only_values(request: Request) -> dict[str, str]:
    """The fields of the form, each with its first value."""
    return {name: values[0] for name, values in request.state.form.items()}


def _number(request: Request, name: str) -> int:
    text = _form_value(request, name).strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 0 < int(text) <= 1000:
        raise ConfigError(f"{name} must be between 1 and 1000, got '{text[:20]}'")
    return int(text)


def _pair(pages: Pages, pool: str, judge: str) -> Response:
    judging = pages.studio.judging
    item, progress = judging.item(pool, judge), judging.progress(pool, judge)
    look = item is not None and progress.graded > 0 and progress.graded % LOOK_EVERY == 0
    return pages.page(
        "pair.html.j2",
        pool=pool,
        item=item,
        progress=progress,
        neighbours=judging.neighbours(pool, item.section) if item else None,
        agreements=judging.agreements(pool),
        outlook=judging.outlook(pool, judge) if look else None,
        grades=GRADES,
    )


def _advice(pages: Pages, run: str, arm: str) -> Response:
    results = pages.studio.runs.results(run)
    arm = arm or advice.best_arm(results)
    levers = []
    for lever in advice.advice(results, arm):
        commands = [shlex.split(command) for command in lever.commands]
        starts = [
            url("/experiments", command=w[1], words=shlex.join(w[2:]))
            if w[1] in COMMANDS and all("=" in argument and argument[0] != "-" for argument in w[2:])
            else ""
            for w in commands
        ]
        levers.append((lever, list(zip(lever.commands, starts, strict=True))))
    predictions = screen.expected_sentences(results)
    return pages.page("advice.html.j2", id=ArmId(run, arm), levers=levers, expected=predictions)


async def _events(job: Job) -> AsyncIterator[str]:
    """The progress of a job, whenever it changes. A stream ends after some seconds, and the browser asks again.

    Therefore the studio need not wait for streams when it ends.
    """
    yield "retry: 300\n\n"
    last = ""
    for _ in range(_EVENTS):
        data = json.dumps(job.as_values())
        if data != last:
            last = data
            yield f"data: {data}\n\n"
        if job.over:
            return
        await asyncio.sleep(0.25)


def _checked_words(studio: Studio, command: str, overrides: str, may: frozenset[Capability]) -> list[str]:
    """The words of a command, after they were composed once, so that mistakes are reported before anything starts."""
    if command not in COMMANDS:
        raise ConfigError(f"only {', '.join(COMMANDS)} are started here")
    chosen = split(overrides)
    try:
        compose_for(chosen, studio.words, may)
    except ConfigError as error:
        if str(Capability.EXECUTES) in str(error) and may:
            raise ConfigError(f"{error}, or start ragbench studio with --allow-commands") from None
        raise
    return [command, *studio.words, *chosen]


def _experiments(pages: Pages, parameters: Mapping[str, str], may: frozenset[Capability]) -> Response:
    command, preset, overrides = (
        parameters.get("command", COMMANDS[0]),
        parameters.get("exp", ""),
        parameters.get("words", ""),
    )
    typed = " ".join(filter(None, [f"exp={preset}" if preset else "", overrides]))
    command_line, wrong = "", ""
    if parameters.get("command") and not pages.studio.access.read_only:
        try:
            command_line = shlex.join(["ragbench", *_checked_words(pages.studio, command, typed, may)])
        except RagbenchError as error:
            wrong = str(error)
    return pages.page(
        "experiments.html.j2",
        jobs=pages.studio.jobs.all(),
        commands=COMMANDS,
        command=command,
        presets=experiments(),
        preset=preset,
        words=overrides,
        typed=typed,
        shown=command_line,
        wrong=wrong,
    )


def _search(pages: Pages, parameters: Mapping[str, str], may: frozenset[Capability]) -> Response:
    query, left, right = parameters.get("q", ""), parameters.get("left", ""), parameters.get("right", "")
    filters = {name: parameters.get(name, "") for name in _FILTERS}
    sides: list[Found] = []
    ranks: list[dict[str, int]] = [{}, {}]
    wrong = ""
    if query.strip():
        try:
            sides = [pages.studio.searching.search(query, overrides, filters, may) for overrides in (left, right)]
            ranks = [{hit.chunk_id: hit.rank for hit in side.answer.hits} for side in reversed(sides)]
        except RagbenchError as error:
            wrong = str(error)
    return pages.page(
        "search.html.j2",
        query=query,
        left=left,
        right=right,
        filters=filters,
        labels=_FILTERS,
        filtered=any(filters.values()),
        sides=sides,
        ranks=ranks,
        wrong=wrong,
        presets=experiments(),
        kept=parameters.get("kept", ""),
        file=pages.studio.searching.topics_file,
    )


def _leaderboard(pages: Pages, parameters: QueryParams) -> Response:
    runs = pages.studio.runs
    listed, damaged = runs.all()
    benchmarks = {run.digest: run for run in reversed(listed)}
    digest, measure, sort = (
        parameters.get("benchmark", ""),
        parameters.get("measure", PRIMARY),
        parameters.get("sort", "date"),
    )
    base = runs.find(ArmId.of(parameters["base"])) if parameters.get("base") else None
    pinned = [ArmId.of(arm) for arm in parameters.getlist("pin")]
    rows = leaderboard.rows(
        listed,
        measure=measure,
        digest=digest,
        search_words=parameters.get("q", ""),
        sort=sort,
        base=base,
        pinned=pinned,
    )
    shown_rows = rows[:_MOST_ROWS]
    if base:
        shown_rows = leaderboard.with_verdicts(shown_rows, base[1].id, runs)
    measures = sorted({name for run in listed for arm in run.arms for level, name in arm.means if level == DOCUMENT})
    pins = [("pin", pin) for pin in pinned]
    filters = {
        "q": parameters.get("q", ""),
        "benchmark": digest,
        "measure": parameters.get("measure", ""),
        "sort": parameters.get("sort", ""),
    }
    return pages.page(
        "leaderboard.html.j2",
        rows=shown_rows,
        left_out=len(rows) - len(shown_rows),
        n_runs=len(listed),
        damaged=damaged,
        stopped=store.stopped_runs(pages.studio.root),
        benchmarks=list(benchmarks.values()),
        columns=ARMS,
        primary=PRIMARY,
        measures=measures,
        measure=measure,
        sort=sort,
        base=base[1].id if base else None,
        kept=filters,
        pins=pins,
        unpinned=lambda pins, arm: [pin for pin in pins if pin[1] != arm],
        root=str(pages.studio.root),
    )


def _compare(pages: Pages, parameters: QueryParams) -> Response:
    runs = pages.studio.runs
    arms = [ArmId.of(arm) for arm in dict.fromkeys(parameters.getlist("arm"))]
    base = ArmId.of(parameters["base"]) if parameters.get("base") else (arms[0] if arms else None)
    others = [arm for arm in arms if arm != base]
    if base is None or not others:
        return pages.page("error.html.j2", 422, sentence="choose at least two arms on the page of runs")
    first = runs.find(base)[0]
    reasons = {arm: leaderboard.incomparable(first, runs.find(arm)[0]) for arm in others}
    fit = [arm for arm in others if not reasons[arm]]
    judged = dict(zip(fit, leaderboard.judge(runs, base, fit), strict=True)) if fit else {}
    config = runs.results(base.run).config(base.arm)
    changes = {arm: leaderboard.differing_values(config, runs.results(arm.run).config(arm.arm)) for arm in others}
    return pages.page(
        "compare.html.j2",
        base=base,
        others=others,
        reasons=reasons,
        judged=judged,
        changes=changes,
        benchmark=first.record["benchmark"]["name"],
        split=first.split,
    )


def _queries(pages: Pages, parameters: QueryParams) -> Response:
    runs = pages.studio.runs
    left, right = ArmId.of(parameters.get("left", "")), ArmId.of(parameters.get("right", ""))
    reason = leaderboard.incomparable(runs.find(left)[0], runs.find(right)[0])
    if reason:
        return pages.page("error.html.j2", 422, sentence=f"{right} cannot be compared with {left}: it {reason}")
    sides = [(runs.results(arm.run), arm.arm) for arm in (left, right)]
    level = PASSAGE if parameters.get("level") == PASSAGE else DOCUMENT
    measure = parameters.get("measure", PRIMARY)
    kind, search_words, sort = parameters.get("type", ""), parameters.get("q", ""), parameters.get("sort", "loss")
    topics = queries.topics(sides[0], sides[1], measure, level=level, kind=kind, search_words=search_words, sort=sort)
    filters = {
        "left": left,
        "right": right,
        "level": parameters.get("level", ""),
        "measure": parameters.get("measure", ""),
        "type": kind,
        "q": search_words,
        "sort": parameters.get("sort", ""),
    }
    chosen, previous, following = queries.topic(topics, parameters.get("qid", "")) if topics else (None, "", "")
    hits, relevant = [], []
    if chosen is not None:
        ids = [queries.chunk_ids(results, arm, chosen.qid) for results, arm in sides]
        hits = [queries.hits(*side, chosen.qid, ids[1 - n]) for n, side in enumerate(sides)]
        relevant = queries.relevant(sides[0], sides[1], chosen.qid)
    per_query = sides[1][0].per_query
    names = sorted(set(per_query.loc[per_query["level"] == level, "measure"]))
    return pages.page(
        "queries.html.j2",
        topics=topics[:_MOST_ROWS],
        left_out=max(0, len(topics) - _MOST_ROWS),
        chosen=chosen,
        before=previous,
        after=following,
        hits=hits,
        relevant=relevant,
        left=left,
        right=right,
        kept=filters,
        types=queries.types(sides[1][0]),
        measures=names,
        measure=measure,
        level=level,
        sort=sort,
    )
