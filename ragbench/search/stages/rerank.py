"""P6: re-rank by a model that reads query and passage together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base.options import Count, Share, Weight, option
from ragbench.base.progress import track
from ragbench.index.chunks import ChunkTable
from ragbench.index.texts import PassageTemplate
from ragbench.models.resolve import CrossEncoderSpec, ModelName, Numerics
from ragbench.search.stages.stage import Index, QueryState, Ranking, Stage, StateProperty, fused

IN_CONTEXT = PassageTemplate(title=True, headings=True)
"""What the model reads of a chunk, with `headings`."""


@option("p6", "Re-rank the first results with a cross-encoder (source 000 P6).")
@dataclass(frozen=True)
class Rerank(Stage):
    """Reorder the first `depth` (at least 1) hits by a cross-encoder; Nogueira and Cho, 2019; seed 000, P6.

    Scores are the sigmoid of the model's logits, between 0 and 1; those of hits beyond `depth` are scaled to be lower.
    `blend` fuses by reciprocal rank (`k`), because the cross-encoder alone may not improve a good hybrid. A note names
    the queries that `gap` leaves as they are.
    """

    depth: Count = 10  # number of hits that are re-ranked
    model: ModelName = "ms-marco-MiniLM-L-12-v2"  # the cross-encoder
    max_length: Annotated[int, Interval(ge=8, le=512)] = 256  # maximum number of tokens of query and passage
    numerics: Numerics = "fast"  # exact: an int8 model returns the same on every CPU type, for 2.3 times the CPU time
    headings: bool = True  # also read the title and the headings above a passage
    tail: Literal["keep", "drop"] = "keep"  # keep: results beyond depth follow; drop: they are removed (source 001)
    blend: bool = False  # fuse the rankings before and after re-ranking
    k: Weight = 60.0  # k of reciprocal rank fusion, with `blend`
    gap: Share = 1.0  # re-rank only if the second score is within this share of the first; 1: always

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RERANKED})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.RERANKED: "hits have been re-ranked already",
        StateProperty.PARENTS: "the re-ranker reads chunks, not their parents",
    }

    @property
    def models(self) -> tuple[CrossEncoderSpec]:
        """The cross-encoder."""
        return (CrossEncoderSpec(name=self.model, max_length=self.max_length, numerics=self.numerics),)

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Reorder every state's fused ranking."""
        clear = f"the first hit leads by more than {self.gap:.0%}: not re-ranked"
        return [
            state.with_note(clear) if self._leads(state) else replace(state, fused=self._reranked(state, index))
            for state in track("re-ranking", states)
        ]

    def _leads(self, state: QueryState) -> bool:
        """Whether the first score is further above the second than `gap` allows."""
        scores = fused(state).scores
        return self.gap < 1 and len(scores) > 1 and float(scores[0] - scores[1]) > self.gap * float(scores[0])

    def _reranked(self, state: QueryState, index: Index) -> Ranking:
        ranking = fused(state)
        head = ranking.head(self.depth)
        if len(head) == 0:
            return ranking
        model = index.models.cross_encoder(self.models[0])
        logits = model.score(state.query.text, [self._passage(int(chunk), index.chunks) for chunk in head.chunks])
        order, scores = (self._blend if self.blend else _order_by_logit)(logits.astype(np.float64), head)
        if self.tail == "drop":
            return Ranking.ordered(head.chunks[order], scores)
        tail = ranking.scores[len(head) :].astype(np.float64)
        highest = max(1.0, float(tail[0])) if len(tail) else 1.0
        return Ranking.ordered(
            np.concatenate([head.chunks[order], ranking.chunks[len(head) :]]),
            np.concatenate([scores, np.maximum(tail, 0.0) / highest * scores[-1]]),
        )

    def _passage(self, chunk: int, table: ChunkTable) -> str:
        return IN_CONTEXT.passage(table, chunk) if self.headings else table.text(chunk)

    def _blend(self, logits: NDArray[np.float64], head: Ranking) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Reciprocal rank fusion of both orders, scaled so that a hit that is first in both has 1."""
        old_ranks = np.arange(1, len(logits) + 1)
        new_ranks = np.empty(len(logits))
        new_ranks[_order_by_logit(logits, head)[0]] = old_ranks
        scores = ((self.k + 1) / 2) * (1 / (self.k + old_ranks) + 1 / (self.k + new_ranks))
        order = np.lexsort((head.chunks, -scores))
        return order, scores[order]

    def describe(self) -> str:
        return f"re-rank {self.depth}{' and blend' if self.blend else ''}"


def _order_by_logit(logits: NDArray[np.float64], head: Ranking) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    order = np.lexsort((head.chunks, -logits))
    return order, 1.0 / (1.0 + np.exp(-np.clip(logits[order], -700, 700)))
