"""Does an effect depend on one area of the collection? Resamples whole areas, and omits each in turn.

The usual interval treats topics as a sample of topics such as these. Topics of one area share documents, words and
writers, so the effect in *other* areas is less certain. Therefore whole areas are resampled with their topics (cluster
bootstrap, Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8). With few areas the
bootstrap underestimates the spread: the standard error is multiplied by the root of G / (G - 1), and the interval uses
t with G - 1 degrees of freedom (Hesterberg, The American Statistician 69, 2015). All intervals of a table hold
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.columns import Column, Columns
from ragbench.base.formatting import interval
from ragbench.evidence.arms import Arms, JudgedContrast
from ragbench.evidence.statistics import TIE

if TYPE_CHECKING:
    import pandas as pd

_Floats = NDArray[np.float64]

COLUMNS = Columns.of(
    Column("factor", "change", text=True),
    Column("level", text=True),
    Column("effect", "over queries", "queries resampled"),
    *("low", "high", "areas"),
    Column("area_low", "over folders", "whole folders resampled with their queries"),
    "area_high",
    Column("weakest", "depends most on", "the effect without the folder that contributes most to it", text=True),
    Column("without", form="+.3f"),
)


def areas(arms: Arms, judged: Sequence[JudgedContrast], area_of: Mapping[str, str]) -> pd.DataFrame:
    """A row for every contrast of one factor and level, with `COLUMNS`; none of fewer than `minimums.FOLDERS` areas.

    `low` and `high` are the usual interval, `area_low` and `area_high` that of resampled areas. `weakest` is the area
    whose removal brings the effect nearest to zero, or reverses it; `without` is the effect without it. `area_of` has
    the area of a topic by qid.
    """

    chosen = [(row, level) for row in judged if len(row.contrast.factors) == 1 for level in arms.levels]
    if not chosen:
        return COLUMNS.frame()
    differences = [arms.differences(contrast.contrast, level) for contrast, level in chosen]
    of_topic = np.array([area_of.get(qid, "") for qid in differences[0][0]], dtype=object)
    values = np.stack([differences for _, differences in differences])
    used = (~np.isnan(values)).any(axis=0)
    names = sorted(set(of_topic[used]))
    if len(names) < minimums.FOLDERS:
        return COLUMNS.frame()
    member = np.array([of_topic == name for name in names], dtype=np.float64).T
    counts = (~np.isnan(values)) @ member
    sums = np.nan_to_num(values) @ member
    spec = arms.policy.statistics
    half = reach(sums, counts, arms.policy.seed, spec.draws, spec.confidence)
    means_without_area = (sums.sum(axis=1, keepdims=True) - sums) / np.maximum(
        counts.sum(axis=1, keepdims=True) - counts, 1.0
    )
    rows = []
    for row, (contrast, level) in enumerate(chosen):
        usual = contrast.levels[level].comparison
        weakest = int(np.argmin(means_without_area[row] * (1.0 if usual.difference >= 0 else -1.0)))
        rows.append(
            (
                contrast.contrast.factors[0],
                level,
                *(usual.difference, usual.ci_low, usual.ci_high),
                int((counts[row] > 0).sum()),
                *(usual.difference - half[row], usual.difference + half[row]),
                names[weakest] or "(root)",
                float(means_without_area[row, weakest]),
            )
        )
    return COLUMNS.frame(rows).round(12)


def sentences(frame: pd.DataFrame) -> list[str]:
    """A sentence for every effect that is significant for topics such as these, but not for other folders."""
    lines = []
    for row in frame.to_dict(orient="records"):
        significant = row["low"] > 0 or row["high"] < 0
        if significant and row["area_low"] <= 0 <= row["area_high"]:
            lines.append(
                f"{row['factor']}: the effect on {row['level']}s ({row['effect']:+.3f}) is significant for queries "
                f"like these, but not for other folders {interval(row['area_low'], row['area_high'])}; without "
                f"{row['weakest']} it is {row['without']:+.3f}"
            )
    return lines


def reach(sums: _Floats, counts: _Floats, seed: int, draws: int, confidence: float) -> _Floats:
    """The half-width of the interval of every row, from sums and numbers of topics of shape (rows, areas)."""
    from scipy.special import ndtr, stdtrit

    n_areas = sums.shape[1]
    mean = sums.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
    drawn = np.random.default_rng([seed, 3]).multinomial(n_areas, np.full(n_areas, 1 / n_areas), size=draws).T
    off = (sums @ drawn) / np.maximum(counts @ drawn, 1.0) - mean
    error = off.std(axis=1, keepdims=True)
    error[error < TIE] = np.inf  # every area agrees, or nothing changed
    largest = np.quantile(np.abs(off / error).max(axis=0), confidence)
    critical = np.sqrt(n_areas / (n_areas - 1)) * stdtrit(n_areas - 1, ndtr(largest))
    error[np.isinf(error)] = 0.0
    return np.asarray(critical * error[:, 0], dtype=np.float64)
