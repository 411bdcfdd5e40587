"""Explains the place of a hit: its rank in every source and after every stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragbench.base.types import Explanation, Place, QueryState, Ranking
from ragbench.search.engine.hits import with_children
from ragbench.search.engine.pipeline import Pipeline

if TYPE_CHECKING:
    from ragbench.index.index import Index


def explanation(
    chunk: int, score: float, pipeline: Pipeline, passed: Sequence[QueryState], index: Index
) -> Explanation:
    """The explanation of a hit; `passed` are the states before every stage and after the last."""
    members, final = with_children(chunk, index.chunks), passed[-1]
    names = [name for name, _ in pipeline]
    after = [(name, state.fused) for name, state in zip(names, passed[1:], strict=True) if state.fused is not None]
    return Explanation(
        sources=_places(sorted(final.rankings.items()), members),
        stages=_places(after, members),
        reasons=_reasons(chunk, score, members, pipeline, passed, index),
    )


def _reasons(
    chunk: int,
    score: float,
    members: Sequence[int],
    pipeline: Pipeline,
    passed: Sequence[QueryState],
    index: Index,
) -> dict[str, Any]:
    lexical = [state.rankings["lexical"] for state in passed if "lexical" in state.rankings]
    rankings = [*lexical, *(each for state in passed for each in _rankings(state))]
    found = (place.score for ranking in rankings if (place := _place(ranking, members)))
    reasons: dict[str, Any] = {"base_score": next(found, score), "final_score": score}
    for (_, stage), before in zip(pipeline, passed, strict=False):
        if hasattr(stage, "explain"):
            reasons |= stage.explain(before, index, members[-1])
    if chunk in passed[-1].guaranteed:
        reasons["source"] = passed[-1].guaranteed[chunk]
    return reasons


def _rankings(state: QueryState) -> list[Ranking]:
    return [*state.rankings.values(), *([] if state.fused is None else [state.fused])]


def _places(rankings: Sequence[tuple[str, Ranking]], members: Sequence[int]) -> dict[str, Place]:
    return {name: place for name, ranking in rankings if (place := _place(ranking, members))}


def _place(ranking: Ranking, members: Sequence[int]) -> Place | None:
    """The place of the first of these chunks."""
    for rank, (chunk, score) in enumerate(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True), start=1):
        if chunk in members:
            return Place(rank, score)
    return None
