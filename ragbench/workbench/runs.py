"""One way to name a finished run, for every command and for notebooks.

results/runs/20260101-120000-run-3-arms    its folder, or that of an arm in it
@1, @2                                     the newest, the one before
20260101, phase1, run-3-arms               any part of the folder's name that no other run has
3f2a...                                    its id in MLflow
@1/rerank                                  an arm of one of these
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import registry
from ragbench.base.types import ConfigError, ResultsError, counted, did_you_mean
from ragbench.benchmark.frames import read_qrels_table, read_run_table
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.runs import read_run, renamed
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.corpus.searched import normalised
from ragbench.evaluation.measures import own_name
from ragbench.report import tables
from ragbench.results import store
from ragbench.results.compare import judge_runs

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

_SHOWN = 4
_LOG = logging.getLogger(__name__)


def find(name: str, settings: Settings) -> Path:
    """The folder of a run or of an arm, or the run file, with this name. Raises ResultsError, TrackingError."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    run, _, arm = name.partition("/")
    if not run or "/" in arm:  # the path of something that does not exist
        run, arm = name, ""
    folder = _folder(run, settings)
    if not arm:
        return folder
    arms = [str(name) for name in store.read(folder)["arms"]]
    if arm not in arms:
        raise ResultsError(f"the run {folder.name} has no arm '{arm}'{did_you_mean(arm, arms, 'arms')}")
    return store.arm_path(folder, arm)


def named_runs(arguments: Sequence[str], limit: int | None = None) -> tuple[list[Path], Settings]:
    """The folders and files that words name (default: the newest run), and the settings of the other words.

    Raises ResultsError for more than `limit`.
    """
    named, overrides = split_words(arguments)
    if limit is not None and len(named) > limit:
        raise ResultsError(f"name one run, got {len(named)}: {', '.join(named)}; ragbench compare takes several")
    settings = composition.compose(overrides)
    return [find(name, settings) for name in named or ["@1"]], settings


def split_words(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names among the words, and the overrides: words that contain `=` and are neither a file nor `@1/a=b`."""
    overrides = [
        argument for argument in arguments if "=" in argument and argument[0] != "@" and not Path(argument).exists()
    ]
    return [argument for argument in arguments if argument not in overrides], overrides


def _folder(name: str, settings: Settings) -> Path:
    if numbered := re.fullmatch(r"@(\d+)", name):
        return _before(int(numbered[1]), settings)
    matches = [folder for folder in store.finished_runs(settings.results) if name and name in folder.name]
    exact = [folder for folder in matches if folder.name == name]
    if len(matches) == 1 or exact:
        return (exact or matches)[0]
    if matches:
        listed = ", ".join(folder.name for folder in matches[:_SHOWN]) + (", ..." if len(matches) > _SHOWN else "")
        raise ResultsError(f"'{name}' may be any of {len(matches)} runs ({listed}): type more of the name")
    tracking = registry.find("hook", "tracking")
    if tracking is None or not re.fullmatch(r"[0-9a-f]{32}", name):
        raise ResultsError(
            f"'{name}' is neither a file nor a run in {settings.results / 'runs'}: name a folder, a part of its "
            "name, or @1 for the newest run"
        )
    return Path(tracking.folder_of(tracking.target_of(settings), name))


def _before(number: int, settings: Settings) -> Path:
    if number == 1:
        return store.latest(settings.results)
    runs = store.finished_runs(settings.results)
    if not 1 <= number <= len(runs):
        raise ResultsError(
            f"@{number} is not a run: {settings.results / 'runs'} has {counted(len(runs), 'run')}, @1 is the newest"
        )
    return runs[number - 1]


@dataclass(frozen=True)
class Evaluation:
    """Runs compared by `measure`: `verdicts` against the baseline, `per_query` (arm, qid, measure, value)."""

    measure: str
    baseline: str
    verdicts: pd.DataFrame = field(repr=False, compare=False)
    per_query: pd.DataFrame = field(repr=False, compare=False)

    def summary(self) -> pd.DataFrame:
        """Means over queries: a row per run in the given order, a column per measure."""
        means = self.per_query.pivot_table(index="arm", columns="measure", values="value", sort=False)
        return means[list(dict.fromkeys(self.per_query["measure"]))].rename_axis(columns=None).reset_index()

    def claims(self, claimed: Mapping[str, float]) -> pd.DataFrame:
        """Published effects next to the measured ones: `claims({"mine beats bm25": 0.05})`."""
        return tables.claims(self.verdicts, self.baseline, claimed)

    def plot(self) -> go.Figure:
        """The effects with their confidence intervals."""
        return registry.required("hook", "figures", "a figure").effects(self.verdicts, self.measure)

    def to_markdown(self) -> str:
        """The verdicts as a markdown table."""
        return tables.to_markdown(self.verdicts)

    def to_latex(self) -> str:
        """The verdicts as a LaTeX table with rules of booktabs."""
        return tables.to_latex(self.verdicts)

    def _repr_html_(self) -> str:
        if (table := registry.find("hook", "notebook_table")) is None:
            return self.summary().to_html(index=False)
        shown: str = table(self.verdicts, self.summary(), f"{self.measure} against {self.baseline}")
        return shown


def evaluate(
    runs: Mapping[str, Any],
    qrels: Any,
    measures: Sequence[Any] = ("nDCG@10", "RR", "R@100", "AP"),
    baseline: str | int = 0,
) -> Evaluation:
    """Compare runs on judgments, without documents.

    Args:
        runs: By name, a DataFrame (qid, docno, score), a mapping by qid, a run of ranx or a TREC file.
        qrels: A DataFrame (qid, docno, label), a mapping by qid, qrels of ranx or a TREC file.
        measures: Names of ir_measures, trec_eval, PyTerrier or ranx; verdicts are about the first.
        baseline: The name or position of the run with which the others are compared.

    Returns:
        Means, per-query values and verdicts with confidence intervals.

    Raises:
        BenchmarkError: A table cannot be used.
        ConfigError: A measure is unknown.
        ResultsError: Runs and judgments have no query in common.

    Example:
        >>> import ragbench
        >>> runs = {"a": {"q1": ["keys", "logs"]}, "b": {"q1": ["logs", "keys"]}}
        >>> ragbench.evaluate(runs, {"q1": {"keys": 1}}, measures=["RR"]).summary()["RR"].tolist()
        [1.0, 0.5]
    """
    if not measures:
        raise ConfigError("measures is empty: name at least one, such as nDCG@10")
    if not isinstance(runs, Mapping) or not runs:
        raise ConfigError("runs must be a mapping from names to runs, such as {'bm25': frame}")
    names = list(runs)
    base = names[baseline] if isinstance(baseline, int) and -len(names) <= baseline < len(names) else baseline
    if base not in runs:
        raise ConfigError(f"baseline is {baseline!r}, which is not a run; runs: {', '.join(names)}")
    read = {name: _read(run, f"run '{name}'") for name, run in runs.items()}
    judged = read_judgments(Path(qrels), None) if isinstance(qrels, (str, os.PathLike)) else read_qrels_table(qrels)
    read = {name: _with_ids_of(judged, run) for name, run in read.items()}
    verdicts, values = judge_runs(read, judged, list(map(own_name, measures)), str(base))
    for name, run in read.items():
        if missing := len(judged.keys() - run.keys()):
            _LOG.warning(f"run '{name}' has no hits for {missing} of {len(judged)} judged queries; their values are 0")
        if not values.loc[values["arm"] == name, "value"].any():
            returned = next((docno for qid in run.keys() & judged for docno, _ in run[qid]), "nothing")
            known = next(iter(next(iter(judged.values()))))
            _LOG.warning(f"run '{name}': every value is 0; it returns '{returned}', the judgments name '{known}'")
    return Evaluation(own_name(measures[0]), str(base), verdicts, values)


def _with_ids_of(
    judged: Mapping[str, Mapping[str, int]], run: Mapping[str, Sequence[tuple[str, float]]]
) -> Mapping[str, Sequence[tuple[str, float]]]:
    """The run with ids in the letters of the judgments: macOS decomposes those of file names."""
    known = {docno for grades in judged.values() for docno in grades}
    composed = {normalised(docno): docno for docno in known if not docno.isascii()}
    found = {docno for hits in run.values() for docno, _ in hits if not docno.isascii()} - known
    names = {docno: composed[normalised(docno)] for docno in found if normalised(docno) in composed}
    return renamed(run, names) if names else run


def _read(run: Any, label: str) -> Mapping[str, Sequence[tuple[str, float]]]:
    return read_run(Path(run)) if isinstance(run, (str, os.PathLike)) else read_run_table(run, label)
