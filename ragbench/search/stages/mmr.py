"""P11: maximal marginal relevance, an order that balances relevance and repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Checked, Count, Share
from ragbench.base.types import QueryClass, QueryState, Ranking
from ragbench.search.stages.stage import Fact, fused

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Diversify(Checked):
    """Pick hits one by one, each time the one with the highest lambda * relevance - (1 - lambda) * similarity.

    Carbonell and Goldstein, SIGIR 1998; seed 000, P11. `lambda_` (0 to 1): 1 is relevance alone. The first `candidates`
    hits (at least 1) are picked from, the others follow in their order. Both values are between 0 and 1: similarity is
    the highest cosine with a picked hit, 0 if negative; relevance is the score, with `scale` `minmax` scaled over the
    candidates, with `score` unchanged, for scores that are confidences. The new score of a hit is lambda * relevance +
    (1 - lambda) * (1 - similarity): the same quantity moved to [0, 1], which never grows from pick to pick, so that
    order and scores agree. `by_class` gives another lambda to a class of P3 (query-dependent lambda, future work of
    seed 001).
    """

    lambda_: Share = 0.7  # 1 is relevance alone
    candidates: Count = 50
    # relevance from fused scores: minmax over the candidates, or score as it is
    scale: Literal["minmax", "score"] = "minmax"
    # another lambda for a class of P3, such as {exploratory: 0.5}
    by_class: Mapping[QueryClass, Share] = field(default_factory=dict)

    needs: ClassVar[frozenset[str]] = frozenset({"dense"})
    requires: ClassVar[frozenset[str]] = frozenset({Fact.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({Fact.DIVERSE})
    forbids: ClassVar[Mapping[str, str]] = {
        Fact.SEMANTIC_DEDUP: "P11 replaces semantic deduplication: turn one of them off (p8.semantic=null or p11=off)",
        Fact.RERANKED: "its order would replace that of the re-ranker",
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Reorder every state's fused ranking."""
        return [replace(state, fused=self._diverse(state, index)) for state in states]

    def _diverse(self, state: QueryState, index: Index) -> Ranking:
        ranking = fused(state)
        head = ranking.head(self.candidates)
        if len(head) == 0:
            return ranking
        similarity = np.clip(index.dense.similarities(head.chunks), 0.0, 1.0)
        weight = self.lambda_ if state.query_class is None else self.by_class.get(state.query_class, self.lambda_)
        order, scores = marginal_order(self._relevance(head), similarity, weight)
        tail = np.minimum(ranking.scores[len(head) :], scores[-1])
        return Ranking.ordered(
            np.concatenate([head.chunks[order], ranking.chunks[len(head) :]]), np.concatenate([scores, tail])
        )

    def _relevance(self, head: Ranking) -> NDArray[np.float64]:
        values = head.scores.astype(np.float64)
        if self.scale == "score":
            return np.clip(values, 0.0, 1.0)
        spread = values[0] - values[-1]
        return (values - values[-1]) / spread if spread > 0 else np.ones_like(values)

    def describe(self) -> str:
        return f"diversify (lambda {self.lambda_:g})"


def marginal_order(
    relevance: NDArray[np.float64], similarity: NDArray[np.float32], weight: float
) -> tuple[list[int], NDArray[np.float64]]:
    """The greedy order of n candidates and the score of every pick; ties go to the earlier candidate.

    `relevance` (n,) and `similarity` (n, n) lie between 0 and 1.
    """
    closest = np.zeros(len(relevance))
    open_ = np.ones(len(relevance), dtype=np.bool_)
    order: list[int] = []
    scores = np.empty(len(relevance))
    for place in range(len(relevance)):
        value = np.where(open_, weight * relevance + (1 - weight) * (1 - closest), -np.inf)
        pick = int(np.argmax(value))
        order.append(pick)
        scores[place] = value[pick]
        open_[pick] = False
        np.maximum(closest, similarity[pick], out=closest)
    return order, scores
