"""The MLflow store: made whole under a lock, written by one process at a time, set aside when it is broken.

A store that ragbench made and that cannot be used is renamed and made again. `OpenStore.renewed` then says that its
content has to be written again from the folders of results.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.types import TrackingError, why_unreadable
from ragbench.boundary import paths
from ragbench.config.settings import Settings
from ragbench.results import store

_LOG = logging.getLogger(__name__)

# Importing MLflow imports tqdm, which warns in a JupyterLab without ipywidgets.
warnings.filterwarnings("ignore", message="IProgress not found")

FOLDER, ARM, RECORD = "ragbench.folder", "ragbench.arm", "ragbench.record"
"""Tags: the folder of results, the arm, and a digest of the record, which is set when all of it is written."""

FACTS = {
    "documents": "ragbench.documents",
    "queries": "ragbench.queries",
    "judgments": "ragbench.digest",
    "measure": "ragbench.measure",
    "models": "ragbench.models",
    "CPU": "ragbench.cpu",
}
"""The tags with what must be equal so that runs can be compared over time."""

_SQLITE = "sqlite:///"
_SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https", "file", "databricks")
_WAIT_SECONDS = 600
_TABLES = {"alembic_version", "experiments", "runs", "metrics", "params", "tags"}


@dataclass(frozen=True)
class Target:
    """Where tracking runs go: a store, an experiment in it, and the folder of results that they are written from.

    `is_ours`: whether the store is the one in that folder, not one named by `tracking.uri`.
    """

    uri: str
    experiment: str
    results: Path
    is_ours: bool

    @property
    def database(self) -> Path | None:
        """The file of a SQLite store, None for other kinds."""
        return Path(self.uri.removeprefix(_SQLITE)) if self.uri.startswith(_SQLITE) else None

    @property
    def artifacts(self) -> Path:
        """The folder for files of tracking runs in a store that ragbench made."""
        return (self.results / "mlartifacts").absolute()


@dataclass(frozen=True)
class OpenStore:
    """MLflow with a store that can be written. `renewed`: the earlier store was broken and is set aside."""

    mlflow: Any
    client: Any
    experiment: str
    renewed: bool


def target_of(settings: Settings) -> Target:
    """`tracking.uri`, else a SQLite file in the results folder."""
    tracking = settings.tracking
    uri = str(tracking.uri or f"{_SQLITE}{(settings.results / 'mlflow.db').absolute()}")
    uri = paths.resolved(uri) if uri.startswith("env:") else uri
    return Target(uri, tracking.experiment, settings.results, not tracking.uri)


def check(target: Target) -> None:
    """Raise TrackingError when the store cannot be written; quick, creates no store, imports no MLflow."""
    path, (scheme, separator, _) = target.database, target.uri.partition("://")
    if separator and scheme.partition("+")[0] not in _SCHEMES and scheme not in _plugin_schemes():
        raise TrackingError(
            f"tracking.uri={target.uri} begins with {scheme}://, which MLflow does not know: name a file with "
            "sqlite:///<file>, a server with http://<server>, or turn tracking off with tracking.enabled=false"
        )
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(errno.EROFS, "its folder is read-only")
        if path.exists() and not target.is_ours:
            with _connect(path) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.rollback()
    except (sqlite3.Error, OSError) as error:
        fault = why_unreadable(error) if isinstance(error, OSError) else str(error)
        if target.is_ours:
            raise TrackingError(
                f"the results folder {target.results} cannot be written ({fault}): choose another with "
                "paths.results=<folder>"
            ) from None
        raise TrackingError(
            f"the MLflow store {path} cannot be used ({fault}): name another with tracking.uri=sqlite:///<file> "
            f"or turn tracking off with tracking.enabled=false"
        ) from None


def state(settings: Settings) -> str:
    """The version of MLflow and the store, as `ragbench doctor` prints them. TrackingError as by `check`."""
    import importlib.metadata

    target = target_of(settings)
    check(target)
    return f"MLflow {importlib.metadata.version('mlflow')} on {target.uri}"


def _plugin_schemes() -> set[str]:
    """The schemes of stores that other packages add to MLflow (`mlflow.tracking_store` entry points)."""
    from importlib.metadata import entry_points

    return {entry_point.name for entry_point in entry_points(group="mlflow.tracking_store")}


@contextmanager
def open_store(target: Target) -> Iterator[OpenStore]:
    """The store, with its experiment; no other process of ragbench writes to it in the meantime.

    Raises TrackingError for every failure inside the block: the layers below MLflow raise many kinds of errors.
    """
    from filelock import FileLock

    mlflow = _mlflow()
    path = target.database
    guarded = path or target.results / "mlflow"
    try:
        guarded.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{guarded}.lock", timeout=_WAIT_SECONDS):
            renewed = path is not None and target.is_ours and _set_aside(path)
            if path is not None and not path.exists():
                _make(path, target)
            yield _open(mlflow, target, renewed)
    except TrackingError:
        raise
    except Exception as error:
        cause = getattr(error.__cause__, "orig", None) or error  # of a database its own error, not SQLAlchemy's text
        first = (str(cause).splitlines() or [""])[0]
        raise TrackingError(
            f"MLflow could not be written ({type(cause).__name__}: {first}): check free space and permissions"
        ) from error


def folder_of(target: Target, run_id: str) -> str:
    """The results folder of a tracking run, or of the arm that the run is. TrackingError when there is none."""
    mlflow = _mlflow()
    if target.database is not None and not target.database.exists():
        raise TrackingError(f"'{run_id}' is neither a file nor a run: it has no MLflow store {target.uri}")
    check(target)
    mlflow.set_tracking_uri(target.uri)
    try:
        tags = mlflow.get_run(run_id).data.tags
    except mlflow.exceptions.MlflowException:
        raise TrackingError(f"'{run_id}' is neither a file nor a run in the MLflow store {target.uri}") from None
    folder = Path(tags.get(FOLDER, ""))
    if not folder.is_dir():
        raise TrackingError(f"the files of MLflow run {run_id} are no longer in {folder}")
    return str(store.arm_path(folder, tags[ARM]) if ARM in tags else folder)


def _mlflow() -> Any:
    import mlflow

    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"  # one bar for each file, beside ours
    # A new store logs every table and migration, and a failing one the traceback of the error that it raises.
    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return mlflow


def _open(mlflow: Any, target: Target, renewed: bool) -> OpenStore:
    mlflow.set_tracking_uri(target.uri)
    if target.is_ours and mlflow.get_experiment_by_name(target.experiment) is None:
        mlflow.create_experiment(target.experiment, artifact_location=target.artifacts.as_uri())
    experiment = mlflow.set_experiment(target.experiment)
    return OpenStore(mlflow, mlflow.MlflowClient(), str(experiment.experiment_id), renewed)


def _make(path: Path, target: Target) -> None:
    """Make a store, under another name until it has all tables: making them takes seconds."""
    with files.atomic_write(path) as draft:
        store = _store_class()(f"{_SQLITE}{draft.absolute()}", target.artifacts.as_uri())
        store.engine.dispose()


def _set_aside(path: Path) -> bool:
    """Rename a store that cannot be used and say so; returns whether there was one."""
    if not path.exists():
        return False
    fault = _fault(path)
    if fault is None:
        return False
    aside = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    path.replace(aside)
    for suffix in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    for engine in _store_class()._engine_map.values():
        engine.dispose()  # they are connected to the renamed file
    _LOG.warning(
        f"the MLflow store {path} cannot be used ({fault}): it is now {aside.name}, and is made again from the results"
    )
    return True


def _fault(path: Path) -> str | None:
    """Why a store that ragbench made cannot be used, None when it can."""
    from mlflow.store.db import utils

    tables_of: Any = utils
    try:
        with _connect(path) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if missing := sorted(_TABLES - tables):
                return f"it has no table {missing[0]}"
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                return str(state).splitlines()[-1]
            versions = [version for (version,) in connection.execute("SELECT version_num FROM alembic_version")]
    except sqlite3.DatabaseError as error:
        return str(error)
    expected_revisions = [tables_of._get_latest_schema_revision()]
    return None if versions == expected_revisions else f"its tables are of version {', '.join(versions) or 'none'}"


def _store_class() -> Any:
    from mlflow.store.tracking import sqlalchemy_store

    return sqlalchemy_store.SqlAlchemyStore


def _connect(path: Path) -> closing[sqlite3.Connection]:
    """A connection that does not create a missing file."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5))
