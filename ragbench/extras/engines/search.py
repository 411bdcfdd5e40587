"""Search in an engine, as the first stage of a pipeline whose other stages run here."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import BundleError
from ragbench.extras.engines.content import DocumentRow
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.words import Terms
from ragbench.index.chunks import ChunkTable
from ragbench.search.stages.stage import Index, QueryState, Ranking, Stage

_UNZIPPED, _RATIO = 2**26, 32  # a file of a few bytes may hold as many MiB of zeros; larger ones are mostly text

Vector = NDArray[np.float32]
Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Found:
    """All hits of a query, best first: fused scores, and the scores in every source, NaN where it did not find one."""

    chunk_ids: Sequence[str]
    scores: Scores
    sources: Mapping[str, Scores]

    @staticmethod
    def of(sources: Collection[str], rows: Iterable[Sequence[Any]]) -> Found:
        """Rows of chunk_id, fused score, and the score in each source or None.

        Read by columns, since rows are many. Raises TypeError, ValueError, OverflowError for values that none has.
        """
        chunk_ids, scores, *others = list(zip(*rows, strict=True)) or [()] * (2 + len(sources))
        if set(map(type, chunk_ids)) - {str} or None in scores:
            raise TypeError("a hit has no id, or no score")
        return Found(
            chunk_ids, _scores(scores), {s: _scores(column) for s, column in zip(sources, others, strict=True)}
        )


F = TypeVar("F", bound=Callable[..., Any])


def parse_errors(method: F) -> F:
    """The method of an engine, with one sentence where what it returns is not what ragbench wrote there."""

    @functools.wraps(method)
    def translating(self: Any, /, *positional: Any, **named: Any) -> Any:
        try:
            return method(self, *positional, **named)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, zlib.error) as error:
            raise BundleError(f"{self.name} gives an answer of an unexpected structure: load it again") from error

    return cast(F, translating)


def unzipped(body: bytes) -> bytes:
    """Return the content of a compressed file. Raises ValueError for one that would fill the memory."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(body, _UNZIPPED + _RATIO * len(body))
    if not unpacking.eof:
        raise ValueError("a file is truncated, or unpacks to more than ragbench writes")
    return content


def number(value: Any) -> float:
    """A score of an engine. Raises TypeError, ValueError for what is none."""
    if isinstance(value, (str, bytes, bool)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a score")
    return float(value)


def _scores(values: Sequence[Any]) -> Scores:
    """A column of scores; None is NaN."""
    if set(map(type, values)) - {float, int, type(None)}:
        raise TypeError("score is not a number")
    scores = np.array(values, np.float64)
    if np.isfinite(scores).sum() + values.count(None) != len(values):
        raise ValueError("a score is not finite")
    return scores


class Writer(Protocol):
    """Writes into an engine, inside a transaction of it."""

    def digests(self) -> Mapping[str, str]:
        """The digest of every document's content by docno."""
        ...

    def vectors(self, keys: Collection[str]) -> Mapping[str, Vector]:
        """The vectors that are there of passages by their keys (`content.passage_key`)."""
        ...

    def put(self, row: DocumentRow, vectors: Sequence[Vector | None], terms: Terms) -> None:
        """Write a document that is not there, and its chunks."""
        ...

    def drop(self, docno: str) -> None:
        """Remove a document, if it is there."""
        ...

    def finish(
        self, forms: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None, facts: Mapping[str, Any]
    ) -> None:
        """Add forms of words, replace the files (None: keep them), set values of what the engine says about itself.

        Renews what is counted over all documents.
        """
        ...


class Engine(Protocol):
    """A loaded engine."""

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        ...

    plan: SearchPlan
    """What it searches."""

    def files(self) -> Mapping[str, bytes]:
        """The files of the bundle that was loaded with it, by name."""
        ...

    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Found:
        """What is found for a query; `only` names the chunks that may be found (None: all)."""
        ...

    def version(self) -> str:
        """A text that differs after every change of its content."""
        ...

    def damage(self) -> str | None:
        """What is wrong with its content, None if nothing is, as far as it can tell."""
        ...

    def transaction(self) -> AbstractContextManager[Writer]:
        """What is written inside counts at once, or not at all; searches of this object see it already."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@dataclass(frozen=True)
class SearchEngine(Stage):
    """Let an engine search and fuse; every source's ranking comes along, for the stages that follow."""

    engine: Any = field(compare=False)  # an `Engine`; a protocol is not checked
    sources: tuple[str, ...]

    provides: ClassVar[frozenset[str]] = frozenset({"rankings", "fused"})
    forbids: ClassVar[Mapping[str, str]] = {"rankings": "an engine searches instead of all sources"}

    @property
    def needs(self) -> frozenset[str]:
        """The chunks, and the model of the queries."""
        return frozenset({"chunks", *(["encoder"] if "dense" in self.sources else [])})

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Ask for every state."""
        return [self._asked(state, index) for state in states]

    def _asked(self, state: QueryState, index: Index) -> QueryState:
        text = state.query.text
        vector = index.encoder.encode_queries([text])[0] if "dense" in self.sources else None
        allowed = index.allowed(state.filters)
        only = None if allowed is None else [index.chunks.chunk_ids[row] for row in np.flatnonzero(allowed).tolist()]
        hits, rows_by_id = self.engine.ask(text, vector, only), _rows(index.chunks)
        rows = np.array([rows_by_id.get(chunk_id, -1) for chunk_id in hits.chunk_ids], np.int32)
        for source in self.sources:
            scores = hits.sources[source]
            has_row = (rows >= 0) & ~np.isnan(scores)
            ranking = Ranking.of(rows[has_row], scores[has_row])
            state = state.with_ranking(source, replace(ranking, of_documents=source == "documents"))
        return replace(state, fused=Ranking.of(rows[rows >= 0], hits.scores[rows >= 0]))

    def describe(self) -> str:
        """Which engine answers."""
        return f"search in {self.engine.name}"


@lru_cache(maxsize=4)
def _rows(table: ChunkTable) -> Mapping[str, int]:
    """The number of every chunk by its id."""
    return {chunk_id: row for row, chunk_id in enumerate(table.chunk_ids)}
