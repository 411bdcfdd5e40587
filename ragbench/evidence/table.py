"""Verdicts as one table, the same for runs, ablations, comparisons and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.base.columns import Column, Columns
from ragbench.evaluation.measures import DOCUMENT, PASSAGE
from ragbench.evidence.arms import JudgedContrast
from ragbench.evidence.statistics import Comparison
from ragbench.evidence.verdict import Level

if TYPE_CHECKING:
    import pandas as pd

_OF_LEVEL = ("effect", "ci_low", "ci_high", "p", "n", "wins", "ties", "losses", "mde", "mean", "baseline", "useful")
_PREFIX = {DOCUMENT: "", PASSAGE: "passage_"}
_SECONDARY = ("effect", "ci_low", "ci_high", "p", "n", "mean", "baseline")
_RECALL = "recall_"
COLUMNS = Columns.of(
    *(Column(name, text=True) for name in ("kind", "factor", "other", "verdict", "quality", "cost")),
    *(f"{prefix}{name}" for prefix in _PREFIX.values() for name in _OF_LEVEL),
    *(f"{_RECALL}{name}" for name in _SECONDARY),
    *("standard_error", Column("aliases", text=True), "latency_ms", "latency_low", "latency_high", "budget_ms"),
    Column("reason", text=True),
)
"""`kind` is main or interaction; an interaction has no verdict. Columns of passages begin with `passage_`, columns of
documents have no prefix. Columns that begin with `recall_` are of the secondary measure, the recall of passages within
`context_tokens`, a family of its own. `p` is adjusted for the family; NaN: not measured, or unknown."""


def table(judged: Sequence[JudgedContrast], standard_errors: Mapping[str, float] | None = None) -> pd.DataFrame:
    """One row for every contrast, with `COLUMNS`; `standard_errors` are those of a design that samples arms."""
    rows = [_row(contrast, (standard_errors or {}).get(contrast.contrast.factors[0], np.nan)) for contrast in judged]
    return COLUMNS.frame(rows)


def _row(judged: JudgedContrast, standard_error: float) -> dict[str, Any]:
    (factor, *others), verdict = judged.contrast.factors, judged.verdict
    added = judged.cost.added
    columns = {
        "verdict": verdict.outcome,
        "quality": verdict.quality,
        "cost": verdict.cost.axis,
        "reason": verdict.reason,
    }
    row: dict[str, Any] = {
        "kind": "interaction" if others else "main",
        "factor": factor,
        "other": ":".join(others),
        **(dict.fromkeys(columns, "") if others else columns),
        "standard_error": standard_error,
        "aliases": " = ".join(":".join(alias) for alias in judged.contrast.aliases),
        "latency_ms": np.nan if added is None else added.p95_ms,
        "latency_low": added.low_ms if added is not None and added.has_interval else np.nan,
        "latency_high": added.high_ms if added is not None and added.has_interval else np.nan,
        "budget_ms": np.nan if judged.cost.budget_ms is None else judged.cost.budget_ms,
    }
    for level, prefix in _PREFIX.items():
        values = _of_level(judged.levels[level]) if level in judged.levels else dict.fromkeys(_OF_LEVEL, np.nan)
        row |= {f"{prefix}{name}": value for name, value in values.items()}
    second = {} if judged.secondary is None else _numbers(judged.secondary)
    return row | {f"{_RECALL}{name}": second.get(name, np.nan) for name in _SECONDARY}


def _of_level(level: Level) -> dict[str, float]:
    return {**_numbers(level.comparison), "useful": np.nan if level.useful is None else level.useful}


def _numbers(comparison: Comparison) -> dict[str, float]:
    return {
        "effect": comparison.difference,
        "ci_low": comparison.ci_low,
        "ci_high": comparison.ci_high,
        "p": comparison.p_value,
        "n": comparison.n,
        "wins": comparison.wins,
        "ties": comparison.ties,
        "losses": comparison.losses,
        "mde": comparison.mde,
        "mean": comparison.mean_candidate,
        "baseline": comparison.mean_baseline,
    }
