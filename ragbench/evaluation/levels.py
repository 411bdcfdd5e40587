"""The levels at which a run is judged: documents, their sections, and passages quoted from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.evaluation import measures
from ragbench.evaluation.measures import Run

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark, Qrels
    from ragbench.index.chunks import ChunkTable
    from ragbench.types import QueryState

DOCUMENT, SECTION, QUOTE = "document", "section", "quote"


@dataclass(frozen=True)
class Level:
    """What was found at a level, and what should have been."""

    name: str
    run: Run
    qrels: Qrels

    def evaluate(self, names: Sequence[str]) -> pd.DataFrame:
        """qid, level, measure, value; topics whose answers are judged at other levels only take no part."""
        frame = measures.evaluate(self.run, self.qrels, names)
        frame.insert(0, "level", self.name)
        return frame

    def only(self, benchmark: Benchmark) -> Level:
        """For the topics that are judged at this level, and those without an answer."""
        answered = {qid for qid, grades in benchmark.document_qrels.items() if any(g > 0 for g in grades.values())}
        run = {qid: hits for qid, hits in self.run.items() if qid in self.qrels or qid not in answered}
        return Level(self.name, run, self.qrels)


def levels(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark) -> list[Level]:
    """A run at every level; that of quotes only where there are some."""
    found = [
        Level(DOCUMENT, measures.document_run(states, table), benchmark.document_qrels),
        Level(SECTION, measures.section_run(states, table), benchmark.section_qrels),
    ]
    if quotes := benchmark.quotes_by_topic:
        qrels = {qid: {quote.id: 1 for quote in each} for qid, each in quotes.items()}
        found.append(Level(QUOTE, measures.quote_run(states, table, quotes), qrels))
    return found
