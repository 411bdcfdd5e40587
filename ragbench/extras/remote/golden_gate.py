"""`ragbench gate --golden`: the ranks that a search gives to the pages of a golden file, against those of a baseline.

A few dozen queries cannot exclude a small loss, so nothing is inconclusive here: a lost query, a significant drop or
a drop of a chosen size fails, and each difference is printed with the number of lost queries that would be significant.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ragbench.base import console, files
from ragbench.base.options import Confidence, Natural, Share, Validated, as_options
from ragbench.base.types import BAD_INPUT, FAILED, BoundaryError, ConfigError, LiveError, counted
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.boundary.json import read_json
from ragbench.evaluation import measures
from ragbench.evidence import statistics
from ragbench.extras.export import gate_page, moves
from ragbench.extras.remote.golden import Baseline, Case, is_same, read_baseline, read_cases, write_baseline
from ragbench.extras.remote.golden_labels import NewName, all_names, lost_pages, new_names
from ragbench.extras.remote.live.client import HitReading, RateLimitedClient, asking_program, sends_filter
from ragbench.extras.remote.live.response_mapping import infer_mapping
from ragbench.extras.remote.live.stages import Live, LiveCommand, LiveHttp, LiveMcp
from ragbench.index import filters

MEASURES = "R@1,R@10,RR"
_HTTP = ("http://", "https://")
_DEPTH = 10
_TIMEOUT_S, _PER_SECOND = 30.0, 20.0
_SIGNIFICANT_FROM = 3  # lost queries; fewer are never significant
_NAMED = 3  # leaking hits of a query
_OLD_NAMES = "this is so only by old names of pages: write the new ones in the golden file and its baseline"
_NAME_IN_TEXT = re.compile(r"https?://[^\s<>()\[\]\"'`]+|[\w./-]+\.(?:mdx?|html?)\b(?:#[\w-]+)?")

_HitsByQuery = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class GoldenLimits(Validated):
    """What may change: `allow_lost` lost queries, and less than `max_drop` of a measure, with None any amount.

    A drop that is significant at `confidence` always fails.
    """

    allow_lost: Natural = 0
    max_drop: Share | None = None
    confidence: Confidence = 0.95


@dataclass(frozen=True)
class MeasureChange:
    """A measure of a surface before and now, the queries that rose and fell, and what is to be said of the difference.

    `least`: how many of the queries, all lost entirely, would be a significant drop; None if all would not be.
    """

    measure: str
    before: float
    now: float
    rose: int
    fell: int
    significant: bool
    least: int | None
    cases: int

    @property
    def words(self) -> str:
        """The difference and what this many cases can show."""
        moved = f"{self.rose} better, {self.fell} worse: {'significant' if self.significant else 'not significant'}"
        could = "no drop" if self.least is None else f"-{self.least / self.cases:.2f} ({self.least} lost)"
        return f"{moved}; {could} would be"


@dataclass(frozen=True)
class Leaks:
    """Hits outside the filter of their query: `outside` of the `known` ones, which give the values of the filter.

    `names`: those hits by query.
    """

    outside: int
    known: int
    queries: int
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The leaks in words."""
        queries = counted(self.queries, "query")
        if not self.known:
            return f"leaks unknown: no hit gives a value that the filter of {queries} names"
        return f"leaks: {self.outside} of {self.known} hits are outside the filter of {queries}"


@dataclass(frozen=True)
class Leaking:
    """A query with hits outside its filter; `new`: the baseline has none of it."""

    query: str
    hits: Sequence[str]
    new: bool

    def sentence(self, quoted: Callable[[str], str] = lambda name: name) -> str:
        """The hits, the first ones by name; `quoted` writes them."""
        more = f" and {len(self.hits) - _NAMED} more" if len(self.hits) > _NAMED else ""
        before = "not at the baseline" if self.new else "the baseline leaks, too"
        return f"{', '.join(map(quoted, self.hits[:_NAMED]))}{more} outside the filter; {before}"


@dataclass
class Surface:
    """The outcome of one search.

    `labels`: expected pages with a new name, by which the rest is measured. `of_labels`: failures that only the old
    names have.
    """

    changes: list[MeasureChange] = field(default_factory=list)
    lost: list[moves.Moved] = field(default_factory=list)
    won: list[moves.Moved] = field(default_factory=list)
    leaking: list[Leaking] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    leaks: Leaks | None = None
    labels: list[NewName] = field(default_factory=list)
    of_labels: list[str] = field(default_factory=list)


def main(arguments: argparse.Namespace) -> int:
    """Ask, and write the baseline or compare with it: 1 when the search is worse, 2 when only names of pages are old.

    RagbenchError when nothing can be compared.
    """
    if not arguments.search:
        raise ConfigError("--golden needs --search: a URL with {query}, a program, or mcp: and one of these")
    if arguments.words or arguments.pin or arguments.base:
        raise ConfigError("--golden takes no run and no --base: its baseline is a file (--baseline)")
    for name in ("margin", "latency_tolerance", "max_pollution", "changed_data"):
        if (value := getattr(arguments, name)) is not None and value is not False:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to a gate of runs: omit it with --golden")
    with as_options():
        given = {"confidence": arguments.confidence} if arguments.confidence is not None else {}
        limits = GoldenLimits(arguments.allow_lost, arguments.max_drop, **given)
    names = [name.strip() for name in (arguments.measure or MEASURES).split(",")]
    measures.check(names)
    depth = max(_DEPTH, *(int(name.rpartition("@")[2]) for name in names if name.rpartition("@")[2].isdigit()), 0)
    golden = Path(arguments.golden)
    cases, without = read_cases(golden)
    file = Path(arguments.baseline) if arguments.baseline else golden.with_suffix(".baseline.json")
    surfaces = arguments.tool or ["search"]
    baseline = None if arguments.write_baseline else read_baseline(file, cases, without, surfaces, depth)
    asked = {name: ask(arguments, name, cases, depth) for name in surfaces}
    hits = {name: named for name, (named, _) in asked.items()}
    now = {name: {case.query: case.ranks(hits[name][case.query], depth) for case in cases} for name in surfaces}
    for name in surfaces:
        if not any(rank for of_query in now[name].values() for rank in of_query.values()):
            shown = next(answer[0] for answer in hits[name].values() if answer)
            if baseline is None or not any(rank for r in baseline[name].ranks.values() for rank in r.values()):
                raise LiveError(
                    f"no query of {golden} has an expected page among {depth} hits of '{name}': a hit is named "
                    f"'{shown[:60]}', an expected page '{cases[0].expected[0][:60]}'; choose the field with --document"
                )
    if baseline is None:
        leaks = {name: found.names if found else {} for name, (_, found) in asked.items()}
        write_baseline(file, {name: Baseline(now[name], leaks[name]) for name in surfaces}, depth)
        print(f"wrote {file}: the ranks of {counted(len(cases), 'query')}; commit it")
        print(*map(_without_page, without), sep="\n", end="\n" * bool(without))
        return 0
    before = {name: baseline[name].ranks for name in surfaces}
    outcomes = judge(before, now, names, depth=depth, hits=hits, limits=limits)
    if any(outcome.failures for outcome in outcomes.values()):
        lost = {page: None for name in surfaces for page in lost_pages(before[name], now[name])}
        labels = new_names(lost, golden)
        now = {
            name: {case.query: case.ranks(hits[name][case.query], depth, partial(all_names, labels)) for case in cases}
            for name in surfaces
        }
        as_written, outcomes = outcomes, judge(before, now, names, depth=depth, hits=hits, limits=limits)
        for name, outcome in outcomes.items():
            outcome.labels = list(labels.values())
            outcome.of_labels = [] if outcome.failures else as_written[name].failures
    for name, outcome in outcomes.items():
        _add_leaks(outcome, asked[name][1], baseline[name])
    failed = any(outcome.failures for outcome in outcomes.values())
    outdated = any(outcome.of_labels for outcome in outcomes.values())
    if arguments.markdown:
        files.write_text(Path(arguments.markdown), markdown(outcomes, depth, golden, file, without))
    if arguments.json:
        passes = not failed and not outdated
        console.print_json({"passes": passes, "cases": len(cases), "without_page": without, "surfaces": outcomes})
    else:
        lines = [line for name, outcome in outcomes.items() for line in _lines(name, outcome, depth)]
        print("\n".join([*map(_without_page, without), *lines]))
    return FAILED if failed else BAD_INPUT if outdated else 0


def _without_page(query: str) -> str:
    return f"omitted '{query}': it has no query or no expected page, so it takes no part"


def _add_leaks(outcome: Surface, leaks: Leaks | None, baseline: Baseline) -> None:
    """The leaks of a surface by query; it fails for queries that leak and did not at the baseline."""
    outcome.leaks = leaks
    for query, names in (leaks.names if leaks else {}).items():
        outcome.leaking.append(Leaking(query, names, new=query not in baseline.leaks))
    if new := sum(leaking.new for leaking in outcome.leaking):
        outcome.failures.append(
            f"{counted(new, 'query')} with hits outside the filter, and none at the baseline (--write-baseline accepts)"
        )


def judge(
    before: Mapping[str, moves.Answers],
    now: Mapping[str, moves.Answers],
    names: Sequence[str],
    *,
    depth: int,
    hits: Mapping[str, _HitsByQuery] | None = None,
    limits: GoldenLimits | None = None,
) -> dict[str, Surface]:
    """The outcome of each surface: measures as one family of comparisons, and the queries that were lost or won.

    A surface fails beyond `limits`; a lost query had an expected page in the first half of `depth` hits and has none
    among all of them.
    """
    limits = limits or GoldenLimits()
    pairs = [(surface, name) for surface in before for name in names]
    old, new = (
        np.array([row for surface in before for row in _values(side[surface], list(before[surface]), names, depth)])
        for side in (before, now)
    )
    n = old.shape[1]
    least = _least(n, limits.confidence)
    outcomes = {surface: Surface() for surface in before}
    sure = statistics.significant(new, old, seed=0, confidence=limits.confidence)
    for (surface, name), before_row, now_row, is_sure in zip(pairs, old, new, sure, strict=True):
        outcome, moved = outcomes[surface], now_row - before_row
        rose, fell = int((moved > statistics.TIE).sum()), int((moved < -statistics.TIE).sum())
        change = MeasureChange(
            name, float(before_row.mean()), float(now_row.mean()), rose, fell, bool(is_sure), least, n
        )
        outcome.changes.append(change)
        drop = change.before - change.now
        if is_sure and drop > 0:
            outcome.failures.append(f"{name} drops significantly, by {drop:.3f}")
        if limits.max_drop is not None and drop > 0 and drop >= limits.max_drop - 1e-9:
            outcome.failures.append(f"{name} drops by {drop:.3f}; less than {limits.max_drop:g} is allowed")
    for surface, outcome in outcomes.items():
        outcome.lost, outcome.won = moves.moves(before[surface], now[surface], depth, hits[surface] if hits else None)
        lost = sum(moved.counts for moved in outcome.lost)
        if lost > limits.allow_lost:
            outcome.failures.append(
                f"{lost} of {n} queries lost that were among the first {depth // 2} hits; {limits.allow_lost} allowed"
            )
    return outcomes


def _values(answers: moves.Answers, queries: Sequence[str], names: Sequence[str], depth: int) -> list[list[float]]:
    """For each measure its value of each query, with judgments of 1 and fillers at the ranks of other pages."""
    run, qrels = {}, {}
    for query in queries:
        placed = {page: rank for page, rank in answers[query].items() if rank is not None and rank <= depth}
        others = {f" {rank}": rank for rank in range(1, depth + 1) if rank not in placed.values()}
        run[query] = [(page, -float(rank)) for page, rank in {**placed, **others}.items()]
        qrels[query] = dict.fromkeys(answers[query], 1)
    values = {(name, query): value for query, name, value in measures.by_ir_measures(names, run, qrels)}
    return [[values[name, query] for query in queries] for name in names]


@cache
def _least(n: int, confidence: float) -> int | None:
    """How many of `n` queries, each lost entirely with no other change, are a significant drop of a measure."""
    for lost in range(_SIGNIFICANT_FROM, n + 1):
        now = np.arange(n)[np.newaxis] >= lost
        if statistics.significant(now.astype(float), np.ones((1, n)), seed=0, confidence=confidence)[0]:
            return lost
    return None


def ask(
    arguments: argparse.Namespace, surface: str, cases: Sequence[Case], depth: int
) -> tuple[dict[str, list[str]], Leaks | None]:
    """The names of the hits by query, and the leaks, None where no case has a filter.

    Raises LiveError for a search that fails, and one without a hit for any query.
    """
    search = arguments.search
    if "{query}" in search or search.startswith(("mcp:", *_HTTP)):
        live = _live(arguments, surface, depth, any(case.filter for case in cases))
        answers = {case.query: live(case.query, case.filter) for case in cases}
    else:
        answers = _in_batch(_words(search), cases, depth)
    answers = {query: _content(answer) for query, answer in answers.items()}
    reading = _reading(arguments, cases, answers)
    named = {}
    for query, answer in answers.items():
        try:
            named[query] = _names(reading, answer, depth)
        except LiveError as error:
            raise LiveError(f"'{surface}' answers '{query[:60]}' with something else than hits: {error}") from None
    if not any(named.values()):
        raise LiveError(
            f"'{surface}' has no hit for any of {counted(len(cases), 'query')}: check --search, or start the search"
        )
    return named, _leaks(reading, cases, answers, depth)


def _leaks(reading: HitReading, cases: Sequence[Case], answers: Mapping[str, Any], depth: int) -> Leaks | None:
    """The hits outside the filters, among those that give a value of the filter, themselves or in an object in them."""
    filtered = [case for case in cases if case.filter]
    meeting = [
        (case.query, name, _meets(hit, case.filter))
        for case in filtered
        if _has_hits(reading, answers[case.query])
        for hit, name in zip(
            reading.values(answers[case.query])[:depth], _names(reading, answers[case.query], depth), strict=False
        )
    ]
    names: dict[str, list[str]] = {}
    for query, name, meets in meeting:
        if meets is False:
            names.setdefault(query, []).append(name)
    known = sum(meets is not None for *_, meets in meeting)
    return Leaks(sum(map(len, names.values())), known, len(filtered), names) if filtered else None


def _meets(hit: Any, conditions: QueryFilter) -> bool | None:
    """Whether a hit meets the conditions of which it gives a value; None if it gives none."""
    places = [hit, *hit.values()] if isinstance(hit, Mapping) else []
    objects = [place for place in places if isinstance(place, Mapping)]
    given = {name: next((o[name] for o in objects if name in o), None) for name in conditions}
    met = [
        not {value.casefold() for value in filters.values_of(given[name])}.isdisjoint(
            map(str.casefold, filters.values_of(wanted))
        )
        for name, wanted in conditions.items()
        if given[name] is not None
    ]
    return all(met) if met else None


def _live(arguments: argparse.Namespace, surface: str, depth: int, filtered: bool) -> Callable[[str, QueryFilter], Any]:
    """A function that sends one query: to a server, to a new process, or to a tool of an MCP server.

    With `filtered` the filter is one more argument, `filter`, unless the search or its arguments have a place for it.
    """
    try:
        body = read_json(arguments.arguments) if arguments.arguments else None
    except BoundaryError as error:
        raise ConfigError(f'--arguments is not JSON ({error}): write {{"query": "{{query}}"}}') from None
    place = arguments.search.removeprefix("mcp:")
    adds_filter = filtered and not sends_filter((place, body))
    over_http = place.startswith(_HTTP)
    common: dict[str, Any] = {
        "hits": "@", "document": "@", "timeout_s": _TIMEOUT_S, "depth": depth, "per_second": _PER_SECOND
    }  # fmt: skip
    live: Live
    with as_options():
        if arguments.search.startswith("mcp:"):
            common |= {"url": place} if over_http else {"program": _words(place)}
            template = {"query": "{query}"} if body is None else body
            live = LiveMcp(tool=surface, **common, arguments=_with_filter(template) if adds_filter else template)
        elif over_http:
            if "{query}" not in f"{place} {body}":
                raise ConfigError("--search, or --arguments, must hold {query} where the query belongs")
            method: Any = "GET" if body is None else "POST"
            if adds_filter and body is None:
                place += f"{'&' if '?' in place else '?'}filter={{filter}}"
            elif adds_filter:
                body = _with_filter(body)
            live = LiveHttp(url=place, method=method, body=body, token_variable=arguments.token, **common)
        else:
            words = _words(place)
            live = LiveCommand(program=(*words, "{filter}") if adds_filter else words, **common)
    return live.answer


def _with_filter(arguments: Any) -> Any:
    return {**arguments, "filter": "{filter}"} if isinstance(arguments, Mapping) else arguments


def _words(program: str) -> tuple[str, ...]:
    """The words of a program's line."""
    try:
        words = tuple(shlex.split(program))
    except ValueError:
        words = ()
    if not words:
        raise ConfigError(f"--search must be a program and its arguments, with closed quotes, got '{program[:60]}'")
    return words


def _in_batch(program: Sequence[str], cases: Sequence[Case], depth: int) -> dict[str, Any]:
    """The answers of one process that reads a line of JSON for each query and prints one with the same `id`."""
    lines = [
        {"id": number, "query": case.query, "depth": depth, **({"filter": case.filter} if case.filter else {})}
        for number, case in enumerate(cases, start=1)
    ]
    client = RateLimitedClient(f"the program {program[0]}", asking_program(program, _TIMEOUT_S * len(cases)), 1.0, 0)
    try:
        printed = client("\n".join(json.dumps(line) for line in lines), depth)
    except LiveError as error:
        raise LiveError(f"{error}; if it takes a query as an argument, add {{query}} to --search") from None
    rows = printed if isinstance(printed, list) else [printed]
    by_id = {str(row.get("id")): row for row in rows if isinstance(row, Mapping)}
    missing = [line["query"] for line in lines if str(line["id"]) not in by_id]
    if missing:
        raise LiveError(
            f"the program {program[0]} prints no line with the id of {counted(len(missing), 'query')}, such as "
            f'\'{str(missing[0])[:60]}\': print {{"id": 1, "hits": [...]}} for each line that it reads'
        )
    return {case.query: by_id[str(number)] for number, case in enumerate(cases, start=1)}


def _reading(arguments: argparse.Namespace, cases: Sequence[Case], answers: Mapping[str, Any]) -> HitReading:
    """Where hits and their names are in an answer: by `--hits` and `--document`, else as most answers have them.

    Those answers count first in which the names are of expected pages. Raises LiveError if none has hits with a name.
    """
    with as_options():
        reading = HitReading(hits=arguments.hits or "@", document=arguments.document or "@")
    if not arguments.document:
        matched: dict[tuple[str, str], list[int]] = {}
        for case in cases:
            if place := _place(answers[case.query], arguments.hits, case.expected):
                matched.setdefault(place[:2], []).append(place[2])
        best = max(matched, key=lambda place: (sum(matched[place]), len(matched[place])), default=None)
        if best is not None:
            reading = HitReading(hits=best[0], document=best[1])
        elif not any(isinstance(answer, str) for answer in answers.values()):
            raise LiveError(
                f"no answer to {counted(len(cases), 'query')} has hits with a name (one is "
                f"{str(next(iter(answers.values())))[:80]!r}): check --search, start the search, or choose the fields "
                "with --hits and --document"
            )

    return reading


def _names(reading: HitReading, answer: Any, depth: int) -> list[str]:
    if isinstance(answer, str):  # the text of an MCP tool
        return [name.rstrip(".,;:") for name in _NAME_IN_TEXT.findall(answer)]
    return [hit.document for hit in reading.read(answer, 10 * depth)] if _has_hits(reading, answer) else []


def _has_hits(reading: HitReading, answer: Any) -> bool:
    """Whether an answer has a list of hits: not one that is text, nor null, as Go writes no hits."""
    return not isinstance(answer, str) and not (isinstance(answer, Mapping) and answer.get(reading.hits, ...) is None)


def _content(answer: Any) -> Any:
    """An answer without the object in which MCP servers wrap a text, and the value of a text that is JSON."""
    text = answer["result"] if isinstance(answer, Mapping) and list(answer) == ["result"] else answer
    if not isinstance(text, str):
        return answer
    try:
        return read_json(text)
    except BoundaryError:
        return text


def _place(answer: Any, hits: str | None, expected: Sequence[str]) -> tuple[str, str, int] | None:
    """The expressions of the hits of an answer and of their names, and how many name expected pages; None without."""
    if hits:
        import jmespath

        answer = jmespath.search(hits, answer)

    def is_expected(name: str) -> bool:
        return any(is_same(page, name) for page in expected)

    try:
        inferred = infer_mapping(answer, is_expected)
    except LiveError:
        return None
    keys = inferred.keys
    return (hits or keys["hits"], keys["document"], inferred.matched) if "document" in keys else None


def _lines(name: str, outcome: Surface, depth: int) -> list[str]:
    """A surface on the screen."""
    lines = [f"{name}: {outcome.changes[0].cases} queries", f"{'':10}{'before':>8}{'now':>8}{'change':>9}"]
    for change in outcome.changes:
        numbers = f"{change.before:8.3f}{change.now:8.3f}{change.now - change.before:+9.3f}"
        lines.append(f"{change.measure:10}{numbers}   {change.words}")
    for name, queries in (("lost ", outcome.lost), ("won  ", outcome.won)):
        lines += [f"{name} '{moved.query}': {moved.sentence(depth)}" for moved in queries]
    lines += [f"leaks '{leaking.query}': {leaking.sentence()}" for leaking in outcome.leaking]
    lines += [] if outcome.leaks is None else [outcome.leaks.sentence]
    lines += [f"label '{label.page}' {label.sentence}" for label in outcome.labels]
    if outcome.of_labels and not outcome.failures:
        return [*lines, f"OLD NAMES {'; '.join(outcome.of_labels)}; {_OLD_NAMES}"]
    return lines + ([f"FAILS {failure}" for failure in outcome.failures] or ["passes"])


def markdown(
    outcomes: Mapping[str, Surface], depth: int, golden: Path, baseline: Path, without: Sequence[str] = ()
) -> str:
    """The outcome for a pull request; `without`: queries without an expected page."""
    failed = any(outcome.failures for outcome in outcomes.values())
    outdated = any(outcome.of_labels for outcome in outcomes.values())
    sections = [_part(name, outcome, depth) for name, outcome in outcomes.items()]
    if without:
        title = "Without a query or a page, and takes no part"
        sections.append(gate_page.GateSection("", facts=gate_page.listed(title, list(map(gate_page.code, without)))))
    again = gate_page.code(f"ragbench gate --golden {golden.name} --search ... --write-baseline")
    first = "the leaks, then the lost queries" if any(one.leaking for one in outcomes.values()) else "the lost queries"
    advice = (
        f"Start with {first}. If the change is right, because a page has a new name or another page answers now, "
        f"correct {gate_page.code(golden.name)}, write {gate_page.code(baseline.name)} again "
        f"({again}), and commit both."
        if failed
        else f"Write the new names in {gate_page.code(golden.name)} and {gate_page.code(baseline.name)}; commit both."
        if outdated
        else "Nothing: merge. A pass does not exclude a small loss; the last column says which drop would be found."
    )
    return gate_page.page("fails" if failed else "needs new names" if outdated else "passes", sections, advice)


def _part(name: str, outcome: Surface, depth: int) -> gate_page.GateSection:
    cases = outcome.changes[0].cases
    head = ["measure of pages", "before", "now", "change", f"what {cases} queries show"]
    rows = [
        [
            change.measure,
            f"{change.before:.3f}",
            f"{change.now:.3f}",
            f"{change.now - change.before:+.3f}",
            change.words,
        ]
        for change in outcome.changes
    ]
    verdict = "Fails" if outcome.failures else "Old names" if outcome.of_labels else "Passes"
    reasons = outcome.failures or outcome.of_labels
    facts = [
        f"**{verdict}**" + "".join(f": {reason}" for reason in reasons[:1]),
        *reasons[1:],
        *([f"{_OLD_NAMES.capitalize()}."] if verdict == "Old names" else []),
        *gate_page.listed(
            "Labels",
            [f"{gate_page.code(label.page)} {gate_page.escaped(label.sentence)}" for label in outcome.labels],
        ),
        *([] if outcome.leaks is None else [f"Filters: {outcome.leaks.sentence}."]),
        *gate_page.listed(
            "Leaks",
            [f"{gate_page.code(leaking.query)}: {leaking.sentence(gate_page.code)}" for leaking in outcome.leaking],
        ),
        "Passages and latency: not compared, because the baseline has ranks of pages only.",
        f"Queries: all {cases} with an expected page decide each gate, so a search that was tuned on them looks better "
        "here than it is.",
    ]
    return gate_page.GateSection(name, [head, *rows], facts, outcome.lost, outcome.won, depth)
