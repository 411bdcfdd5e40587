"""Write tracking runs from the folders of finished experiments and searches, and from nothing else.

MLflow shows of a run a name, the verdicts, the metrics with the usual ones first, and what makes an arm.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ragbench.base import console, files, progress, registry
from ragbench.base.fingerprint import digest
from ragbench.base.types import Damaged, ResultsError, TrackingError
from ragbench.extras.tracking.metrics import metric_name
from ragbench.extras.tracking.store import ARM, FACTS, FOLDER, RECORD, OpenStore, Target, open_store
from ragbench.results import measurements, store

if TYPE_CHECKING:
    import pandas as pd

_LOG = logging.getLogger(__name__)

_PARAMETER_LIMIT = 6000

PARENT = "mlflow.parentRunId"
"""The tag of a nested run with the id of its parent."""

PER_QUERY = "per_query.json"
"""The artifact with the values of an arm by query."""

_FILES = (
    *(store.RECORD, "summary.csv", "latency.csv", measurements.DESIGN, store.REPORT),
    *(measurements.VERDICTS, measurements.BEST_ARM),
)
"""The files of a run's folder that are logged as artifacts."""

_NOTE = "mlflow.note.content"
"""The tag that MLflow shows as a run's description."""

_MAX_NAME = 80  # characters of the arms in a run's name
_MAX_TAG = 8000  # characters
_EFFECTS = {key: key for key in ("effect", "ci_low", "ci_high", "p", "passage_effect")} | {"latency_ms": "added_p95_ms"}
_EFFECTS |= {key: key for key in ("recall_effect", "recall_ci_low", "recall_ci_high")}
"""Columns of the verdicts, and the metric that each is."""
_QUALITY = ("ndcg_at_10", "ndcg_at_5", "passage_ndcg_at_10", "mrr", "recall_at_10", "recall_at_100", "precision_at_5")
_TIMES = ("p50_ms", "p95_ms", "net_p95_ms")

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


def log(target: Target, folder: Path) -> str | None:
    """Log a finished experiment or search. Returns the run's id.

    An experiment of one arm is one run; of several, a parent with a nested run per arm. A search is a parent with the
    arms of its evaluation on test and every trial below it. A failure is said and loses no result: the files are
    already written.
    """
    try:
        with open_store(target) as into:
            if into.renewed:
                _log_missing(into, target.results, besides=folder)
            return _log_folder(folder, into)
    except TrackingError as error:
        _LOG.warning(f"{error}; all results are in {folder}, and ragbench track --all writes what is missing")
        return None


def log_missing(target: Target) -> list[Path]:
    """Log every finished experiment and search below the results folder that the store lacks; their folders."""
    with open_store(target) as into:
        return _log_missing(into, target.results)


def pages(target: Target) -> dict[str, str]:
    """Return pages of MLflow by title: the runs, and the comparison of the newest experiment's arms where there is one.

    Makes the store if there is none; a broken one is made again with all results. The page at `/` shows traces, of
    which ragbench writes none.
    """
    with open_store(target) as into:
        if into.renewed:
            _log_missing(into, target.results)
        arms = "tags.`ragbench.kind` = 'arm'"
        runs = into.mlflow.search_runs([into.experiment], arms, output_format="list", max_results=1000)
        pages_by_label = {"all runs": f"/#/experiments/{into.experiment}/runs"}
        newest = next((run.data.tags[PARENT] for run in runs if PARENT in run.data.tags), None)
        if newest is not None:
            ids = [run.info.run_id for run in reversed(runs) if run.data.tags.get(PARENT) == newest]
            query = {"runs": json.dumps(ids, separators=(",", ":")), "experiments": json.dumps([into.experiment])}
            pages_by_label["newest comparison"] = f"/#/compare-runs?{urlencode(query)}"
        return pages_by_label


def _log_missing(into: OpenStore, root: Path, besides: Path | None = None) -> list[Path]:
    """Log what the store lacks, the oldest first; runs that were not written to their end are removed."""
    logged = _logged_records(into, root)
    tuning = registry.find("hook", "tracked_tuning")
    tuned = sorted(root.glob(f"tune/*/{tuning.RECORD}"), key=_modified) if tuning else []
    below = {folder for path in tuned if (folder := tuning.confirmation_folder(path.parent)) is not None}
    experiments = sorted(root.glob(f"runs/*/{store.RECORD}"), key=_modified)
    written = []
    for path in [*experiments, *tuned]:
        if path.parent in (*below, besides) or files.digest(path) in logged:
            continue
        try:
            _log_folder(path.parent, into)
        except (ResultsError, Damaged) as error:
            _LOG.warning(f"{path.parent} was not logged: {error}")
            continue
        written.append(path.parent)
    return written


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def _log_folder(folder: Path, into: OpenStore) -> str:
    """Log a search if the folder has one and the extra that reads it is there; otherwise an experiment."""
    tuning = registry.find("hook", "tracked_tuning")
    if tuning is not None and (folder / tuning.RECORD).is_file():
        return str(tuning.log(folder, into))
    return _experiment(folder, into)


def _logged_records(into: OpenStore, root: Path) -> set[str]:
    """The digests of the records that are logged whole; runs of results below `root` that are not are removed."""
    runs = into.mlflow.search_runs([into.experiment], output_format="list", max_results=50_000)
    parents = {run.info.run_id: run.data.tags for run in runs if PARENT not in run.data.tags}
    begun = {
        run_id
        for run_id, tags in parents.items()
        if RECORD not in tags and Path(tags.get(FOLDER, "")).is_relative_to(root.absolute())
    }
    for run in runs:
        if begun & {run.info.run_id, run.data.tags.get(PARENT)}:
            into.client.delete_run(run.info.run_id)
    return {tags[RECORD] for tags in parents.values() if RECORD in tags}


def _experiment(folder: Path, into: OpenStore) -> str:
    results = measurements.load(folder)
    summary = summarise(results)
    started = round(1000 * float(results.record.get("started", time.time())))
    created = into.client.create_run(into.experiment, start_time=started, run_name=summary.name)
    with into.mlflow.start_run(created.info.run_id) as run:
        if len(results.arms) == 1:
            _log_arm(into.mlflow, results, summary, results.arms[0])
        else:
            into.mlflow.set_tags({"ragbench.kind": "experiment", _NOTE: summary.note, **summary.tags})
            into.mlflow.log_metrics(dict(summary.side_by_side))
            into.mlflow.log_table(summary.table.astype(object), "comparison.json")
            log_arms(into.mlflow, results, summary)
        log_files(into.mlflow, folder)
    ended = started + round(1000 * float(results.record.get("seconds", 0)))
    into.client.set_terminated(created.info.run_id, end_time=ended)
    return mark_complete(into, run, folder / store.RECORD)


def mark_complete(into: OpenStore, run: Any, record: Path) -> str:
    """Mark a run as completely written; without the mark it is written again."""
    into.client.set_tag(run.info.run_id, RECORD, files.digest(record))
    return str(run.info.run_id)


def log_arms(mlflow: Any, results: measurements.Measurements, summary: RunSummary) -> None:
    """Log every arm as a run below the active one."""
    for arm in progress.steps("logging to MLflow", results.arms):
        with mlflow.start_run(run_name=arm, nested=True):
            _log_arm(mlflow, results, summary, arm)


def _log_arm(mlflow: Any, results: measurements.Measurements, summary: RunSummary, arm: str) -> None:
    of_arm = summary.arms[arm]
    mlflow.log_params({key: str(value)[:_PARAMETER_LIMIT] for key, value in of_arm.parameters.items()})
    models = {FACTS["models"]: digest(results.record.get("models", {}).get(arm))}
    mlflow.set_tags({"ragbench.kind": "arm", ARM: arm, **models, **summary.tags, **of_arm.tags})
    mlflow.log_metrics(dict(of_arm.metrics))
    mlflow.log_artifacts(str(results.arm_path(arm)), "arm")
    frame = results.per_query[results.per_query["arm"] == arm]
    mlflow.log_table(frame.astype(object), PER_QUERY)
    benchmark = results.record["benchmark"]
    dataset = mlflow.data.from_pandas(
        frame[["qid", "type", "split"]].drop_duplicates().astype(object),
        source=mlflow.data.code_dataset_source.CodeDatasetSource({"benchmark": benchmark["name"]}),
        name=benchmark["name"],
        digest=benchmark["digest"][:32],
    )
    mlflow.log_input(dataset, context="evaluation")


def log_files(mlflow: Any, folder: Path) -> None:
    """Log the record of an experiment, its tables and its report as artifacts of the active run."""
    for name in _FILES:
        if (folder / name).is_file():
            mlflow.log_artifact(str(folder / name))


@dataclass(frozen=True)
class ArmSummary:
    """What MLflow shows of an arm: the options that make it, its verdict as tags, its metrics.

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


def summarise(results: measurements.Measurements) -> RunSummary:
    """Compute what MLflow shows from the results of a finished run."""
    judged = results.verdicts
    primary, parameters = metric_name(results.primary), results.parameters
    arms: dict[str, ArmSummary] = {}
    for arm in results.arms:
        every = _metrics(results, judged, arm)
        first = {name: every[name] for name in dict.fromkeys((primary, *_HEADLINE)) if name in every}
        rest = {f"{_REST}/{name}": value for name, value in every.items() if name not in first}
        arms[arm] = ArmSummary(parameters[arm], _verdict_tags(judged, arm), first, {**first, **rest})
    table = _table(arms, judged)
    columns = (primary, "passage_ndcg_at_10", *_TIMES[1:], *_HEADLINE[-5:])
    side_by_side = {
        f"{column}/{_safe(arm)}": summary.headline[column]
        for arm, summary in arms.items()
        for column in columns
        if column in summary.headline
    }
    note = _note(table, judged, f"Change from {results.arms[0]}, with {results.interval} CIs:")
    return RunSummary(_name(results), _tags(results), side_by_side, table, note, arms)


def _name(results: measurements.Measurements) -> str:
    """The arms and what they were measured on: `baseline, rerank on notes (test)`."""
    listed = ", ".join(results.arms)
    listed = listed if len(listed) <= _MAX_NAME else f"{len(results.arms)} arms: {listed[:_MAX_NAME].rstrip(', ')} ..."
    return f"{listed} on {results.record['benchmark']['name']} ({results.record['split']})"


def _note(table: pd.DataFrame, judged: pd.DataFrame, title: str) -> str:
    """The arms and the verdicts as markdown tables, followed by as many reasons as fit into the tag."""
    formats = {"effect": "+.3f", "ci_low": "+.3f", "ci_high": "+.3f", "p": ".3f", "latency_ms": "+.1f"}
    arms = console.markdown(table, dict.fromkeys(_HEADLINE, ".3f") | dict.fromkeys(_TIMES, ".1f"))
    if judged.empty:
        return arms[:_MAX_TAG]
    printed = console.columns(judged, ["factor", "other", "effect", "ci_low", "ci_high", "p", "latency_ms", "verdict"])
    reasons = [
        f"- **{row['factor']}**: {row['verdict']}. {row['reason']}" for _, row in judged.iterrows() if row["reason"]
    ]
    lines = [arms, "", title, "", console.markdown(printed, formats), ""]
    while len(reasons) > 1 and len("\n".join([*lines, *reasons])) > _MAX_TAG:
        reasons = [*reasons[:-2], "- The others are in the report."]
    return "\n".join([*lines, *reasons])[:_MAX_TAG]


def _table(arms: Mapping[str, ArmSummary], judged: pd.DataFrame) -> pd.DataFrame:
    """A row for every arm: the measures that MLflow shows first, where they were measured, and the verdict."""
    import pandas as pd

    by_factor = {str(row["factor"]): measurements.labelled(row) for row in judged.to_dict(orient="records")}
    columns = [*_QUALITY, *_TIMES]
    rows = [
        {"arm": arm, **{key: value for key, value in summary.headline.items() if key in columns}}
        for arm, summary in arms.items()
    ]
    return pd.DataFrame(rows).assign(verdict=[str(by_factor.get(arm, "")) for arm in arms])


def _verdict_tags(judged: pd.DataFrame, arm: str) -> dict[str, str]:
    """The recorded verdict on an arm in words; empty for the arm that others were compared with."""
    rows = judged[(judged["factor"] == arm) & (judged["verdict"] != "")]
    return (
        {f"ragbench.{name}": str(rows.iloc[0][name]) for name in ("verdict", "judged_by", "reason")}
        if len(rows)
        else {}
    )


def _verdict_metrics(judged: pd.DataFrame, arm: str) -> dict[str, float]:
    """The effect of an arm with its interval, p and added p95; empty for the arm that others are compared with."""
    rows = judged[(judged["factor"] == arm) & (judged["kind"] == "main")]
    if rows.empty:
        return {}
    return {name: float(rows.iloc[0][key]) for key, name in _EFFECTS.items() if rows.iloc[0][key] == rows.iloc[0][key]}


def _metrics(results: measurements.Measurements, judged: pd.DataFrame, arm: str) -> dict[str, float]:
    """Stable metric names: `ndcg_at_10`, `section_ndcg_at_10`, `ndcg_at_10.factual`, `p95_ms`, `p6_p95_ms` ..."""
    frame = results.per_query[results.per_query["arm"] == arm]
    named: dict[str, float] = {}
    for (level, measure), values in frame.groupby(["level", "measure"], observed=True)["value"]:
        prefix = "" if level == "document" else f"{level}_"
        named[prefix + metric_name(str(measure))] = float(values.mean())
    documents = frame[frame["level"] == "document"]
    for (kind, measure), values in documents.groupby(["type", "measure"], observed=True)["value"]:
        named[f"{metric_name(str(measure))}.{kind}"] = float(values.mean())
    for row in results.latency[results.latency["arm"] == arm].to_dict(orient="records"):
        stage = "" if row["stage"] == "total" else str(row["stage"]).replace(" ", "_") + "_"
        named |= {f"{stage}{p}_ms": float(row[p]) for p in ("p50", "p95", "p99")}
    if (net := results.net_p95_ms.get(arm)) is not None:
        named["net_p95_ms"] = net
    if arm in (index_bytes := results.record.get("index_bytes", {})):
        named["index_bytes"] = float(index_bytes[arm])
    if arm in results.peak_memory_mb:
        named["peak_memory_mb"] = results.peak_memory_mb[arm]
    named |= _verdict_metrics(judged, arm)
    return {_safe(name): value for name, value in named.items() if value == value}


def _safe(name: str) -> str:
    """A name, with characters that the name of a metric may not have replaced."""
    return re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII)


def _tags(results: measurements.Measurements) -> dict[str, str]:
    environment, benchmark = results.record["environment"], results.record["benchmark"]
    git = environment["git"] or {}
    return {
        FOLDER: str(results.folder.absolute()),
        "ragbench.benchmark": str(benchmark["name"]),
        FACTS["judgments"]: str(benchmark["digest"]),
        FACTS["documents"]: str(benchmark.get("collection", "")),
        FACTS["queries"]: digest([benchmark.get("questions"), results.record["split"]]),
        FACTS["measure"]: results.primary,
        FACTS["CPU"]: str(environment.get("processor", "")),
        "ragbench.split": str(results.record["split"]),
        "mlflow.source.git.commit": str(git.get("commit", "")),
        "ragbench.dirty": str(git.get("dirty", "")),
    }
