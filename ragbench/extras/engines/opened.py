"""An engine as a deployment: a measured search is loaded into it, asked and priced; a learned order runs here.

Changed documents are taken into an engine in one transaction, in which only what has changed is written.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ragbench.base import files, progress
from ragbench.base.types import (
    BoundaryError,
    BundleError,
    ConfigError,
    Document,
    RagbenchError,
    interval,
    why_unreadable,
)
from ragbench.benchmark.runs import Run
from ragbench.boundary import paths, permissions
from ragbench.boundary.json import read_checksummed, write_checksummed
from ragbench.config.settings import Settings
from ragbench.evaluation import measures
from ragbench.extras.engines import content, opensearch, plan as plans, postgres
from ragbench.extras.engines.opensearch import Cluster, OpenSearchEngine
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.postgres import PostgresEngine
from ragbench.extras.engines.search import Engine, SearchEngine, Writer
from ragbench.extras.engines.sqlite import MAGIC, SqliteEngine
from ragbench.extras.engines.words import Terms
from ragbench.extras.export import file_format
from ragbench.extras.export.gate import Check
from ragbench.extras.export.measured_arm import Evidence, MeasuredArm
from ragbench.extras.ship import bundle, checks, generation
from ragbench.extras.ship.address import is_remote
from ragbench.extras.ship.deployment import BundleFolder
from ragbench.extras.ship.loaded_bundle import BundleStore, LoadedBundle, settings_of
from ragbench.extras.ship.refresh import Refreshed, Refresher
from ragbench.index.index import Index
from ragbench.models import resolve
from ragbench.search.engine.pipeline import Pipeline, start
from ragbench.search.stages import fuse

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
        models: resolve.Models | None = None,
        order: bool = True,
    ) -> LoadedBundle:
        """Open it. `order=False`: what the engine alone gives, without the learned order.

        Raises BundleError when it does not answer, or was not loaded by ragbench.
        """
        engine = connect(self._location)
        try:
            return over(engine, models or resolve.Models(cache=None), order, closing=engine.close)
        except BaseException:
            engine.close()
            raise

    def check(self, options: checks.Options) -> Iterator[Check]:
        """Check its content, its models, and what it answers."""
        engine = connect(self._location)
        with over(engine, resolve.Models(cache=None), closing=engine.close) as loaded:
            damage = engine.damage()
            unchanged = Check("content", "passes", "documents, vectors and terms are unchanged")
            yield Check("content", "fails", f"{damage}: export it again") if damage else unchanged
            yield from checks.models(loaded.record)
            yield checks.rankings(loaded)
            yield Check("latency", "not checked", "an engine is timed as an arm: live=engine live.engine=ADDRESS")
            yield checks.drift(loaded)
            yield checks.environment_of(loaded.record)

    def follower(self, corpus: Path | None) -> EngineRefresher:
        """What keeps it up to date."""
        return EngineRefresher(self._location, corpus)


def over(
    engine: Engine, models: resolve.Models, order: bool = True, closing: Callable[[], object] = lambda: None
) -> LoadedBundle:
    """A bundle over an engine that is open; `closing` is called when the bundle is closed."""
    state = partial(_state, engine)
    opened_as = state()
    folder = content.temporary_folder("ragbench-engine")
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
    ranked = plans.ranker_of(settings)
    if order and ranked is not None:
        stages.append(ranked)
    stages.append(("cut", replace(plans.cut_of(settings))))
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


class EngineRefresher:
    """Keeps an engine up to date with a folder of markdown; what it holds for ragbench is refreshed as a bundle is."""

    def __init__(self, location: str | Path, corpus: Path | None = None) -> None:
        self._engine = connect(location, writable=True)
        self._folder = content.temporary_folder("ragbench-engine")
        self._clean = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._unpacked = self._engine.version()
        unpack(self._engine, self._folder)
        self._refresher = Refresher(self._folder, corpus, pipeline=partial(pipeline_over, self._engine))
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


@dataclass(frozen=True)
class LoadJob:
    """A measured search that is ready to be loaded: its bundle, what the engine does of it, and sentences about it.

    `settings` are those that the engine runs, with another fusion than the measured one where it lacks that.
    """

    bundle: LoadedBundle
    settings: Settings
    plan: SearchPlan
    about: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def index(self) -> Index:
        """The index of the bundle."""
        return self.bundle.index

    @property
    def vectors(self) -> NDArray[Any] | None:
        """The vectors of the chunks, None without dense retrieval."""
        return self.index.dense.vectors if "dense" in self.plan.depths else None

    def facts(self) -> dict[str, Any]:
        """What an engine keeps about itself."""
        models = self.bundle.record["models"]
        spec = self.settings.index.encoder
        model = resolve.load_encoder(spec) if "dense" in self.plan.depths else None
        encoder = {"name": spec.name, "max_tokens": getattr(model, "max_tokens", spec.max_tokens)}
        encoder |= {**spec.prefixes(spec.name), "pooling": getattr(model, "pooling", None)}
        return {
            "name": self.bundle.name,
            "measured": list(self.about),
            "not_expressed": list(self.missing),
            "encoder": encoder if model is not None else None,
            "licences": {model["name"]: model["licence"] for model in models},
        }


@contextmanager
def load_job(bench: file_format.Bench, request: file_format.Request, evidence: Evidence) -> Iterator[LoadJob]:
    """Make the bundle of an arm in a temporary folder, and open it."""
    measured, format = bench.measured, request.format
    settings, missing = plans.without_ranker(measured.settings), plans.left_out(measured.settings, format)
    if not plans.has_fusion(settings):
        settings, note = _nearest_fusion(settings)
        missing.append(f"fuse: {format} lacks {plans.fusion_of(measured.settings)}; nearest that it has: {note}")
    plan = SearchPlan.of(settings, format)
    temporary = content.temporary_folder("ragbench-export")
    try:
        folder = bundle.write(measured, temporary / "bundle", evidence=evidence, self_contained=request.self_contained)
        sentences = file_format.sentences(measured, evidence)
        # trusted, because it was written a moment ago
        with permissions.trust(), BundleFolder(folder).open(models=bench.builder.models) as loaded:
            yield LoadJob(loaded, settings, plan, tuple(sentences), tuple(missing))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _nearest_fusion(settings: Settings) -> tuple[Settings, str]:
    """The settings with a fusion that engines have, with the same weights, and what that is."""
    entry, configured = next(iter(settings.pipeline.all_of(fuse.Fuse).items()))
    nearest = replace(plans.NEAREST, weights=configured.weights)
    changes = {f"{entry}.{name}": getattr(nearest, name) for name in ("method", "k", "norm")}
    changes[f"{entry}.weights"] = dict(nearest.weights)
    return settings.with_values(changes), nearest.describe()


def answers(engine: Engine, bench: file_format.Bench) -> tuple[Run, Run, str]:
    """What an engine answers to the run's topics: with the learned order on top, alone, and as golden lines."""
    with over(engine, bench.builder.models) as searchable:
        index = searchable.index
        states = dict(searchable.pipeline.steps(start(bench.measured.queries), index))
        _, cut = searchable.pipeline.stages[-1]
        ordered, alone = (measures.document_run(s, index.chunks) for s in (states["cut"], cut(states["engine"], index)))
        return ordered, alone, bundle.golden_lines(searchable.pipeline, index, states["cut"])


def measure_loss(
    with_order: Run, alone: Run, bench: file_format.Bench
) -> tuple[file_format.Replay, file_format.Replay | None]:
    """What an engine scores with the learned order on top, and alone (None without such an order).

    Where sources of topics were masked, which the engine has whole, an arm of ragbench answers.
    """
    measured = bench.measured.settings
    ordered = plans.ranker_of(measured) is not None
    if any(topic.masked for topic in bench.measured.benchmark.topics):
        plain = plans.without_ranker(measured)
        return bench.replay(plans.with_ranker(plain, measured)), bench.replay(plain) if ordered else None
    on_top = "in the backend, with the ranker" if ordered else "in the backend"
    return bench.score(with_order, on_top), bench.score(alone, "in the backend") if ordered else None


def ranker_sentence(priced: file_format.Replay, alone: file_format.Replay | None) -> list[str]:
    """What the learned order adds."""
    if alone is None:
        return []
    return [
        f"rank: the engine alone scores {alone.replayed:.3f} {interval(alone.low, alone.high)}; the learned "
        f"order, which ragbench serve puts on top, adds {priced.replayed - alone.replayed:+.3f}"
    ]


def with_golden(folder: Path, lines: str) -> None:
    """Put other golden hits into a bundle's folder."""
    (folder / bundle.GOLDEN).write_text(lines, encoding="utf-8")
    record = dict(read_checksummed(folder / bundle.RECORD))
    record["files"] = {**record["files"], bundle.GOLDEN: files.sha256(folder / bundle.GOLDEN)}
    write_checksummed(folder / bundle.RECORD, record)


Create = Callable[[SearchPlan, int, Mapping[str, Any]], AbstractContextManager[Any]]
"""Gives a new, empty engine for a plan, a number of dimensions and what it says about itself.

It replaces the earlier one when the block ends without an error, else nothing is left of it.
"""


def engine_factory(format: str, target: Path | str) -> Create:
    """How an engine of a format is made: in a file, or at an address, which must be ready.

    Raises ConfigError, BundleError.
    """
    if isinstance(target, Path):
        return partial(SqliteEngine.create, target)
    if format == "postgres":
        PostgresEngine.reach(target)
        return partial(PostgresEngine.create, target)
    system = opensearch.SYSTEMS[format]
    with closing(Cluster(system, target)) as cluster:
        cluster.require_free()
    return partial(OpenSearchEngine.create, system, target)


def load_search(
    measured: MeasuredArm, request: file_format.Request, target: Path | str, evidence: Evidence
) -> file_format.Written:
    """Load a measured search into an engine and ask it the run's topics; it is kept when the request accepts its loss.

    `target` is the path of a file or the address of a server.
    """
    create = engine_factory(request.format, target)
    bench = file_format.Bench.of(measured)
    with load_job(bench, request, evidence) as job:
        dimension = 0 if job.vectors is None else int(job.vectors.shape[1])
        with create(job.plan, dimension, job.facts()) as engine:
            write_all(engine, job)
            priced, sentences = finalize_load(engine, job, bench, request)
            name = engine.name
    if isinstance(target, str):
        require_golden(target, bench.builder.models)
    location = target if isinstance(target, Path) else name
    return file_format.Written(
        location, request.format, measured.name, evidence, tuple(sentences), priced, verifiable=True
    )


def write_all(engine: Engine, job: LoadJob) -> None:
    """Load everything, in one transaction."""
    terms, vectors, total = Terms(job.plan.analyzer), job.vectors, job.index.chunks.n_documents
    with engine.transaction() as writer:
        for row in progress.counted("loading documents", content.rows(job.index, job.plan), total):
            writer.put(row, [None if vectors is None else vectors[chunk.number] for chunk in row.chunks], terms)
        writer.finish(terms.forms(), pack(job.bundle.folder), {})


def finalize_load(
    engine: Engine, job: LoadJob, bench: file_format.Bench, request: file_format.Request
) -> tuple[file_format.Replay, list[str]]:
    """Ask a loaded engine the run's topics, keep its hits as golden ones, and write down what it scores."""
    with_order, without, golden = answers(engine, bench)
    priced, alone = measure_loss(with_order, without, bench)
    request.refuse_loss(priced)
    with_golden(job.bundle.folder, golden)
    sentences = [*job.missing, *ranker_sentence(priced, alone)]
    with engine.transaction() as writer:
        facts = {"measured": [f"{priced.sentence}.", *sentences, *job.about]}
        writer.finish({}, pack(job.bundle.folder), facts)
    return priced, sentences


def require_golden(address: str, models: resolve.Models) -> None:
    """Replay the golden queries as others see the engine. Raises BundleError when it gives other hits."""
    with EngineDeployment(address).open(models=models) as loaded:
        check = checks.rankings(loaded)
    if check.outcome == "fails":
        raise BundleError(f"{address} is loaded, but {check.message}: export it again")
