"""Verdicts on tables of results alone: `ragbench.evaluate({"bm25": run, "mine": other}, qrels)`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import ConfigError
from ragbench.benchmark.frames import read_qrels_table, read_run_table
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.runs import read_run
from ragbench.evaluation.measures import own_name
from ragbench.report import figures, tables
from ragbench.results.compare import judge_runs

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


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
        return figures.effects(self.verdicts, self.measure)

    def to_markdown(self) -> str:
        """The verdicts as a markdown table."""
        return tables.to_markdown(self.verdicts)

    def to_latex(self) -> str:
        """The verdicts as a LaTeX table with rules of booktabs."""
        return tables.to_latex(self.verdicts)

    def _repr_html_(self) -> str:
        return tables.html(self.verdicts, self.summary(), f"{self.measure} against {self.baseline}")


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
    verdicts, values = judge_runs(read, judged, list(map(own_name, measures)), str(base))
    return Evaluation(own_name(measures[0]), str(base), verdicts, values)


def _read(run: Any, what: str) -> Mapping[str, Sequence[tuple[str, float]]]:
    return read_run(Path(run)) if isinstance(run, (str, os.PathLike)) else read_run_table(run, what)
