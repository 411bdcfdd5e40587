"""Order documents by a model learned from judged queries: LambdaMART."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Count, Weight, option
from ragbench.search.ranking import features, trees
from ragbench.search.ranking.features import Candidates
from ragbench.search.stages.signals import names_a_location, names_something_exact
from ragbench.search.stages.stage import Index, QueryState, Ranking, Reorder, StateProperty, fused


@option(
    "ranker=questions",
    "Learned by `python -m research.shared_ranker` from 1853 topics of 34 collections.",
    model="questions@bfdaa3bba49c",
    prior=3.0,
)
@dataclass(frozen=True)
class Rank(Reorder):
    """Order the documents of the first `depth` hits by `prior` times their fused score, from 0 to 1, plus `model`.

    `model` is the text of trees that LightGBM learned by LambdaMART (Burges, 2010), as `ragbench fit ranker` writes it,
    or `NAME@DIGEST` for those in conf/ranker: NAME.txt, or NAME-DIGEST.txt next to the file of a project. Without a
    tree, the order is that of fusion. The features
    of a document are those of its first hit; its further hits keep the share of the first hit's score that they had in
    fusion. A source that the pipeline does not search, as in a mode of a request, is one that found nothing. Scores lie
    between 0 and 1; hits below `depth` come after all others in the order they had.
    """

    model: str  # its trees and their digest
    prior: Weight = 2.0  # weight of the fused score against the trees
    depth: Count = 100  # number of hits that are ordered

    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "terms"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKED})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.RANKED: "hits have been ranked by a model already",
        StateProperty.CUT: "hits that are cut away cannot be ranked",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        sources = features.sources_of(self.features)
        unknown = set(map(features.absolute, self.features)) - set(features.everything(sources))
        if unknown:
            raise self.refused("model", f"reads features that this version does not know: {', '.join(sorted(unknown))}")

    @property
    def trees(self) -> str:
        """The text of the trees."""
        return trees.text_of(self.model)

    @property
    def name(self) -> str:
        """The name of the order, empty for trees given as text."""
        return self.model.partition("@")[0] if self.trees != self.model else ""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that the model reads."""
        return trees.parse(self.trees).features

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Order the hits by the model."""
        ranking = fused(state)
        if not len(ranking):
            return ranking
        candidates, rows = rows_of(state, index, self.features, self.depth)
        return _reorder(ranking, candidates, self.prior * candidates.norm + trees.parse(self.trees)(rows))

    def describe(self) -> str:
        return f"rank {self.depth} by {len(trees.parse(self.trees))} decision trees"


def rows_of(
    state: QueryState, index: Index, names: tuple[str, ...], depth: int
) -> tuple[Candidates, NDArray[np.float64]]:
    """The documents of a state's first `depth` fused hits (at least one hit), and their features."""
    hits = fused(state).head(depth)
    candidates = Candidates.of(hits, index)
    signals = names_something_exact(state.query.text), names_a_location(state.query.text)
    return candidates, features.table(state, hits, candidates, index, names, signals)


def _reorder(ranking: Ranking, candidates: Candidates, values: NDArray[np.float64]) -> Ranking:
    """Order the hits of `candidates` in a fused ranking by the values of their documents, shape (n,)."""
    depth = len(candidates.owner)
    scores = ranking.scores[:depth].astype(np.float64)
    first_scores = scores[candidates.first][candidates.owner]
    share = np.where((first_scores > 0) & (scores > 0), scores / np.where(first_scores > 0, first_scores, 1.0), 0.5)
    zero_to_one = 0.5 + 0.5 * values / (1 + np.abs(values))
    points = zero_to_one[candidates.owner] * np.minimum(share, 1.0)
    # Of equal points, the better document comes first, and within a document the earlier hit.
    places = np.lexsort((candidates.owner, -values[candidates.owner], -points))
    points = points[places].astype(np.float32)
    tail = ranking.scores[depth:]
    if len(tail):  # in the same order, below the last ranked hit
        tail = points[-1] * (tail / tail[0] if tail[0] > 0 and tail[-1] >= 0 else np.ones_like(tail))
    return Ranking.ordered(
        np.concatenate([ranking.chunks[:depth][places], ranking.chunks[depth:]]), np.concatenate([points, tail])
    )
