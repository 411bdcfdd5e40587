"""Tables of results for the screen and for pages: their cells, and how numbers are written in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragbench.base import minimums
from ragbench.base.columns import records
from ragbench.evaluation import contexts
from ragbench.evaluation.latency import NOTABLE
from ragbench.evaluation.measures import ANSWERED, FALSE_SILENCE, HITS, LEAKS, PASSAGE, SILENCE, UNPLACED
from ragbench.evaluation.passages import TOKENS
from ragbench.evidence import best_arm
from ragbench.evidence.cost import NET
from ragbench.results.measurements import ARMS

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

MINUS = "\u2212"
_Row = Mapping[str, Any]
_JUDGED = "Judged@10"
_SECONDARY = ("RR", "R@10", "R@100", "Success@1", _JUDGED)


class Cell(NamedTuple):
    """A cell of a table; `note` is printed smaller below the text, `kind` is a class of the style sheet."""

    text: str
    note: str = ""
    kind: str = ""


class PageColumn(NamedTuple):
    """A column of a page's table: its heading, what it means, and its cell for a row; `shown`: whether it is there."""

    heading: str
    note: str
    cell: Callable[[Any], Cell]
    shown: bool = True


@dataclass(frozen=True)
class Table:
    """A table: `columns` are (heading, what it means), the first cell of every row names the row.

    `remarks`, where given, has one sentence for every row, printed below it over the whole width; `sentences` are about
    the whole table. A table without rows is False: the page does not show it.
    """

    caption: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...]
    remarks: Sequence[str] = ()
    sentences: Sequence[str] = ()

    @classmethod
    def of(cls, caption: str, columns: Iterable[PageColumn], rows: Iterable[Any], **texts: Sequence[str]) -> Table:
        """A table whose columns make their cells from the rows, which may be of any kind."""
        visible = [column for column in columns if column.shown]
        heads = tuple((column.heading, column.note) for column in visible)
        return cls(caption, heads, tuple(tuple(column.cell(row) for column in visible) for row in rows), **texts)

    def __bool__(self) -> bool:
        return bool(self.rows)


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign and a true minus, such as `+0.012`; empty for NaN."""
    return "" if math.isnan(value) else f"{value:+.{digits}f}".replace("-", MINUS)


def plain(value: float, digits: int = 3) -> str:
    """A number without a plus, such as `0.512`; empty for NaN."""
    return "" if math.isnan(value) else f"{value:.{digits}f}".replace("-", MINUS)


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval such as `[-0.010, +0.020]`; empty for NaN."""
    return "" if math.isnan(low) or math.isnan(high) else f"[{signed(low, digits)}, {signed(high, digits)}]"


def direction(low: float, high: float) -> str:
    """`better` or `worse` where an interval does not contain 0, else empty."""
    return "better" if low > 0 else "worse" if high < 0 else ""


def join_names(items: Iterable[str]) -> str:
    """Names as a list in words: `a, b and c`."""
    names = list(items)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def best_configuration(frame: pd.DataFrame, measure: str) -> Table:
    """How likely each configuration is the best."""
    head = best_arm.COLUMNS
    passages = bool(frame["passage_mean"].notna().any())
    columns = (
        PageColumn("Configuration", "", _text("arm")),
        PageColumn(f"{measure}, documents", "", number("mean")),
        PageColumn(*head["best"].head, _share("best")),
        PageColumn(f"{measure}, passages", "", number("passage_mean"), passages),
        PageColumn(*head["passage_best"].head, _share("passage_best"), passages),
        PageColumn(*head["ruled_out_by"].head, _text("ruled_out_by", "word")),
        PageColumn(*head["more_topics"].head, number("more_topics", 0)),
    )
    return Table.of(
        "How likely each configuration is the best", columns, records(frame), sentences=best_arm.sentences(frame)
    )


def arms(results: Measurements) -> Table:
    """Every arm with its means, by documents and by passages, its time and its size."""
    measure = results.primary
    means = results.summary(by=()).set_index("arm")
    passages = results.summary(by=(), level=PASSAGE).set_index("arm")
    others = [name for name in (*_SECONDARY, UNPLACED, LEAKS, *ANSWERED) if name in means.columns and name != measure]
    recalls = (str(name) for name in passages.columns if name == TOKENS or str(name).startswith("Recall@"))
    context = [name for name in recalls if name != measure]
    total = results.latency[results.latency["stage"] == "total"].set_index("arm")
    timed, memory, net = len(results.latency) > 0, results.peak_memory_mb, results.net_p95_ms

    def of(frame: pd.DataFrame, name: str, digits: int = 3) -> Callable[[str], Cell]:
        return lambda arm: Cell(plain(_at(frame, arm, name), digits))

    def p95(arm: str) -> Cell:
        low, high = (_at(total, arm, f"p95_{end}") for end in ("low", "high"))
        return Cell(plain(_at(total, arm, "p95"), 1), f"[{low:.0f}, {high:.0f}]" if high == high else "")

    columns = (
        PageColumn(*ARMS["arm"].head, Cell),
        PageColumn(f"{measure}, documents", ARMS["documents"].note, of(means, measure)),
        PageColumn(f"{measure}, passages", ARMS["passages"].note, of(passages, measure), len(passages) > 0),
        PageColumn(*ARMS["p50"].head, of(total, "p50", 1), timed),
        PageColumn(*ARMS["p95"].head, p95, timed),
        PageColumn("net p95 ms", NET, lambda arm: Cell(plain(net.get(arm, math.nan), 1)), bool(net)),
        *(PageColumn(name, _MEANING.get(name, ""), of(means, name)) for name in others),
        *(
            PageColumn(
                name,
                _MEANING.get(name, "grade-weighted recall of relevant sections within this number of tokens"),
                of(passages, name, 0 if name == TOKENS else 3),
            )
            for name in context
        ),
        PageColumn(
            *ARMS["index"].head,
            lambda arm: Cell(f"{results.record['index_bytes'][arm] / 1e6:.1f}"),
        ),
        PageColumn(
            *ARMS["memory"].head,
            lambda arm: Cell(plain(memory.get(arm, math.nan), 0)),  # a search that runs elsewhere has its memory there
            bool(memory),
        ),
    )
    return Table.of("Means over all measured queries", columns, results.arms)


_MEANING = {
    "RR": "reciprocal rank of the first relevant document",
    "R@10": "share of the relevant documents among the first 10",
    "R@100": "share of the relevant documents among the first 100",
    "Success@1": "share of queries whose first document is relevant",
    _JUDGED: "share of the first 10 documents that have a judgment",
    UNPLACED: "share of the first 10 hits of a live search that are in no document of the collection",
    LEAKS: "mean number of hits outside the query's filter among the first 10, over the queries with a filter",
    TOKENS: "tokens of the first ten hits",
    SILENCE: "abstention: share of the unanswerable queries without results",
    FALSE_SILENCE: "false abstention: share of the answerable queries without results",
    HITS: "mean number of documents among the first 10, over all queries",
}


def context_shares(results: Measurements, frame: pd.DataFrame) -> Table:
    """The shares of useful, duplicate and polluting tokens in the contexts of every arm; `frame`: of these contexts."""
    budget, head = results.context_tokens, contexts.SHARES
    columns = (
        PageColumn(*head["arm"].head, _text("arm")),
        *(PageColumn(*head[name].head, _share(name)) for name in head if name != "arm"),
    )
    rows = records(contexts.shares(frame))
    return Table.of(f"Contexts of {budget:,} tokens", columns, rows)


def polluters(frame: pd.DataFrame) -> Table:
    """The folders and document types that pollute the contexts of every arm most."""
    head = contexts.POLLUTERS
    texts, shares = ("arm", "by", "group"), ("tokens", "useful", "pollution")
    columns = (
        *(PageColumn(*head[name].head, _text(name)) for name in texts),
        *(PageColumn(*head[name].head, _share(name)) for name in shares),
    )
    rows = records(contexts.polluters(frame, contexts.SHOWN))
    return Table.of("Folders and document types with most pollution", columns, rows)


def kinds(results: Measurements, of: Literal["type", "area"]) -> Table:
    """The primary measure by query type or area, with a sentence that names those with few queries; empty for one."""
    frame = results.by_kind(of)
    groups = records(frame.drop_duplicates("kind"))
    cells = {(row["arm"], row["kind"]): row for row in records(frame)}

    def column(group: _Row) -> PageColumn:
        def cell(arm: str) -> Cell:
            row = cells[arm, group["kind"]]
            if arm == results.arms[0]:
                return Cell(plain(row["mean"]))
            low, high = row["low"], row["high"]
            note = f"{signed(row['difference'])} {interval(low, high, 2)}"
            return Cell(plain(row["mean"]), note, direction(low, high))

        return PageColumn(f"{group['kind']} ({group['n']}{', few' if group['few'] else ''})", "", cell)

    few = [f"{group['kind']} {group['n']}" for group in groups if group["few"]]
    warning = f"By {of}: {join_names(few)}. Means over fewer than {minimums.PER_TYPE} queries are unstable."
    caption = f"{results.primary} by {'query type' if of == 'type' else of} (number of queries)"
    columns = (PageColumn("Configuration", "", Cell), *map(column, groups))
    return Table.of(caption, columns, results.arms if len(groups) > 1 else (), sentences=[warning] if few else [])


def latency(results: Measurements) -> Table:
    """Milliseconds by arm and stage, the cold start where it was measured, and times of repeats where they differ."""
    columns = (
        PageColumn("Configuration", "", lambda row: Cell(str(row["arm"]))),
        PageColumn("Stage", "", lambda row: Cell(str(row["stage"]), "", "word")),
        *(PageColumn(name, "milliseconds", number(name, 1)) for name in ("mean", "p50", "p95", "p99")),
        PageColumn("p50 of repeats", "shown if it differs by over 10%", lambda row: _again(row, "p50")),
        PageColumn("p95 of repeats", "", lambda row: _again(row, "p95")),
    )
    return Table.of("Milliseconds of a query by stage", columns, records(results.latency))


def _text(name: str, kind: str = "") -> Callable[[_Row], Cell]:
    return lambda row: Cell(row[name], "", kind)


def number(name: str, digits: int = 3) -> Callable[[_Row], Cell]:
    """The cell of a number, empty where it is not known."""
    return lambda row: Cell(plain(float(row.get(name, math.nan)), digits))


def _share(name: str) -> Callable[[_Row], Cell]:
    return lambda row: Cell(f"{row[name]:.0%}")


def _again(row: _Row, name: str) -> Cell:
    value = float(row.get(f"again_{name}", math.nan))
    return Cell(plain(value if abs(value - row[name]) > NOTABLE * row[name] else math.nan, 1))


def _at(frame: pd.DataFrame, arm: str, column: str) -> float:
    return float(frame[column][arm]) if arm in frame.index and column in frame.columns else math.nan
