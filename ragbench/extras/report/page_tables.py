"""The tables that only the page has: verdicts, losses, interactions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragbench.base.columns import records
from ragbench.config import names
from ragbench.evaluation import diagnosis, passages
from ragbench.extras.report.figures import describe_outcome, main_effects
from ragbench.report import cells
from ragbench.results import measurements

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

THIN, TIMES = "\u2009", "\u00d7"
MARKS = {"adopt": "✓", "confirm": "✓?", "equivalent": "=", "inconclusive": "?", "reject": "✕"}
"""A sign for every verdict, so that none is shown by colour alone; ordered from acceptance to rejection."""
_Row = Mapping[str, Any]


def verdicts(results: Measurements) -> cells.Table:
    """The effects at both levels with verdict and reason."""
    measure, effects = results.primary, main_effects(results)
    ablation, timed = bool(results.design), bool(effects["latency_ms"].notna().any())
    with_passages = bool(effects["passage_effect"].notna().any())

    def p_values(row: _Row) -> cells.Cell:
        return cells.Cell(p_value(row["p"]), p_value(row["passage_p"]) if with_passages else "")

    columns = (
        cells.PageColumn("Proposal" if ablation else "Configuration", "", _proposal),
        cells.PageColumn("Verdict", "", _verdict),
        cells.PageColumn(
            f"{measure}, documents",
            "mean difference over queries with its CI, corrected for the whole table",
            _effect,
        ),
        cells.PageColumn(
            f"{measure}, passages",
            "the same for passages as they are returned",
            lambda row: _effect(row, "passage_"),
            with_passages,
        ),
        cells.PageColumn(
            f"{passages.recall_within(results.shared_config['context_tokens'])}, passages",
            "secondary: no verdict depends on it; its CIs are simultaneous among themselves",
            lambda row: _effect(row, "recall_"),
            bool(effects["recall_effect"].notna().any()),
        ),
        cells.PageColumn(measurements.ARMS["p95"].title, "added p95 latency, and the budget", _cost, timed),
        cells.PageColumn("p", "adjusted p value for documents; below it, for passages", p_values),
        cells.PageColumn("W / T / L", "queries that win, tie and lose, by documents", _counts),
        cells.PageColumn("MDE", "minimum detectable effect on documents: power 80%", cells.number("mde")),
    )
    subject = "Effect of turning each proposal on" if ablation else f"Every configuration against '{results.arms[0]}'"
    return cells.Table.of(
        f"{subject}, largest gain first", columns, records(effects), remarks=effects["reason"].tolist()
    )


def losses(results: Measurements) -> cells.Table:
    """How many relevant sections had each fate, a row for every arm."""
    counts: dict[tuple[str, str], int] = {}
    totals: Counter[str] = Counter()
    for row in records(results.losses):
        name = describe_outcome(row["outcome"], row["stage"])
        counts[row["arm"], name] = counts.get((row["arm"], name), 0) + int(row["sections"])
        totals[name] += int(row["sections"])
    order = sorted(totals, key=lambda name: (name != diagnosis.FOUND, -totals[name], name))

    def column(name: str) -> cells.PageColumn:
        def cell(arm: str) -> cells.Cell:
            count, total = counts.get((arm, name), 0), sum(counts.get((arm, outcome), 0) for outcome in order)
            return cells.Cell(str(count), f"{count / total:.0%}" if count else "")

        return cells.PageColumn(name, "", cell)

    caption = f"Relevant {diagnosis.unit(results.fates)} by outcome"
    return cells.Table.of(
        caption, (cells.PageColumn("Configuration", "", cells.Cell), *map(column, order)), results.arms if order else ()
    )


def interactions(results: Measurements) -> cells.Table:
    """All interactions, the one with the smallest p first."""
    frame = results.verdicts
    frame = frame[frame["kind"] == "interaction"].sort_values(["p", "factor", "other"], kind="stable")

    def pair(row: _Row) -> cells.Cell:
        return cells.Cell(f"{row['factor']} {TIMES} {row['other']}")

    columns = (
        cells.PageColumn("Pair", "", pair),
        cells.PageColumn("Interaction", f"with its {results.interval} interval", _effect),
        cells.PageColumn("p", "", lambda row: cells.Cell(p_value(row["p"]))),
        cells.PageColumn("W / T / L", "", _counts),
    )
    return cells.Table.of("How much the effect of one grows when the other is on", columns, records(frame))


def p_value(p: float) -> str:
    """A p value with two or three digits, `< 0.001` instead of 0; empty for NaN."""
    return "" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _proposal(row: _Row) -> cells.Cell:
    sampled = f"sampling error {row['standard_error']:.3f}" if row["standard_error"] > 0 else ""
    return cells.Cell(names.label(row["factor"]), sampled)


def _verdict(row: _Row) -> cells.Cell:
    alone = "by quality alone" if row["judged_by"] == "quality" else ""
    return cells.Cell(f"{MARKS[row['verdict']]} {row['verdict']}", alone, f"verdict {row['verdict']}")


def _effect(row: _Row, level: str = "") -> cells.Cell:
    effect, low, high = (row[f"{level}{name}"] for name in ("effect", "ci_low", "ci_high"))
    return cells.Cell(cells.signed(effect), cells.interval(low, high), cells.direction(low, high))


def _counts(row: _Row) -> cells.Cell:
    return cells.Cell(f"{row['wins']:.0f}{THIN}/{THIN}{row['ties']:.0f}{THIN}/{THIN}{row['losses']:.0f}")


def _cost(row: _Row) -> cells.Cell:
    if math.isnan(row["latency_ms"]):  # of a run file among configurations with latency
        return cells.Cell(cells.plain(math.nan, 0))
    rounded = round(row["latency_ms"]) + 0.0  # no negative zero
    return cells.Cell(
        cells.signed(rounded, 0), "no budget" if math.isnan(row["budget_ms"]) else f"of {row['budget_ms']:.0f} allowed"
    )
