"""The verdicts of an experiment: computed once at its end, stored with the results, read wherever they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragbench.base import registry
from ragbench.base.files import write_text
from ragbench.base.formatting import counted, probability, with_interval
from ragbench.evaluation.intervals import p95_of
from ragbench.evaluation.machine import WAITED
from ragbench.evaluation.measures import PRIMARY
from ragbench.evidence import best_arm, table
from ragbench.evidence.arms import LATENCY, Arms, JudgedContrast
from ragbench.evidence.cost import NET
from ragbench.results.measurements import BEST_ARM, VERDICTS, Measurements

if TYPE_CHECKING:
    import pandas as pd


def write(
    results: Measurements,
    judged_contrasts: Sequence[JudgedContrast],
    standard_errors: Mapping[str, float] | None = None,
) -> None:
    """Write the verdicts of the experiment."""
    frame = table.table(judged_contrasts, standard_errors)
    write_text(results.folder / VERDICTS, frame.to_csv(index=False))


def against_first(results: Measurements) -> None:
    """Judge every arm against the first, and store the verdicts; a single arm has none."""
    if len(results.arms) > 1:
        arms = Arms.of(results)
        write(results, arms.against())
        best = best_arm.table(arms)
        if len(best):
            write_text(results.folder / BEST_ARM, best.to_csv(index=False))


def read(results: Measurements) -> pd.DataFrame:
    """The verdicts of an experiment, without rows where it compared nothing."""
    return table.COLUMNS.read(results.folder / VERDICTS)


def read_best_arm(results: Measurements) -> pd.DataFrame:
    """How likely each of several arms is the best, with the columns of `ragbench.evidence.best_arm`; possibly empty."""
    return best_arm.COLUMNS.read(results.folder / BEST_ARM)


def net_p95_ms(results: Measurements) -> Mapping[str, float]:
    """By arm, p95 without the time spent waiting for a CPU, where the verdicts compare such times; else empty."""
    if not any(NET in str(reason) for reason in read(results)["reason"]):
        return {}
    samples = results.arm_tables(LATENCY, ("arm", "qid", "total"), others=True)
    net = samples["total"] - samples[WAITED]
    return {str(arm): p95_of(times.dropna().to_numpy()) for arm, times in net.groupby(samples["arm"])}


def labelled(row: Mapping[Any, Any]) -> str:
    """The verdict of a row of the table, with its basis where it is not quality and latency: `adopt (by quality)`."""
    return f"{row['verdict']} (by quality)" if row["judged_by"] == "quality" else str(row["verdict"])


SURE = 0.9
"""The least probability of being better that an export on expectation needs."""


@dataclass(frozen=True)
class Prediction:
    """Predicted effects of an arm next to its base, in nDCG@10; `known` says from how many collections of which topics.

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
    def suffices(self) -> bool:
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
            f"{probability(share)} ({numbers} {PRIMARY} on {self.queries})"
        )


def predictions_of_run(
    results: Measurements, arms: Sequence[str] | None = None, base: str | None = None
) -> Sequence[Prediction]:
    """The predictions for arms of a run (default: all) against one of them (default: the first), as far as known."""
    predict = registry.find("hook", "predictions")
    predicted: Sequence[Prediction] = predict(results, arms, base) if predict else ()
    return predicted


def prediction_of_change(change: str, base: str, questions: str) -> Prediction | None:
    """Predicted effects of a change before anything is measured; None where too little is known."""
    predict = registry.find("hook", "prediction_of_change")
    predicted: Prediction | None = predict(change, base, questions) if predict else None
    return predicted
