"""The tables that a run prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragbench.base.columns import records
from ragbench.base.console import columns, latex, markdown, print_table, print_text
from ragbench.base.types import ConfigError, with_interval
from ragbench.config.names import label
from ragbench.evaluation import latency
from ragbench.evidence.verdict import LATENCY, QUALITY
from ragbench.report import cells
from ragbench.results import measurements

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.report.cells import Table
    from ragbench.results.measurements import Measurements


def show(results: Measurements) -> None:
    """Print the tables of the report: means, contexts, times, verdicts with their details, effects by query type."""
    if results.preliminary:
        print_text(results.preliminary)
    print_page_table(cells.arms(results), results)
    show_contexts(results, results.delivered)
    print_page_table(cells.latency(results))
    if len(results.latency):
        print_text(*latency.repeat_sentences(results.latency))
    if len(results.verdicts):  # of every arm against the first
        print_table(compact(results.verdicts), results.title_with_origin(f"Effect on {results.primary}"))
    show_details(results, results.verdicts)
    if label := results.exploratory:
        print(label)


def show_contexts(results: Measurements, frame: pd.DataFrame) -> None:
    """Print what the contexts of arms consist of, and the folders and types that pollute them most; `frame` by arm."""
    print_page_table(cells.context_shares(results, frame), results)
    print_page_table(cells.polluters(frame), results)


def print_page_table(table: Table, results: Measurements | None = None) -> None:
    """Print a table of the report, unless it is empty: each cell with its note."""
    if table:
        title = results.title_with_origin(table.caption) if results else table.caption
        heads = [heading for heading, _ in table.columns]
        texts = ([f"{cell.text} {cell.note}".strip() for cell in row] for row in table.rows)
        print_table([dict(zip(heads, row, strict=True)) for row in texts], title)
        print_text(*table.sentences)


def by_type(results: Measurements) -> pd.DataFrame:
    """The primary measure by query type: a row per type, a column per arm, and the number of queries."""
    frame = results.per_query
    frame = frame[(frame["level"] == "document") & (frame["measure"] == results.primary)]
    table = frame.pivot_table(index="type", columns="arm", values="value", observed=True)[results.arms]
    table.insert(0, "n", frame.groupby("type", observed=True)["qid"].nunique())
    return table.reset_index()


def show_details(results: Measurements, frame: pd.DataFrame) -> None:
    """Print the reasons of the verdicts of a run, the best arm, and effects by type and area."""
    print_reasons(frame)
    for table in (
        cells.best_configuration(results.best_arm, results.primary),
        cells.kinds(results, "type"),
        cells.kinds(results, "area"),
    ):
        print_page_table(table, results)


def print_reasons(frame: pd.DataFrame) -> None:
    """Print the reason of each verdict."""
    for row in records(frame):
        if row["reason"]:
            print_text(f"{row['factor']}: {measurements.labelled(row)}. {row['reason']}")


_RECALL = "context recall (secondary)"


def compact(frame: pd.DataFrame) -> pd.DataFrame:
    """Verdicts for reading: effects with their CIs at both levels and on the recall within a token budget, added p95,
    the two axes in words, the verdict."""
    rows = records(frame)
    table = frame.assign(
        change=[" x ".join(label(str(row[name])) for name in ("factor", "other") if row[name]) for row in rows],
        documents=[effect(row, "") for row in rows],
        passages=[effect(row, "passage_") for row in rows],
        **{_RECALL: [effect(row, "recall_") for row in rows]},
        quality=frame["quality"].map(QUALITY).fillna(""),
        latency=frame["cost"].map(LATENCY).fillna(""),
        verdict=[measurements.labelled(row) for row in rows],
    )
    table["added p95"] = [
        "" if row["latency_ms"] != row["latency_ms"] else f"{row['latency_ms']:+.0f} ms" for row in rows
    ]
    shown_columns = ["change", "documents", "passages", _RECALL, "added p95", "quality", "latency", "verdict"]
    return columns(table, [name for name in shown_columns if name not in ("passages", _RECALL) or any(table[name])])


def claims(frame: pd.DataFrame, baseline: str, claimed: Mapping[str, float]) -> pd.DataFrame:
    """Published effects next to the measured ones: claim, claimed, effect, its interval, and how they agree.

    A claim reads `ARM beats BASELINE`. Raises ConfigError for one about anything else.
    """
    import pandas as pd

    by_name = {str(row["factor"]): row for row in records(frame[frame["kind"] == "main"])}
    rows = []
    for claim, value in claimed.items():
        arm, beats, base = (part.strip() for part in claim.partition(" beats "))
        if not beats or base != baseline or arm not in by_name:
            raise ConfigError(
                f"the claim '{claim}' must be 'ARM beats {baseline}' with one of {', '.join(by_name)}; got no such pair"
            )
        low, high = by_name[arm]["ci_low"], by_name[arm]["ci_high"]
        agrees = "lower than claimed" if high < value else "higher than claimed" if low > value else "as claimed"
        statement = agrees if low > 0 or high < 0 else f"not significant, {agrees}"
        rows.append((claim, value, by_name[arm]["effect"], low, high, statement))
    return pd.DataFrame(rows, columns=["claim", "claimed", "effect", "ci_low", "ci_high", "result"])


def to_markdown(frame: pd.DataFrame) -> str:
    """Verdicts as a markdown table."""
    return markdown(compact(frame))


def to_latex(frame: pd.DataFrame) -> str:
    """Verdicts as a LaTeX `tabular` with rules of booktabs."""
    return latex(compact(frame))


def effect(row: Mapping[str, Any], level: str) -> str:
    """The effect of a verdict with its interval; empty where it has none. `level`: the prefix of its columns."""
    value, low, high = (row[f"{level}{name}"] for name in ("effect", "ci_low", "ci_high"))
    return "" if value != value else with_interval(value, low, high)
