"""What MLflow shows of a run: a name, the verdicts, the metrics with the usual ones first, what makes an arm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragbench.base import console, plugins
from ragbench.config import differences
from ragbench.evaluation.measures import metric_name
from ragbench.evidence import policy
from ragbench.results import verdicts
from ragbench.results.measurements import Measurements
from ragbench.tracking.store import FOLDER

if TYPE_CHECKING:
    import pandas as pd

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as a run's description."""

_SHOWN = 80
_ROOM = 8000  # characters of a tag
_EFFECTS = {key: key for key in ("effect", "ci_low", "ci_high", "p", "passage_effect")} | {"latency_ms": "added_p95_ms"}
_EFFECTS |= {key: key for key in ("recall_effect", "recall_ci_low", "recall_ci_high")}
"""Columns of the verdicts, and the metric that each is."""
_QUALITY = ("ndcg_at_10", "ndcg_at_5", "passage_ndcg_at_10", "mrr", "recall_at_10", "recall_at_100", "precision_at_5")
_TIMES = ("p50_ms", "p95_ms")

_HEADLINE = (
    *_QUALITY,
    *_TIMES,
    "index_bytes",
    "peak_memory_mb",
    "effect",
    "ci_low",
    "ci_high",
    "passage_effect",
    "added_p95_ms",
)
"""The metrics that come first, where they were measured; so does the primary measure of verdicts, if it is another."""

_REST = "rest"
"""The group of all other metrics; its name is the last by alphabet, in which MLflow sorts them."""


@dataclass(frozen=True)
class ArmSummary:
    """What MLflow shows of an arm: the choices that make it, its verdict as tags, its metrics.

    `headline` has the metrics that come first; `metrics` all of them, the others as `rest/...`, which MLflow groups.
    """

    parameters: Mapping[str, Any]
    tags: Mapping[str, str]
    headline: Mapping[str, float]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class RunSummary:
    """What MLflow shows of a run, and of each of its arms by name.

    `side_by_side`: quality, p95 and effect of every arm, as `ndcg_at_10/baseline`. `table`: a row for every arm with
    the measures that come first and the verdict. `note`: both as markdown, with the reasons.
    """

    name: str
    tags: Mapping[str, str]
    side_by_side: Mapping[str, float]
    table: pd.DataFrame
    note: str
    arms: Mapping[str, ArmSummary]


def summarise(measurements: Measurements) -> RunSummary:
    """Compute what MLflow shows from the results of a finished run."""
    judged = verdicts.read(measurements)
    measure = policy.primary(measurements.config(measurements.arms[0]))
    primary, parameters = metric_name(measure), _parameters(measurements)
    arms: dict[str, ArmSummary] = {}
    for arm in measurements.arms:
        every = _metrics(measurements, judged, arm)
        first = {name: every[name] for name in dict.fromkeys((primary, *_HEADLINE)) if name in every}
        rest = {f"{_REST}/{name}": value for name, value in every.items() if name not in first}
        arms[arm] = ArmSummary(parameters[arm], _verdict_tags(judged, arm), first, {**first, **rest})
    table = _table(arms, judged)
    columns = (primary, "passage_ndcg_at_10", "p95_ms", *_HEADLINE[-5:])
    side_by_side = {
        f"{column}/{_safe(arm)}": summary.headline[column]
        for arm, summary in arms.items()
        for column in columns
        if column in summary.headline
    }
    note = _note(table, judged, f"Change from {measurements.arms[0]}, with {measurements.interval} CIs:")
    return RunSummary(_name(measurements), _tags(measurements), side_by_side, table, note, arms)


def _name(measurements: Measurements) -> str:
    """The arms and what they were measured on: `baseline, rerank on notes (test)`."""
    listed = ", ".join(measurements.arms)
    listed = listed if len(listed) <= _SHOWN else f"{len(measurements.arms)} arms: {listed[:_SHOWN].rstrip(', ')} ..."
    return f"{listed} on {measurements.record['benchmark']['name']} ({measurements.record['split']})"


def _note(table: pd.DataFrame, judged: pd.DataFrame, title: str) -> str:
    """The arms and the verdicts as markdown tables, followed by as many reasons as fit into the tag."""
    formats = {"effect": "+.3f", "ci_low": "+.3f", "ci_high": "+.3f", "p": ".3f", "latency_ms": "+.1f"}
    arms = console.markdown(table, dict.fromkeys(_HEADLINE, ".3f") | {"p50_ms": ".1f", "p95_ms": ".1f"})
    if judged.empty:
        return arms[:_ROOM]
    printed = console.columns(judged, ["factor", "other", "effect", "ci_low", "ci_high", "p", "latency_ms", "verdict"])
    reasons = [
        f"- **{row['factor']}**: {row['verdict']}. {row['reason']}" for _, row in judged.iterrows() if row["reason"]
    ]
    lines = [arms, "", title, "", console.markdown(printed, formats), ""]
    while len(reasons) > 1 and len("\n".join([*lines, *reasons])) > _ROOM:
        reasons = [*reasons[:-2], "- The others are in the report."]
    return "\n".join([*lines, *reasons])[:_ROOM]


def _table(arms: Mapping[str, ArmSummary], judged: pd.DataFrame) -> pd.DataFrame:
    """A row for every arm: the measures that MLflow shows first, where they were measured, and the verdict."""
    import pandas as pd

    by_factor = judged.drop_duplicates("factor").set_index("factor")["verdict"]
    columns = [*_QUALITY, *_TIMES]
    rows = [
        {"arm": arm, **{key: value for key, value in summary.headline.items() if key in columns}}
        for arm, summary in arms.items()
    ]
    return pd.DataFrame(rows).assign(verdict=[str(by_factor.get(arm, "")) for arm in arms])


def _verdict_tags(judged: pd.DataFrame, arm: str) -> dict[str, str]:
    """The recorded verdict on an arm in words; empty for the arm that others were compared with."""
    rows = judged[(judged["factor"] == arm) & (judged["verdict"] != "")]
    return {f"ragbench.{name}": str(rows.iloc[0][name]) for name in ("verdict", "reason")} if len(rows) else {}


def _verdict_metrics(judged: pd.DataFrame, arm: str) -> dict[str, float]:
    """The effect of an arm with its interval, p and added p95; empty for the arm that others are compared with."""
    rows = judged[(judged["factor"] == arm) & (judged["kind"] == "main")]
    if rows.empty:
        return {}
    return {name: float(rows.iloc[0][key]) for key, name in _EFFECTS.items() if rows.iloc[0][key] == rows.iloc[0][key]}


def _metrics(measurements: Measurements, judged: pd.DataFrame, arm: str) -> dict[str, float]:
    """Stable metric names: `ndcg_at_10`, `section_ndcg_at_10`, `ndcg_at_10.factual`, `p95_ms`, `p6_p95_ms` ..."""
    frame = measurements.per_query[measurements.per_query["arm"] == arm]
    named: dict[str, float] = {}
    for (level, measure), values in frame.groupby(["level", "measure"], observed=True)["value"]:
        prefix = "" if level == "document" else f"{level}_"
        named[prefix + metric_name(str(measure))] = float(values.mean())
    documents = frame[frame["level"] == "document"]
    for (kind, measure), values in documents.groupby(["type", "measure"], observed=True)["value"]:
        named[f"{metric_name(str(measure))}.{kind}"] = float(values.mean())
    for row in measurements.latency[measurements.latency["arm"] == arm].to_dict(orient="records"):
        stage = "" if row["stage"] == "total" else str(row["stage"]).replace(" ", "_") + "_"
        named |= {f"{stage}{p}_ms": float(row[p]) for p in ("p50", "p95", "p99")}
    if arm in (index_bytes := measurements.record.get("index_bytes", {})):
        named["index_bytes"] = float(index_bytes[arm])
    if arm in measurements.peak_memory_mb:
        named["peak_memory_mb"] = measurements.peak_memory_mb[arm]
    under_load = measurements.open_loop[measurements.open_loop["arm"] == arm]
    for row in under_load.to_dict(orient="records"):
        named |= {f"response_{p}_ms_at_{row['qps']:g}_qps": float(row[p]) for p in ("p50", "p95", "p99")}
    if len(under_load) and (open_loop := plugins.hook("open_loop")):
        named["saturation_qps"] = open_loop.saturation(under_load)[arm]
    named |= _verdict_metrics(judged, arm)
    return {name: value for name, value in named.items() if value == value}


def _safe(arm: str) -> str:
    """An arm's name, with characters that the name of a metric may not have replaced."""
    return re.sub(r"[^\w\-. /]", "_", arm, flags=re.ASCII)


def _tags(measurements: Measurements) -> dict[str, str]:
    git = measurements.record["environment"]["git"] or {}
    return {
        FOLDER: str(measurements.folder.absolute()),
        "ragbench.benchmark": str(measurements.record["benchmark"]["name"]),
        "ragbench.digest": str(measurements.record["benchmark"]["digest"]),
        "ragbench.split": str(measurements.record["split"]),
        "mlflow.source.git.commit": str(git.get("commit", "")),
        "ragbench.dirty": str(git.get("dirty", "")),
    }


def _parameters(measurements: Measurements) -> Mapping[str, Mapping[str, Any]]:
    """By arm, the choices and values that make it: as recorded, or composed again for a run of an earlier version.

    config.yaml has the whole configuration.
    """
    if recorded := measurements.record.get("parameters"):
        return dict(recorded)
    overrides = measurements.record.get("overrides", {})
    return differences.of_arms({arm: (overrides.get(arm, ()), measurements.config(arm)) for arm in measurements.arms})
