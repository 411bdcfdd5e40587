"""Write tracking runs from the folders of finished experiments and searches, and from nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ragbench.base import files, plugins
from ragbench.base.errors import ResultsError, TrackingError
from ragbench.base.progress import steps
from ragbench.evaluation.measures import check, decreasing, evaluate, metric_name, own_name
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements
from ragbench.tracking import run_summary
from ragbench.tracking.run_summary import RunSummary
from ragbench.tracking.store import ARM, FOLDER, RECORD, OpenStore, Say, Target, open_store

_PARAMETER_LIMIT = 6000

PARENT = "mlflow.parentRunId"
"""The tag of a nested run with the id of its parent."""

_SAID = ("design.txt", "report.html", measurements.VERDICTS, measurements.FIELD, measurements.HALVES)

_MORE = (store.RECORD, "summary.csv", "latency.csv", "open_loop.csv", *_SAID)


def log(target: Target, folder: Path, say: Say) -> str | None:
    """Log a finished experiment or search. Returns the run's id.

    An experiment of one arm is one run; of several, a parent with a nested run per arm. A search is a parent with the
    arms of its evaluation on test and every trial below it. A failure is said and loses no result: the files are
    already written.
    """
    try:
        with open_store(target, say) as into:
            if into.renewed:
                _log_missing(into, target.results, say, besides=folder)
            return _log_folder(folder, into)
    except TrackingError as error:
        say(f"{error}; all results are in {folder}, and ragbench track --all writes what is missing")
        return None


def log_missing(target: Target, say: Say) -> list[Path]:
    """Log every finished experiment and search below the results folder that the store lacks; their folders."""
    with open_store(target, say) as into:
        return _log_missing(into, target.results, say)


def prepare(target: Target, say: Say) -> None:
    """Make the store if there is none; a broken one is made again with all results."""
    with open_store(target, say) as into:
        if into.renewed:
            _log_missing(into, target.results, say)


def pages(target: Target) -> dict[str, str]:
    """Return pages of MLflow by title: the runs, and the comparison of the newest experiment's arms where there is one.

    The page at `/` shows traces, of which ragbench writes none.
    """
    with open_store(target, lambda sentence: None) as into:
        arms = "tags.`ragbench.kind` = 'arm'"
        runs = into.mlflow.search_runs([into.experiment], arms, output_format="list", max_results=1000)
        pages_by_label = {"all runs": f"/#/experiments/{into.experiment}/runs"}
        newest = next((run.data.tags[PARENT] for run in runs if PARENT in run.data.tags), None)
        if newest is not None:
            ids = [run.info.run_id for run in reversed(runs) if run.data.tags.get(PARENT) == newest]
            query = {"runs": json.dumps(ids, separators=(",", ":")), "experiments": json.dumps([into.experiment])}
            pages_by_label["newest comparison"] = f"/#/compare-runs?{urlencode(query)}"
        return pages_by_label


def _log_missing(into: OpenStore, root: Path, say: Say, besides: Path | None = None) -> list[Path]:
    """Log what the store lacks, the oldest first; runs that were not written to their end are removed."""
    logged = _logged_records(into, root)
    tuning = plugins.hook("tracked_tuning")
    tuned = sorted(root.glob(f"tune/*/{tuning.RECORD}"), key=_modified) if tuning else []
    below = {folder for path in tuned if (folder := tuning.confirmation_folder(path.parent)) is not None}
    experiments = sorted(root.glob(f"runs/*/{store.RECORD}"), key=_modified)
    written = []
    for path in [*experiments, *tuned]:
        if path.parent in (*below, besides) or files.digest(path) in logged:
            continue
        try:
            _log_folder(path.parent, into)
        except (ResultsError, files.Damaged) as error:
            say(f"warning: {path.parent} was not logged: {error}")
            continue
        written.append(path.parent)
    return written


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def _log_folder(folder: Path, into: OpenStore) -> str:
    """Log a search if the folder has one and the extra that reads it is there; otherwise an experiment."""
    tuning = plugins.hook("tracked_tuning")
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
    summary = run_summary.summarise(results)
    started = round(1000 * float(results.record.get("started", time.time())))
    created = into.client.create_run(into.experiment, start_time=started, run_name=summary.name)
    with into.mlflow.start_run(created.info.run_id) as run:
        if len(results.arms) == 1:
            _log_arm(into.mlflow, results, summary, results.arms[0])
        else:
            note = {run_summary.NOTE: summary.note}
            into.mlflow.set_tags({"ragbench.kind": "experiment", **note, **summary.tags})
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


def log_arms(mlflow: Any, measurements: Measurements, summary: RunSummary) -> None:
    """Log every arm as a run below the active one."""
    for arm in steps("logging to MLflow", measurements.arms):
        with mlflow.start_run(run_name=arm, nested=True):
            _log_arm(mlflow, measurements, summary, arm)


def _log_arm(mlflow: Any, measurements: Measurements, summary: RunSummary, arm: str) -> None:
    of_arm = summary.arms[arm]
    mlflow.log_params({key: str(value)[:_PARAMETER_LIMIT] for key, value in of_arm.parameters.items()})
    mlflow.set_tags({"ragbench.kind": "arm", ARM: arm, **summary.tags, **of_arm.tags})
    mlflow.log_metrics(dict(of_arm.metrics))
    mlflow.log_artifacts(str(measurements.arm_path(arm)), "arm")
    frame = measurements.per_query[measurements.per_query["arm"] == arm]
    mlflow.log_table(frame.astype(object), "per_query.json")
    benchmark = measurements.record["benchmark"]
    dataset = mlflow.data.from_pandas(
        frame[["qid", "type", "split"]].drop_duplicates().astype(object),
        source=mlflow.data.code_dataset_source.CodeDatasetSource({"benchmark": benchmark["name"]}),
        name=benchmark["name"],
        digest=benchmark["digest"][:32],
    )
    mlflow.log_input(dataset, context="evaluation")


def log_files(mlflow: Any, folder: Path) -> None:
    """Log the record of an experiment, its tables and its report as artifacts of the active run."""
    for name in _MORE:
        if (folder / name).is_file():
            mlflow.log_artifact(str(folder / name))


def mlflow_metrics(measures: Sequence[Any] = ("nDCG@10", "nDCG@5", "RR", "R@100")) -> list[Any]:
    """Return metrics for `mlflow.models.evaluate(..., model_type="retriever", extra_metrics=...)`.

    Predictions are lists of ids, best first; targets are lists of relevant ids, or mappings from id to grade.

    Args:
        measures: Names of ir_measures, trec_eval or PyTerrier.

    Returns:
        A metric of MLflow per measure, with the values of ir_measures.

    Raises:
        ConfigError: A measure is unknown.

    Example:
        >>> import ragbench
        >>> len(ragbench.mlflow_metrics(["nDCG@10", "RR"]))
        2
    """
    from mlflow.metrics import make_metric

    names = list(map(own_name, measures))
    check(names)
    make: Any = make_metric
    return [make(eval_fn=_scorer(name), greater_is_better=True, name=metric_name(name)) for name in names]


def _scorer(measure: str) -> Any:
    def scores(predictions: Any, targets: Any, metrics: Any) -> Any:
        from mlflow.metrics import MetricValue

        qids = [str(number) for number in range(len(predictions))]
        ranked = [[(str(docno), 0.0) for docno in dict.fromkeys(hits)] for hits in predictions]
        run = {qid: decreasing(hits) for qid, hits in zip(qids, ranked, strict=True)}
        qrels = {qid: _grades(judged) for qid, judged in zip(qids, targets, strict=True)}
        frame = evaluate(run, qrels, [measure])
        by_qid: dict[str, float] = dict(
            frame.loc[frame["measure"] == measure, ["qid", "value"]].itertuples(index=False)
        )
        values = [float(by_qid.get(qid, 0.0)) for qid in qids]
        return MetricValue(scores=values, aggregate_results={"mean": sum(values) / max(1, len(values))})

    return scores


def _grades(judged: Any) -> dict[str, int]:
    pairs = judged.items() if isinstance(judged, Mapping) else ((docno, 1) for docno in judged)
    return {str(docno): int(grade) for docno, grade in pairs}
