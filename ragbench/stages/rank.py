"""Order documents by a model learned from judged queries: LambdaMART."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.bounds import Checked, Count, Weight
from ragbench.errors import ConfigError
from ragbench.ranking import features, trees
from ragbench.ranking.features import Candidates
from ragbench.stages.signals import names_a_place, names_something_exact
from ragbench.stages.stage import fused
from ragbench.types import QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Rank(Checked):
    """Order the documents of the first `depth` hits by `prior` times their fused score, from 0 to 1, plus `model`.

    `model` is the text of trees that LightGBM learned by LambdaMART (Burges, 2010), as `ragbench learn-ranker` writes
    it: without a tree, the order is that of fusion. A document is seen through its first hit; its further ones follow
    at the share of that one's score that they had in fusion. Scores lie between 0 and 1; hits below `depth` come after
    all others in the order they had.
    """

    model: str
    prior: Weight = 2.0
    depth: Count = 100

    requires: ClassVar[frozenset[str]] = frozenset({"fused"})
    provides: ClassVar[frozenset[str]] = frozenset({"ranked"})
    forbids: ClassVar[Mapping[str, str]] = {
        "ranked": "hits have been ranked by a model already",
        "cut": "hits that are cut away cannot be ranked",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        sources = features.sources_of(self.features)
        unknown = set(self.features) - set(features.names(sources, recency=True))
        if unknown:
            raise self.refused("model", f"reads features that this version does not know: {', '.join(sorted(unknown))}")

    @property
    def needs(self) -> frozenset[str]:
        """Parts of the index it reads."""
        return frozenset({"chunks", "terms", *(["modified"] if features.RECENCY in self.features else [])})

    @property
    def features(self) -> tuple[str, ...]:
        """What the model reads."""
        return trees.parse(self.model).features

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Order the hits of every state."""
        return [replace(state, fused=self._ranked(state, index)) for state in states]

    def _ranked(self, state: QueryState, index: Index) -> Ranking:
        ranking = fused(state)
        if not len(ranking):
            return ranking
        absent = set(features.sources_of(self.features)) - set(state.rankings)
        if absent:
            raise ConfigError(
                f"rank.model was learned over the source '{min(absent)}', which this pipeline does not search: turn "
                "it on, or let `ragbench learn-ranker` learn one for this pipeline"
            )
        found, rows = rows_of(state, index, self.features, self.depth)
        return reordered(ranking, found, self.prior * found.norm + trees.parse(self.model)(rows))

    def describe(self) -> str:
        """In words."""
        return f"rank {self.depth} by {len(trees.parse(self.model))} learned trees"


def rows_of(
    state: QueryState, index: Index, wanted: tuple[str, ...], depth: int
) -> tuple[Candidates, NDArray[np.float64]]:
    """The documents of a state's first `depth` fused hits, of which there is one, and their features."""
    hits = fused(state).head(depth)
    found = Candidates.of(hits, index)
    signals = names_something_exact(state.query.text), names_a_place(state.query.text)
    return found, features.table(state, hits, found, index, wanted, signals)


def reordered(ranking: Ranking, found: Candidates, values: NDArray[np.float64]) -> Ranking:
    """A fused ranking with the hits of `found` ordered by the values of their documents, shape (n,)."""
    depth = len(found.owner)
    scores = ranking.scores[:depth].astype(np.float64)
    lead = scores[found.first][found.owner]
    share = np.where((lead > 0) & (scores > 0), scores / np.where(lead > 0, lead, 1.0), 0.5)
    squashed = 0.5 + 0.5 * values / (1 + np.abs(values))
    points = squashed[found.owner] * np.minimum(share, 1.0)
    # Equal points: the better document first, within one the earlier hit.
    places = np.lexsort((found.owner, -values[found.owner], -points))
    points = points[places].astype(np.float32)
    rest = ranking.scores[depth:]
    if len(rest):  # kept in order below the last that was ranked
        rest = points[-1] * (rest / rest[0] if rest[0] > 0 and rest[-1] >= 0 else np.ones_like(rest))
    return Ranking.ordered(
        np.concatenate([ranking.chunks[:depth][places], ranking.chunks[depth:]]), np.concatenate([points, rest])
    )
