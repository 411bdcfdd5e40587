"""What a context consists of, without a language model: useful, duplicate and polluting tokens.

The context of a query is its first hits that fit into a token budget. Each hit is divided into sentences, list items,
table rows and code blocks, which share its tokens by their length. Such a piece is a duplicate if an earlier one has
the same words, or the same place in the same document. The rest is useful where it overlaps a relevant section or
quote. Tokens pollute if their document belongs to a group, a folder or a document type, that contains nothing relevant
to the query.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragbench.base.columns import Column, Columns
from ragbench.evaluation.measures import PASSAGE
from ragbench.search.engine.context import pieces

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.rankings import QueryState
    from ragbench.evaluation.passages import Passages

GROUPS = ("folder", "type")
COLUMNS = Columns.of(
    "qid",
    *(Column(name, text=True) for name in GROUPS),
    *("tokens", "useful", "duplicate", "folder_relevant", "type_relevant"),
)
SHARES = Columns.of(
    Column("arm", "configuration", text=True),
    Column("useful", note="share of tokens in relevant sections, without duplicates"),
    Column("duplicate", note="share of tokens that an earlier passage of the context contains"),
    Column("folder", "pollution by folder", "share of tokens from folders without a relevant section"),
    Column("type", "pollution by type", "share of tokens from document types without a relevant section"),
)
POLLUTERS = Columns.of(
    Column("arm", "configuration", text=True),
    Column("by", note="folder, or document type", text=True),
    Column("group", text=True),
    Column("tokens", note="share of the tokens of a context"),
    Column("useful", note="share that is in relevant sections, without duplicates"),
    Column("pollution", note="share in contexts of queries for which the group has no relevant section"),
)
SHOWN = 3
"""Folders and types of an arm that reports show."""
_MEASURES = {"useful": "Useful", "duplicate": "Duplicate", "folder": "FolderPollution", "type": "TypePollution"}
_WORD = re.compile(r"\w+")
_REPEATED_WORDS = 4  # words of a piece that can repeat another one at another place

_Spans = dict[str, list[tuple[int, int]]]
"""Character spans by docno."""


def share_within(of: str, tokens: int) -> str:
    """The name of a measure: a share (a column of `SHARES`) of the tokens of a context with this budget."""
    return f"{_MEASURES[of]}@{tokens}tokens"


def evaluate(frame: pd.DataFrame, budget: int) -> pd.DataFrame:
    """qid, level, measure, value: the shares of each context, from the rows of `delivered`; 0 for an empty one."""
    values = _by_query(frame, ["qid"]).rename(columns={name: share_within(name, budget) for name in _MEASURES})
    return values.reset_index().melt("qid", var_name="measure").assign(level=PASSAGE)


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each arm, with `SHARES`: means over queries; `frame` has the rows of `delivered` of several arms."""
    if not len(frame):
        return SHARES.frame()
    means = _by_query(frame, ["arm", "qid"]).groupby("arm", sort=False).mean()
    return means.reset_index()[list(SHARES)]


def polluters(frame: pd.DataFrame, limit: int | None = None) -> pd.DataFrame:
    """A row for each arm, folder and type, with `POLLUTERS`: first where pollution exceeds useful tokens most.

    With `limit`, only so many folders and types of an arm, and only those that pollute. The pollution of the folders of
    an arm adds up to its pollution by folder; that of the types to that by type.
    """
    import pandas as pd

    if not len(frame):
        return POLLUTERS.frame()
    total = frame.groupby(["arm", "qid"])["tokens"].transform("sum").clip(lower=1.0)
    weight = 1 / total / frame["arm"].map(frame.groupby("arm")["qid"].nunique())
    frames = []
    for by in GROUPS:
        rows = frame.assign(by=by, group=frame[by], pollution=_polluting(frame, by) * weight)
        rows = rows.assign(tokens=rows["tokens"] * weight, useful=rows["useful"] * weight)
        frames.append(rows.groupby(["arm", "by", "group"])[["tokens", "useful", "pollution"]].sum().reset_index())
    rows = pd.concat(frames, ignore_index=True)
    order = {arm: number for number, arm in enumerate(dict.fromkeys(frame["arm"]))}
    rows = rows[rows["tokens"] > 0].assign(place=rows["arm"].map(order), net=rows["useful"] - rows["pollution"])
    rows = rows.sort_values(["place", "by", "net", "group"], ignore_index=True)[list(POLLUTERS)]
    if limit is None:
        return rows
    rows = rows.assign(group=rows["group"].where(rows["group"] != "", "(none)"))
    return rows[rows["pollution"] > 0].groupby(["arm", "by"], sort=False).head(limit).reset_index(drop=True)


def _polluting(frame: pd.DataFrame, by: str) -> pd.Series:
    """The tokens of each row whose group contains nothing relevant to the query."""
    return frame["tokens"].where(~frame[f"{by}_relevant"].astype(bool), 0.0)


def _by_query(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The shares of each context, with the columns of `_MEASURES`."""
    polluting = {by: _polluting(frame, by) for by in GROUPS}
    sums = frame.assign(**polluting).groupby(keys, sort=False)[["tokens", *_MEASURES]].sum().astype(float)
    return sums[list(_MEASURES)].div(sums["tokens"].clip(lower=1.0), axis=0)


@dataclass(frozen=True)
class Contexts:
    """The contexts of arms over one index; what they have in common is computed once."""

    passages: Passages
    _pieces_by_chunk: dict[int, list[tuple[int, int, str]]] = field(default_factory=dict, repr=False)
    _spans_by_query: dict[str, _Spans | None] = field(default_factory=dict, repr=False)

    def delivered(self, states: Sequence[QueryState], budget: int) -> pd.DataFrame:
        """A row for each query with a relevant part, folder and type: tokens delivered, useful and duplicate.

        `folder_relevant` and `type_relevant`: whether the folder, the type, contains anything relevant to the query. An
        empty context is one row without tokens.
        """
        rows: list[tuple[object, ...]] = []
        groups, numbers = self.passages.table.groups, self.passages.table.document_number
        for state in states:
            relevant = self._relevant(state.query.qid)
            if relevant is None:
                continue
            with_relevant = [groups[numbers[docno]] for docno in relevant if docno in numbers]
            folders, types = {folder for folder, _ in with_relevant}, {kind for _, kind in with_relevant}
            counts = self._counts(self.passages.within(state, budget), relevant) or {("", ""): [0.0, 0.0, 0.0]}
            for (folder, kind), values in counts.items():
                rows.append((state.query.qid, folder, kind, *values, folder in folders, kind in types))
        return COLUMNS.frame(rows)

    def _relevant(self, qid: str) -> _Spans | None:
        """The spans of the relevant sections of a query, or else of its quotes; None without any."""
        if qid in self._spans_by_query:
            return self._spans_by_query[qid]
        grades, spans = self.passages.benchmark.section_qrels.get(qid, {}), _Spans()
        for part in (part for part, grade in grades.items() if grade > 0):
            docno, _, anchor = part.rpartition("#")
            spans.setdefault(docno, []).extend(self.passages.table.section_spans(docno, anchor))
        for quote in sorted(() if grades else self.passages.quotes.get(qid, ()), key=lambda quote: quote.start):
            earlier = spans.setdefault(quote.docno, [])
            start = max([quote.start, *(end for _, end in earlier)])
            earlier.append((start, max(start, quote.end)))
        return self._spans_by_query.setdefault(qid, spans or None)

    def _counts(self, chunks: Iterable[int], relevant: _Spans) -> dict[tuple[str, str], list[float]]:
        """By folder and type, the tokens of chunks in their order: all, useful and duplicate ones."""
        table = self.passages.table
        words: set[str] = set()
        places: _Spans = defaultdict(list)
        values: dict[tuple[str, str], list[float]] = {}
        for chunk in chunks:
            docno, cut = table.docno(chunk), self._pieces(chunk)
            of_group = values.setdefault(table.groups[int(table.document[chunk])], [0.0, 0.0, 0.0])
            tokens = self.passages.tokens((chunk,))
            of_group[0] += tokens
            per_character = tokens / max(1, sum(end - start for start, end, _ in cut))
            earlier, useful = places[docno], relevant.get(docno, ())
            for start, end, text in cut:
                if text in words or any(
                    2 * (min(end, last) - max(start, first)) >= end - start for first, last in earlier
                ):
                    of_group[2] += per_character * (end - start)
                elif useful:
                    of_group[1] += per_character * _overlap(start, end, useful)
                if text.count(" ") >= _REPEATED_WORDS - 1:
                    words.add(text)
            earlier.append(table.span(chunk))
        return values

    def _pieces(self, chunk: int) -> list[tuple[int, int, str]]:
        if chunk not in self._pieces_by_chunk:
            text, (start, _) = self.passages.table.text(chunk), self.passages.table.span(chunk)
            self._pieces_by_chunk[chunk] = [
                (start + first, start + last, " ".join(_WORD.findall(text[first:last].lower())))
                for first, last in pieces(text)
            ]
        return self._pieces_by_chunk[chunk]


def _overlap(start: int, end: int, spans: Iterable[tuple[int, int]]) -> int:
    """Count the characters from `start` to `end` inside spans that do not overlap."""
    return sum(max(0, min(end, last) - max(start, first)) for first, last in spans)
