"""Judging in the browser: pools of a run's unjudged pairs, and one file for every judge of a pool.

    <results>/studio/pools/<run>.csv              what `ragbench data pool` writes
    <results>/studio/judges/<run>/<judge>.csv     the same pairs in an order of this judge, with grades

A pair shows neither which arm returned it nor at which rank. The order is drawn by the judge's name, since the order of
the pool would show the best-ranked pairs first. Every grade is saved by `collect.judge`, as in a terminal,
and goes into the judgments with `ragbench judge FILE --merge`.
"""

from __future__ import annotations

import math
import random
import re
import threading
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from ragbench.base.types import BenchmarkError, RagbenchError, ResultsError
from ragbench.benchmark import lines
from ragbench.benchmark.benchmark import Benchmark, Qrels, docno_of_section
from ragbench.extras.collect import pool
from ragbench.extras.collect.agreement import Agreement, agreement
from ragbench.extras.collect.judge import Item, JudgingSession, grades_of
from ragbench.results import measurements, store

_JUDGE = re.compile(r"\w[\w .-]{0,39}")


@dataclass(frozen=True)
class JudgingProgress:
    """The progress of a judge; `seconds_left` is NaN before three grades of this session."""

    judge: str
    graded: int
    skipped: int
    pairs: int
    file: Path
    seconds_left: float = math.nan


@dataclass(frozen=True)
class JudgeAgreement:
    """The agreement of two judges of a pool, None if they share no pair yet."""

    first: str
    second: str
    agreement: Agreement | None


@dataclass(frozen=True)
class AdjacentSections:
    """The texts before and after a section in its document, empty at the ends."""

    before: str = ""
    after: str = ""


@dataclass
class Judging:
    """All pools below the results folder `root`."""

    root: Path
    _open: dict[Path, tuple[int, JudgingSession]] = field(default_factory=dict)
    _benchmarks: dict[str, Benchmark | None] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def _root(self) -> Path:
        return self.root / "studio"

    def runs(self) -> list[str]:
        """The names of the finished runs, newest first."""
        return [folder.name for folder in store.finished_runs(self.root)]

    def pools(self) -> dict[str, list[JudgingProgress]]:
        """The progress of the judges of every pool, by the pool's name."""
        names = sorted(path.stem for path in (self._root / "pools").glob("*.csv"))
        return {name: [self.progress(name, judge) for judge in self.judges(name)] for name in names}

    def judges(self, name: str) -> list[str]:
        """The judges who have begun with a pool."""
        return sorted(path.stem for path in (self._root / "judges" / self._require_pool(name)).glob("*.csv"))

    def make(self, run: str, depth: int) -> int:
        """Write the pool of a run; returns the number of its pairs. Raises BenchmarkError and ResultsError."""
        results = self._results(run)
        benchmark = measurements.benchmark_of(results, judged_since=True)
        listed = {arm: results.run(arm, measurements.SECTIONS) for arm in results.arms}
        rows = pool.pool(listed, benchmark.section_qrels, depth)
        if not rows:
            raise BenchmarkError(f"the first {depth} hits of {run} are all judged: look deeper")
        path = self._root / "pools" / f"{run}.csv"
        if path.exists():
            raise BenchmarkError(f"{run} has a pool already: judge it, or remove {path}")
        return pool.write_pool(path, rows, benchmark)

    def begin(self, name: str, judge: str) -> None:
        """Write the file of a judge if there is none: in an order of this judge, the pairs of a topic together."""
        path = self._file(name, judge)
        with self._lock:
            if path.exists():
                return
            rows = pool.read_pool(self._root / "pools" / f"{self._require_pool(name)}.csv").rows
            chance = random.Random(f"{name}/{judge}")
            by_topic: dict[str, list[dict[str, str]]] = {}
            for row in sorted(rows, key=lambda row: (row["qid"], row["section"])):
                by_topic.setdefault(row["qid"], []).append(row | {"grade": "", "note": ""})
            topics = list(by_topic.values())
            chance.shuffle(topics)
            for pairs in topics:
                chance.shuffle(pairs)
            ordered = ([row[column] for column in pool.COLUMNS] for pairs in topics for row in pairs)
            lines.write_atomically(path, pool.to_csv(pool.COLUMNS, ordered))

    def item(self, name: str, judge: str) -> Item | None:
        """The pair to grade next."""
        with self._lock:
            return self._session(name, judge).item

    def act(self, name: str, judge: str, pair: tuple[str, str], act: str, note: str = "") -> None:
        """Grade the current pair (0 to 3), skip it (s) or take the last grade back (u); saved when this returns.

        A grade for a pair that is no longer the current one, by a second click or from another tab, is ignored.
        """
        with self._lock:
            session = self._session(name, judge)
            session.act(act, pair, note)
            self._open[session.path] = session.path.stat().st_mtime_ns, session

    def progress(self, name: str, judge: str) -> JudgingProgress:
        """The progress of a judge."""
        with self._lock:
            session = self._session(name, judge)
            return JudgingProgress(
                judge, session.n_graded, session.n_skipped, len(session), session.path, session.seconds_left
            )

    def agreements(self, name: str) -> list[JudgeAgreement]:
        """The agreement of every two judges of a pool."""
        grades = {judge: grades_of(self._file(name, judge)) for judge in self.judges(name)}
        pairs = combinations(grades, 2)
        return [JudgeAgreement(one, two, _agreement(grades[one], grades[two])) for one, two in pairs]

    def neighbours(self, name: str, section: str) -> AdjacentSections:
        """The texts around a section, empty where the documents of the run can no longer be read."""
        benchmark = self._benchmark(name)
        documents = benchmark.documents if benchmark else ()
        document = next((d for d in documents if d.docno == docno_of_section(section)), None)
        sections = document.sections if document else ()
        position = next((n for n, s in enumerate(sections) if s.anchor == section.rpartition("#")[2]), None)
        if document is None or position is None:
            return AdjacentSections()
        texts = ["", *(document.text[s.start : s.end].strip() for s in sections), ""]
        return AdjacentSections(texts[position], texts[position + 2])

    def _benchmark(self, name: str) -> Benchmark | None:
        """The benchmark of a run, None where it has changed since the measurement."""
        with self._lock:
            if name not in self._benchmarks:
                try:
                    self._benchmarks[name] = measurements.benchmark_of(self._results(name), judged_since=True)
                except RagbenchError:
                    self._benchmarks[name] = None
            return self._benchmarks[name]

    def _results(self, name: str) -> measurements.Measurements:
        """The tables of a finished run. Raises ResultsError."""
        if name not in self.runs():
            raise ResultsError(f"no finished run '{name[:100]}' below {self.root / 'runs'}: choose one that is listed")
        return measurements.load(self.root / "runs" / name)

    def _require_pool(self, name: str) -> str:
        if name not in {path.stem for path in (self._root / "pools").glob("*.csv")}:
            raise BenchmarkError(f"unknown pool '{name[:100]}': make one on the page of judging")
        return name

    def _file(self, name: str, judge: str) -> Path:
        if not _JUDGE.fullmatch(judge):
            raise BenchmarkError("a judge's name has 1 to 40 letters, digits, blanks, dots and dashes")
        return self._root / "judges" / self._require_pool(name) / f"{judge}.csv"

    def _session(self, name: str, judge: str) -> JudgingSession:
        """A session that is kept so that it can undo; it is read again when another process has written its file."""
        path = self._file(name, judge)
        if not path.is_file():
            raise BenchmarkError(f"'{judge}' has not begun with this pool: begin on the page of judging")
        written = path.stat().st_mtime_ns
        if path not in self._open or self._open[path][0] != written:
            self._open[path] = written, JudgingSession(path)
        return self._open[path][1]


def _agreement(one: Qrels, two: Qrels) -> Agreement | None:
    shared = any(section in two.get(qid, {}) for qid, grades in one.items() for section in grades)
    return agreement(one, two) if shared else None
