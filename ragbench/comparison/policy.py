"""What a verdict depends on besides what was measured: one policy, read from the configuration that a run recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ragbench.configuration import BudgetSpec, StatisticsSpec, active, build
from ragbench.evaluation.measures import PRIMARY


@dataclass(frozen=True)
class Policy:
    """How sure a difference must be, what is too small to matter, and what it may cost."""

    measure: str
    statistics: StatisticsSpec
    budget: BudgetSpec
    seed: int = 13

    @staticmethod
    def of(config: Mapping[str, Any]) -> Policy:
        """The policy of a configuration."""
        return Policy(
            primary(config),
            build(StatisticsSpec, config["statistics"], "statistics"),
            build(BudgetSpec, config["budget"], "budget"),
            int(config["seed"]),
        )

    def budget_ms(self, plus: Iterable[Mapping[str, Any]], minus: Iterable[Mapping[str, Any]]) -> float | None:
        """What the change from the configurations `minus` to `plus` may add to p95; None when nothing limits it.

        A change that turns re-ranking on has the larger of the two budgets.
        """
        turned_on = all(map(reranks, plus)) and not any(map(reranks, minus))
        return self.budget.of_rerank_ms if turned_on else self.budget.p95_ms


def primary(config: Mapping[str, Any]) -> str:
    """The measure of documents that verdicts are about: `primary`, else nDCG@10, or the first of other measures."""
    names = [str(name) for name in config["measures"]]
    return str(config.get("primary") or (PRIMARY if PRIMARY in names else names[0]))


def reranks(config: Mapping[str, Any]) -> bool:
    """Whether a configuration re-ranks with a cross-encoder; one that is not known does not."""
    return bool(config) and any(str(node["_target_"]).endswith(".Rerank") for _, node in active(config))
