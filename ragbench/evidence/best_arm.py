"""The best of several arms: how often each is the best of a bootstrap sample, which are ruled out, topics missing.

An arm is ruled out when another is significantly better at one level and not significantly worse at the other; all
pairs are one family. Arms with equal means in a bootstrap sample of the topics share it. With few topics
the share overstates the probability of being the best.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.columns import Column, Columns
from ragbench.evaluation.measures import DOCUMENT, PASSAGE
from ragbench.evidence.arms import Arms
from ragbench.evidence.max_t import resamples
from ragbench.evidence.statistics import TIE, Contrast, queries_needed

if TYPE_CHECKING:
    import pandas as pd

_Floats = NDArray[np.float64]

_MOST = 24
"""The most arms of which some are ruled out: at most 276 pairs are compared."""

COLUMNS = Columns.of(
    Column("arm", text=True),
    Column("mean", "documents"),
    Column("best", "best", "share of bootstrap samples of the topics in which it has the largest mean"),
    Column("passage_mean", "passages"),
    Column("passage_best", "best by passages", "the same by passages"),
    Column(
        "ruled_out_by",
        "ruled out by",
        "significantly better at one level and not significantly worse at the other, adjusted for all pairs",
        text=True,
    ),
    Column(
        "more_topics",
        "more topics",
        "how many more queries would separate it from the one with the largest mean",
    ),
)


def table(arms: Arms) -> pd.DataFrame:
    """A row for every arm, the most likely best first, with `COLUMNS`; no rows for fewer than `minimums.ARMS` arms.

    `best` is the share of bootstrap samples in which it is the best by documents; `passage_best` by passages, NaN
    where these were not measured. `more_topics` is how many more topics would separate the arm from the one with the
    largest mean; NaN for that arm, for arms that are ruled out, and for arms whose difference is too small to matter.
    """

    if arms.selected:
        arms = replace(arms, arms={arm: arms.arms[arm] for arm in arms.selected}, selected=())
    if len(arms.arms) < minimums.ARMS or not arms.judgeable:
        return COLUMNS.frame()
    chances = {level: _best(arms, level) for level in arms.levels}
    ruled_out = _ruled_out(arms) if len(arms.arms) <= _MOST else {}
    more = _more_topics(arms, ruled_out)
    absent = dict.fromkeys(arms.arms, (np.nan, np.nan))
    rows = [
        (
            arm,
            *chances[DOCUMENT][arm],
            *chances.get(PASSAGE, absent)[arm],
            ruled_out.get(arm, ""),
            more.get(arm, np.nan),
        )
        for arm in arms.arms
    ]
    frame = COLUMNS.frame(rows)
    return frame.sort_values(["best", "mean"], ascending=False, kind="stable", ignore_index=True)


def _best(arms: Arms, level: str) -> dict[str, tuple[float, float]]:
    """The mean of every arm, and the share of samples in which it is the best."""
    values = arms.matrix(level)
    values = values[:, ~np.isnan(values).any(axis=0)]
    won, draws = np.zeros(len(values)), 0
    for counts in resamples(values.shape[1], len(values), arms.policy.statistics.draws, arms.policy.seed):
        means = values @ counts / values.shape[1]
        first = means >= means.max(axis=0) - TIE
        won += (first / first.sum(axis=0)).sum(axis=1)
        draws += counts.shape[1]
    rows = zip(arms.arms, values.mean(axis=1), won / draws, strict=True)
    return {arm: (round(float(mean), 12), round(float(share), 6)) for arm, mean, share in rows}


def _ruled_out(arms: Arms) -> dict[str, str]:
    """The arms that are ruled out, each with the arm that rules it out by the largest effect on documents."""
    ruled_out: dict[str, tuple[float, str]] = {}
    pairs = list(combinations(arms.arms, 2))
    for pair, levels in zip(pairs, arms.levels_of([Contrast.of(*pair) for pair in pairs]), strict=True):
        up, down = (any(getattr(level, side) for level in levels.values()) for side in ("better", "worse"))
        if up != down:
            better, worse = pair if up else reversed(pair)
            effect = abs(levels[DOCUMENT].comparison.difference)
            if effect > ruled_out.get(worse, (-1.0, ""))[0]:
                ruled_out[worse] = effect, better
    return {arm: better for arm, (_, better) in ruled_out.items()}


def _more_topics(arms: Arms, ruled_out: dict[str, str]) -> dict[str, float]:
    """How many more topics would separate each arm from the leader, by documents."""
    pairs = len(arms.levels) * len(arms.arms) * (len(arms.arms) - 1) // 2
    policy = arms.policy.statistics
    means = dict(zip(arms.arms, np.nanmean(arms.matrix(DOCUMENT), axis=1), strict=True))
    leader = max((arm for arm in arms.arms if arm not in ruled_out), key=lambda arm: means[arm], default="")
    more_by_arm: dict[str, float] = {}
    for arm in arms.arms:
        if arm in ruled_out or arm == leader or not leader:
            continue
        _, differences = arms.differences(Contrast.of(leader, arm), DOCUMENT)
        values = differences[~np.isnan(differences)]
        effect = abs(float(values.mean()))
        if len(values) > 1 and effect >= max(policy.smallest_effect, TIE):
            needed = queries_needed(effect, float(values.std(ddof=1)), confidence=policy.confidence, family=pairs)
            more_by_arm[arm] = float(max(0, needed - len(values)))
    return more_by_arm


def sentences(frame: pd.DataFrame) -> list[str]:
    """The table in words: which arms lead, which are ruled out, and what more topics would show."""
    if not len(frame):
        return []
    excluded = frame[frame["ruled_out_by"] != ""]
    remaining = frame[frame["ruled_out_by"] == ""]
    lines = [
        f"Best of {len(frame)} by documents: "
        + ", ".join(f"{r['arm']} ({r['best']:.0%})" for r in remaining.to_dict("records"))
        + "."
    ]
    if len(excluded):
        lines.append(
            "Ruled out: " + ", ".join(f"{r['arm']} (by {r['ruled_out_by']})" for r in excluded.to_dict("records")) + "."
        )
    needed = remaining["more_topics"].dropna()
    if len(needed):
        lines.append(
            f"To separate one of the others from the first, about {int(needed.min()):,} more queries are needed; to "
            f"separate all whose difference matters, about {int(needed.max()):,}."
        )
    elif len(remaining) > 1:
        lines.append("The other differences are too small to matter.")
    return lines
