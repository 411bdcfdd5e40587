"""A run on one screen of 80 columns: the values of every arm at both levels, and the verdict."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbench.base import minimums, registry
from ragbench.base.columns import records
from ragbench.base.console import SCREEN
from ragbench.base.types import counted, probability, too_few, with_interval
from ragbench.config.names import label
from ragbench.evaluation.measures import DOCUMENT, LEAKS, PASSAGE, has_enough_judgments
from ragbench.evaluation.passages import recall_within
from ragbench.evidence import arms, t_statistic
from ragbench.evidence.cost import NET
from ragbench.evidence.verdict import LATENCY, UNPROVEN
from ragbench.results import labels, measurements

if TYPE_CHECKING:
    from rich.table import Table

    from ragbench.results.measurements import Measurements, Prediction

_SHOWN = 4
_LABEL = 10
"""Characters of the name of a row for two arms."""
_NAME = 19
"""Characters of a name in one line; longer names continue in the next line."""

_BIAS = (
    "A part of the pages has fewer wrong answers: all values are higher than on the whole, and gains are mostly "
    "smaller (docs/research/sample.md)."
)


def show(results: Measurements, more: bool = True) -> None:
    """Print the screen; `more`: with the line that says where the details are."""
    import sys

    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else SCREEN)
    lines = _pair(results)
    if not lines:
        console.print(table(results))
    bias = _wrapped(_BIAS) if results.preliminary else []
    for line in [*(lines or _below(results, more)), *bias]:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def only_row(results: Measurements) -> dict[str, Any]:
    """The verdict on the second of two arms; empty for other runs."""
    frame = results.verdicts
    if len(results.arms) != 2 or list(frame["factor"]) != results.arms[1:]:
        return {}
    (row,) = records(frame)
    return row


def _pair(results: Measurements) -> list[str]:
    """The rows for two arms: quality, latency, verdict, and what other collections predict; empty for other runs."""
    if not (row := only_row(results)):
        return []
    base, arm = results.arms
    lines = [_title(results), f"{base} -> {arm}"]
    for level in _levels(results):
        prefix = arms.PREFIX[level]
        means = f"{row[f'{prefix}baseline']:.3f} -> {row[f'{prefix}mean']:.3f}"
        has_interval = _ends(row, level)[0] == _ends(row, level)[0]
        change = f"{with_interval(row[f'{prefix}effect'], *_ends(row, level))}, {results.interval} CI"
        change = change if has_interval else f"{row[f'{prefix}effect']:+.3f}, too few queries for a CI"
        lines.append(f"{'' if prefix else 'quality':<{_LABEL}}{level}s {means}: {change}")
    lines += _recalls(results)
    busy = bool(arms.disturbed(results.record))
    lines += _wrapped(f"{'latency':<{_LABEL}}{_latency(results, row, busy)}", _LABEL)
    early = "preliminary " if results.preliminary else ""
    lines += _wrapped(f"{'verdict':<{_LABEL}}{early}{row['verdict']}: {sentence(results, row, busy)}", _LABEL)
    if row["verdict"] == "inconclusive" and int(results.record["topics"]) < minimums.WITHOUT_PRIOR:
        for prediction in measurements.predictions_of_run(results, [arm]):
            effect = with_interval(prediction.effect, prediction.low, prediction.high)
            chance = f"P(gain): {probability(prediction.better)}"
            lines += [f"{'predicted':<{_LABEL}}{effect} from other collections, {chance}", *_anyway(prediction)]
    return [*lines, *leak_lines(results), *label_lines(results)]


def _recalls(results: Measurements) -> list[str]:
    """The secondary measure: the recall within a token budget, with its change; of several arms the changes alone."""
    rows = [row for row in records(results.verdicts) if row["recall_effect"] == row["recall_effect"]]
    measure = recall_within(results.context_tokens)
    if len(results.arms) == 2 and len(rows) == 1:
        (row,) = rows
        low, high = row["recall_ci_low"], row["recall_ci_high"]
        change = with_interval(row["recall_effect"], low, high)
        return [f"{'secondary':<{_LABEL}}{measure} {row['recall_baseline']:.3f} -> {row['recall_mean']:.3f}: {change}"]
    changes = [
        f"{label(str(row['factor']))} "
        + _with_bracket(f"{row['recall_effect']:+.3f}", row["recall_ci_low"], row["recall_ci_high"])
        for row in rows
        if row["kind"] == "main"
    ]
    return _wrapped(f"secondary, {measure}: {_some(changes)}") if changes else []


def _latency(results: Measurements, row: Mapping[str, Any], busy: bool) -> str:
    """The p95 of both arms with the interval of its change, and how it was measured; or why it is unknown."""
    if row["latency_ms"] != row["latency_ms"] or row["latency_low"] != row["latency_low"]:
        return f"{LATENCY[row['cost']]}: {_why_unknown(row, busy)}"
    net = results.net_p95_ms
    p95 = [net.get(arm) or results.p95_ms(arm) or 0.0 for arm in results.arms]
    low, high = (f"{row[f'latency_{end}']:+.0f}" for end in ("low", "high"))
    how = f"{NET}, because the machine was busy" if net else "wall-clock time" + ", on a busy machine" * busy
    return f"p95 {p95[0]:.0f} -> {p95[1]:.0f} ms: {row['latency_ms']:+.0f} ms [{low}, {high}], 95% CI; {how}"


def sentence(results: Measurements, row: Mapping[str, Any], busy: bool) -> str:
    """The verdict on the second of two arms as a sentence."""
    within = "by quality alone" if row["cost"] == "off" else f"latency within the budget of +{row['budget_ms']:g} ms"
    if row["verdict"] == "adopt":
        return f"significantly better, {within}"
    if row["verdict"] == "confirm":
        return f"better, {within}, but {results.exploratory}; test it on unused queries"
    if row["verdict"] == "equivalent":
        return f"no difference that matters, {within}"
    return _reason(row, busy)


def table(results: Measurements) -> Table:
    """A row for every arm: means, changes against the first with their intervals, p95, verdict; or one per factor."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    frame = results.verdicts
    main = frame[frame["kind"] == "main"] if len(frame) else frame
    grid = Table(
        title=_title(results),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
    )
    by_arm = set(main["factor"]) <= set(results.arms)
    grid.add_column("arm" if by_arm else "change", max_width=_NAME, overflow="fold")
    levels = _levels(results)
    alone = len(main) and set(main["cost"]) == {"off"}
    heads = [*(f"{level}s" for level in levels), "p95", "verdict by quality" if alone else "verdict"]
    judged = {str(row["factor"]): row for row in records(main)}
    rows: dict[str, list[str]] = {}
    net = results.net_p95_ms
    if by_arm:
        for arm in results.arms:
            row, p95 = judged.get(arm), net.get(arm) or results.p95_ms(arm)
            cells = [_mean(results, arm, level, row) for level in levels]
            rows[arm] = [*cells, "" if p95 is None else f"{p95:.0f} ms", str(row["verdict"]) if row else ""]
    else:
        for factor, row in judged.items():
            added = "" if row["latency_ms"] != row["latency_ms"] else f"{row['latency_ms']:+.0f} ms"
            rows[label(factor)] = [*(_change(row, level) for level in levels), added, str(row["verdict"])]
    filled = [n for n in range(len(heads)) if any(cells[n] for cells in rows.values())]
    for n in filled:
        grid.add_column(heads[n], justify="right" if heads[n] == "p95" else "left", no_wrap=True)
    for name, cells in rows.items():
        grid.add_row(Text(name), *(cells[n] for n in filled))
    return grid


def _title(results: Measurements) -> str:
    record, origin = results.record, results.topics_origin
    of_one_kind = record["topics"] > 1 and origin and not origin[0].isdigit()
    size = f"{record['topics']} {origin}" if of_one_kind else counted(record["topics"], "query")
    of_split = f"all {size}" if record["split"] == "all" else f"{record['split']} split, {size}"
    shown = of_split if of_one_kind else results.title_with_origin(of_split)
    part = f", {results.preliminary}" if results.preliminary else ""
    return f"{results.primary} on {record['benchmark']['name']} ({shown}){part}"


def _below(results: Measurements, more: bool = True) -> list[str]:
    """The lines below the table: what the brackets mean, test-set use, reasons against arms."""
    frame = results.verdicts
    if not results.judged:
        topics = counted(results.record["topics"], "query")
        return [f"none of {topics} has a relevance judgment: only latency was measured"]
    if not len(frame):
        lines = ["[low high] = 95% CI of the mean"]
    elif set(frame["factor"]) <= set(results.arms):
        lines = [f"[low high] = change vs {results.arms[0]}, {results.interval} CI"]
    else:
        lines = [f"change of the mean [low high], {results.interval} CI"]
    if label := results.exploratory:
        lines.append(label)
    lines += [*leak_lines(results), *label_lines(results)]
    report = "open the report or " if "report" in registry.entries("command") else ""
    details = [f"Details by query type: {report}run ragbench compare"] if more and len(frame) else []
    return [*lines, *_recalls(results), *_reasons(results), *expected_lines(results), *details]


def label_lines(results: Measurements) -> list[str]:
    """The health of the labels, and the means by labels that follow their pages; empty where labels are not files."""
    return [line for sentence in label_sentences(results) for line in _wrapped(sentence)]


def label_sentences(results: Measurements) -> list[str]:
    """`label_lines` as sentences."""
    if results.labels is None:
        return []
    health = results.labels.health
    if health.is_sound:
        return [health.sentence()]
    values = {arm: labels.followed_values(results, arm) for arm in results.arms}
    means = ", ".join(f"{arm} {sum(found.values()) / len(found):.3f}" for arm, found in values.items() if found)
    return [
        f"{health.sentence()}: ragbench data repair lists them",
        *([results.labels.sentence(results.texts)] if health.doubtful else []),
        *([f"{results.primary} with labels where the judged pages are now: {means}"] if means else []),
    ]


def leak_lines(results: Measurements) -> list[str]:
    """How many hits of each arm are outside the filters of their queries; empty where no query has a filter."""
    frame = results.per_query[results.per_query["measure"] == LEAKS]
    counts = frame.groupby("arm", observed=True)["value"].sum().reindex(results.arms).fillna(0).astype(int)
    if not len(frame):
        return []
    queries = counted(frame["qid"].nunique(), "query")
    numbers = ", ".join(f"{arm} {count}" for arm, count in counts.items())
    return _wrapped(f"leaks (hits among the first 10 outside the filter of {queries}): {numbers}")


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, SCREEN, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def expected_lines(results: Measurements) -> list[str]:
    """What other collections let expect of the arms that few topics leave open; a command has its own line to copy."""
    return [
        line for prediction in _expected(results) for line in [*_wrapped(prediction.sentence), *_anyway(prediction)]
    ]


def _anyway(prediction: Prediction) -> list[str]:
    """The command that exports an arm without a verdict, if its prediction suffices and the command is there."""
    if not prediction.suffices or "export" not in registry.entries("command"):
        return []
    return [f"to export it anyway: ragbench export {shlex.quote(f'@1/{prediction.arm}')} --accept-predicted"]


def _expected(results: Measurements) -> Sequence[Prediction]:
    """The predictions for the arms that few topics leave open; empty where nothing is known."""
    frame = results.verdicts
    if not len(frame) or int(results.record["topics"]) >= minimums.WITHOUT_PRIOR:
        return []
    main = frame[(frame["kind"] == "main") & (frame["verdict"] == "inconclusive")]
    unsure = [str(arm) for arm in main["factor"] if arm in results.arms]
    return measurements.predictions_of_run(results, unsure)


def _levels(results: Measurements) -> list[str]:
    topics = results.per_query.groupby("level")["qid"].nunique()
    enough = has_enough_judgments(int(topics.get(PASSAGE, 0)), int(topics.max()))
    return [DOCUMENT, PASSAGE] if enough else [DOCUMENT]


def _reasons(results: Measurements) -> list[str]:
    """Why an arm is not adopted, one line for each reason."""
    frame = results.verdicts
    busy = bool(arms.disturbed(results.record))
    named: dict[str, list[str]] = {}
    main = records(frame[frame["kind"] == "main"] if len(frame) else frame)
    for row in main:
        if row["cost"] == "off":
            alone = f"verdict by quality alone: {row['untimed'] or 'no latency budget is set'}"
            named.setdefault(alone, []).append(label(str(row["factor"])))
    for row in main:
        if reason := _reason(row, busy):
            named.setdefault(reason, []).append(label(str(row["factor"])))
    return [line for reason, names in named.items() for line in _wrapped(f"{_some(names)}: {reason}")]


def _reason(row: Mapping[str, Any], busy: bool) -> str:
    if row["verdict"] == "confirm":
        return f"better, but exploratory: ragbench run --confirm '@1/{row['factor']}' tests it on unused queries"
    if row["verdict"] == "adopt" and NET in str(row["reason"]):
        return "latency judged without the time spent waiting for a CPU: the machine was busy"
    if row["verdict"] not in ("inconclusive", "reject"):
        return ""
    queries = too_few(int(row["n"]), "query")
    if row["quality"] == "worse":
        return "significantly worse"
    if row["cost"] == "over":
        return f"latency over the budget of +{row['budget_ms']:g} ms"
    if row["quality"] == "open" and row["ties"] == row["n"]:
        return f"no query changed, but {queries} to call the configurations equivalent"
    if row["quality"] == "open":
        unproven = str(row["reason"]).partition(UNPROVEN)[2].partition(". ")[0].removesuffix(".")
        return unproven or f"not significant; {queries} to detect an effect this small"
    quality = "significantly better" if row["quality"] == "better" else str(row["quality"])
    return f"{quality}; latency unknown: {_why_unknown(row, busy)}"


def _why_unknown(row: Mapping[str, Any], busy: bool) -> str:
    """Why it is not known whether the latency is within its budget."""
    if row["latency_ms"] != row["latency_ms"]:
        return str(row["untimed"])
    if row["latency_low"] != row["latency_low"]:
        return f"fewer than {minimums.FOR_P95_CI} queries were timed"
    if busy:
        return "the machine was busy"
    return f"the confidence interval contains the budget of +{row['budget_ms']:g} ms"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _mean(results: Measurements, arm: str, level: str, row: Mapping[str, Any] | None) -> str:
    """A mean, followed by the interval of its change; for a single arm by the interval of the mean."""
    values = results.values(arm, results.primary, level=level)
    if not len(values):
        return ""
    text = f"{values.mean():.3f}"
    if row is not None:
        return _with_bracket(text, *_ends(row, level))
    if len(results.arms) > 1:
        return text
    return _with_bracket(text, *t_statistic.mean(values)[1:3], ".2f")


def _change(row: Mapping[str, Any], level: str) -> str:
    effect = row[f"{arms.PREFIX[level]}effect"]
    return "" if effect != effect else _with_bracket(f"{effect:+.3f}", *_ends(row, level))


def _ends(row: Mapping[str, Any], level: str) -> tuple[float, float]:
    low, high = (float(row[f"{arms.PREFIX[level]}ci_{end}"]) for end in ("low", "high"))
    return low, high


def _with_bracket(text: str, low: float, high: float, form: str = "+.2f") -> str:
    """A value with its interval: `+0.031 [+.01 +.06]`, without zeros before the point to save room; alone for NaN."""
    if low != low:
        return text
    short = [format(value, form).replace("0.", ".", 1) for value in (low, high)]
    return f"{text} [{short[0]} {short[1]}]"
