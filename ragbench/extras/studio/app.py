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
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
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
        loader = PackageLoader("ragbench.extras.studio")
        self._templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.filters.update(readable=readable, counted=counted)
        formats = {"signed": signed, "plain": plain, "interval": interval, "isnan": math.isnan}
        self._templates.globals.update(formats, access=self.access, marks=MARKS, url=url, menu=_MENU)

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page of a template."""
        return HTMLResponse(self._templates.get_template(template).render(**values), status)


def create_app(studio: Studio) -> FastAPI:
    """The application."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(studio.jobs.close)

    app = FastAPI(title="ragbench studio", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.studio = studio
    app.mount("/static", StaticFiles(directory=_STATIC))
    app.include_router(_ROUTES)

    @app.exception_handler(RequestValidationError)
    def incomplete(_: Request, error: Exception) -> Response:
        return studio.page("error.html.j2", 422, sentence="the address is not complete: start from a page's links")

    @app.exception_handler(RagbenchError)
    def refused(_: Request, error: Exception) -> Response:
        return studio.page("error.html.j2", 422, sentence=str(error))

    @app.exception_handler(HTTPException)
    def unknown(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "no such page" if status == 404 else "the request cannot be answered"
        return studio.page("error.html.j2", status, sentence=sentence)

    app.add_middleware(Guard, access=studio.access)
    return app


async def _studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


_Studio = Annotated[Studio, Depends(_studio_of)]
"""The studio of the application, as a parameter of a route."""
_ROUTES = APIRouter()


@_ROUTES.get("/")
def _leaderboard(studio: _Studio, request: Request) -> Response:
    parameters, runs = request.query_params, studio.runs
    listed, damaged = runs.all()
    benchmarks = {run.digest: run for run in reversed(listed)}
    filters = _values_of(parameters, "q", "benchmark", "measure", "sort")
    measure, sort = filters["measure"] or PRIMARY, filters["sort"] or "date"
    base = runs.find(ArmId.of(parameters["base"])) if parameters.get("base") else None
    pinned = [ArmId.of(arm) for arm in parameters.getlist("pin")]
    chosen = {"measure": measure, "digest": filters["benchmark"], "search_words": filters["q"], "sort": sort}
    rows = leaderboard.rows(listed, **chosen, base=base, pinned=pinned)
    shown_rows = rows[:_MOST_ROWS]
    if base:
        shown_rows = leaderboard.with_verdicts(shown_rows, base[1].id, runs)
    measures = sorted({name for run in listed for arm in run.arms for level, name in arm.means if level == DOCUMENT})
    return studio.page(
        "leaderboard.html.j2",
        rows=shown_rows,
        left_out=len(rows) - len(shown_rows),
        n_runs=len(listed),
        damaged=damaged,
        stopped=store.stopped_runs(studio.root),
        benchmarks=list(benchmarks.values()),
        columns=ARMS,
        primary=PRIMARY,
        measures=measures,
        measure=measure,
        sort=sort,
        base=base[1].id if base else None,
        kept=filters,
        pins=[("pin", pin) for pin in pinned],
        unpinned=lambda pins, arm: [pin for pin in pins if pin[1] != arm],
        root=str(studio.root),
    )


@_ROUTES.get("/report.css")
def _report_style() -> Response:
    return FileResponse(html.STYLE, media_type="text/css")


@_ROUTES.get("/compare")
def _compare(studio: _Studio, request: Request) -> Response:
    parameters, runs = request.query_params, studio.runs
    arms = [ArmId.of(arm) for arm in dict.fromkeys(parameters.getlist("arm"))]
    base = ArmId.of(parameters["base"]) if parameters.get("base") else (arms[0] if arms else None)
    others = [arm for arm in arms if arm != base]
    if base is None or not others:
        return studio.page("error.html.j2", 422, sentence="choose at least two arms on the page of runs")
    first = runs.find(base)[0]
    reasons = {arm: leaderboard.incomparable(first, runs.find(arm)[0]) for arm in others}
    fit = [arm for arm in others if not reasons[arm]]
    judged = dict(zip(fit, leaderboard.judge(runs, base, fit), strict=True)) if fit else {}
    config = runs.results(base.run).config(base.arm)
    changes = {arm: leaderboard.differing_values(config, runs.results(arm.run).config(arm.arm)) for arm in others}
    return studio.page(
        "compare.html.j2",
        base=base,
        others=others,
        reasons=reasons,
        judged=judged,
        changes=changes,
        benchmark=first.record["benchmark"]["name"],
        split=first.split,
    )


@_ROUTES.get("/queries")
def _queries(studio: _Studio, request: Request) -> Response:
    parameters, runs = request.query_params, studio.runs
    left, right = ArmId.of(parameters.get("left", "")), ArmId.of(parameters.get("right", ""))
    reason = leaderboard.incomparable(runs.find(left)[0], runs.find(right)[0])
    if reason:
        return studio.page("error.html.j2", 422, sentence=f"{right} cannot be compared with {left}: it {reason}")
    sides = [(runs.results(arm.run), arm.arm) for arm in (left, right)]
    filters = _values_of(parameters, "left", "right", "level", "measure", "type", "q", "sort")
    level = PASSAGE if filters["level"] == PASSAGE else DOCUMENT
    measure, sort = filters["measure"] or PRIMARY, filters["sort"] or "loss"
    chosen = {"level": level, "kind": filters["type"], "search_words": filters["q"], "sort": sort}
    topics = queries.topics(sides[0], sides[1], measure, **chosen)
    topic, previous, following = queries.topic(topics, parameters.get("qid", "")) if topics else (None, "", "")
    hits, relevant = [], []
    if topic is not None:
        ids = [queries.chunk_ids(results, arm, topic.qid) for results, arm in sides]
        hits = [queries.hits(*side, topic.qid, ids[1 - n]) for n, side in enumerate(sides)]
        relevant = queries.relevant(sides[0], sides[1], topic.qid)
    per_query = sides[1][0].per_query
    names = sorted(set(per_query.loc[per_query["level"] == level, "measure"]))
    return studio.page(
        "queries.html.j2",
        topics=topics[:_MOST_ROWS],
        left_out=max(0, len(topics) - _MOST_ROWS),
        chosen=topic,
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


@_ROUTES.get("/runs/{name}")
def _run(studio: _Studio, name: str) -> Response:
    studio.runs.folder(name)
    return studio.page("run.html.j2", name=name)


@_ROUTES.get("/runs/{name}/advice")
def _advice(studio: _Studio, name: str, arm: str = "") -> Response:
    results = studio.runs.results(name)
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
    return studio.page("advice.html.j2", id=ArmId(name, arm), levers=levers, expected=predictions)


@_ROUTES.get("/runs/{name}/report")
def _report(studio: _Studio, name: str) -> Response:
    folder = studio.runs.folder(name)
    written = folder / html.FILE
    text = written.read_text(encoding="utf-8") if written.is_file() else html.render(studio.runs.results(name))
    return HTMLResponse(text, headers={"Content-Security-Policy": FRAMED})


@_ROUTES.get("/judging")
def _judging(studio: _Studio) -> Response:
    pools = studio.judging.pools()
    agreements = {name: studio.judging.agreements(name) for name in pools}
    return studio.page("judging.html.j2", pools=pools, agreements=agreements, runs=studio.runs.all()[0])


@_ROUTES.post("/judging/pool")
def _make_pool(studio: _Studio, request: Request) -> Response:
    studio.judging.make(_form_value(request, "run"), _number(request, "depth"))
    return see("/judging")


@_ROUTES.post("/judging/begin")
def _begin(studio: _Studio, request: Request) -> Response:
    name, judge = _form_value(request, "pool"), _form_value(request, "judge").strip()
    studio.judging.begin(name, judge)
    return see(url("/judging/pair", pool=name, judge=judge))


@_ROUTES.get("/judging/pair")
def _pair(studio: _Studio, pool: str, judge: str) -> Response:
    judging = studio.judging
    item, progress = judging.item(pool, judge), judging.progress(pool, judge)
    look = item is not None and progress.graded > 0 and progress.graded % LOOK_EVERY == 0
    return studio.page(
        "pair.html.j2",
        pool=pool,
        item=item,
        progress=progress,
        neighbours=judging.neighbours(pool, item.section) if item else None,
        agreements=judging.agreements(pool),
        outlook=judging.outlook(pool, judge) if look else None,
        grades=GRADES,
    )


@_ROUTES.post("/judging/grade")
def _grade(studio: _Studio, request: Request) -> Response:
    name, judge = _form_value(request, "pool"), _form_value(request, "judge")
    pair = _form_value(request, "qid", ""), _form_value(request, "section", "")
    studio.judging.act(name, judge, pair, _form_value(request, "act"), _form_value(request, "note", ""))
    return see(url("/judging/pair", pool=name, judge=judge))


@_ROUTES.get("/judging/outlook")
def _outlook(studio: _Studio, pool: str, judge: str) -> Response:
    stability = studio.judging.outlook(pool, judge)
    return studio.page("outlook.html.j2", pool=pool, judge=judge, outlook=stability)


@_ROUTES.get("/search")
def _show_search(studio: _Studio, request: Request) -> Response:
    return _search(studio, request.query_params, NOTHING)


@_ROUTES.post("/search")
def _submit_search(studio: _Studio, request: Request) -> Response:
    values = _only_values(request)
    if all(studio.searching.is_pure(values.get(side, "")) for side in ("left", "right")):
        return see(url("/search", **_values_of(values, "q", "left", "right", *_FILTERS)))
    return _search(studio, values, studio.access.may)


def _search(studio: Studio, parameters: Mapping[str, str], may: frozenset[Capability]) -> Response:
    typed = _values_of(parameters, "q", "left", "right", "kept")
    query, filters = typed["q"], _values_of(parameters, *_FILTERS)
    sides: list[Found] = []
    ranks: list[dict[str, int]] = [{}, {}]
    wrong = ""
    if query.strip():
        try:
            sides = [studio.searching.search(query, typed[side], filters, may) for side in ("left", "right")]
            ranks = [{hit.chunk_id: hit.rank for hit in side.answer.hits} for side in reversed(sides)]
        except RagbenchError as error:
            wrong = str(error)
    return studio.page(
        "search.html.j2",
        query=query,
        left=typed["left"],
        right=typed["right"],
        filters=filters,
        labels=_FILTERS,
        filtered=any(filters.values()),
        sides=sides,
        ranks=ranks,
        wrong=wrong,
        presets=experiments(),
        kept=typed["kept"],
        file=studio.searching.topics_file,
    )


@_ROUTES.post("/search/topic")
def _keep_topic(studio: _Studio, request: Request) -> Response:
    query = _form_value(request, "query")
    kept = studio.searching.keep(query, request.state.form.get("relevant", []))
    sides = {side: _form_value(request, side, "") for side in ("left", "right")}
    return see(url("/search", q=query, **sides, kept=kept))


@_ROUTES.get("/experiments")
def _show_experiments(studio: _Studio, request: Request) -> Response:
    return _experiments(studio, request.query_params, NOTHING)


@_ROUTES.post("/experiments")
def _check_experiment(studio: _Studio, request: Request) -> Response:
    return _experiments(studio, _only_values(request), studio.access.may)


@_ROUTES.post("/experiments/start")
def _start(studio: _Studio, request: Request) -> Response:
    command, overrides = _form_value(request, "command"), _form_value(request, "words")
    started = studio.jobs.start(_checked_words(studio, command, overrides, studio.access.may))
    return see(f"/experiments/{started.id}")


@_ROUTES.get("/experiments/{job}")
def _job(studio: _Studio, job: str) -> Response:
    return studio.page("job.html.j2", job=studio.jobs.find(job))


@_ROUTES.get("/experiments/{job}/events")
def _stream(studio: _Studio, job: str) -> Response:
    return StreamingResponse(_events(studio.jobs.find(job)), media_type="text/event-stream")


@_ROUTES.post("/experiments/cancel")
def _cancel(studio: _Studio, request: Request) -> Response:
    job = _form_value(request, "job")
    studio.jobs.cancel(job)
    return see(f"/experiments/{job}")


def _experiments(studio: Studio, parameters: Mapping[str, str], may: frozenset[Capability]) -> Response:
    preset, overrides = parameters.get("exp", ""), parameters.get("words", "")
    command = parameters.get("command", COMMANDS[0])
    typed = " ".join(filter(None, [f"exp={preset}" if preset else "", overrides]))
    command_line, wrong = "", ""
    if parameters.get("command") and not studio.access.read_only:
        try:
            command_line = shlex.join(["ragbench", *_checked_words(studio, command, typed, may)])
        except RagbenchError as error:
            wrong = str(error)
    return studio.page(
        "experiments.html.j2",
        jobs=studio.jobs.all(),
        commands=COMMANDS,
        command=command,
        presets=experiments(),
        preset=preset,
        words=overrides,
        typed=typed,
        shown=command_line,
        wrong=wrong,
    )


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


def _values_of(parameters: Mapping[str, str], *names: str) -> dict[str, str]:
    """Parameters of an address or a form by name, empty where there are none."""
    return {name: parameters.get(name, "") for name in names}


def _number(request: Request, name: str) -> int:
    text = _form_value(request, name).strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 0 < int(text) <= 1000:
        raise ConfigError(f"{name} must be between 1 and 1000, got '{text[:20]}'")
    return int(text)
