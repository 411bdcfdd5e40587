"""The mode `rerank` of Librarian (seed 004): hits keep their retrievers' own scores, and keywords re-rank them."""

from __future__ import annotations

from ragbench.extras.systems.stages.librarian import AverageScores, RerankByKeywords
from ragbench.search.engine.modes import Stages
from ragbench.search.stages import cut
from ragbench.search.stages.stage import Stage, StateProperty


def rerank_by_keywords(stages: Stages, keywords: tuple[str, Stage] | None, as_typed: bool) -> Stages:
    """The stages with re-ranking by keywords before parents replace the hits; `keywords` is the pipeline's own stage.

    `as_typed` is used where it has none. A fusion of ranks becomes an average of scores.
    """
    reranker = keywords or ("keywords", RerankByKeywords(as_typed=as_typed))
    ends = (i for i, (_, stage) in enumerate(stages) if isinstance(stage, (cut.ExpandToParents, cut.Cut)))
    position = next(ends, len(stages))
    return (*((name, _of_own_scores(stage)) for name, stage in stages[:position]), reranker, *stages[position:])


def _of_own_scores(stage: Stage) -> Stage:
    """For a stage that fuses rankings, one that averages their scores; any other as it is."""
    return stage if StateProperty.FUSED not in stage.provides or isinstance(stage, AverageScores) else AverageScores()
