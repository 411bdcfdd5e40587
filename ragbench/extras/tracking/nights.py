"""The runs of an arm in the MLflow store, with their values by query: what a trend is made of."""

from __future__ import annotations

from functools import cache
from typing import Any

from ragbench.base import progress
from ragbench.base.types import TrackingError, redacted
from ragbench.extras.tracking.store import ARM, FACTS, Target, open_store
from ragbench.extras.tracking.trend import Night
from ragbench.extras.tracking.write import PARENT, PER_QUERY


def read(target: Target, arm: str | None = None) -> tuple[str, list[Night]]:
    """The arm and its runs in any order; `arm` may be omitted where the store has one. Raises TrackingError."""
    if target.database is not None and not target.database.exists():
        raise TrackingError(f"MLflow store {redacted(target.uri)} does not exist: ragbench track --all writes it")
    with open_store(target) as into:
        runs = into.mlflow.search_runs(
            [into.experiment], "tags.`ragbench.kind` = 'arm'", output_format="list", max_results=50_000
        )
        arm = _one([str(run.data.tags[ARM]) for run in runs], arm, target)
        started = cache(lambda run_id: int(into.client.get_run(run_id).info.start_time))
        chosen = [run for run in runs if run.data.tags[ARM] == arm]
        return arm, [_night(into.mlflow, run, started) for run in progress.steps("reading runs", chosen)]


def _one(arms: list[str], arm: str | None, target: Target) -> str:
    names = sorted(set(arms))
    if arm is None and len(names) == 1:
        return names[0]
    if arm in names:
        return str(arm)
    place = redacted(target.uri)
    if not names:
        raise TrackingError(f"the MLflow store {place} has no runs of ragbench: ragbench track --all writes them")
    reason = f"has no arm '{arm}'" if arm else "has several arms"
    raise TrackingError(f"the MLflow store {place} {reason}: name one of {', '.join(names)} with --arm")


def _night(mlflow: Any, run: Any, started: Any) -> Night:
    """A run with the values of its primary measure; the time is that of the experiment, not of its logging."""
    tags = run.data.tags
    try:
        table = mlflow.artifacts.load_dict(f"runs:/{run.info.run_id}/{PER_QUERY}")
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
        measure = tags.get(FACTS["measure"]) or "nDCG@10"
        values = {
            str(row["qid"]): float(row["value"])
            for row in rows
            if row["level"] == "document" and row["measure"] == measure and row["value"] is not None
        }
    except (KeyError, TypeError, ValueError):
        raise TrackingError(
            f"MLflow run {run.info.run_id} has a damaged {PER_QUERY}: delete the run, and ragbench track --all"
        ) from None
    parent = tags.get(PARENT)
    at = started(parent) if parent else int(run.info.start_time)
    return Night(at / 1000, str(run.info.run_id), values, {name: tags.get(tag, "") for name, tag in FACTS.items()})
