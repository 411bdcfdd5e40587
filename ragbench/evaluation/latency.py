"""Latency of single queries, each asked for the first time.

Protocol: warm up, then rounds; in every round every arm answers a variant of every sampled query that is new
(`QueryMutator`). The arms have a new seeded order for each query, so that a slow moment affects all of them alike.
Models run without caches on disk and with pinned threads; the memory of earlier queries (`ragbench.base.query_cache`)
is cleared before each query. In the last round some variants are asked twice more: with that memory cleared, which
shows what is remembered elsewhere, and with it filled. Garbage
collection stays on. The time is service time: the next query starts when the last one is answered.
Cold starts are measured separately, in a fresh process (`ragbench.experiment.coldstart`)."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base import query_cache
from ragbench.base.options import Count, Natural, Seed, Validated, section
from ragbench.base.progress import task_ticks, track
from ragbench.base.types import LiveError, Query
from ragbench.evaluation.intervals import Floats, Samples, summary
from ragbench.evaluation.machine import WAITED, waited_ms
from ragbench.search.engine.pipeline import Arm, start
from ragbench.search.stages.stage import Index, QueryState, Stage

if TYPE_CHECKING:
    import pandas as pd


_TOTAL = "total"

NOTABLE = 0.1
"""Both first and repeated times are reported where they differ by more than this share of the first."""

REMEMBERED, REMEMBERED_MS = 0.2, 1.0
"""Something remembers queries outside the query memory if known ones save more than this share and these ms of p50."""

_MOST_AGAIN = 40
"""The most queries that are asked again."""


@section("latency")
@dataclass(frozen=True)
class LatencySpec(Validated):
    """How latency is measured."""

    enabled: bool = True  # measure latency
    queries: Count = 80  # sampled queries; a CI of p95 needs 72
    rounds: Count = 2  # how often each query is timed, each time in another variant
    warmup: Natural = 10  # queries before the first timed one
    threads: Count = 1  # threads of one query
    seed: Seed = 13  # random seed of the sample
    cold_start: bool = True  # start a new process, time its first query and measure its memory


@dataclass(frozen=True)
class Timing:
    """Samples of one arm: milliseconds of shape (samples, stages + 1), the last column for the whole query.

    `again_ms`: times of repeated queries, one each, of shape (queries, stages + 1); no rows when none was repeated.
    `known_ms`: times of the same queries when they were known and the query memory was cleared; `new_ms`: when they
    were new, in the same round. `waited_ms`: how much of each sample's total was spent waiting for a CPU, shape
    (samples,); empty if that was not observed.
    """

    arm: str
    columns: tuple[str, ...]
    qids: tuple[str, ...]
    samples_ms: Floats
    again_ms: Floats
    known_ms: Floats = field(default_factory=lambda: np.empty((0, 1)))
    new_ms: Floats = field(default_factory=lambda: np.empty((0, 1)))
    waited_ms: Floats = field(default_factory=lambda: np.empty(0))

    def samples(self, column: str = _TOTAL) -> Samples:
        """The times of one stage, or of the whole query, with their queries."""
        return Samples(self.qids, self.samples_ms[:, self.columns.index(column)])

    def frame(self) -> pd.DataFrame:
        """One row for every sample: arm, qid, then a column for every stage, `total` and `waited`."""
        import pandas as pd

        frame = pd.DataFrame(self.samples_ms, columns=list(self.columns))
        frame[WAITED] = self.waited_ms if len(self.waited_ms) else 0.0
        frame.insert(0, "qid", self.qids)
        frame.insert(0, "arm", self.arm)
        return frame

    def table(self) -> list[dict[str, object]]:
        """A row for every stage and the whole.

        `summary` of new queries; `again_p50` and `again_p95` of repeats; of the same queries `known_p50`, known and
        with the query memory cleared, and `new_p50`, when they were new.
        """
        rows: list[dict[str, object]] = []
        for column, stage in enumerate(self.columns):
            rows.append({"arm": self.arm, "stage": stage, **summary(self.samples(stage))})
            if len(self.again_ms) and len(self.known_ms):
                p50, p95 = np.percentile(self.again_ms[:, column], [50, 95])
                rows[-1] |= {"again_p50": float(p50), "again_p95": float(p95)}
                rows[-1]["known_p50"] = float(np.median(self.known_ms[:, column]))
                rows[-1]["new_p50"] = float(np.median(self.new_ms[:, column]))
        return rows


def measure(
    arms: Sequence[Arm],
    queries: Sequence[Query],
    spec: LatencySpec,
    again: bool = True,
    failed: dict[str, str] | None = None,
) -> dict[str, Timing]:
    """Time every arm over a seeded sample of the queries; `again`: also ask up to `_MOST_AGAIN` of them again.

    With `failed`, a live search that does not answer is not timed: `failed` receives its error by the arm's name.
    """
    chance = random.Random(spec.seed)
    sample = list(queries) if len(queries) <= spec.queries else chance.sample(list(queries), spec.queries)
    from threadpoolctl import threadpool_limits

    tick = task_ticks("timing queries", spec.rounds * len(sample) * len(arms))
    with threadpool_limits(limits=spec.threads):
        fresh = _without_caches(arms, spec.threads)
        for arm in list(fresh):
            with _no_failure(arm, fresh, failed):
                for query in track("warming up", sample[: spec.warmup]):
                    arm.pipeline([query], arm.index)
        times: dict[str, dict[str, list[list[float]]]] = {arm.name: defaultdict(list) for arm in fresh}
        waited: dict[str, list[float]] = {arm.name: [] for arm in fresh}
        searches = sample * spec.rounds
        repeated = range(len(searches) - len(sample), len(searches) - len(sample) + _MOST_AGAIN) if again else range(0)
        mutator = QueryMutator(sample, (query.text for query in queries))
        for number, query in enumerate(searches):
            for arm in chance.sample(fresh, len(fresh)):
                variant, of_arm = mutator.of(query), times[arm.name]
                with _no_failure(arm, fresh, failed):
                    waited_before = waited_ms()
                    new = time_new(arm, variant)
                    waited[arm.name].append(min(waited_ms() - waited_before, new[-1]))
                    of_arm["samples_ms"].append(new)
                    if number in repeated:
                        of_arm["new_ms"].append(new)
                        of_arm["known_ms"].append(time_new(arm, variant))
                        of_arm["again_ms"].append(time_query(arm, variant))
                tick(1)
    qids = tuple(query.qid for query in searches)
    timings = {}
    for arm in fresh:
        columns = (*(_column(name, stage) for name, stage in arm.pipeline), _TOTAL)
        arrays = {
            name: np.array(times[arm.name][name], dtype=np.float64).reshape(-1, len(columns))
            for name in ("samples_ms", "again_ms", "known_ms", "new_ms")
        }
        timings[arm.name] = Timing(arm.name, columns, qids, waited_ms=np.array(waited[arm.name]), **arrays)
    return timings


@contextmanager
def _no_failure(arm: Arm, timed: list[Arm], failed: dict[str, str] | None) -> Iterator[None]:
    """Remove an arm from those that are timed if it is a live search and does not answer; its error into `failed`."""
    try:
        yield
    except LiveError as error:
        if failed is None:
            raise
        failed[arm.name] = str(error)
        timed.remove(arm)


def _column(name: str, stage: Stage) -> str:
    """The name of a stage, marked for a live search elsewhere: its time includes the network."""
    return f"{name} (end to end)" if stage.outside and not stage.in_process else name


def _ask(name: str, stage: Stage, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
    """Run a stage; of a live search only the search itself, without locating its hits in the collection."""
    return stage.ask(states, index)


def _without_caches(arms: Sequence[Arm], threads: int) -> list[Arm]:
    """The arms with models that read no cache on disk, and all parts of the index that they need in memory."""
    bare = {id(arm.index.models): arm.index.models.uncached(threads) for arm in arms}
    fresh = [Arm(arm.name, arm.pipeline, arm.index.with_models(bare[id(arm.index.models)])) for arm in arms]
    for arm in fresh:
        arm.index.prepare(arm.pipeline.needs)
    return fresh


def time_new(arm: Arm, query: Query) -> list[float]:
    """The times of a query with the query memory cleared, that of plug-ins too."""
    arm.index.memory.forget()
    query_cache.OF_PLUGINS.forget()
    return time_query(arm, query)


def time_query(arm: Arm, query: Query) -> list[float]:
    """Milliseconds of every stage and of the whole for one query."""
    for _, stage in arm.pipeline:
        stage.wait()
    clock = time.perf_counter_ns
    marks = [clock()]
    for _ in arm.pipeline.steps(start([query]), arm.index, _ask):
        marks.append(clock())
    times = [(end - begin) / 1e6 for begin, end in itertools.pairwise(marks)]
    return [*times, (marks[-1] - marks[0]) / 1e6]


def repeat_sentences(table: pd.DataFrame) -> list[str]:
    """A sentence for every arm whose times differ when a query is repeated, from the latency table of a run."""
    if "again_p50" not in table:
        return []
    lines = []
    for row in table[table["stage"] == _TOTAL].to_dict("records"):
        ratios = [abs(row[f"again_{name}"] - row[name]) / max(row[name], 1e-9) for name in ("p50", "p95")]
        if max(ratios) > NOTABLE:
            lines.append(
                f"{row['arm']}: p50 {row['p50']:.1f} ms and p95 {row['p95']:.1f} ms for a new query, "
                f"{row['again_p50']:.1f} and {row['again_p95']:.1f} ms when it is asked again"
            )
    return [*lines, *_remembered(table)]


def _remembered(table: pd.DataFrame) -> list[str]:
    """A sentence for every arm in which something remembers queries and does not say so."""
    if "known_p50" not in table:
        return []
    arms = []
    for row in table[table["stage"] == _TOTAL].to_dict("records"):
        saved = row["new_p50"] - row["known_p50"]
        if saved > max(REMEMBERED * row["new_p50"], REMEMBERED_MS):
            arms.append(
                f"{row['arm']}: something remembers queries: p50 {row['new_p50']:.1f} ms for a novel query, "
                f"{row['known_p50']:.1f} ms for the same one known. Novel ones count; a plug-in caches with "
                "ragbench.remember"
            )
    return arms


_TRIES = 50


class QueryMutator:
    """Makes variants of queries, every one once.

    The topics of a run are not novel when they are timed: the pass that measured quality has asked them, so a stage,
    plug-in or endpoint that remembers answers by text would be timed by its memory. A fresh process forgets what a
    process keeps, and neither what is on disk nor what an endpoint keeps. A novel text is new to all of them. A variant
    exchanges one word of a query for a word of another one, so that it has as many words, from the same vocabulary.
    `research/bench/memory_and_time.py` compares the times of variants and of the queries themselves.
    """

    def __init__(self, queries: Sequence[Query], texts: Iterable[str] = ()) -> None:
        """`texts` texts are not made either."""
        self._words = [word for query in queries for word in query.text.split()] or ["word"]
        self._known = {query.text for query in queries} | set(texts)
        # Not seeded: an endpoint that remembers the variants of an earlier run must not have seen these.
        self._chance = random.SystemRandom()

    def of(self, query: Query) -> Query:
        """A variant that was not made before, with the qid of its query."""
        words = query.text.split() or [""]
        for attempt in range(_TRIES):
            changed = list(words)
            for position in self._chance.sample(range(len(changed)), min(len(changed), 1 + attempt // 10)):
                changed[position] = self._chance.choice(self._words)
            if (text := " ".join(changed)) not in self._known:
                break
        else:
            # So few words that all exchanges are used up: a number is new for certain.
            text = f"{query.text} {self._chance.getrandbits(40)}"
        self._known.add(text)
        return replace(query, text=text)
