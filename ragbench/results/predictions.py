"""What other collections let a run expect of its arms: advice next to the verdict, which is never counted as one.

The hooks `predictions` and `prediction_of_change` make it, where an extra has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragbench.base import plugins
from ragbench.base.numbers import counted, with_interval
from ragbench.evaluation.measures import PRIMARY
from ragbench.results.measurements import Measurements

SURE = 0.9
"""The least probability of being better that an export on expectation needs."""


@dataclass(frozen=True)
class Prediction:
    """What to expect of an arm next to its base, in nDCG@10; `known` says from how many collections of which topics.

    `effect` has the 95% interval from `low` to `high`, and is positive with probability `better`. `topics` counts the
    run's own queries that the prediction includes, `queries` is the kind of queries that it holds for.
    """

    arm: str
    base: str
    topics: int
    effect: float
    low: float
    high: float
    better: float
    known: str
    elsewhere: str = ""
    queries: str = "all kinds of queries"

    @property
    def sure(self) -> bool:
        """Whether it is enough for an export."""
        return self.better >= SURE

    @property
    def sentence(self) -> str:
        """The prediction in words."""
        numbers = with_interval(self.effect, self.low, self.high)
        verb, share = ("beats", self.better) if self.better >= 0.5 else ("is worse than", 1 - self.better)
        own = f" and your {counted(self.topics, 'query')}" if self.topics else ""
        return (
            f"prediction from {self.known}{self.elsewhere}{own}: {self.arm} {verb} {self.base} with probability "
            f"{share:.2f} ({numbers} {PRIMARY} on {self.queries})"
        )


def of_run(results: Measurements, arms: Sequence[str] | None = None, base: str | None = None) -> Sequence[Prediction]:
    """The predictions for arms of a run (default: all) against one of them (default: the first), as far as known."""
    predict = plugins.hook("predictions")
    found: Sequence[Prediction] = predict(results, arms, base) if predict else ()
    return found


def of_change(change: str, base: str, questions: str) -> Prediction | None:
    """What to expect of a change before anything is measured; None where too little is known."""
    predict = plugins.hook("prediction_of_change")
    found: Prediction | None = predict(change, base, questions) if predict else None
    return found
