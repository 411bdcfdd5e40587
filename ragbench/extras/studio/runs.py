"""The finished runs of a project for the pages: read once, kept while their record is the same.

No file stays open. A run is listed when its record is written; `results.store` knows those that have none.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cachetools import LRUCache

from ragbench.base import files
from ragbench.base.errors import ResultsError
from ragbench.base.files import Damaged
from ragbench.boundary.checksummed_json import read_checksummed
from ragbench.evaluation.measures import DOCUMENT, PASSAGE
from ragbench.evidence.t_statistic import Mean, mean
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements

_KEPT = 6
"""Runs whose tables are kept in memory."""


class ArmId(NamedTuple):
    """An arm of a run, `run/arm` in addresses."""

    run: str
    arm: str

    def __str__(self) -> str:
        return f"{self.run}/{self.arm}"

    @staticmethod
    def of(text: str) -> ArmId:
        """The arm that an address names. Raises ResultsError if it names none."""
        run, slash, arm = text.partition("/")
        if not slash or not run or not arm:
            raise ResultsError(f"'{text[:80]}' names no arm: choose one on the page of runs")
        return ArmId(run, arm)


@dataclass(frozen=True)
class Milliseconds:
    """The 95th percentile of a new query's time, with its interval where it was measured."""

    p95: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ListedArm:
    """An arm with its means by level and measure; `steps` are the steps of its pipeline in words."""

    id: ArmId
    means: Mapping[tuple[str, str], Mean]
    p95: Milliseconds | None
    steps: tuple[str, ...]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class ListedRun:
    """A finished run and its record."""

    name: str
    record: Mapping[str, Any]
    arms: tuple[ListedArm, ...]

    @property
    def digest(self) -> str:
        """The digest of its benchmark: only runs that share it can be compared."""
        return str(self.record["benchmark"]["digest"])

    @property
    def split(self) -> str:
        """The split of the topics that it was measured on."""
        return str(self.record["split"])

    @property
    def started(self) -> float:
        """When it began, in seconds since 1970; 0 where that was not recorded."""
        return float(self.record.get("started", 0))


@dataclass
class Runs:
    """All finished runs below a results folder."""

    root: Path
    _known: dict[str, tuple[tuple[int, int], ListedRun | str]] = field(default_factory=dict)
    _loaded: LRUCache[str, tuple[tuple[int, int], Measurements]] = field(default_factory=lambda: LRUCache(_KEPT))
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def all(self) -> tuple[list[ListedRun], list[str]]:
        """The runs, newest first; and a sentence for each that is damaged."""
        with self._lock:
            states = {path.parent.name: _state(path) for path in self.root.glob(f"runs/*/{store.RECORD}")}
            for name in set(self._known) - set(states):
                del self._known[name]
            for name, state in states.items():
                if name not in self._known or self._known[name][0] != state:
                    self._known[name] = state, _read_run(self.root / "runs" / name)
            listed = [entry for _, entry in self._known.values()]
        runs = [entry for entry in listed if isinstance(entry, ListedRun)]
        damaged = sorted(entry for entry in listed if isinstance(entry, str))
        return sorted(runs, key=lambda run: (-run.started, run.name)), damaged

    def find(self, arm: ArmId) -> tuple[ListedRun, ListedArm]:
        """An arm with its run. Raises ResultsError."""
        for run in self.all()[0]:
            for arm_record in run.arms:
                if arm_record.id == arm:
                    return run, arm_record
        raise ResultsError(f"no finished run '{arm.run}' with an arm '{arm.arm}': choose one on the page of runs")

    def folder(self, name: str) -> Path:
        """The folder of a finished run, by a name that is listed. Raises ResultsError."""
        if name not in {run.name for run in self.all()[0]}:
            raise ResultsError(f"no finished run '{name}' below {self.root / 'runs'}")
        return self.root / "runs" / name

    def results(self, name: str) -> Measurements:
        """The tables of a run, compared with their digests when they are read. Raises ResultsError."""
        folder = self.folder(name)
        state = _state(folder / store.RECORD)
        with self._lock:
            if name not in self._loaded or self._loaded[name][0] != state:
                self._loaded[name] = state, measurements.load(folder)
            return self._loaded[name][1]


def _state(path: Path) -> tuple[int, int]:
    """The time and size of a file, which change when it is written again."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def _read_run(folder: Path) -> ListedRun | str:
    """A run, or why it cannot be shown. Files that are read here are checked; `Runs.results` checks all files."""
    try:
        record = read_checksummed(folder / store.RECORD)
        latency = folder / "latency.csv"
        files.check_digests(folder, {name: digest for name, digest in record["files"].items() if name == latency.name})
        times = _times(latency)
        arms = tuple(_arm(folder, str(arm), record, times) for arm in record["arms"])
        return ListedRun(folder.name, record, arms)
    except (Damaged, OSError, KeyError, TypeError, ValueError) as error:
        return f"{folder.name} cannot be read ({error}): restore it from a copy, or run it again"


def _arm(folder: Path, arm: str, record: Mapping[str, Any], times: Mapping[str, Milliseconds]) -> ListedArm:
    path = store.arm_path(folder, arm)
    sealed = read_checksummed(path / store.DONE)["files"]
    files.check_digests(
        path, {name: sealed[name] for name in (measurements.PER_QUERY, "pipeline.txt") if name in sealed}
    )
    sentence = path / "pipeline.txt"
    steps = (
        sentence.read_text(encoding="utf-8").strip().removesuffix(".").split(", then ") if sentence.is_file() else ()
    )
    overrides = tuple(map(str, record.get("overrides", {}).get(arm, ())))
    return ListedArm(
        ArmId(folder.name, arm), _means(path / measurements.PER_QUERY), times.get(arm), tuple(steps), overrides
    )


def _means(path: Path) -> dict[tuple[str, str], Mean]:
    """The means of documents and passages by level and measure."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(path, columns=["level", "measure", "value"], memory_map=False)
    values: dict[tuple[str, str], list[float]] = {}
    for level, measure, value in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
        if level in (DOCUMENT, PASSAGE) and value is not None:
            values.setdefault((level, measure), []).append(value)
    return {key: mean(column) for key, column in values.items()}


def _times(path: Path) -> dict[str, Milliseconds]:
    """p95 of the whole query by arm."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row.get("stage") == "total" and row.get("p95")]
    return {
        row["arm"]: Milliseconds(
            float(row["p95"]), *(float(row[n]) if row.get(n) else None for n in ("p95_low", "p95_high"))
        )
        for row in rows
    }
