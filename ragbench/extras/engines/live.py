"""Searches by other engines: one that ragbench loaded, measured where it is deployed, and Pyserini in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ragbench.base.options import Constraint, Count, Name, Positive, Share, Weight, option
from ragbench.base.types import LiveError, RagbenchError, without_secret
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.extras.remote.live.client import NO_FILTER, Ask, Expression, RequestFailed
from ragbench.extras.remote.live.stages import Live
from ragbench.search.stages.stage import Index, QueryState, Ranking, Retriever


@option("live=engine", "A search that `ragbench export` wrote into a file of SQLite, or loaded into a server.")
@dataclass(frozen=True, kw_only=True)
class LiveEngine(Live):
    """A search that `ragbench export` put into a file of SQLite, or loaded into a server.

    `order`: whether the learned order of the exported arm, if it has one, is put on top, as `ragbench serve`
    does.
    """

    place: ClassVar[str] = "engine"

    engine: Annotated[
        Name,
        Constraint(without_secret, "must hold no password: write env:NAME for a variable with one"),
    ]
    order: bool = True  # put the learned order of the exported arm on top
    hits: Expression = "@"
    document: Expression | None = "path"
    text: Expression | None = "text"
    score: Expression | None = "score"
    depth: Count = 100
    per_second: Positive = 1000.0

    @property
    def name(self) -> str:
        """The file or address."""
        return self.engine

    @property
    def template(self) -> Any:
        """The query and its filter."""
        return "{query}", "{filter}"

    def asking(self) -> Ask:
        """One connection for all queries."""
        from ragbench.extras.engines.opened import EngineDeployment

        try:
            bundle = EngineDeployment(self.engine).open(order=self.order)
        except RagbenchError as error:
            raise LiveError(f"{self.name} cannot be asked: {error}") from None

        def ask(query: str, depth: int, conditions: QueryFilter = NO_FILTER, /) -> Any:
            try:
                hits = bundle.search(query, depth, filters=conditions or None)
            except RagbenchError as error:
                raise RequestFailed(str(error)) from None
            return [{"path": hit.path, "text": hit.text, "score": hit.score} for hit in hits]

        return ask


@option("pyserini", "BM25 of Pyserini in this process; replaces BM25F, as a reference for it.")
@dataclass(frozen=True)
class RetrievePyserini(Retriever):
    """Take the `depth` chunks that Pyserini's `LuceneSearcher` scores highest: the reference for `RetrieveLexical`.

    Its `LuceneIndexer` indexes the same texts, the field `content`.
    """

    depth: Count = 100
    k1: Weight = 0.9
    b: Share = 0.4

    replaces: ClassVar[tuple[str, ...]] = ("lexical",)
    by: ClassVar[str] = "words"
    source: ClassVar[str] = "lexical"
    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "pyserini"})

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Best chunks of every state's text."""
        searched = index.part("pyserini")
        return [
            searched.search(state.text_for(self.source), self.depth, self.k1, self.b, index.allowed(state.filters))
            for state in states
        ]

    def describe(self) -> str:
        """The depth and how it scores."""
        return f"retrieve {self.depth} by BM25 of Pyserini (k1={self.k1:g}, b={self.b:g})"
