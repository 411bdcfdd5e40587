"""The levels at which a run is judged: documents, their sections, and quotes from them.

Passages as the reader gets them are a fourth level, in `ragbench.evaluation.passages`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base import minimums
from ragbench.evaluation import measures
from ragbench.evaluation.measures import Run

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.types import QueryState
    from ragbench.benchmark.benchmark import Benchmark, Qrels
    from ragbench.index.chunks import ChunkTable

DOCUMENT, SECTION, QUOTE, PASSAGE = "document", "section", "quote", "passage"


def has_enough_judgments(topics: int, limit: int) -> bool:
    """Whether a level with this many topics counts, where the level with the most topics has `limit`."""
    return topics > 0 and topics >= min(minimums.PER_LEVEL, limit / 2)


@dataclass(frozen=True)
class Level:
    """What was found at a level, and its judgments."""

    name: str
    run: Run
    qrels: Qrels

    def evaluate(self, names: Sequence[str], unanswerable: Collection[str]) -> pd.DataFrame:
        """qid, level, measure, value; without the topics that are not judged at this level."""
        frame = measures.evaluate(self.run, self.qrels, names, unanswerable)
        frame.insert(0, "level", self.name)
        return frame


def levels(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark) -> list[Level]:
    """A run at every level; quotes only where there are some."""
    all_levels = [
        Level(DOCUMENT, measures.document_run(states, table), benchmark.document_qrels),
        Level(SECTION, measures.section_run(states, table), benchmark.section_qrels),
    ]
    if quotes := benchmark.quotes_by_topic:
        qrels = {qid: {quote.id: 1 for quote in answer} for qid, answer in quotes.items()}
        all_levels.append(Level(QUOTE, measures.quote_run(states, table, quotes), qrels))
    return all_levels
