"""The interval of one arm's mean over topics, for what stands alone; a difference of arms has its own, paired one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """By Student's t, of values from 0 to 1 and within them; NaN for fewer than two values."""
    from scipy import stats

    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < 2:
        return float("nan"), float("nan")
    half = float(stats.t.ppf((1 + confidence) / 2, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return max(0.0, float(sample.mean()) - half), min(1.0, float(sample.mean()) + half)
