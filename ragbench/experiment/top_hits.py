"""The top hits of an arm for a reader: rank, grades and text.

The report shows those of two arms side by side; nothing is measured from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.index.chunks import ChunkTable
    from ragbench.types import QueryState

COLUMNS = (
    "qid",
    "rank",
    "score",
    "docno",
    "title",
    "chunk_id",
    "header_path",
    "snippet",
    "document_grade",
    "section_grade",
)
SNIPPET = 300
"""Characters of a snippet, at most."""

_OUTSIDE_TEXT = "(in no document of the collection)"
_CACHE_SIZE = 4096  # arms answer the same queries, mostly with the same passages
_HEADINGS = " > "
_ELLIPSIS = "…"
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be but by can did do does for from get has have how i if in into is it its me my no not of
        on or our should so such that the their then there these they this to us was we were what when where which who
        why will with you your""",
    )
)
_SUFFIXES = ("ing", "ies", "ed", "es", "s", "e")


def top_hits(final: Iterable[QueryState], table: ChunkTable, benchmark: Benchmark, depth: int = 10) -> pd.DataFrame:
    """The first `depth` chunks of every query, best first, with the columns `COLUMNS`.

    Grades are nullable: absent means not judged. `section_grade` is the best among the sections the chunk overlaps.
    """
    import pandas as pd

    @cache
    def facts(chunk: int) -> tuple[str, str, str, str, str]:
        title, headings = table.titles[table.document[chunk]], _HEADINGS.join(table.header_path(chunk))
        return table.docno(chunk), title, table.chunk_ids[chunk], headings, table.text(chunk)

    rows: list[tuple[Any, ...]] = []
    for state in final:
        qid = state.query.qid
        matches = _highlights(state.query.text)
        documents, sections = benchmark.document_qrels.get(qid, {}), benchmark.section_qrels.get(qid, {})
        for rank, (chunk, score, stranger) in enumerate(state.hits_with_strangers()[:depth], start=1):
            if stranger:
                rows.append((qid, rank, score, stranger, _OUTSIDE_TEXT, "", "", "", None, None))
                continue
            section_grades = [sections[section] for section in table.section_ids[chunk] if section in sections]
            docno, title, chunk_id, headings, text = facts(chunk)
            grades = documents.get(docno), max(section_grades, default=None)
            rows.append((qid, rank, score, docno, title, chunk_id, headings, snippet(text, matches), *grades))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"document_grade": "Int16", "section_grade": "Int16", "rank": "int32"})


def stems(text: str) -> list[str]:
    """The stems of a query's words in lower case, in order, each once, without common words; of compound identifiers
    also those of the parts.

    A stem is a prefix of the inflected forms of its word. Stems only mark text for readers: no search uses them.
    """
    found: dict[str, None] = {}
    for word in (part.lower() for whole in re.findall(r"[^\W_]+", text) for part in (whole, *_parts(whole))):
        if word in _COMMON or (len(word) < 3 and not any(letter.isdigit() for letter in word)):
            continue
        ending = next((s for s in _SUFFIXES if word.endswith(s) and len(word) - len(s) >= 4), "")
        found[word.removesuffix(ending)] = None
    return list(found)


def _parts(word: str) -> list[str]:
    """The parts of a compound identifier, such as getUserById or HTTPResponse; empty for other words."""
    inside = re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]", word)
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", word) if inside else []


def highlights(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches words that begin with any of the stems."""
    alternatives = "|".join(map(re.escape, words)) or r"(?!)"
    return re.compile(rf"(?<![^\W_])(?:{alternatives})[^\W_]*", re.IGNORECASE)


@lru_cache(_CACHE_SIZE)
def _highlights(query: str) -> re.Pattern[str]:
    return highlights(stems(query))


@lru_cache(_CACHE_SIZE)
def snippet(text: str, matches: re.Pattern[str]) -> str:
    """The part of a text with the most distinct matches, at most `SNIPPET` characters, white space as single spaces."""
    flat = " ".join(text.split())
    if len(flat) <= SNIPPET:
        return flat
    hits = [(hit.start(), hit.end(), hit[0].lower()[:5]) for hit in matches.finditer(flat)]
    room = SNIPPET - 2 * len(_ELLIPSIS)
    best = max(
        (begin for begin, _, _ in hits),
        key=lambda begin: (len({word for at, end, word in hits if begin <= at and end <= begin + room}), -begin),
        default=0,
    )
    begin = flat.rfind(" ", 0, max(0, best - room // 5) + 1) + 1
    begin = min(begin, len(flat) - room)
    part = flat[begin : begin + room]
    return (_ELLIPSIS if begin else "") + part.strip() + (_ELLIPSIS if begin + room < len(flat) else "")
