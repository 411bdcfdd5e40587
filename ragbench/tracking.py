"""MLflow: written from finished results, never instead of them; the only module that imports it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.errors import TrackingError
from ragbench.evaluation.measures import metric_name
from ragbench.experiment import store
from ragbench.timing import open_loop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.configuration import Settings
    from ragbench.experiment.results import Results
    from ragbench.tuning.confirm import Confirmation
    from ragbench.tuning.outcome import Tuned

_PARAMETER_LIMIT = 6000
_MORE = ("open_loop.csv", "verdicts.csv", "design.txt", "report.html")


def store_uri(settings: Settings) -> str:
    """The MLflow store: `tracking.uri`, else a SQLite file in the results folder."""
    given = settings.config["tracking"]["uri"]
    return str(given) if given else f"sqlite:///{(settings.results / 'mlflow.db').absolute()}"


def check_store(uri: str) -> None:
    """Raise TrackingError when the store cannot be opened; cheap, imports nothing heavy."""
    if not uri.startswith("sqlite:///"):
        return
    path = Path(uri.removeprefix("sqlite:///"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(path, timeout=5) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
    except (sqlite3.Error, OSError) as error:
        raise TrackingError(
            f"the MLflow store {path} cannot be used ({error}): name another with tracking.uri=sqlite:///<file> "
            f"or turn tracking off with tracking.enabled=false"
        ) from None


def log(results: Results, settings: Sequence[Settings], benchmark: Benchmark, say: Callable[[str], None]) -> str | None:
    """Log an experiment: one run for one arm, a parent with a nested run per arm otherwise. Returns the run's id.

    A failure here is said and never loses a result: the files are already written.
    """
    uri = store_uri(settings[0])
    mlflow = _mlflow()
    try:
        mlflow.set_tracking_uri(uri)
        _experiment(mlflow, settings[0])
        if len(settings) == 1:
            with mlflow.start_run(run_name=settings[0].name) as tracking_run:
                _log_arm(mlflow, results, settings[0], benchmark)
                _log_experiment(mlflow, results)
            return str(tracking_run.info.run_id)
        with mlflow.start_run(run_name=results.folder.name) as parent:
            mlflow.set_tags({"ragbench.kind": "experiment", **_tags(results, benchmark)})
            _log_experiment(mlflow, results)
            for each in settings:
                with mlflow.start_run(run_name=each.name, nested=True):
                    _log_arm(mlflow, results, each, benchmark)
        return str(parent.info.run_id)
    except Exception as error:  # the layers below MLflow raise kinds of their own; the results are on disk
        first = (str(error).splitlines() or [""])[0]
        say(f"MLflow could not be written ({type(error).__name__}: {first}); all results are in {results.folder}")
        return None


def log_tuning(
    tuned: Tuned, confirmation: Confirmation | None, benchmark: Benchmark, say: Callable[[str], None]
) -> str | None:
    """Log a search: a parent with the arms of its evaluation on test and every trial below it. Returns the run's id."""
    mlflow = _mlflow()
    try:
        mlflow.set_tracking_uri(store_uri(tuned.base))
        _experiment(mlflow, tuned.base)
        with mlflow.start_run(run_name=f"tune {tuned.base.name}") as parent:
            folder = tuned.folder if confirmation is None else confirmation.results.folder
            mlflow.set_tags({"ragbench.kind": "tuning", "ragbench.folder": str(folder)})
            mlflow.log_params(flat(tuned.base.config["tune"]))
            mlflow.log_metrics(_search_metrics(tuned))
            for file in sorted(each for each in tuned.folder.iterdir() if each.suffix in (".csv", ".md", ".txt")):
                mlflow.log_artifact(str(file), "search")
            if confirmation is not None:
                _log_experiment(mlflow, confirmation.results)
                for each in confirmation.settings:
                    with mlflow.start_run(run_name=each.name, nested=True):
                        _log_arm(mlflow, confirmation.results, each, benchmark)
            _log_trials(mlflow, tuned, parent.info)
        return str(parent.info.run_id)
    except Exception as error:  # as above
        first = (str(error).splitlines() or [""])[0]
        say(f"MLflow could not be written ({type(error).__name__}: {first}); all results are in {tuned.folder}")
        return None


def _search_metrics(tuned: Tuned) -> dict[str, float]:
    named = {"preset": tuned.preset, "winner": tuned.winner}
    found = {
        f"train_{each.name}.{name}": value
        for name, trial in named.items()
        for each, value in zip(tuned.rules.objectives, trial.objectives, strict=True)
    }
    if tuned.folds:
        found |= {"searched": tuned.inner, "held_out": tuned.held_out, "optimism": tuned.optimism}
    return found


def _log_trials(mlflow: Any, tuned: Tuned, parent: Any) -> None:
    """The trials of the search over all training topics, by the client: a tenth of the time of `start_run`."""
    client = mlflow.MlflowClient()
    for trial in next(iter(tuned.trials.values())):
        tags = {"mlflow.parentRunId": parent.run_id, "ragbench.kind": "trial", "ragbench.folder": str(tuned.folder)}
        made = client.create_run(parent.experiment_id, run_name=f"trial {trial.number}", tags=tags)
        reached = zip(tuned.rules.objectives, trial.objectives, strict=True)
        client.log_batch(
            made.info.run_id,
            metrics=[mlflow.entities.Metric(o.name, value, parent.start_time, trial.number) for o, value in reached],
            params=[mlflow.entities.Param(key, str(value)) for key, value in trial.values.items()],
        )
        client.set_terminated(made.info.run_id)


def _mlflow() -> Any:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    import logging

    import mlflow

    # A new store announces every table and migration.
    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)

    return mlflow


def _experiment(mlflow: Any, settings: Settings) -> None:
    name = str(settings.config["tracking"]["experiment"])
    if mlflow.get_experiment_by_name(name) is None and not settings.config["tracking"]["uri"]:
        mlflow.create_experiment(name, artifact_location=(settings.results / "mlartifacts").absolute().as_uri())
    mlflow.set_experiment(name)


def _log_arm(mlflow: Any, results: Results, settings: Settings, benchmark: Benchmark) -> None:
    parameters = {key: str(value)[:_PARAMETER_LIMIT] for key, value in flat(settings.config).items()}
    mlflow.log_params(parameters)
    mlflow.set_tags({"ragbench.kind": "arm", "ragbench.arm": settings.name, **_tags(results, benchmark)})
    mlflow.log_metrics(metrics(results, settings.name))
    mlflow.log_artifacts(str(results.arm_path(settings.name)), "arm")
    frame = results.per_query[results.per_query["arm"] == settings.name]
    mlflow.log_table(frame.astype(object), "per_query.json")
    dataset = mlflow.data.from_pandas(
        frame[["qid", "type", "split"]].drop_duplicates().astype(object),
        source=mlflow.data.code_dataset_source.CodeDatasetSource({"benchmark": benchmark.name}),
        name=benchmark.name,
        digest=benchmark.digest[:32],
    )
    mlflow.log_input(dataset, context="evaluation")


def _log_experiment(mlflow: Any, results: Results) -> None:
    for name in ("experiment.json", "summary.csv", "latency.csv", *_MORE):
        if (results.folder / name).is_file():
            mlflow.log_artifact(str(results.folder / name))


def metrics(results: Results, arm: str) -> dict[str, float]:
    """Stable metric names: `ndcg_at_10`, `section_ndcg_at_10`, `ndcg_at_10.factual`, `p95_ms`, `p6_p95_ms` ..."""
    frame = results.per_query[results.per_query["arm"] == arm]
    found: dict[str, float] = {}
    for (level, measure), values in frame.groupby(["level", "measure"], observed=True)["value"]:
        prefix = "" if level == "document" else f"{level}_"
        found[prefix + metric_name(str(measure))] = float(values.mean())
    documents = frame[frame["level"] == "document"]
    for (kind, measure), values in documents.groupby(["type", "measure"], observed=True)["value"]:
        found[f"{metric_name(str(measure))}.{kind}"] = float(values.mean())
    for row in results.latency[results.latency["arm"] == arm].to_dict(orient="records"):
        stage = "" if row["stage"] == "total" else str(row["stage"]).replace(" ", "_") + "_"
        found |= {f"{stage}{p}_ms": float(row[p]) for p in ("p50", "p95", "p99")}
    found["index_bytes"] = float(results.record["index_bytes"][arm])
    if arm in results.peak_memory_mb:
        found["peak_memory_mb"] = results.peak_memory_mb[arm]
    under_load = results.open_loop[results.open_loop["arm"] == arm]
    for row in under_load.to_dict(orient="records"):
        found |= {f"response_{p}_ms_at_{row['qps']:g}_qps": float(row[p]) for p in ("p50", "p95", "p99")}
    if len(under_load):
        found["saturation_qps"] = open_loop.saturation(under_load)[arm]
    return {name: value for name, value in found.items() if value == value}


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one level with dotted keys."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            found |= flat(value, f"{name}.")
        else:
            found[name] = value
    return found


def _tags(results: Results, benchmark: Benchmark) -> dict[str, str]:
    git = results.record["environment"]["git"] or {}
    return {
        "ragbench.folder": str(results.folder),
        "ragbench.benchmark": benchmark.name,
        "ragbench.split": str(results.record["split"]),
        "mlflow.source.git.commit": str(git.get("commit", "")),
        "ragbench.dirty": str(git.get("dirty", "")),
    }


def folder_of(settings: Settings, run_id: str) -> str:
    """The results folder of an MLflow run, or of the arm that the run is."""
    mlflow = _mlflow()
    uri = store_uri(settings)
    check_store(uri)
    mlflow.set_tracking_uri(uri)
    try:
        tags = mlflow.get_run(run_id).data.tags
    except mlflow.exceptions.MlflowException:
        raise TrackingError(f"'{run_id}' is neither a file nor a run in the MLflow store {uri}") from None
    folder = Path(tags.get("ragbench.folder", ""))
    if not folder.is_dir():
        raise TrackingError(f"the files of MLflow run {run_id} are no longer in {folder}")
    return str(store.arm_path(folder, tags["ragbench.arm"])) if "ragbench.arm" in tags else str(folder)
