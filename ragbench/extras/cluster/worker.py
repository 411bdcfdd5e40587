"""What a Dask worker does: describe itself, embed texts, receive artefacts, and compute arms."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import FAILURES, ConfigError, Query
from ragbench.experiment.evaluate import ArmEvaluator, Evaluated
from ragbench.extras.cluster.artefacts import ArtefactBucket
from ragbench.index import jvm
from ragbench.index.artefacts import MANIFEST, Artefact, ArtefactStore, SharedArtefacts
from ragbench.index.index import Index, IndexSpec
from ragbench.models import resolve
from ragbench.models.cache import CachedEncoder
from ragbench.results import environment
from ragbench.search.engine.pipeline import Arm, Outcome, Pipeline, Session

Files = Mapping[str, bytes]
"""The contents of an artefact's files, with its manifest, by path."""


class WorkerFailed(Exception):
    """The worker at an address cannot use its files, such as on a full disk, so that its task is for another one."""

    def __init__(self, worker: str, reason: str) -> None:
        super().__init__(worker, reason)
        self.worker = worker
        self.reason = reason

    def __str__(self) -> str:
        return f"worker {self.worker} cannot use its files ({self.reason})"


@dataclass(frozen=True)
class RunTerms:
    """What the workers of a run agree on.

    `folders`: of artefacts and caches; None: each worker has its own, below the folder that Dask gives it. `threads`
    and `shipped` are those of `Models`. `shared` is `artefacts.url`. `encoders` and `java` are needed; `expected` is
    what `facts` must give.
    """

    folders: tuple[Path, Path] | None
    threads: int | None
    shipped: bool
    encoders: tuple[resolve.EncoderSpec, ...]
    java: bool
    shared: str | None = None
    expected: tuple[tuple[str, str], ...] = ()

    def places(self, process: Any = None) -> tuple[Path, Path]:
        """The folders of artefacts and of caches on a worker, in a task by default that which runs it."""
        if self.folders is not None:
            return self.folders
        from distributed import get_worker

        own = Path((process or get_worker()).local_directory) / "ragbench"
        return own / "index", own / "cache"


@dataclass(frozen=True)
class Work:
    """An arm without its index, which a worker opens from artefacts. `times` are those of `Index`."""

    name: str
    pipeline: Pipeline
    spec: IndexSpec
    collection: str
    times: Mapping[str, float]

    def read_times(self) -> Mapping[str, float]:
        """`times`, as `Index` asks for them."""
        return self.times


def facts(agreed: RunTerms) -> dict[str, str]:
    """By name what results depend on here: packages, the digest of each encoder and how it rounds, Java."""
    here = environment.describe()
    known = {"ragbench": str(here["ragbench"]), **here["packages"]}
    for spec in agreed.encoders:
        try:
            encoder = resolve.Models().encoder(spec)
            known[f"model {spec.name}"] = f"{encoder.passage_digest[:12]} {getattr(encoder, 'numerics', '')}".rstrip()
        except FAILURES as error:
            known[f"model {spec.name}"] = f"missing ({error})"
    if agreed.java:
        try:
            jvm.start_jvm()
            known["Java"] = "working"
        except FAILURES as error:
            known["Java"] = f"missing ({error})"
    return known


def difference(worker: str, there: Mapping[str, str], here: Mapping[str, str]) -> str | None:
    """The sentence that refuses a worker, None for one that gives the same results."""
    key = next((key for key in here if there.get(key) != here[key]), None)
    if key is None:
        return None
    return (
        f"worker {worker} has {key} {there.get(key, 'missing')}, and the machine of the command has {here[key]}: "
        "install the same on both, because results could differ"
    )


def embed(agreed: RunTerms, spec: resolve.EncoderSpec, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of passages, shape (n, dim)."""
    _check(agreed)
    encoder = _models(agreed).encoder(spec)
    assert isinstance(encoder, CachedEncoder), "a worker has caches"
    return encoder.wrapped.encode_passages(texts)  # kept by the machine of the command, which asks for none twice


def lacks(agreed: RunTerms, names: Sequence[tuple[str, str]], dask_worker: Any) -> list[tuple[str, str]]:
    """The artefacts of these kinds and fingerprints that are not here; Dask gives `dask_worker`."""
    store = ArtefactStore(agreed.places(dask_worker)[0])
    return [name for name in names if not store.has(*name)]


def packed(artefact: Artefact) -> Files:
    """The files of an artefact."""
    paths = [*artefact.manifest["files"], MANIFEST]
    return {path: (artefact.folder / path).read_bytes() for path in paths}


def compute(
    agreed: RunTerms,
    works: Sequence[Work],
    queries: Sequence[Query],
    artefacts: Mapping[tuple[str, str], Files],
    evaluator: ArmEvaluator | None,
) -> dict[str, Outcome | Evaluated | BaseException]:
    """The outcomes, evaluated if there is an `evaluator`, or the errors of arms by name.

    `artefacts`, by kind and fingerprint, are kept here.

    Raises WorkerFailed for an error of files, which another worker may not have.
    """
    from distributed import get_worker

    _check(agreed)
    store = ArtefactStore(agreed.places()[0], _shared(agreed))
    results: dict[str, Outcome | Evaluated | BaseException] = {}
    try:
        for (kind, fingerprint), files in artefacts.items():
            _keep(store, kind, fingerprint, files)
        session = _session(tuple(queries))
        for work in works:
            models, opened = _models(agreed), _opened(agreed)
            try:
                index = Index(work.spec, work.collection, _no_documents, store, models, opened, work.read_times)
                arm = Arm(work.name, work.pipeline, index)
                outcome = session.outcome(arm)
                results[work.name] = evaluator(arm, outcome) if evaluator else outcome
            except FAILURES as error:
                if _of_files(error):
                    raise
                results[work.name] = error
    except FAILURES as error:
        if reason := _of_files(error):
            raise WorkerFailed(get_worker().address, reason) from None
        raise
    return results


def _of_files(error: BaseException | None) -> str | None:
    """What the files of this worker do not allow, if that is why something failed."""
    while error is not None:
        if isinstance(error, OSError | sqlite3.Error):
            return " ".join(str(error).split())
        error = error.__cause__ or error.__context__
    return None


def _keep(store: ArtefactStore, kind: str, fingerprint: str, files: Files) -> None:
    """Write an artefact that came from another machine, once its digests are checked."""
    from filelock import FileLock

    def fill(draft: Path) -> bool:
        for path, content in files.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(content)
        return True

    folder = store.root / kind
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{fingerprint}.lock"):
        if not store.has(kind, fingerprint):
            store.receive(kind, fingerprint, fill)


def _no_documents() -> Any:
    raise OSError("it does not have the index that the machine of the command made")


@cache
def _check(agreed: RunTerms) -> None:
    """Refuse work in this process if results could differ: it may have joined after the run began."""
    if reason := difference("that joined the run", facts(agreed), dict(agreed.expected)):
        raise ConfigError(reason)


@cache
def _models(agreed: RunTerms) -> resolve.Models:
    return resolve.Models(cache=agreed.places()[1], threads=agreed.threads, shipped=agreed.shipped)


@cache
def _shared(agreed: RunTerms) -> SharedArtefacts | None:
    return ArtefactBucket(agreed.shared) if agreed.shared else None


@lru_cache(1)
def _session(queries: tuple[Query, ...]) -> Session:
    """What arms of this process share: groups of a run, and trials of a search, follow one another."""
    return Session(queries)


@cache
def _opened(agreed: RunTerms) -> dict[Hashable, Any]:
    """The open readers that arms of this process share."""
    return {}
