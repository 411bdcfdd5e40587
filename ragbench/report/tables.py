"""The tables that a run prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragbench.base.console import SCREEN, columns, interval, latex, markdown, print_table, print_text, with_interval
from ragbench.base.errors import ConfigError
from ragbench.base.html import templates
from ragbench.config.names import label
from ragbench.evaluation import contexts, latency
from ragbench.evaluation.measures import ANSWERED, LEAKS, MEASURES, PASSAGE, PRIMARY, QUOTE, SECTION, UNPLACED
from ragbench.evaluation.passages import TOKENS
from ragbench.evidence import best_arm
from ragbench.evidence.verdict import LATENCY, QUALITY
from ragbench.report import evidence, figures
from ragbench.results import measurements
from ragbench.results.measurements import ARMS

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

TEMPLATES = Path(__file__).resolve().parent / "templates"
_LATENCY = dict.fromkeys(("p50", "p95", "p99"), ".1f")


def show(results: Measurements) -> None:
    """Print measures overall and by query type, and service times."""
    titled = results.title_with_origin
    if results.preliminary:
        print_text(results.preliminary)
    quality = _with_latency(results, results.summary(("split",)))
    forms = {ARMS[name].title: form for name, form in ARMS.forms.items()}
    visible = columns(quality, ["arm", "split", "n", *MEASURES, UNPLACED, LEAKS, *ANSWERED, *forms])
    print_table(visible, titled("Documents"), forms)
    if (results.per_query["level"] == PASSAGE).any():
        passages = results.summary(("split",), level=PASSAGE)
        context = [str(name) for name in passages.columns if str(name).startswith("Recall@")]
        print_table(
            columns(passages, ["arm", "split", "n", PRIMARY, TOKENS, *context]), titled("Passages"), {TOKENS: ".0f"}
        )
    show_contexts(results, results.delivered)
    for level in (SECTION, QUOTE):
        if (results.per_query["level"] == level).any():
            means = results.summary(("split",), level=level)
            print_table(columns(means, ["arm", "split", "n", *MEASURES]), titled(f"{level.capitalize()}s"))
    if results.per_query["type"].nunique() > 1:
        print_table(by_type(results), titled(f"{PRIMARY} by query type"))
    if len(results.latency):
        stages = columns(results.latency, ["arm", "stage", *_LATENCY])
        print_table(stages, "Service time of a new query, milliseconds", _LATENCY)
        print_text(*latency.repeat_sentences(results.latency))
    if label := results.exploratory:
        print(label)


def show_contexts(results: Measurements, frame: pd.DataFrame) -> None:
    """Print what the contexts of arms consist of, and the folders and types that pollute them most; `frame` by arm."""
    if len(frame):
        title = f"Contexts of {results.shared_config['context_tokens']:,} tokens"
        shares, forms = contexts.SHARES.shown(contexts.shares(frame))
        print_table(shares, results.title_with_origin(title), forms, SCREEN)
    if len(rows := contexts.polluters(frame, contexts.SHOWN)):
        visible, forms = contexts.POLLUTERS.shown(rows)
        print_table(visible, f"{title}: most pollution", forms, SCREEN)


def _with_latency(results: Measurements, frame: pd.DataFrame) -> pd.DataFrame:
    """A table with further columns: p50 and p95 of the whole query, index size and peak memory of the arm."""
    frame = frame.assign(**{ARMS["index"].title: frame["arm"].map(results.record["index_bytes"]) / 1e6})
    if results.peak_memory_mb:
        frame = frame.assign(**{ARMS["memory"].title: frame["arm"].map(results.peak_memory_mb)})
    if not len(results.latency):
        return frame
    total = results.latency[results.latency["stage"] == "total"].set_index("arm")
    return frame.assign(**{ARMS[p].title: frame["arm"].map(total[p]) for p in ("p50", "p95")})


def by_type(results: Measurements) -> pd.DataFrame:
    """The primary measure by query type: a row per type, a column per arm, and the number of queries."""
    frame = results.per_query
    frame = frame[(frame["level"] == "document") & (frame["measure"] == PRIMARY)]
    table = frame.pivot_table(index="type", columns="arm", values="value", observed=True)[results.arms]
    table.insert(0, "n", frame.groupby("type", observed=True)["qid"].nunique())
    return table.reset_index()


def show_verdicts(results: Measurements, frame: pd.DataFrame) -> None:
    """Print the verdicts of a run, and their details."""
    print_table(compact(frame), results.title_with_origin(f"Effect on {results.primary}"))
    show_details(results, frame)


def show_details(results: Measurements, frame: pd.DataFrame) -> None:
    """Print the reasons of the verdicts of a run, the best arm, and effects by type and area."""
    print_reasons(frame)
    print_best_arm(results.best_arm)
    for of in ("type", "area"):
        if len(frame := _effects_by(results, of)) > 1:
            print_table(frame, results.title_with_origin(f"Effect on {results.primary} by {of}, each {of} apart"))


def print_verdicts(frame: pd.DataFrame, title: str) -> None:
    """Print a table of verdicts, and the reasons below it."""
    print_table(compact(frame), title)
    print_reasons(frame)


def print_reasons(frame: pd.DataFrame) -> None:
    """Print the reason of each verdict."""
    for row in evidence.rows(frame):
        if row["reason"]:
            print_text(f"{row['factor']}: {measurements.labelled(row)}. {row['reason']}")


def print_best_arm(frame: pd.DataFrame) -> None:
    """Print how likely each of several arms is the best, and sentences about it."""
    if len(frame):
        visible, forms = best_arm.COLUMNS.shown(frame)
        print_table(visible, "Share of bootstrap samples in which each arm is the best", forms)
        print_text(*best_arm.sentences(frame))


def _effects_by(results: Measurements, of: Literal["type", "area"]) -> pd.DataFrame:
    """A row per type or area: the number of topics, the mean of the first arm, the effects of the others in words."""
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for effect in evidence.rows(evidence.by_kind(results, of)):
        row = rows.setdefault(effect["kind"], {of: effect["kind"], "n": effect["n"]})
        low, high = effect["low"], effect["high"]
        direction = " better" if low > 0 else " worse" if high < 0 else ""
        first = effect["arm"] == results.arms[0]
        row[effect["arm"]] = (
            f"{effect['mean']:.3f}" if first else f"{with_interval(effect['difference'], low, high)}{direction}"
        )
    return pd.DataFrame(rows.values())


_RECALL = "context recall (secondary)"


def compact(frame: pd.DataFrame) -> pd.DataFrame:
    """Verdicts for reading: effects with their CIs at both levels and on the recall within a token budget, added p95,
    the two axes in words, the verdict."""
    rows = evidence.rows(frame)
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

    by_name = {str(row["factor"]): row for row in evidence.rows(frame[frame["kind"] == "main"])}
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
    template = templates(TEMPLATES).get_template("verdicts.html.j2")
    table = Markup(means.to_html(index=False, float_format="{:.4f}".format, na_rep=""))
    rows = [_for_notebook(row, reach) for row in evidence.rows(main)]
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
    return {"width": _BAR_PX, "color": figures.VERDICTS.get(str(row["verdict"]), ("#888888", ""))[0], **positions}


def _effect(row: Mapping[str, Any], level: str) -> str:
    effect, low, high = (row[f"{level}{name}"] for name in ("effect", "ci_low", "ci_high"))
    if effect != effect:
        return ""
    return f"{effect:+.3f}" + ("" if low != low else f" {interval(low, high)}")
