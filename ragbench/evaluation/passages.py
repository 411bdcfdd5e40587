"""What the reader gets: hits as they are returned, their length, and the judged parts of documents that they cover.

The units are hits, not sections: a parent chunk with four relevant sections takes one place and gains once. The gain
of a hit is the best grade among the judged parts that it covers and no earlier hit covered. The ideal order is made
from the same units, the chunks (or parents) of the arm's own index.

Parts are the judged sections of a topic; where it has none, its quotes, each of grade 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ragbench.base.progress import track
from ragbench.base.rankings import QueryState, Ranking
from ragbench.evaluation.measures import (
    DEPTH,
    DOCUMENT,
    PASSAGE,
    PRIMARY,
    UNJUDGED,
    Gains,
    decreasing,
    evaluate as measure_run,
    has_nonrelevant_judgments,
    if_useful,
    ndcg,
    ndcg_if_useful,
    tokens_of,
    typical_gains,
)

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.benchmark.quotes import Quote
    from ragbench.index.chunks import ChunkTable

TOKENS = f"Tokens@{DEPTH}"
"""Tokens of the first ten hits, as the encoder counts them."""

_BUDGETS = (500, 1_000, 2_000, 4_000)
"""Token budgets at which recall is always measured."""

_Grades = Mapping[str, int]
_Parts = frozenset[str]


def recall_within(tokens: int) -> str:
    """The name of a measure: the share of a topic's grades in the first hits that fit into this many tokens."""
    return f"Recall@{tokens}tokens"


@dataclass(frozen=True)
class _Judged:
    """The judged parts of a topic: their grades, what chunks cover, and the gains of the ideal order."""

    grades: _Grades
    covering: Mapping[int, _Parts]
    ideal: Sequence[float]


@dataclass(frozen=True)
class Passages:
    """The hits of an index as units: what each covers, how long it is; computed once for all arms over the index."""

    table: ChunkTable
    count_tokens: Callable[[str], int]
    benchmark: Benchmark
    _judged: dict[str, _Judged | None] = field(default_factory=dict, repr=False)
    _lengths: dict[int, int] = field(default_factory=dict, repr=False)

    @cached_property
    def quotes(self) -> Mapping[str, Sequence[Quote]]:
        """The quotes that were found, by qid."""
        return self.benchmark.quotes_by_topic

    def tokens(self, chunks: Iterable[int]) -> int:
        """The tokens of some chunks together."""
        lengths, total = self._lengths, 0
        for chunk in chunks:
            if chunk not in lengths:
                lengths[chunk] = self.count_tokens(self.table.text(chunk))
            total += lengths[chunk]
        return total

    def within(self, state: QueryState, budget: int) -> list[int]:
        """The chunks that are returned for the first hits that fit into a token budget."""
        chunks: list[int] = []
        spent = 0
        for chunk in (state.fused or Ranking.empty()).chunks.tolist():
            returned = state.contexts.get(chunk, (chunk,))
            spent += self.tokens(returned)
            if spent > budget:
                break
            chunks += returned
        return chunks

    def judged(self, qid: str) -> _Judged | None:
        """The judged parts of a topic; None without a relevant one."""
        if qid not in self._judged:
            self._judged[qid] = self._judge(qid)
        return self._judged[qid]

    def _judge(self, qid: str) -> _Judged | None:
        grades: _Grades = self.benchmark.section_qrels.get(qid, {})
        quotes: Sequence[Quote] = () if grades else self.quotes.get(qid, ())
        grades = grades or {quote.id: 1 for quote in quotes}
        relevant = {part: grade for part, grade in grades.items() if grade > 0}
        if not relevant:
            return None
        chunks, units = self._in_documents(dict.fromkeys(part.rpartition("#")[0] for part in grades))
        covering = {chunk: parts for chunk in chunks if (parts := self._covered(chunk, quotes) & grades.keys())}
        answering = {part.rpartition("#")[0] for part in relevant}
        units = [unit for unit in units if self.table.docno(unit) in answering]
        return _Judged(grades, covering, _ideal_gains([covering.get(unit, frozenset()) for unit in units], relevant))

    def _covered(self, chunk: int, quotes: Sequence[Quote]) -> _Parts:
        """The sections that a chunk overlaps; with `quotes`, those of which it covers at least half."""
        if not quotes:
            return frozenset(self.table.section_ids[chunk])
        docno, span = self.table.docno(chunk), self.table.span(chunk)
        return frozenset(quote.id for quote in quotes if docno == quote.docno and quote.covered_by(*span))

    def _in_documents(self, docnos: Iterable[str]) -> tuple[list[int], list[int]]:
        """The chunks of some documents with their parents, and their units: parents if there are any, else chunks."""
        numbers = [self.table.document_number[docno] for docno in docnos if docno in self.table.document_number]
        chunks = [chunk for number in numbers for chunk in range(*self.table.chunks_of(number))]
        parents = self.table.parent[chunks].tolist()
        units = dict.fromkeys(parent if parent >= 0 else chunk for chunk, parent in zip(chunks, parents, strict=True))
        return list(dict.fromkeys([*chunks, *units])), list(units)


def evaluate(states: Sequence[QueryState], passages: Passages, budget: int, primary: str = PRIMARY) -> pd.DataFrame:
    """qid, level, measure, value: nDCG@10 of passages, their tokens, and the recall within token budgets.

    The budgets are `_BUDGETS` and `budget`. Only of topics with a relevant part. `Unjudged@10` counts hits that cover
    no judged part. `primary` is measured, too: as any measure of passages, or as the recall within tokens, which is
    then also measured of documents.
    """
    import pandas as pd

    primary_tokens = tokens_of(primary)
    budgets = {*_BUDGETS, budget, *([primary_tokens] if primary_tokens else [])}
    answers = [_answer(state, passages, budgets) for state in track("measuring passages", states)]
    judged = [answer for answer in answers if answer is not None]
    typical = typical_gains([answer.gains[:DEPTH] for answer in judged])
    bounded = has_nonrelevant_judgments(passages.benchmark.section_qrels.get(answer.qid, {}) for answer in judged)
    rows = []
    for answer in judged:
        values = {
            PRIMARY: ndcg(answer.gains, answer.ideal),
            UNJUDGED: sum(gain is None for gain in answer.gains[:DEPTH]) / DEPTH,
            TOKENS: float(answer.tokens),
            **{recall_within(tokens): recall for tokens, recall in answer.recalls.items()},
        }
        if bounded:
            values[if_useful(PRIMARY)] = ndcg_if_useful(answer.gains, answer.ideal, typical)
        rows += [(answer.qid, PASSAGE, measure, value) for measure, value in values.items()]
    if primary_tokens:
        rows += _document_recalls(states, passages, primary_tokens)
    elif primary != PRIMARY:
        rows += _by_hits(judged, primary)
    return pd.DataFrame(rows, columns=["qid", "level", "measure", "value"])


_Row = tuple[str, str, str, float]


def _document_recalls(states: Sequence[QueryState], passages: Passages, tokens: int) -> Iterator[_Row]:
    """The share of the grades of the relevant documents that the hits within a token budget belong to."""
    for state in states:
        qid = state.query.qid
        grades = passages.benchmark.document_qrels.get(qid, {})
        relevant = {docno: grade for docno, grade in grades.items() if grade > 0}
        if relevant:
            reached = {passages.table.docno(chunk) for chunk in passages.within(state, tokens)}
            share = sum(relevant.get(docno, 0) for docno in reached) / sum(relevant.values())
            yield qid, DOCUMENT, recall_within(tokens), share


def _by_hits(answers: Sequence[_Answer], measure: str) -> list[_Row]:
    """A measure of hits: each is a document of its own with its gain as grade, as are the units that were not found."""
    run: dict[str, list[tuple[str, float]]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for answer in answers:
        names = [f"hit-{rank}" for rank in range(len(answer.gains))]
        run[answer.qid] = decreasing((name, -float(rank)) for rank, name in enumerate(names))
        qrels[answer.qid] = {
            name: int(gain) for name, gain in zip(names, answer.gains, strict=True) if gain is not None
        }
        missing = sorted(answer.ideal)
        for gain in sorted(filter(None, answer.gains)):
            missing.remove(next((grade for grade in missing if grade >= gain), missing[-1]))
        qrels[answer.qid] |= {f"missing-{number}": int(grade) for number, grade in enumerate(missing)}
    frame = measure_run(run, qrels, [measure])
    frame = frame[frame["measure"] == measure]
    return [(str(qid), PASSAGE, measure, float(value)) for qid, value in zip(frame["qid"], frame["value"], strict=True)]


@dataclass(frozen=True)
class _Answer:
    """Gains of the hits (None: unjudged) and of the ideal order, tokens of the first ten, recall by budget."""

    qid: str
    gains: Gains
    ideal: Sequence[float]
    tokens: int
    recalls: Mapping[int, float]


def _answer(state: QueryState, passages: Passages, budgets: Iterable[int]) -> _Answer | None:
    """None for a topic without a relevant part."""
    judged = passages.judged(state.query.qid)
    if judged is None:
        return None
    grades, covering = judged.grades, judged.covering
    gains: list[float | None] = []
    covered: set[str] = set()
    within: dict[int, set[str]] = {tokens: set() for tokens in sorted(budgets)}
    largest = max(within)
    spent, tokens = 0, 0
    chunks = state.fused.chunks.tolist() if state.fused is not None else []
    for rank, chunk in enumerate(chunks):
        returned = state.contexts.get(chunk, (chunk,))
        if rank < DEPTH or spent <= largest:
            spent += (length := passages.tokens(returned))
            tokens += length if rank < DEPTH else 0
        if covering.keys().isdisjoint(returned):
            gains.append(None)
            continue
        parts = frozenset[str]().union(*(covering.get(each, ()) for each in returned))
        gains.append(max((max(0, grades[part]) for part in parts - covered), default=0.0))
        covered |= parts
        for limit, fitting in within.items():
            if spent <= limit:
                fitting |= parts
    total = sum(grade for grade in grades.values() if grade > 0)
    recalls = {limit: sum(max(0, grades[part]) for part in fitting) / total for limit, fitting in within.items()}
    return _Answer(state.query.qid, gains, judged.ideal, tokens, recalls)


def _ideal_gains(units: Sequence[_Parts], relevant: _Grades) -> list[float]:
    """The grades that distinct units can gain, best first: each unit counts one part that it covers, each part once.

    The parts that units can be matched with are the independent sets of a transversal matroid (Edmonds and Fulkerson
    1965): taking the best grades first, while a matching exists, is best at every rank. No order of hits gains more;
    where units overlap, the best order may gain less.
    """
    of_part = {part: [number for number, unit in enumerate(units) if part in unit] for part in relevant}
    claimed: dict[int, str] = {}

    def matched(part: str, tried: set[int]) -> bool:
        for unit in of_part[part]:
            if unit not in tried:
                tried.add(unit)
                if unit not in claimed or matched(claimed[unit], tried):
                    claimed[unit] = part
                    return True
        return False

    ordered = sorted(relevant, key=lambda part: (-relevant[part], part))
    return [float(relevant[part]) for part in ordered if matched(part, set())]
