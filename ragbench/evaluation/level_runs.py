"""Runs of every level: documents by their best chunk, sections by the best chunk that overlaps them, quotes by hits.

A quote is found by the first chunk that covers at least half of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import QueryState, Ranking
from ragbench.evaluation.measures import DOCUMENT, QUOTE, SECTION, STRANGER, Run, evaluate

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark, Qrels
    from ragbench.benchmark.quotes import Quote
    from ragbench.index.chunks import ChunkTable


@dataclass(frozen=True)
class Level:
    """What was found at a level, and its judgments."""

    name: str
    run: Run
    qrels: Qrels

    def evaluate(self, names: Sequence[str], unanswerable: Collection[str]) -> pd.DataFrame:
        """qid, level, measure, value; without the topics that are not judged at this level."""
        frame = evaluate(self.run, self.qrels, names, unanswerable)
        frame.insert(0, "level", self.name)
        return frame


def levels(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark) -> list[Level]:
    """A run at every level; quotes only where there are some."""
    all_levels = [
        Level(DOCUMENT, document_run(states, table), benchmark.document_qrels),
        Level(SECTION, section_run(states, table), benchmark.section_qrels),
    ]
    if quotes := benchmark.quotes_by_topic:
        qrels = {qid: {quote.id: 1 for quote in answer} for qid, answer in quotes.items()}
        all_levels.append(Level(QUOTE, quote_run(states, table, quotes), qrels))
    return all_levels


def document_run(states: Iterable[QueryState], table: ChunkTable) -> dict[str, list[tuple[str, float]]]:
    """The run over documents: each by its best chunk."""
    docnos = table.docnos
    return {
        state.query.qid: decreasing(_first(state, ((docnos[row],) for row in table.document[_chunks(state)].tolist())))
        for state in states
    }


def section_run(states: Iterable[QueryState], table: ChunkTable) -> dict[str, list[tuple[str, float]]]:
    """The run over sections: each by the best chunk that overlaps it; those of one chunk in document order."""
    sections = table.section_ids
    return {
        state.query.qid: decreasing(_first(state, (sections[chunk] for chunk in _chunks(state).tolist())))
        for state in states
    }


def quote_run(
    states: Iterable[QueryState], table: ChunkTable, quotes: Mapping[str, Sequence[Quote]]
) -> dict[str, list[tuple[str, float]]]:
    """The run over hits, of the topics with quotes: a hit that covers at least half of a quote has the quote's name.

    Others have the name of their chunk; so does a hit whose quotes earlier hits covered: it takes a place for nothing.
    """
    run = {}
    for state in states:
        uncovered = list(quotes.get(state.query.qid, ()))
        if not uncovered:
            continue
        hits: list[tuple[str, float]] = []
        for chunk, score, unmatched in state.hits_with_unmatched():
            if unmatched:
                hits.append((f"{STRANGER}{unmatched}", score))
                continue
            docno, span = table.docno(chunk), table.span(chunk)
            covered = [quote for quote in uncovered if quote.docno == docno and quote.covered_by(*span)]
            uncovered = [quote for quote in uncovered if quote not in covered]
            hits += [(quote.id, score) for quote in covered] or [(table.chunk_ids[chunk], score)]
        run[state.query.qid] = decreasing(hits)
    return run


def _chunks(state: QueryState) -> NDArray[np.int32]:
    return (state.fused or Ranking.empty()).chunks


def _first(state: QueryState, names: Iterable[Sequence[str]]) -> Iterable[tuple[str, float]]:
    """The names of the hits, in order, each once; `names` has the names of every hit inside the collection."""
    best: dict[str, float] = {}
    named = iter(names)
    for _, score, unmatched in state.hits_with_unmatched():
        for name in (f"{STRANGER}{unmatched}",) if unmatched else next(named):
            best.setdefault(name, score)
    return best.items()


def decreasing(scored: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """The same order with scores that strictly decrease, so that no tool can order ties in another way.

    They decrease even in single precision, in which trec_eval compares them.
    """
    hits = list(scored)
    values = np.array([score for _, score in hits], dtype=np.float32)
    if not (values[1:] < values[:-1]).all():
        values = _lowered(values)
    return [(name, value) for (name, _), value in zip(hits, values.tolist(), strict=True)]


def _lowered(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every value that is not below the one before it becomes the next smaller number of single precision.

    A number's bits, read as an integer without their sign, are its place among the numbers of single precision.
    """
    bits = values.view(np.int32).astype(np.int64)
    places = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    ranks = np.arange(len(values))
    places = np.minimum.accumulate(places + ranks) - ranks
    return np.where(places < 0, -places | 0x80000000, places).astype(np.uint32).view(np.float32)
