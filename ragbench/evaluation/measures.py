"""Measures of a run against judgments, for every query: those of ir_measures, and a few of hits and of silence.

Topics without a relevant judgment are not measured, with these exceptions: `Hits@10` counts the hits of every query,
and `Silence` says whether there were none for a topic that is known to have no answer; `FalseSilence` does for a topic
that has one. `Unjudged@10` is always added: an unjudged hit counts as not relevant. Where some hits were judged
useless, nDCG@10 is also given as if every unjudged hit were as useful as judged ones at its rank (`if_useful`).

Runs have every level: documents by their best chunk, sections by the best chunk that overlaps them, quotes by hits. A
quote is found by the first chunk that covers at least half of it.
"""

from __future__ import annotations

import ast
import math
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base import foreign, minimums, registry
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    from ir_measures.measures import Measure

    from ragbench.benchmark.benchmark import Benchmark, Qrels
    from ragbench.benchmark.quotes import Quote
    from ragbench.benchmark.runs import Run
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.index import Index


DOCUMENT, SECTION, QUOTE, PASSAGE = "document", "section", "quote", "passage"
"""The levels at which a run is judged; passages are measured in `ragbench.evaluation.passages`."""

DEPTH = 10

Gains = Sequence[float | None]
"""The gains of the first hits, in order; None for an unjudged hit."""

PRIMARY = "nDCG@10"

MEASURES = ("nDCG@5", PRIMARY, "RR", "R@10", "R@100", "P@5", "AP", "Success@1", "Judged@10")

SILENCE = "Silence"

FALSE_SILENCE = "FalseSilence"

HITS = "Hits@10"

ANSWERED = (SILENCE, FALSE_SILENCE, HITS)
"""Always there: 1 for no hit on an unanswerable query, 1 for no hit on an answerable one, hits among the first ten."""

UNJUDGED = "Unjudged@10"
"""Hits without a judgment among the first ten of a query, divided by ten: places left empty are not unjudged."""

STRANGER = "?"
"""The first character of the name of a hit outside the collection; live searches may return such hits."""

UNPLACED = "Unplaced@10"
"""Hits outside the collection among the first ten of a query, divided by ten; measured where there are any."""

LEAKS = "Leaks@10"
"""Hits that do not meet the query's filter among the first ten of a query, a number; measured for queries with one."""

WITHOUT_JUDGMENTS = (SILENCE, HITS, UNPLACED, LEAKS)
"""Measures that need no judgment of the query."""


def evaluate(
    run: Run, qrels: Qrels, measures: Sequence[str] = MEASURES, unanswerable: Collection[str] = ()
) -> pd.DataFrame:
    """One row for every query and measure: qid, measure, value; see above for the measures that are added.

    Queries in `unanswerable` have `Silence`; others without a relevant judgment have `Hits@10` only. Scores that are
    equal are ordered as trec_eval orders them, by docno.
    """
    import pandas as pd

    answerable = sorted(qid for qid in run if any(grade > 0 for grade in qrels.get(qid, {}).values()))
    of_answerable = {qid: run[qid] for qid in answerable}
    custom = [name for name in measures if is_own(name)]
    others = [name for name in measures if name not in (UNJUDGED, if_useful(PRIMARY), *custom)]
    rows = [(qid, UNJUDGED, unjudged(hits, qrels[qid])) for qid, hits in of_answerable.items()]
    rows += _unplaced(run)
    rows += [(qid, name, _own_value(name, hits, qrels[qid])) for name in custom for qid, hits in of_answerable.items()]
    rows += by_ir_measures(others, of_answerable, qrels)
    if PRIMARY in others and has_nonrelevant_judgments(qrels[qid] for qid in answerable):
        rows += _if_useful(of_answerable, qrels)
    rows += [(qid, SILENCE, float(not run[qid])) for qid in sorted(set(run) & set(unanswerable) - set(answerable))]
    rows += [(qid, FALSE_SILENCE, float(not hits)) for qid, hits in of_answerable.items()]
    rows += [(qid, HITS, float(min(10, len(run[qid])))) for qid in sorted(run)]
    return pd.DataFrame(rows, columns=["qid", "measure", "value"])


def _unplaced(run: Run) -> list[tuple[str, str, float]]:
    """`UNPLACED` of every query, where some hit of the run is outside the collection."""
    outside = {qid: [name.startswith(STRANGER) for name, _ in hits] for qid, hits in run.items()}
    if not any(map(any, outside.values())):
        return []
    return [(qid, UNPLACED, sum(unmatched[:10]) / 10) for qid, unmatched in outside.items()]


def by_ir_measures(names: Iterable[str], run: Run, qrels: Qrels) -> list[tuple[str, str, float]]:
    """(qid, measure, value) of measures of ir_measures, for every query of the run. Raises ConfigError if one fails."""
    import ir_measures

    parsed = {name: _parse(name) for name in names}
    qids = list(run)
    # Numbered: the program that computes a measure may accept only numbers as ids of queries.
    judged = {str(number): dict(qrels[qid]) for number, qid in enumerate(qids)}
    scored = {str(number): dict(run[qid]) or {"": 0.0} for number, qid in enumerate(qids)}
    values: dict[tuple[str, str], float] = {}
    for together in _by_call(parsed):
        names = {str(parsed[name].NAME): name for name in together}
        try:
            for metric in ir_measures.iter_calc([parsed[name] for name in together], judged, scored):
                values[names[str(metric.measure.NAME)], qids[int(metric.query_id)]] = float(metric.value)
        except subprocess.CalledProcessError as error:
            raise ConfigError(f"{', '.join(together)}: {error.cmd[0]} failed on these results; remove it") from None
    # Without hits none lacks a judgment: an arm that returns nothing is worse, not less judged.
    silent = {name: 1.0 if name.startswith("Judged@") else 0.0 for name in parsed}
    return [(qid, name, values.get((name, qid), 0.0) if run[qid] else silent[name]) for name in parsed for qid in qids]


def if_useful(measure: str) -> str:
    """The name of a measure's value if every unjudged hit were as useful as judged ones at its rank."""
    return f"{measure} if useful"


def _if_useful(run: Run, qrels: Qrels) -> list[tuple[str, str, float]]:
    gains: dict[str, list[float | None]] = {
        qid: [max(0, qrels[qid][name]) if name in qrels[qid] else None for name, _ in hits[:DEPTH]]
        for qid, hits in run.items()
    }
    typical = typical_gains(list(gains.values()))
    ideal = {qid: [float(grade) for grade in qrels[qid].values() if grade > 0] for qid in run}
    return [(qid, if_useful(PRIMARY), ndcg_if_useful(gains[qid], ideal[qid], typical)) for qid in run]


_OTHER_NAMES = {
    **{"ndcg": "nDCG", "ndcg_cut": "nDCG", "mrr": "RR", "recip_rank": "RR", "map": "AP", "map_cut": "AP"},
    **{"recall": "R", "precision": "P", "p": "P", "r": "R", "hit_rate": "Success", "hits": "Success"},
    **{"success": "Success"},
}
"""Measures of ir_measures by what trec_eval, PyTerrier and ranx call them."""


def own_name(measure: Any) -> str:
    """The name of a measure here: of an object of ir_measures, of `ndcg_cut_10`, `recip_rank`, `recall@100`.

    >>> own_name("ndcg_cut_10"), own_name("mrr@5"), own_name("recip_rank"), own_name("nDCG@10")
    ('nDCG@10', 'RR@5', 'RR', 'nDCG@10')
    """
    name = str(measure)
    plain, at, cutoff = name.partition("@")
    if not at and (end := plain.rpartition("_"))[2].isdigit():
        plain, at, cutoff = end[0], "@", end[2]
    return f"{_OTHER_NAMES[plain.lower()]}{at}{cutoff}" if plain.lower() in _OTHER_NAMES else name


def _parse(name: str) -> Measure:
    """The measure of a name. Raises ConfigError when ir_measures does not know or cannot compute it."""
    import ir_measures

    pipeline: Any = ir_measures.DefaultPipeline
    try:
        measure: Any = _parsed(name)
        measure.validate_params()
        supported = pipeline.supports(measure) and measure.params.get("cutoff", 1) >= 1
    except (ValueError, KeyError, TypeError, SyntaxError, AssertionError):
        supported = False
    if not supported:
        raise ConfigError(f"'{name}' is not a measure that ir_measures can compute; examples: {', '.join(MEASURES)}")
    parsed: Measure = measure
    return parsed


def _parsed(name: str) -> Measure:
    """The measure of a name such as `nDCG@10` or `P(rel=2)@5`; ir_measures' own parser fails from Python 3.14 on."""
    from ir_measures.measures import registry

    node: ast.expr = ast.parse(name, mode="eval").body
    parameters, cutoff = {}, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        cutoff, node = ast.literal_eval(node.right), node.left
    if isinstance(node, ast.Call) and not node.args:
        parameters = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
        node = node.func
    if not isinstance(node, ast.Name):
        raise ValueError(f"{name} does not have the form Measure(parameter=value)@cutoff")
    kind = registry[node.id]
    measure: Measure = kind(**parameters | ({} if cutoff is None else {kind.AT_PARAM: cutoff}))
    return measure


def tokens_of(name: str) -> int | None:
    """The token budget of a measure such as `Recall@2000tokens`; None for any other measure."""
    number = name.removeprefix("Recall@").removesuffix("tokens")
    return int(number) if name == f"Recall@{number}tokens" and number.isdecimal() and int(number) else None


def with_primary(names: Iterable[Any], primary: Any) -> tuple[str, ...]:
    """The measures of documents to compute by `evaluate`: `names`, and the primary one unless it is of tokens."""
    added = () if primary is None or tokens_of(str(primary)) else (str(primary),)
    return tuple(dict.fromkeys((*map(str, names), *added)))


def primary(config: Mapping[str, Any]) -> str:
    """The measure that verdicts use: `primary`, else nDCG@10, else the first measure listed."""
    names = [str(name) for name in config["measures"]]
    return str(config.get("primary") or (PRIMARY if PRIMARY in names else names[0]))


def check(names: Iterable[str]) -> None:
    """Raise ConfigError for a measure that cannot be computed, before any work starts."""
    for name in names:
        if name not in (UNJUDGED, if_useful(PRIMARY)) and not is_own(name):
            _parse(name)


def _by_call(parsed: Mapping[str, Measure]) -> list[list[str]]:
    """The names in groups without two variants of a measure: one call may swap the values of two variants."""
    groups: list[dict[str, str]] = []
    for name, measure in parsed.items():
        group = next((group for group in groups if str(measure.NAME) not in group), None)
        if group is None:
            groups.append(group := {})
        group[str(measure.NAME)] = name
    return [list(group.values()) for group in groups]


def unjudged(hits: Sequence[tuple[str, float]], grades: Mapping[str, int]) -> float:
    """The hits among the first ten that have no judgment, divided by ten; from 0 to 1."""
    return sum(name not in grades for name, _ in hits[:DEPTH]) / DEPTH


def ndcg(gains: Gains, ideal: Sequence[float]) -> float:
    """nDCG@10 with linear gain, unjudged hits counted as 0; 0 where nothing can be gained."""
    best = _dcg(sorted(ideal, reverse=True))
    return _dcg([gain or 0.0 for gain in gains]) / best if best else 0.0


def ndcg_if_useful(gains: Gains, ideal: Sequence[float], typical: Sequence[float]) -> float:
    """The same if every unjudged hit were as useful as judged ones at its rank, also in the ideal order."""
    filled = [typical[rank] if gain is None else gain for rank, gain in enumerate(gains[:DEPTH])]
    added = [gain_or_typical for gain_or_typical, gain in zip(filled, gains[:DEPTH], strict=True) if gain is None]
    return ndcg(filled, [*ideal, *added])


def has_nonrelevant_judgments(judgments: Iterable[Mapping[str, int]]) -> bool:
    """Whether anything was judged useless.

    Where nothing was, as with known items, judged hits cannot be compared with unjudged ones: these count as useless.
    """
    return any(grade <= 0 for grades in judgments for grade in grades.values())


def typical_gains(answers: Sequence[Gains]) -> list[float]:
    """By rank, the mean gain of the judged hits there; that of all judged hits at ranks without one; 0 without any."""
    judged = [
        [gains[rank] for gains in answers if rank < len(gains) and gains[rank] is not None] for rank in range(DEPTH)
    ]
    everything = [gain for gains in judged for gain in gains]
    overall = float(np.mean(everything)) if everything else 0.0  # type: ignore[arg-type]
    return [float(np.mean(gains)) if gains else overall for gains in judged]  # type: ignore[arg-type]


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:DEPTH], start=1))


F = TypeVar("F", bound=Callable[..., Any])


def measure(function: F) -> F:
    """Register a function as a measure under its name.

    `measures=[nDCG@10,first_is_best]` measures it for every query with a relevant judgment, at every level.

    Args:
        function: Takes the ids of the hits, best first, and the grades of judged ids; returns a number.

    Returns:
        The function.

    Example:
        >>> import ragbench
        >>> @ragbench.measure
        ... def first_is_best(ranked, grades):
        ...     return float(bool(ranked) and grades.get(ranked[0], 0) == max(grades.values()))
        >>> first_is_best(["keys"], {"keys": 1})
        1.0
    """
    registry.register("measure", function.__name__, function)
    return function


def is_own(name: str) -> bool:
    """Whether a measure is a function that a user registered."""
    return registry.find("measure", name) is not None


def _own_value(name: str, hits: Sequence[tuple[str, float]], grades: Mapping[str, int]) -> float:
    """The measure of one topic. Raises ConfigError unless it is a finite number."""
    returned = foreign.call(
        f"measure '{name}'", registry.find("measure", name), [docno for docno, _ in hits], dict(grades)
    )
    try:
        value = float(returned)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ConfigError(f"measure '{name}' must give a finite number, gave {returned!r:.60}")
    return value


def has_enough_judgments(topics: int, limit: int) -> bool:
    """Whether a level with this many topics counts, where the level with the most topics has `limit`."""
    return topics > 0 and topics >= min(minimums.PER_LEVEL, limit / 2)


def leaks(states: Sequence[QueryState], run: Run, index: Index) -> pd.DataFrame:
    """qid, level, measure, value of the queries with a filter; `run` has the documents that were found.

    A hit of a live search that is in no document of the collection is not counted, because its metadata is unknown.
    """
    import pandas as pd

    filtered = [
        (state.query.qid, state.filters) for state in states if state.query.filter and state.filters is not None
    ]
    numbers = {docno: number for number, docno in enumerate(index.chunks.docnos)} if filtered else {}
    rows = []
    for qid, filters in filtered:
        found = [numbers[docno] for docno, _ in run[qid][:DEPTH] if docno in numbers]
        rows.append((qid, DOCUMENT, LEAKS, float((~index.passing(filters)[found]).sum())))
    return pd.DataFrame(rows, columns=["qid", "level", "measure", "value"])


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
