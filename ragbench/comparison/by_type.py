"""The same comparison for every query type apart, with a warning where a type has few queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.comparison.statistics import compare, holm
from ragbench.errors import BenchmarkError

if TYPE_CHECKING:
    import pandas as pd

FEW = 25
"""Below this many topics conclusions are unstable. Buckley and Voorhees, SIGIR 2000."""

UNTYPED = "(none)"


def types(kinds: Sequence[str | None]) -> dict[str, NDArray[np.bool_]]:
    """The queries of every type as a mask over all queries, bool (n,), types in alphabetical order."""
    names = np.array([kind or UNTYPED for kind in kinds], dtype=object)
    return {str(name): names == name for name in sorted(set(names))}


def warning(kind: str, n: int) -> str:
    """What to keep in mind about a type with `n` queries; empty when nothing."""
    if n >= FEW:
        return ""
    return f"only {n} {'query' if n == 1 else 'queries'} of type '{kind}': at least {FEW} make a conclusion stable"


def compare_by_type(
    candidate: ArrayLike,
    baseline: ArrayLike,
    kinds: Sequence[str | None],
    *,
    seed: int,
    resamples: int = 10_000,
    permutations: int = 10_000,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """One row for every type: `kind`, the fields of `Comparison`, `p_holm` over the types, `warning`.

    Values of shape (n,) and `kinds` belong to the same queries in the same order.
    """
    import pandas as pd

    ours, theirs = np.asarray(candidate, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if not len(ours) == len(theirs) == len(kinds):
        raise BenchmarkError(
            f"{len(ours)} and {len(theirs)} values and {len(kinds)} query types cannot be paired; "
            "give every query one of each"
        )
    masks = types(kinds)
    rows = []
    for kind, mask in masks.items():
        comparison = compare(
            ours[mask],
            theirs[mask],
            seed=seed,
            resamples=resamples,
            permutations=permutations,
            confidence=confidence,
            family=len(masks),
        )
        rows.append({"kind": kind, **asdict(comparison), "warning": warning(kind, comparison.n)})
    if not rows:
        raise BenchmarkError("there is no query to compare; give at least one")
    frame = pd.DataFrame(rows)
    frame.insert(int(np.flatnonzero(frame.columns == "p_value")[0]) + 1, "p_holm", holm(frame["p_value"].to_numpy()))
    return frame
