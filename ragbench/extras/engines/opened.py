"""Open an engine as a bundle: it searches, and what ragbench adds on top (a learned order) runs here.

Changed documents are taken into an engine in one transaction, in which only what has changed is written.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ragbench.base.errors import BoundaryError, BundleError, ConfigError
from ragbench.base.files import why_unreadable
from ragbench.base.types import Document
from ragbench.boundary.paths import inside, resolved
from ragbench.config.settings import Settings
from ragbench.extras.engines import content
from ragbench.extras.engines.content import temporary_folder
from ragbench.extras.engines.opensearch import ElasticsearchEngine, OpenSearchEngine
from ragbench.extras.engines.plan import cut_of, ranker_of
from ragbench.extras.engines.postgres import SCHEMES, PostgresEngine
from ragbench.extras.engines.search import Engine, SearchEngine
from ragbench.extras.engines.sqlite import MAGIC, SqliteEngine
from ragbench.extras.engines.words import Terms
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.address import is_remote
from ragbench.extras.ship.loaded_bundle import BundleStore, LoadedBundle, settings_of
from ragbench.extras.ship.refresh import Refreshed, Refresher
from ragbench.index.index import Index
from ragbench.models.access import Models
from ragbench.search.engine.pipeline import Pipeline

_PARTS = ("chunks", "terms")
"""The parts of an index that are used next to an engine."""
ALIASED: Mapping[str, type[OpenSearchEngine]] = {
    "opensearch": OpenSearchEngine,
    "elasticsearch": ElasticsearchEngine,
}
"""The engines with an alias by the format that loads them."""


def is_engine(location: str | Path) -> bool:
    """Whether this is a file of SQLite or the address of a server, and not the folder of a bundle."""
    if is_remote(str(location)):
        return True
    try:
        with Path(location).expanduser().open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # a name that is not text
        return False


def connect(location: str | Path, writable: bool = False) -> Engine:
    """The engine in a file or behind an address. Raises BundleError, ConfigError for others."""
    if is_remote(str(location)):
        scheme = resolved(str(location)).partition("://")[0]
        for engine in ALIASED.values():
            if scheme in engine.schemes:
                return engine(str(location))
        if scheme not in SCHEMES:
            schemes = ", ".join(f"{name}://" for name in ("postgres", *ALIASED))
            raise ConfigError(f"'{scheme}' is not a supported engine: specify a file, or an address of {schemes}")
        return PostgresEngine(str(location), writable)
    path = Path(location).expanduser()
    if not path.is_file():
        raise BundleError(f"the file does not exist {path}: make one with ragbench export --format sqlite")
    return SqliteEngine(path, writable)


class EngineBundle(LoadedBundle):
    """A bundle whose searches an engine answers."""

    engine: Engine
    delete_unpacked: Callable[[], object]
    owned = True
    """Whether the engine is closed with it."""

    def __enter__(self) -> EngineBundle:
        return self

    def close(self) -> None:
        """Close index and engine, and delete what was unpacked."""
        super().close()
        if self.owned:
            self.engine.close()
        self.delete_unpacked()


def load(
    location: str | Path, *, threads: int | None = None, models: Models | None = None, order: bool = True
) -> EngineBundle:
    """Open an engine that ragbench loaded. `order=False`: what the engine alone gives, without the learned order.

    Raises BundleError when it does not answer, or was not loaded by ragbench.
    """
    engine = connect(location)
    try:
        return over(engine, models or Models(cache=None, threads=threads), order)
    except BaseException:
        engine.close()
        raise


def over(engine: Engine, models: Models, order: bool = True, owned: bool = True) -> EngineBundle:
    """A bundle over an engine that is open; `owned`: it is closed with the bundle."""
    folder = temporary_folder("ragbench-engine")
    try:
        unpack(engine, folder)
        record = bundle.read_record(folder)
        bundle.check_files(folder, record)
        settings = settings_of(folder, record)
        serves = generation.current(folder, record)
        index = Index(
            settings.index,
            serves.collection,
            _none,
            BundleStore(folder / bundle.INDEX),
            models,
            times=lambda: serves.modified,
        )
        pipeline = pipeline_over(engine, settings, order)
        index.prepare(pipeline.needs | {"facets"})
        opened = EngineBundle(folder, record, settings, index, serves)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    opened.pipeline, opened.engine, opened.owned = pipeline, engine, owned
    # Also where nobody closes it, as an arm of a run, which asks until the process ends.
    opened.delete_unpacked = weakref.finalize(opened, shutil.rmtree, folder, ignore_errors=True)
    return opened


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
            path = inside(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BundleError(f"{engine.name}: {name[:80]} is a file and a folder at once: export it again") from None
        except BoundaryError as error:
            raise BundleError(f"{engine.name}: {error}: export it again") from None
        except OSError as error:
            reason = why_unreadable(error)
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


class EngineRefresher(Refresher):
    """Keeps an engine up to date with a folder of markdown; as `Refresher` does with a bundle."""

    def __init__(
        self,
        location: str | Path,
        corpus: Path | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        self._engine = connect(location, writable=True)
        folder = temporary_folder("ragbench-engine")
        self._clean = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._unpacked = self._engine.version()
        unpack(self._engine, folder)
        super().__init__(folder, corpus, threads=threads)

    def refresh(self, allow_shrink: bool = False) -> Refreshed:
        """Serve what is in the folder now. Raises CorpusError when less than half of the documents are left."""
        with self._engine.transaction():
            if self._engine.version() != self._unpacked:
                shutil.rmtree(self.folder)
                self.folder.mkdir()
                unpack(self._engine, self.folder)
            self._unpacked = ""
            refreshed = super().refresh(allow_shrink)
            if refreshed.anything:
                self._engine.finish({}, pack(self.folder), {})
            unpacked = self._engine.version()
        self._unpacked = unpacked
        return refreshed

    def close(self) -> None:
        """Close the engine and delete what was unpacked."""
        self._engine.close()
        self._clean()

    def _open(self) -> None:
        super()._open()
        self._settings.__dict__["pipeline"] = pipeline_over(self._engine, self._settings)

    def _ready(self, index: Index) -> None:
        """Write the documents that differ from those of the engine."""
        known_digests, plan = dict(self._engine.digests()), self._engine.plan
        terms, changed = Terms(plan.analyzer), []
        for row in content.rows(index, plan):
            if known_digests.pop(row.docno, None) != row.digest:
                changed.append(row)
        texts = {content.passage_key(chunk.passage): chunk.passage for row in changed for chunk in row.chunks}
        vectors = dict(self._engine.vectors(texts))
        for docno in (*known_digests, *(row.docno for row in changed)):
            self._engine.drop(docno)
        new = sorted(texts.keys() - vectors.keys())
        if new and "dense" in plan.depths:
            vectors |= dict(zip(new, index.encoder.encode_passages([texts[key] for key in new]), strict=True))
        for row in changed:
            chunk_vectors = [
                vectors[content.passage_key(chunk.passage)] if "dense" in plan.depths else None for chunk in row.chunks
            ]
            self._engine.put(row, chunk_vectors, terms)
        self._engine.finish(terms.forms(), None, {})
