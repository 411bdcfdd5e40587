"""The top hits of an arm for a reader: rank, grades and text.

The report shows those of two arms side by side; nothing is measured from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from ragbench.base.columns import Columns
from ragbench.search.engine.snippet import highlights, snippet

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.rankings import QueryState
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.index.chunks import ChunkTable

COLUMNS = Columns.of(
    *("qid", "rank", "score", "docno", "title", "chunk_id", "header_path", "snippet"),
    *("document_grade", "section_grade", "path"),
)
_OUTSIDE_TEXT = "(in no document of the collection)"
_HEADINGS = " > "


def top_hits(final: Iterable[QueryState], table: ChunkTable, benchmark: Benchmark, depth: int = 10) -> pd.DataFrame:
    """The first `depth` chunks of every query, best first, with the columns `COLUMNS`.

    Grades are nullable: absent means not judged. `section_grade` is the best among the sections the chunk overlaps.
    """

    @cache
    def facts(chunk: int) -> tuple[str, str, str, str, str, str]:
        document, headings = table.document[chunk], _HEADINGS.join(table.header_path(chunk))
        names = table.docno(chunk), table.titles[document], table.chunk_ids[chunk]
        return *names, headings, table.text(chunk), table.paths[document]

    rows: list[tuple[Any, ...]] = []
    for state in final:
        qid = state.query.qid
        matches = highlights(state.query.text)
        documents, sections = benchmark.document_qrels.get(qid, {}), benchmark.section_qrels.get(qid, {})
        for rank, (chunk, score, unmatched) in enumerate(state.hits_with_unmatched()[:depth], start=1):
            if unmatched:
                rows.append((qid, rank, score, unmatched, _OUTSIDE_TEXT, "", "", "", None, None, ""))
                continue
            section_grades = [sections[section] for section in table.section_ids[chunk] if section in sections]
            docno, title, chunk_id, headings, text, path = facts(chunk)
            grades = documents.get(docno), max(section_grades, default=None)
            rows.append((qid, rank, score, docno, title, chunk_id, headings, snippet(text, matches), *grades, path))
    frame = COLUMNS.frame(rows)
    return frame.astype({"document_grade": "Int16", "section_grade": "Int16", "rank": "int32"})
