"""Lexical retrieval: BM25F over the fields of a lexical index."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.bounds import Count, Name, Share, Weight
from ragbench.base.types import QueryState, Ranking
from ragbench.index.lexical import Bm25F, LexicalSpec
from ragbench.index.texts import FieldName
from ragbench.search.stages.stage import Retriever

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.index import Index
    from ragbench.index.lexical import LexicalIndex


@dataclass(frozen=True)
class RetrieveLexical(Retriever):
    """Take the `depth` (at least 1) chunks, or documents, that score highest for any of the words of the text.

    BM25F (`ragbench.index.lexical`) over `fields`: weights of at least 0 by field of `ragbench.index.texts`; 0 leaves a
    field out. `k1` is 0 or more, `b` 0 to 1. `source` is the name of the ranking. `index`: how this source is indexed,
    when it differs from the index: with another `analyzer`, or as whole documents (`unit: document`), whose chunks then
    all have the score of their document.
    """

    depth: Count = 100
    k1: Weight = 0.9  # Anserini's defaults, made for passages of the web
    b: Share = 0.4
    # weights; docs/search.md has all fields
    fields: Mapping[FieldName, Weight] = field(default_factory=lambda: {"content": 1.0})
    source: Name = "lexical"  # name of its result list
    index: LexicalSpec | None = None  # its lexical index, if it differs from `index`

    by: ClassVar[str] = "words"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.fields.values()):
            raise self.refused("fields", "needs a field with a weight above 0")
        object.__setattr__(self, "fields", {name: weight for name, weight in self.fields.items() if weight})

    @property
    def needs(self) -> frozenset[str]:
        """The words of this source."""
        return frozenset({self._part})

    @property
    def _part(self) -> str:
        return f"lexical:{self.source}" if self.index else "lexical"

    @property
    def _by_document(self) -> bool:
        return self.index is not None and self.index.unit == "document"

    def question(self, state: QueryState) -> Hashable:
        """The text and the filters."""
        return self._text(state), state.filters

    def _text(self, state: QueryState) -> str:
        return state.texts.get(self.source, state.text_for("lexical"))

    @cached_property
    def scoring(self) -> Bm25F:
        """Weights, k1 and b."""
        return Bm25F(tuple((name, weight) for name, weight in sorted(self.fields.items()) if weight), self.k1, self.b)

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Best chunks of every state's text, or those of the best documents."""
        words: LexicalIndex = index.part(self._part).with_scoring(self.scoring)
        found = []
        for state in states:
            allowed, text = index.allowed(state.filters), self._text(state)
            if self._by_document:
                documents = words.search(text, self.depth, documents_with_allowed(index.chunks, allowed))
                found.append(chunks_of(documents, index.chunks, allowed))
            else:
                found.append(words.search(text, self.depth, allowed))
        return found

    def scores(self, state: QueryState, chunks: NDArray[np.int32], index: Index) -> NDArray[np.float64]:
        """The scores of any chunks, or of their documents; 0 for one without a word of the text."""
        words: LexicalIndex = index.part(self._part).with_scoring(self.scoring)
        if not self._by_document:
            return words.scores(self._text(state), chunks)
        documents, places = np.unique(index.chunks.document[chunks], return_inverse=True)
        return words.scores(self._text(state), documents)[places]

    def returning(self, n: int) -> RetrieveLexical:
        """The stage for a search that returns `n` hits."""
        return replace(self, depth=max(self.depth, n))

    def describe(self) -> str:
        weights = {name: weight for name, weight in sorted(self.fields.items()) if weight}
        names = ", ".join(f"{name} x{weight:g}" if weight != 1 else name for name, weight in weights.items())
        where = "" if weights == {"content": 1.0} else f" in {names}"
        return f"retrieve {self.depth} {'documents ' if self._by_document else ''}by BM25{where}"


def documents_with_allowed(table: ChunkTable, allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Which documents hold an allowed chunk, shape (n_documents,); None without a condition."""
    if allowed is None:
        return None
    chunks = allowed[: table.n_retrievable]
    return np.bincount(table.document[: table.n_retrievable][chunks], minlength=table.n_documents) > 0


def chunks_of(documents: Ranking, table: ChunkTable, allowed: NDArray[np.bool_] | None) -> Ranking:
    """The chunks of documents ranked by their rows, each with its document's score, in the order of the text."""
    chunks, counts = table.chunks_of_each(documents.chunks)
    scores = documents.scores.repeat(counts)
    if allowed is not None:
        scores, chunks = scores[allowed[chunks]], chunks[allowed[chunks]]
    return Ranking.ordered(chunks, scores, of_documents=True)
