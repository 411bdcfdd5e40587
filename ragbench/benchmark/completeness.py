"""How complete judgments are: arms as traps that catch relevant sections again and again, or only once.

Chao's estimator (Biometrics 43, 1987), bias-corrected: no arm finds at least f1 (f1 - 1) / (2 (f2 + 1)) relevant pairs,
f1 and f2 being those that one arm alone, or exactly two, find. It is a lower bound where pairs differ in how easily
they are found. Arms that resemble each other find the same pairs, which makes f1, and so the bound, smaller.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ragbench.benchmark.benchmark import Qrels
from ragbench.benchmark.pool import Run
from ragbench.errors import BenchmarkError


@dataclass(frozen=True)
class Completeness:
    """`known` relevant pairs, `found` of them by `arms` arms `depth` deep; `once`, `twice`: by one or two of these.

    `missing` is the least number that none finds and nobody knows, with its 95% interval; `share` of all relevant pairs
    that are known, at most. `unjudged`: pairs the arms return that nobody judged.
    """

    arms: int
    depth: int
    known: int
    found: int
    once: int
    twice: int
    missing: float
    low: float
    high: float
    unjudged: int

    @property
    def share(self) -> float:
        """The share of all relevant pairs that is known, at most."""
        return self.known / (self.known + self.missing) if self.known else math.nan

    @property
    def text(self) -> str:
        """What it means, in words."""
        said = (
            f"{self.known} relevant pairs are known; {self.arms} arms find {self.found} of them {self.depth} deep, "
            f"{self.once} by one arm alone and {self.twice} by two. At least {self.missing:.0f} more "
            f"[{self.low:.0f}, {self.high:.0f}] are expected: at most {self.share:.0%} are known."
        )
        if self.unjudged:
            said += (
                f" {self.unjudged} pairs that the arms return are not judged: judge them first, for this counts none."
            )
        return said


def completeness(runs: Mapping[str, Run], qrels: Qrels, depth: int = 20) -> Completeness:
    """Estimate it from runs of arms, over the topics with judgments. BenchmarkError for fewer than two runs."""
    if len(runs) < 2:
        raise BenchmarkError(f"completeness needs two arms or more, got {len(runs)}: name runs that search differently")
    caught: Counter[tuple[str, str]] = Counter()
    unjudged: set[tuple[str, str]] = set()
    for run in runs.values():
        for qid, ranked in run.items():
            grades = qrels.get(qid, {})
            names = [name for name, _ in ranked[:depth]] if grades else []
            caught.update((qid, name) for name in names if grades.get(name, 0) > 0)
            unjudged |= {(qid, name) for name in names if name not in grades}
    known = sum(grade > 0 for grades in qrels.values() for grade in grades.values())
    times = Counter(caught.values())
    once, twice = times[1], times[2]
    # What the arms miss and judges know from elsewhere is not missing.
    unseen = once * (once - 1) / (2 * (twice + 1))
    low, high = _interval(len(caught), once, twice, unseen)
    elsewhere = known - len(caught)
    missing, low, high = (max(0.0, value - elsewhere) for value in (unseen, low, high))
    return Completeness(len(runs), depth, known, len(caught), once, twice, missing, low, high, len(unjudged))


def _interval(found: int, once: int, twice: int, unseen: float) -> tuple[float, float]:
    """Chao's 95% interval of what is unseen, log-normal, with the variance of the bias-corrected estimator."""
    if unseen <= 0:
        return 0.0, 0.0
    variance = (
        unseen
        + once * (2 * once - 1) ** 2 / (4 * (twice + 1) ** 2)
        + once**2 * twice * (once - 1) ** 2 / (4 * (twice + 1) ** 4)
    )
    factor = math.exp(1.96 * math.sqrt(math.log(1 + variance / unseen**2)))
    return unseen / factor, unseen * factor
