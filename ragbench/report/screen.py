"""A run on one screen of 80 columns: the values of every arm at both levels, and the verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbench.base import fewest
from ragbench.base.numbers import counted
from ragbench.config.catalogue import label
from ragbench.evaluation.levels import DOCUMENT, PASSAGE, enough
from ragbench.evaluation.measures import PRIMARY
from ragbench.evidence import arms, t_of_mean
from ragbench.evidence.cost import END_TO_END, NET, RECORDED
from ragbench.evidence.verdict import UNPROVEN
from ragbench.report import evidence
from ragbench.results import predictions

if TYPE_CHECKING:
    from rich.table import Table

    from ragbench.results.measurements import Measurements

WIDTH = 80
_SHOWN = 4
_NAME = 19
"""Characters of a name in one line; longer names continue in the next line."""


def show(results: Measurements) -> None:
    """Print the screen."""
    import sys

    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table(results))
    for line in below(results):
        console.print(line, markup=False, highlight=False)


def table(results: Measurements) -> Table:
    """A row for every arm: means, changes against the first with their intervals, p95, verdict; or one per factor."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    frame = evidence.effects(results)
    main = frame[frame["kind"] == "main"] if len(frame) else frame
    record = results.record
    size = counted(record["topics"], "query")
    of_split = f"all {size}" if record["split"] == "all" else f"{record['split']} split, {size}"
    title = f"{evidence.primary(results)} on {record['benchmark']['name']} ({results.title_with_origin(of_split)})"
    made = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )
    by_arm = set(main["factor"]) <= set(results.arms)
    made.add_column("arm" if by_arm else "change", max_width=_NAME, overflow="fold")
    levels = [DOCUMENT, *([PASSAGE] if _enough(results) else [])]
    for name in (*(f"{level}s" for level in levels), "p95", "verdict"):
        made.add_column(name, justify="right" if name == "p95" else "left", no_wrap=True)
    judged = {str(row["factor"]): row for row in evidence.rows(main)}
    if by_arm:
        for arm in results.arms:
            row = judged.get(arm)
            cells = [_mean(results, arm, level, row) for level in levels]
            made.add_row(Text(arm), *cells, _p95(results, arm), _verdict(row) if row else "")
    else:
        for factor, row in judged.items():
            added = "" if row["latency_ms"] != row["latency_ms"] else f"{row['latency_ms']:+.0f} ms"
            cells = [_change(row, level) for level in levels]
            made.add_row(Text(label(factor)), *cells, added, _verdict(row))
    return made


def below(results: Measurements) -> list[str]:
    """The lines below the table: what the brackets mean, test-set use, reasons against arms."""
    frame = evidence.effects(results)
    if not results.judged:
        topics = counted(results.record["topics"], "query")
        return [f"none of {topics} has a relevance judgment: only latency was measured"]
    if not len(frame):
        said = ["[low high] = 95% CI of the mean"]
    elif set(frame["factor"]) <= set(results.arms):
        said = [f"[low high] = change vs {results.arms[0]}, {results.interval} CI"]
    else:
        said = [f"change of the mean [low high], {results.interval} CI"]
    if label := results.exploratory:
        said.append(label)
    more = ["Details by query type and stage: open the report or run ragbench compare"] if len(frame) else []
    return [*said, *_reasons(results), *expected_lines(results), *more]


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def expected_lines(results: Measurements) -> list[str]:
    """`expected_sentences` as lines of the screen."""
    return [line for sentence in expected_sentences(results) for line in _wrapped(sentence)]


def expected_sentences(results: Measurements) -> list[str]:
    """What the atlas expects of the arms that few topics leave open; empty where they decide, or nothing is known."""
    frame = evidence.effects(results)
    if not len(frame) or int(results.record["topics"]) >= fewest.WITHOUT_EXPECTATION:
        return []
    main = frame[(frame["kind"] == "main") & (frame["verdict"] == "inconclusive")]
    unsure = [str(arm) for arm in main["factor"] if arm in results.arms]
    advice = predictions.of_run(results, unsure)
    return [
        each.sentence + ("; to export it anyway: ragbench export --accept-predicted" if each.sure else "")
        for each in advice
    ]


def _enough(results: Measurements) -> bool:
    topics = results.per_query.groupby("level")["qid"].nunique()
    return enough(int(topics.get(PASSAGE, 0)), int(topics.max()))


def _reasons(results: Measurements) -> list[str]:
    """Why an arm is not adopted, one line for each reason."""
    frame = evidence.effects(results)
    busy = bool(arms.disturbed(results.record))
    named: dict[str, list[str]] = {}
    for row in evidence.rows(frame[frame["kind"] == "main"] if len(frame) else frame):
        if reason := _reason(row, busy):
            named.setdefault(reason, []).append(label(str(row["factor"])))
    return [line for reason, names in named.items() for line in _wrapped(f"{_some(names)}: {reason}")]


def _reason(row: Mapping[str, Any], busy: bool) -> str:
    if row["verdict"] == "confirm":
        return f"better; exploratory: ragbench run --confirm '@1/{row['factor']}' tests it on queries not used before"
    if row["verdict"] == "adopt" and NET in str(row["reason"]):
        return "latency judged without the time spent waiting for a CPU: the machine was busy"
    if row["verdict"] not in ("inconclusive", "reject"):
        return ""
    queries = counted(int(row["n"]), "query")
    if row["quality"] == "worse":
        return "significantly worse"
    if row["cost"] == "over":
        return f"latency over the budget of +{row['budget_ms']:g} ms"
    if row["quality"] == "open" and row["ties"] == row["n"]:
        return f"no query changed, but {queries} are too few to call the configurations equivalent"
    if row["quality"] == "open":
        unproven = str(row["reason"]).partition(UNPROVEN)[2].partition(". ")[0].removesuffix(".")
        return unproven or f"not significant; {queries} are too few to detect an effect this small"
    quality = "significantly better" if row["quality"] == "better" else str(row["quality"])
    for unknown in (END_TO_END, RECORDED):
        if unknown in str(row["reason"]):
            return f"{quality}; latency unknown: {unknown}"
    if row["latency_ms"] != row["latency_ms"]:
        return f"{quality}; latency unknown (not measured): ragbench run --remeasure-latency @1"
    if busy:
        return f"{quality}; latency unknown (machine busy): ragbench run --remeasure-latency @1"
    return f"{quality}; latency may exceed the budget: time more queries, or ragbench run --remeasure-latency @1"


def _verdict(row: Mapping[str, Any]) -> str:
    """The verdict in at most 14 characters: quality and cost apart where only the time is not known."""
    known = row["verdict"] != "inconclusive" or row["quality"] not in ("better", "equivalent")
    return str(row["verdict"]) if known else f"{'better' if row['quality'] == 'better' else 'equal'}; p95?"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _mean(results: Measurements, arm: str, level: str, row: Mapping[str, Any] | None) -> str:
    """A mean, followed by the interval of its change; for a single arm by the interval of the mean."""
    measure = evidence.primary(results) if level == DOCUMENT else PRIMARY
    values = results.values(arm, measure, level=level)
    if not len(values):
        return ""
    said = f"{values.mean():.3f}"
    if row is not None:
        return f"{said} {_bracket(*_ends(row, level), '+.2f')}".rstrip()
    if len(results.arms) > 1:
        return said
    return f"{said} {_bracket(*t_of_mean.mean(values)[1:3], '.2f')}".rstrip()


def _change(row: Mapping[str, Any], level: str) -> str:
    effect = row["effect" if level == DOCUMENT else "passage_effect"]
    return "" if effect != effect else f"{effect:+.3f} {_bracket(*_ends(row, level), '+.2f')}".rstrip()


def _ends(row: Mapping[str, Any], level: str) -> tuple[float, float]:
    prefix = "" if level == DOCUMENT else "passage_"
    return float(row[f"{prefix}ci_low"]), float(row[f"{prefix}ci_high"])


def _bracket(low: float, high: float, form: str) -> str:
    """An interval such as `[+.01 +.06]`, without zeros before the point to save room; empty for NaN."""
    if low != low:
        return ""
    short = [format(value, form).replace("0.", ".", 1) for value in (low, high)]
    return f"[{short[0]} {short[1]}]"


def _p95(results: Measurements, arm: str) -> str:
    p95 = results.p95_ms(arm)
    return "" if p95 is None else f"{p95:.0f} ms"
