"""The tables that a run prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.columns import records
from ragbench.base.console import columns, interval, latex, markdown, print_table, print_text
from ragbench.base.errors import ConfigError
from ragbench.base.html import templates
from ragbench.config.names import label
from ragbench.evaluation import latency
from ragbench.evidence.verdict import LATENCY, QUALITY
from ragbench.report import cells
from ragbench.results import measurements

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.report.cells import Table
    from ragbench.results.measurements import Measurements

COLORS = {
    "adopt": "#2f9464",
    "confirm": "#2f9464",
    "equivalent": "#3d85c6",
    "inconclusive": "#808892",
    "reject": "#d9534f",
}
"""The colour of every verdict, with a contrast of at least 3:1 with both #ffffff and #171b21."""

_TEMPLATES = Path(__file__).resolve().parent / "templates"


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
        documents=[_effect(row, "") for row in rows],
        passages=[_effect(row, "passage_") for row in rows],
        **{_RECALL: [_effect(row, "recall_") for row in rows]},
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


def html(frame: pd.DataFrame, means: pd.DataFrame, title: str, notes: Sequence[str] = ()) -> str:
    """Verdicts with their confidence intervals as bars, then the means: without scripts, as a notebook shows it."""
    from markupsafe import Markup

    main = frame[(frame["kind"] == "main") & frame["effect"].notna()]
    reach = max([0.01, *(abs(bound) for name in ("ci_low", "ci_high", "effect") for bound in main[name].dropna())])
    template = templates(_TEMPLATES).get_template("verdicts.html.j2")
    table = Markup(means.to_html(index=False, float_format="{:.4f}".format, na_rep=""))
    rows = [_for_notebook(row, reach) for row in records(main)]
    return template.render(title=title, rows=rows, means=table, notes=notes)


def _for_notebook(row: Mapping[str, Any], reach: float) -> dict[str, Any]:
    return {
        "reason": row["reason"],
        "change": label(str(row["factor"])),
        "effect": _effect(row, ""),
        "bar": _bar(row, reach),
        "p": f"{row['p']:.3f}",
        "quality": QUALITY.get(str(row["quality"]), ""),
        "latency": LATENCY.get(str(row["cost"]), ""),
        "verdict": measurements.labelled(row),
    }


_BAR_PX = 160


def _bar(row: Mapping[str, Any], reach: float) -> dict[str, Any]:
    """A confidence interval as a bar around 0 and its effect as a dot, in pixels; the colours are those of verdicts."""

    def position(value: float) -> float:
        return round(_BAR_PX / 2 + value / reach * (_BAR_PX / 2 - 5), 1)

    ends = {end: row[f"ci_{end}"] if row[f"ci_{end}"] == row[f"ci_{end}"] else row["effect"] for end in ("low", "high")}
    positions = {name: position(value) for name, value in {**ends, "effect": row["effect"]}.items()}
    return {"width": _BAR_PX, "color": COLORS.get(str(row["verdict"]), "#888888"), **positions}


def _effect(row: Mapping[str, Any], level: str) -> str:
    effect, low, high = (row[f"{level}{name}"] for name in ("effect", "ci_low", "ci_high"))
    if effect != effect:
        return ""
    return f"{effect:+.3f}" + ("" if low != low else f" {interval(low, high)}")
