"""Learn more about the order of one collection from its own topics, from where the configured order ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragbench.config.settings import Settings
from ragbench.extras.fit import adapter, pre_ranking, ranker
from ragbench.extras.fit.ranker import Learned, Sample, Spec, Values
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.search.engine.executor import Arm


@dataclass(frozen=True)
class FinetunedRanker:
    """The order that was learned, `start`: from what, in words, and `learned`: what it gains on held-out queries."""

    stage: Rank
    start: str
    learned: Learned

    @property
    def before(self) -> Values:
        """nDCG@10 of every topic from where it started."""
        return self.learned.fused

    @property
    def held_out(self) -> Values:
        """nDCG@10 of every topic by an order of other groups of topics."""
        return self.learned.held_out


def sample(
    settings: Settings,
    arm: Arm,
    benchmark: Benchmark,
    split: str,
    start: Rank | None,
    spec: Spec,
) -> Sample:
    """What can be learned from the topics of a split, with all features that the order to start from reads.

    Where the settings have an adapter, vectors of training topics are moved by adapters of other topics.
    """
    known_features = start.features if start is not None else ()

    def select_features(sources: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*known_features, *spec.features(sources)]))

    depth = start.depth if start is not None else spec.depth
    if split == "train" and settings.index.encoder.adapter:
        states = adapter.cross_fitted(settings, benchmark, arm, adapter.AdapterSpec(seed=spec.seed))
        return ranker.sample(states, arm.index, benchmark, depth, select_features)
    return pre_ranking.sample(arm, benchmark, split, depth, select_features)


def learn(judged: Sample, start: Rank | None, spec: Spec) -> FinetunedRanker:
    """Add trees to an order, and estimate by cross-validation over groups of topics the gain."""
    if start is None:
        learned = ranker.learn(judged, spec)
        return FinetunedRanker(learned.rank(spec), "the fused order", learned)
    spec = replace(spec, prior=start.prior, depth=start.depth)
    learned = ranker.learn(judged.from_order(start), spec)
    stage = replace(start, model=trees.joined([(start.trees, 1.0), (learned.model, 1.0)]))
    described = f"the order '{start.name}'" if start.name else "the configured order"
    return FinetunedRanker(stage, described, learned)


def confirm(judged: Sample, start: Rank | None, result: FinetunedRanker) -> tuple[Values, Values]:
    """nDCG@10 of other topics by the learned order, and before."""
    before_scores = judged.fused if start is None else ranker.values_with(judged, start)
    return ranker.values_with(judged, result.stage), before_scores
