"""An engine as a deployment: it searches, and what ragbench adds on top (a learned order) runs here.

Changed documents are taken into an engine in one transaction, in which only what has changed is written.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ragbench.base import files
from ragbench.base.errors import BoundaryError, BundleError, ConfigError, RagbenchError
from ragbench.base.types import Document
from ragbench.boundary import paths
from ragbench.config.settings import Settings
from ragbench.export.gate import Check
from ragbench.extras.engines import content, opensearch, postgres
from ragbench.extras.engines.content import temporary_folder
from ragbench.extras.engines.opensearch import Cluster, OpenSearchEngine
from ragbench.extras.engines.plan import cut_of, ranker_of
from ragbench.extras.engines.postgres import PostgresEngine
from ragbench.extras.engines.search import Engine, SearchEngine, Writer
from ragbench.extras.engines.sqlite import MAGIC, SqliteEngine
from ragbench.extras.engines.words import Terms
from ragbench.extras.ship import bundle, checks, generation
from ragbench.extras.ship.address import is_remote
from ragbench.extras.ship.loaded_bundle import BundleStore, LoadedBundle, settings_of
from ragbench.extras.ship.refresh import Refreshed, Refresher
from ragbench.index.index import Index
from ragbench.models.access import Models
from ragbench.search.engine.pipeline import Pipeline

_PARTS = ("chunks", "terms")
"""The parts of an index that are used next to an engine."""


def deployment(location: str | Path) -> EngineDeployment | None:
    """The engine in a file of SQLite or behind the address of a server; None for the folder of a bundle."""
    return EngineDeployment(location) if is_remote(str(location)) or _is_sqlite(location) else None


def _is_sqlite(location: str | Path) -> bool:
    try:
        with Path(location).expanduser().open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # a name that is not text
        return False


def connect(location: str | Path, writable: bool = False) -> Engine:
    """The engine in a file or behind an address. Raises BundleError, ConfigError for others."""
    if is_remote(str(location)):
        return _connect_server(str(location), writable)
    path = Path(location).expanduser()
    if not path.is_file():
        raise BundleError(f"the file does not exist {path}: make one with ragbench export --format sqlite")
    return SqliteEngine(path, writable)


def _connect_server(address: str, writable: bool) -> Engine:
    scheme = paths.resolved(address).partition("://")[0]
    if scheme in postgres.SCHEMES:
        return PostgresEngine(address, writable)
    for system in opensearch.SYSTEMS.values():
        if scheme in opensearch.schemes(system):
            return OpenSearchEngine(Cluster(system, address))
    names = ", ".join(f"{name}://" for name in ("postgres", *opensearch.SYSTEMS))
    raise ConfigError(f"'{scheme}' is not a supported engine: specify a file, or an address of {names}")


class EngineDeployment:
    """An engine in a file or behind an address."""

    def __init__(self, location: str | Path) -> None:
        self._location = location

    def open(
        self,
        *,
        threads: int | None = None,
        models: Models | None = None,
        order: bool = True,
    ) -> LoadedBundle:
        """Open it. `order=False`: what the engine alone gives, without the learned order.

        Raises BundleError when it does not answer, or was not loaded by ragbench.
        """
        engine = connect(self._location)
        try:
            return over(engine, models or Models(cache=None, threads=threads), order, closing=engine.close)
        except BaseException:
            engine.close()
            raise

    def check(self, options: checks.Options) -> Iterator[Check]:
        """Check its content, its models, and what it answers."""
        engine = connect(self._location)
        with over(engine, Models(cache=None), closing=engine.close) as loaded:
            damage = engine.damage()
            unchanged = Check("content", "passes", "documents, vectors and terms are unchanged")
            yield Check("content", "fails", f"{damage}: export it again") if damage else unchanged
            yield from checks.models(loaded.record)
            yield checks.rankings(loaded)
            yield Check("latency", "not checked", "an engine is timed as an arm: live=engine live.engine=ADDRESS")
            yield checks.drift(loaded)
            yield checks.environment_of(loaded.record)

    def follower(self, corpus: Path | None, threads: int | None) -> EngineRefresher:
        """What keeps it up to date."""
        return EngineRefresher(self._location, corpus, threads=threads)


def over(
    engine: Engine, models: Models, order: bool = True, closing: Callable[[], object] = lambda: None
) -> LoadedBundle:
    """A bundle over an engine that is open; `closing` is called when the bundle is closed."""
    state = partial(_state, engine)
    opened_as = state()
    folder = temporary_folder("ragbench-engine")
    try:
        unpack(engine, folder)
        record = bundle.read_record(folder)
        bundle.check_files(folder, record)
        settings = settings_of(folder, record)
        serves = generation.current(folder, record)
        store = BundleStore(folder / bundle.INDEX)
        index = Index(settings.index, serves.collection, _none, store, models, times=lambda: serves.modified)
        pipeline = pipeline_over(engine, settings, order)
        index.prepare(pipeline.needs | {"facets"})
        opened = LoadedBundle(folder, record, settings, index, serves, pipeline, state, opened_as)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # Also where nobody closes it, as an arm of a run, which asks until the process ends.
    opened.on_close(weakref.finalize(opened, shutil.rmtree, folder, ignore_errors=True))
    opened.on_close(closing)
    return opened


def _state(engine: Engine) -> object:
    """What changes with the content of an engine, or with its file; None while it does not answer."""
    try:
        version = engine.version()
    except RagbenchError:
        return None
    return (version, generation.file_version(Path(engine.name))) if version else None


def pipeline_over(engine: Engine, settings: Settings, order: bool = True) -> Pipeline:
    """The search in an engine, then the learned order of the configuration, if there is one, and its cut."""
    stages: list[tuple[str, object]] = [("engine", SearchEngine(engine, tuple(engine.plan.depths)))]
    ranked = ranker_of(settings)
    if order and ranked is not None:
        stages.append(ranked)
    stages.append(("cut", replace(cut_of(settings))))
    return Pipeline(tuple(stages))  # type: ignore[arg-type]


def unpack(engine: Engine, folder: Path) -> None:
    """Write the files of an engine below a folder. Raises BundleError for files that cannot be written there."""
    for name, body in engine.files().items():
        try:
            path = paths.inside(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BundleError(f"{engine.name}: {name[:80]} is a file and a folder at once: export it again") from None
        except BoundaryError as error:
            raise BundleError(f"{engine.name}: {error}: export it again") from None
        except OSError as error:
            reason = files.why_unreadable(error)
            raise BundleError(
                f"cannot unpack {engine.name} below {folder.parent} ({reason}): free space there"
            ) from None


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a bundle's folder that an engine needs: all but the parts of the index that it replaces."""
    packed = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if not path.is_file() or path.name.endswith(".lock"):
            continue
        is_kept = parts[0] not in ("cache", "signatures") and (parts[0] != bundle.INDEX or parts[1] in _PARTS)
        if is_kept:
            packed["/".join(parts)] = path.read_bytes()
    return packed


def _none() -> list[Document]:
    raise BundleError("an engine has no documents to build an index from: export it again")


class EngineRefresher:
    """Keeps an engine up to date with a folder of markdown; what it holds for ragbench is refreshed as a bundle is."""

    def __init__(self, location: str | Path, corpus: Path | None = None, *, threads: int | None = None) -> None:
        self._engine = connect(location, writable=True)
        self._folder = temporary_folder("ragbench-engine")
        self._clean = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._unpacked = self._engine.version()
        unpack(self._engine, self._folder)
        self._refresher = Refresher(
            self._folder, corpus, threads=threads, pipeline=partial(pipeline_over, self._engine)
        )
        self.corpus, self.beside = self._refresher.corpus, self._refresher.beside

    def refresh(self, allow_shrink: bool = False) -> Refreshed:
        """Serve what is in the folder now. Raises CorpusError when less than half of the documents are left."""
        with self._engine.transaction() as writer:
            if self._engine.version() != self._unpacked:
                shutil.rmtree(self._folder)
                self._folder.mkdir()
                unpack(self._engine, self._folder)
            self._unpacked = ""
            refreshed = self._refresher.refresh(allow_shrink, partial(self._write, writer))
            if refreshed.anything:
                writer.finish({}, pack(self._folder), {})
            unpacked = self._engine.version()
        self._unpacked = unpacked
        return refreshed

    def close(self) -> None:
        """Close the engine and delete what was unpacked."""
        self._engine.close()
        self._clean()

    def _write(self, writer: Writer, index: Index) -> None:
        """Write the documents that differ from those of the engine."""
        known_digests, plan = dict(writer.digests()), self._engine.plan
        terms, changed = Terms(plan.analyzer), []
        for row in content.rows(index, plan):
            if known_digests.pop(row.docno, None) != row.digest:
                changed.append(row)
        texts = {content.passage_key(chunk.passage): chunk.passage for row in changed for chunk in row.chunks}
        vectors = dict(writer.vectors(texts))
        for docno in (*known_digests, *(row.docno for row in changed)):
            writer.drop(docno)
        new = sorted(texts.keys() - vectors.keys())
        if new and "dense" in plan.depths:
            vectors |= dict(zip(new, index.encoder.encode_passages([texts[key] for key in new]), strict=True))
        for row in changed:
            chunk_vectors = [
                vectors[content.passage_key(chunk.passage)] if "dense" in plan.depths else None for chunk in row.chunks
            ]
            writer.put(row, chunk_vectors, terms)
        writer.finish(terms.forms(), None, {})
