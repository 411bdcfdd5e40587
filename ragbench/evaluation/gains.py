"""nDCG from the gains of hits, and what unjudged hits could have gained.

ir_measures computes the reported measures of documents and sections; this is for other units and for unjudged hits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

DEPTH = 10

Gains = Sequence[float | None]
"""The gains of the first hits, in order; None for an unjudged hit."""


def ndcg(gains: Gains, ideal: Sequence[float]) -> float:
    """nDCG@10 with linear gain, unjudged hits counted as 0; 0 where nothing can be gained."""
    best = _dcg(sorted(ideal, reverse=True))
    return _dcg([gain or 0.0 for gain in gains]) / best if best else 0.0


def ndcg_if_useful(gains: Gains, ideal: Sequence[float], typical: Sequence[float]) -> float:
    """The same if every unjudged hit were as useful as judged ones at its rank, also in the ideal order."""
    filled = [typical[place] if gain is None else gain for place, gain in enumerate(gains[:DEPTH])]
    added = [each for each, gain in zip(filled, gains[:DEPTH], strict=True) if gain is None]
    return ndcg(filled, [*ideal, *added])


def useless_known(judgments: Iterable[Mapping[str, int]]) -> bool:
    """Whether anything was judged useless.

    Where nothing was, as with known items, judged hits cannot be compared with unjudged ones: these count as useless.
    """
    return any(grade <= 0 for grades in judgments for grade in grades.values())


def typical_gains(answers: Sequence[Gains]) -> list[float]:
    """By rank, the mean gain of the judged hits there; that of all judged hits at ranks without one; 0 without any."""
    judged = [[each[rank] for each in answers if rank < len(each) and each[rank] is not None] for rank in range(DEPTH)]
    everything = [gain for gains in judged for gain in gains]
    overall = float(np.mean(everything)) if everything else 0.0  # type: ignore[arg-type]
    return [float(np.mean(gains)) if gains else overall for gains in judged]  # type: ignore[arg-type]


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:DEPTH], start=1))
