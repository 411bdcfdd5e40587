"""The policy of verdicts, read from the configuration that a run recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ragbench.base.build import active, build
from ragbench.base.options import Confidence, Count, Validated, Weight, section
from ragbench.evaluation.measures import PRIMARY, primary
from ragbench.evidence.statistics import Comparison, compare_all


@section("statistics")
@dataclass(frozen=True)
class StatisticsSpec(Validated):
    """Settings of the tests; `smallest_effect` is in the unit of the primary measure."""

    draws: Count = 10_000  # number of sign flips, and of bootstrap samples
    confidence: Confidence = 0.95  # confidence level of intervals and tests
    smallest_effect: Weight = 0.02  # minimum effect of interest: an effect shown to be smaller is equivalent


@section("budget")
@dataclass(frozen=True)
class BudgetSpec(Validated):
    """How much a change may add to the p95 of a query, in milliseconds; None sets no limit. Seed 000.

    A change that turns re-ranking on may add the larger of the two.
    """

    p95_ms: Weight | None = 50.0  # milliseconds that a change may add to p95 (source 000); null: no limit
    rerank_p95_ms: Weight | None = 150.0  # the same for a change that turns re-ranking on

    @property
    def of_rerank_ms(self) -> float | None:
        """The budget of a change that turns re-ranking on."""
        return None if self.p95_ms is None or self.rerank_p95_ms is None else max(self.p95_ms, self.rerank_p95_ms)


@dataclass(frozen=True)
class Policy:
    """The confidence a difference needs, the size below which it does not matter, and what it may cost.

    `measure` is that of documents, `of_passages` that of passages, the primary measure of the run.
    `exploratory`: arms were compared on these queries before (`ragbench.results.comparisons`), so nothing is adopted.
    """

    measure: str
    statistics: StatisticsSpec
    budget: BudgetSpec
    seed: int = 13
    exploratory: bool = False
    of_passages: str = PRIMARY

    @staticmethod
    def of(config: Mapping[str, Any]) -> Policy:
        """The policy of a configuration."""
        return Policy(
            primary(config),
            build(StatisticsSpec, config["statistics"], "statistics"),
            build(BudgetSpec, config["budget"], "budget"),
            int(config["seed"]),
            of_passages=primary(config),
        )

    def compare(self, candidates: ArrayLike, baselines: ArrayLike) -> list[Comparison]:
        """Compare row by row as one family (`compare_all`) with the seed, draws and confidence of the policy."""
        spec = self.statistics
        return compare_all(candidates, baselines, seed=self.seed, draws=spec.draws, confidence=spec.confidence)

    def budget_ms(self, plus: Iterable[Mapping[str, Any]], minus: Iterable[Mapping[str, Any]]) -> float | None:
        """Milliseconds that the change from configurations `minus` to `plus` may add to p95; None without a limit.

        A change that turns re-ranking on has another budget.
        """
        turned_on = all(map(_reranks, plus)) and not any(map(_reranks, minus))
        return self.budget.of_rerank_ms if turned_on else self.budget.p95_ms


def _reranks(config: Mapping[str, Any]) -> bool:
    """Whether a configuration re-ranks with a cross-encoder; False for an empty configuration."""
    return bool(config) and any(str(node["_target_"]).endswith(".Rerank") for _, node in active(config))
