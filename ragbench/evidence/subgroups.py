"""The comparison for each query type, with a warning where a type has few queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base import minimums
from ragbench.base.columns import Column, Columns
from ragbench.base.errors import BenchmarkError
from ragbench.base.formatting import counted
from ragbench.evidence.policy import Policy

if TYPE_CHECKING:
    import pandas as pd


_UNTYPED = "(none)"
_COLUMNS = Columns.of(
    Column("kind", text=True),
    "n",
    Column("warning", text=True),
    Column("arm", text=True),
    "mean",
    "difference",
    "low",
    "high",
)


def _types(kinds: Sequence[str | None]) -> dict[str, NDArray[np.bool_]]:
    """The queries of every type as a mask over all queries, bool (n,), types in alphabetical order."""
    names = np.array([kind or _UNTYPED for kind in kinds], dtype=object)
    return {str(name): names == name for name in sorted(set(names))}


def _warning(kind: str, n: int) -> str:
    """A warning for a type with few queries; empty for others."""
    if n >= minimums.PER_TYPE:
        return ""
    return f"only {counted(n, 'query')} of type '{kind}': at least {minimums.PER_TYPE} are needed for a stable mean"


def by_type(values: Mapping[str, ArrayLike], base: str, kinds: Sequence[str | None], policy: Policy) -> pd.DataFrame:
    """Every type and arm: kind, n, warning, arm, mean, difference from the base with its interval (low, high).

    `values` (n,) by arm and `kinds` belong to the same queries in the same order. The arms of a type are one family,
    different types are not: use this table to explore, not to decide.
    """
    stacked = np.stack([np.asarray(column, dtype=np.float64) for column in values.values()])
    if stacked.shape[1] != len(kinds):
        raise BenchmarkError(
            f"{stacked.shape[1]} values and {len(kinds)} query types cannot be paired; give every query one of each"
        )
    base_row = list(values).index(base)
    rows = []
    for kind, mask in _types(kinds).items():
        in_group = stacked[:, mask]
        against = np.broadcast_to(in_group[base_row], in_group.shape)
        for arm, comparison in zip(values, policy.compare(in_group, against), strict=True):
            means = (arm, comparison.mean_candidate, comparison.difference, comparison.ci_low, comparison.ci_high)
            rows.append((kind, comparison.n, _warning(kind, comparison.n), *means))
    return _COLUMNS.frame(rows)
