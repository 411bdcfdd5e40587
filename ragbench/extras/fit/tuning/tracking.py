"""Write tracking runs from folders of finished hyperparameter searches; `extras.tracking` calls it by a hook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.options import flat
from ragbench.base.types import Damaged, ResultsError
from ragbench.boundary.json import read_checksummed
from ragbench.extras.tracking import write
from ragbench.extras.tracking.store import FOLDER, OpenStore
from ragbench.results import measurements, store

RECORD = "report.json"
"""The file of a finished search, in its folder `tune/NAME` below the results."""


def read(folder: Path) -> dict[str, Any]:
    """The record of a finished search. ResultsError where it or a file of the report is missing or has changed."""
    try:
        record = read_checksummed(folder / RECORD)
        files.check_digests(folder, record["files"])
    except FileNotFoundError:
        raise ResultsError(f"{folder} holds no search ({RECORD} is missing): run ragbench tune again") from None
    except Damaged as damage:
        raise ResultsError(f"the search in {folder} is damaged ({damage}): run ragbench tune again") from None
    return record


def confirmation_folder(folder: Path) -> Path | None:
    """The folder of the experiment that confirmed a search, None if there is none."""
    try:
        test = read(folder)["test"]
    except (ResultsError, KeyError):
        return None
    confirmed = Path(test["folder"]) if test else None
    return confirmed if confirmed is not None and (confirmed / store.RECORD).is_file() else None


def log(folder: Path, into: OpenStore) -> str:
    """Log a search: a parent with the arms of its evaluation on test and every trial below it. Returns its id."""
    record = read(folder)
    with into.mlflow.start_run(run_name=f"tune {record['name']}") as run:
        confirmed = confirmation_folder(folder)
        into.mlflow.set_tags({"ragbench.kind": "tuning", FOLDER: str((confirmed or folder).absolute())})
        into.mlflow.log_params(flat(record["tune"]))
        into.mlflow.log_metrics(_metrics(record))
        for name in record["files"]:
            into.mlflow.log_artifact(str(folder / name), "search")
        if confirmed is not None:
            results = measurements.load(confirmed)
            write.log_files(into.mlflow, confirmed)
            write.log_arms(into.mlflow, results, write.summarise(results))
        _log_trials(into, folder, record, run.info)
    return write.mark_complete(into, run, folder / RECORD)


def _metrics(record: Mapping[str, Any]) -> dict[str, float]:
    metrics = {
        f"train_{record['objective']}.{which}": float(record[which][record["objective"]])
        for which in ("preset", "winner")
    }
    nested = record["nested"]
    if nested:
        metrics |= {"searched": nested["train"], "held_out": nested["held_out"], "optimism": nested["optimism"]}
    return metrics


def _log_trials(into: OpenStore, folder: Path, record: Mapping[str, Any], parent: Any) -> None:
    """The trials of the search over all training topics; the client takes a tenth of the time of `start_run`."""
    import pandas as pd

    entities = into.mlflow.entities
    frame = pd.read_csv(folder / "trials.csv", dtype=str, keep_default_na=False)
    name, parameters = record["objective"], [row["parameter"] for row in record["parameters"]]
    for row in frame[frame["search"] == frame["search"].iloc[0]].to_dict(orient="records"):
        tags = {write.PARENT: parent.run_id, "ragbench.kind": "trial", FOLDER: str(folder.absolute())}
        number = int(row["trial"])
        created = into.client.create_run(parent.experiment_id, run_name=f"trial {number}", tags=tags)
        into.client.log_batch(
            created.info.run_id,
            metrics=[entities.Metric(name, float(row[name]), parent.start_time, number)],
            params=[entities.Param(key, row[key]) for key in parameters if row.get(key)],
        )
        into.client.set_terminated(created.info.run_id)
