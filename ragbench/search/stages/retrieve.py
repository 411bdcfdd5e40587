"""Retrievers: dense (P2), lexical by BM25F over fields (P4, P9), and of code blocks by their identifiers (P7)."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Count, Name, Share, Weight, option
from ragbench.base.types import ConfigError
from ragbench.index.chunks import ChunkTable
from ragbench.index.code import common_name
from ragbench.index.index import VectorsSpec
from ragbench.index.lexical import Bm25F, LexicalIndex, LexicalSpec
from ragbench.index.texts import FieldName
from ragbench.models import Encoder
from ragbench.search.stages.signals import names_code
from ragbench.search.stages.stage import Index, QueryState, Ranking, Retriever


@option("class=RetrieveDense")
@dataclass(frozen=True)
class RetrieveDense(Retriever):
    """Embed the text and take the `depth` (at least 1) chunks of highest cosine similarity.

    `document` (0 to 1) is the share of the cosine with the mean vector of a chunk's document in its score. `source` is
    the name of the ranking. `index`: the passages and the encoder of this source, when they differ from those of the
    index. If the state has a hypothesis of HyDE, it is embedded as a passage instead (Gao et al., ACL 2023).
    """

    depth: Count = 100  # number of results
    document: Share = 0.0  # share of the cosine with the mean vector of a chunk's document
    source: Name = "dense"  # name of its result list
    index: VectorsSpec | None = None  # its passages and encoder, if they differ from `index`

    by: ClassVar[str] = "meaning"

    @property
    def needs(self) -> frozenset[str]:
        """The vectors, the model, and the mean vectors of documents if they have a share."""
        parts = ("dense", "encoder", *(("centroids",) if self.document else ()))
        return frozenset(self._part(part) for part in parts)

    def question(self, state: QueryState) -> Hashable:
        """Whether the text is a hypothesis, the text, and the filters."""
        return "hypothesis" in state.texts, state.texts.get("hypothesis", self._text(state)), state.filters

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Nearest chunks of every state's text."""
        vectors = self._vectors(states, index.part(self._part("encoder")))
        return [
            self._search(vector, index, index.allowed(state.filters))
            for vector, state in zip(vectors, states, strict=True)
        ]

    def _search(self, vector: NDArray[np.float32], index: Index, allowed: NDArray[np.bool_] | None) -> Ranking:
        ranking: Ranking = index.part(self._part("dense")).search(vector[None, :], self.depth, allowed)[0]
        if self.document:
            means = index.part(self._part("centroids"))
            ranking = means.search(vector, ranking, self.document, self.depth, allowed)
        return replace(ranking, query_vector=vector)

    def _part(self, kind: str) -> str:
        return f"{kind}:{self.source}" if self.index else kind

    def _text(self, state: QueryState) -> str:
        return state.texts.get(self.source, state.text_for("dense"))

    def _vectors(self, states: Sequence[QueryState], encoder: Encoder) -> NDArray[np.float32]:
        """One row for every state: the vector of its hypothesis as a passage, else of its text as a query."""
        has_hypothesis = np.array(["hypothesis" in state.texts for state in states], dtype=np.bool_)
        rows = []
        if has_hypothesis.any():
            passages = [state.texts["hypothesis"] for state in states if "hypothesis" in state.texts]
            rows.append((has_hypothesis, encoder.encode_passages(passages)))
        if not has_hypothesis.all():
            queries = [self._text(state) for state in states if "hypothesis" not in state.texts]
            rows.append((~has_hypothesis, encoder.encode_queries(queries)))
        # Only a model that is loaded knows its `dim`, and vectors may be in the cache.
        dim = rows[0][1].shape[1] if rows else encoder.dim
        vectors = np.empty((len(states), dim), dtype=np.float32)
        for of_states, found in rows:
            vectors[of_states] = found
        vectors.flags.writeable = False
        return vectors

    def returning(self, n: int) -> RetrieveDense:
        """The stage for a search that returns `n` hits."""
        return replace(self, depth=max(self.depth, n))

    def describe(self) -> str:
        model = f" ({self.index.encoder.name})" if self.index else ""
        return f"retrieve {self.depth} by vector similarity{model}"


@option(
    "documents",
    "Search whole documents with BM25F, as a third retriever.",
    source="documents",
    index={"unit": "document", "analyzer": "${index.lexical.analyzer}"},
    depth="${lexical.depth}",
    k1="${lexical.k1}",
    b="${lexical.b}",
    fields="${lexical.fields}",
)
@option("class=RetrieveLexical")
@dataclass(frozen=True)
class RetrieveLexical(Retriever):
    """Take the `depth` (at least 1) chunks, or documents, that score highest for any of the words of the text.

    BM25F (`ragbench.index.lexical`) over `fields`: weights of at least 0 by field of `ragbench.index.texts`; 0 leaves a
    field out. `k1` is 0 or more, `b` 0 to 1. `source` is the name of the ranking. `index`: how this source is indexed,
    when it differs from the index: with another `analyzer`, or as whole documents (`unit: document`), whose chunks then
    all have the score of their document.
    """

    depth: Count = 100  # number of results
    k1: Weight = 0.9  # Anserini's defaults for web passages
    b: Share = 0.4  # strength of length normalisation in BM25
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
        return Bm25F(tuple(sorted(self.fields.items())), self.k1, self.b)

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Best chunks of every state's text, or those of the best documents."""
        lexical: LexicalIndex = index.part(self._part).with_scoring(self.scoring)
        rankings = []
        for state in states:
            allowed, text = index.allowed(state.filters), self._text(state)
            if self._by_document:
                documents = lexical.search(text, self.depth, _documents_with_allowed(index.chunks, allowed))
                rankings.append(_chunks_of(documents, index.chunks, allowed))
            else:
                rankings.append(lexical.search(text, self.depth, allowed))
        return rankings

    def returning(self, n: int) -> RetrieveLexical:
        """The stage for a search that returns `n` hits."""
        return replace(self, depth=max(self.depth, n))

    def describe(self) -> str:
        weights = sorted(self.fields.items())
        names = ", ".join(f"{name} x{weight:g}" if weight != 1 else name for name, weight in weights)
        fields = "" if self.fields == {"content": 1.0} else f" in {names}"
        return f"retrieve {self.depth} {'documents ' if self._by_document else ''}by BM25{fields}"


def _documents_with_allowed(table: ChunkTable, allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Which documents hold an allowed chunk, shape (n_documents,); None without a condition."""
    if allowed is None:
        return None
    chunks = allowed[: table.n_retrievable]
    return np.bincount(table.document[: table.n_retrievable][chunks], minlength=table.n_documents) > 0


def _chunks_of(documents: Ranking, table: ChunkTable, allowed: NDArray[np.bool_] | None) -> Ranking:
    """The chunks of documents ranked by their rows, each with its document's score, in the order of the text."""
    chunks, counts = table.chunks_of_each(documents.chunks)
    scores = documents.scores.repeat(counts)
    if allowed is not None:
        scores, chunks = scores[allowed[chunks]], chunks[allowed[chunks]]
    return Ranking.ordered(chunks, scores, of_documents=True)


@option("p7", "Retrieve code blocks by their identifiers, as a separate retriever (sources 000 P7, 001).")
@dataclass(frozen=True)
class RetrieveCode(Retriever):
    """Take the chunks of the `depth` (at least 1) best code blocks, by BM25 over identifiers and their parts.

    Seeds 000 and 001, P7. A chunk has the score of its best block. The terms of the query include the parts of a name,
    but not function words. `language` may be any name of a fence language (`py` is `python`).
    """

    depth: Count = 50  # number of results
    route: Literal["content", "always"] = "content"  # content: queries with an identifier; always: every query
    min_match: Share = 0.5  # minimum share of query terms that a block contains
    language: Name | None = None  # only code blocks in this language

    by: ClassVar[str] = "words"
    source: ClassVar[str] = "code"
    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "code"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language is not None and not _is_language(self.language):
            raise self.refused(
                "language", f"must be a language of code that Pygments knows{_language_hint(self.language)}"
            )

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Best chunks of every state's text. ConfigError for a language that no block of the collection has."""
        if states and self.language is not None and common_name(self.language) not in index.code.languages:
            languages = ", ".join(sorted(name for name in index.code.languages if name)) or "none"
            raise ConfigError(f"p7.language is {self.language}, but the collection's code blocks are in: {languages}")
        return [self._chunks(state, index) for state in states]

    def _chunks(self, state: QueryState, index: Index) -> Ranking:
        text = state.text_for(self.source)
        if self.route == "content" and not names_code(text):
            return Ranking.empty()
        allowed = index.allowed(state.filters)
        mask = None if allowed is None else allowed[index.chunks.chunk_of_block]
        blocks = index.code.search(text, self.depth, self.language, mask, self.min_match)
        chunks = index.chunks.chunk_of_block[blocks.chunks]
        first = np.unique(chunks, return_index=True)[1]
        return Ranking.of(chunks[first], blocks.scores[first])

    def describe(self) -> str:
        return f"retrieve {self.depth} code blocks{' of ' + self.language if self.language else ''}"


def _is_language(name: str) -> bool:
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        find_lexer_class_by_name(name.strip())
    except ClassNotFound:
        return False
    return True


def _language_hint(name: str) -> str:
    from pygments.lexers import get_all_lexers

    aliases = [alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases]
    near = difflib.get_close_matches(name.lower(), aliases, n=1)
    return f", got '{name}'; did you mean {near[0]}?" if near else f" such as python, json or bash, got '{name}'"
