"""Verdicts as one table, the same for runs, ablations, comparisons and searches; and effects by query type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base import minimums
from ragbench.base.columns import Column, Columns
from ragbench.base.errors import BenchmarkError
from ragbench.evaluation.measures import DOCUMENT, PASSAGE
from ragbench.evidence.arms import JudgedContrast, Policy
from ragbench.evidence.statistics import Comparison

if TYPE_CHECKING:
    import pandas as pd

_OF_LEVEL = ("effect", "ci_low", "ci_high", "p", "n", "wins", "ties", "losses", "mde", "mean", "baseline")
_PREFIX = {DOCUMENT: "", PASSAGE: "passage_"}
_SECONDARY = ("effect", "ci_low", "ci_high", "p", "n", "mean", "baseline")
_RECALL = "recall_"
_FIELDS = {"effect": "difference", "p": "p_value", "mean": "mean_candidate", "baseline": "mean_baseline"}
"""The fields of a comparison that columns have another name for."""
COLUMNS = Columns.of(
    *(Column(name, text=True) for name in ("kind", "factor", "other", "verdict", "judged_by", "quality", "cost")),
    *(f"{prefix}{name}" for prefix in _PREFIX.values() for name in (*_OF_LEVEL, "useful")),
    *(f"{_RECALL}{name}" for name in _SECONDARY),
    *("standard_error", "latency_ms", "latency_low", "latency_high", "budget_ms", "needs_judgments"),
    *(Column(name, text=True) for name in ("untimed", "reason")),
)
"""`kind` is main or interaction; an interaction has no verdict. `judged_by`: `quality and latency`, or `quality` alone.

Columns of passages begin with `passage_`, columns of documents have no prefix. Columns that begin with `recall_` are of
the secondary measure, the recall of passages within `context_tokens`, a family of its own. `untimed` says why the added
latency is not known. `needs_judgments`: 1 if the sign of an effect depends on unjudged hits, else 0. `p` is adjusted
for the family; NaN: not measured, or unknown."""
TYPES = Columns.of(Column("kind", text=True), "n", "few", Column("arm", text=True), "mean", "difference", "low", "high")
"""`few`: too few queries for a stable mean."""


def table(judged: Sequence[JudgedContrast], standard_errors: Mapping[str, float] | None = None) -> pd.DataFrame:
    """One row for every contrast, with `COLUMNS`; `standard_errors` are those of a design that samples arms."""
    rows = [_row(contrast, (standard_errors or {}).get(contrast.contrast.factors[0], np.nan)) for contrast in judged]
    return COLUMNS.frame(rows)


def _row(judged: JudgedContrast, standard_error: float) -> dict[str, Any]:
    (factor, *others), verdict = judged.contrast.factors, judged.verdict
    words = {
        "verdict": verdict.outcome,
        "judged_by": verdict.judged_by,
        "quality": verdict.quality,
        "cost": verdict.cost.axis,
        "untimed": "" if verdict.cost.added else verdict.cost.unknown,
        "reason": verdict.reason,
    }
    row: dict[str, Any] = {
        "kind": "interaction" if others else "main",
        "factor": factor,
        "other": ":".join(others),
        **(dict.fromkeys(words, "") if others else words),
        "standard_error": standard_error,
        "budget_ms": np.nan if judged.cost.budget_ms is None else judged.cost.budget_ms,
        "needs_judgments": np.nan if others else int(verdict.needs_judgments),
    }
    added = judged.cost.added
    if added is not None:
        row["latency_ms"] = added.p95_ms
        if added.has_interval:
            row |= {"latency_low": added.low_ms, "latency_high": added.high_ms}
    for level, of_level in judged.levels.items():
        row |= _numbers(of_level.comparison, _PREFIX[level], _OF_LEVEL)
        row[f"{_PREFIX[level]}useful"] = np.nan if of_level.useful is None else of_level.useful
    return row | ({} if judged.secondary is None else _numbers(judged.secondary, _RECALL, _SECONDARY))


def _numbers(comparison: Comparison, prefix: str, names: Sequence[str]) -> dict[str, float]:
    return {f"{prefix}{name}": getattr(comparison, _FIELDS.get(name, name)) for name in names}


def by_type(values: Mapping[str, ArrayLike], base: str, kinds: Sequence[str | None], policy: Policy) -> pd.DataFrame:
    """A row for every type and arm, with `TYPES`: mean, and difference from the base with its interval (low, high).

    `values` (n,) by arm and `kinds` belong to the same queries in the same order. The arms of a type are one family,
    different types are not: use this table to explore, not to decide.
    """
    stacked = np.stack([np.asarray(column, dtype=np.float64) for column in values.values()])
    if stacked.shape[1] != len(kinds):
        raise BenchmarkError(
            f"{stacked.shape[1]} values and {len(kinds)} query types cannot be paired; give every query one of each"
        )
    base_row = list(values).index(base)
    names = np.array([kind or "(none)" for kind in kinds], dtype=object)
    rows = []
    for name in sorted(set(names)):
        in_group = stacked[:, names == name]
        against = np.broadcast_to(in_group[base_row], in_group.shape)
        for arm, comparison in zip(values, policy.compare(in_group, against), strict=True):
            means = (arm, comparison.mean_candidate, comparison.difference, comparison.ci_low, comparison.ci_high)
            rows.append((name, comparison.n, comparison.n < minimums.PER_TYPE, *means))
    return TYPES.frame(rows)
