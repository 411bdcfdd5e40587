"""What arms lose when topics are typed differently: each variant against its topic, all as one family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.columns import Column, Columns
from ragbench.base.errors import ResultsError
from ragbench.evaluation.measures import DOCUMENT
from ragbench.evidence.arms import Arms

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = Columns.of(
    *(Column(name, text=True) for name in ("kind", "arm")),
    "n",
    *(Column(name, form=".3f") for name in ("topics", "variants")),
    *(Column(name, form="+.3f") for name in ("loss", "low", "high")),
    Column("p", form=".3f"),
)


def losses(arms: Arms, variants: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """A row for every kind and arm, with `COLUMNS`, by documents. `variants[kind][qid]` is the variant of topic `qid`.

    `topics` and `variants` are means over the `n` topics that have the variant; `loss` is variants minus topics, with
    an interval that holds together with all others. Raises ResultsError where no topic has a value.
    """
    qids = sorted({qid for variant in variants.values() for qid in variant})
    rows: list[tuple[str, str]] = [(kind, arm) for kind in variants for arm in arms.arms]
    values = {arm: arm_values.levels.get(DOCUMENT, {}) for arm, arm_values in arms.arms.items()}

    def of(arm: str, names: Sequence[str | None]) -> list[float]:
        return [np.nan if name is None else values[arm].get(name, np.nan) for name in names]

    changed = np.array([of(arm, [variants[kind].get(qid) for qid in qids]) for kind, arm in rows], dtype=float)
    baseline_values = np.array([of(arm, qids) for _, arm in rows], dtype=float)
    baseline_values[np.isnan(changed)] = np.nan
    changed[np.isnan(baseline_values)] = np.nan
    measured = ~np.isnan(changed).all(axis=1)
    if not measured.any():
        raise ResultsError("no topic with an answer has a variant: name other kinds")
    compared = arms.policy.compare(changed[measured], baseline_values[measured])
    records = [
        (*row, e.n, e.mean_baseline, e.mean_candidate, e.difference, e.ci_low, e.ci_high, e.p_value)
        for row, e in zip([row for row, keep in zip(rows, measured, strict=True) if keep], compared, strict=True)
    ]
    return COLUMNS.frame(records)
