"""Load a measured search into an engine, ask it, and price it; take changed documents in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ragbench.base import console, files, progress
from ragbench.base.errors import BundleError
from ragbench.boundary.checksummed_json import read_checksummed, write_checksummed
from ragbench.boundary.permissions import trust
from ragbench.config.settings import Settings
from ragbench.evaluation import measures
from ragbench.export import file_format
from ragbench.export.measured_arm import Evidence, MeasuredArm
from ragbench.export.replay import Bench, Replay
from ragbench.extras.engines import content, opened, opensearch
from ragbench.extras.engines import plan as plans
from ragbench.extras.engines.content import temporary_folder
from ragbench.extras.engines.opensearch import Cluster, OpenSearchEngine
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.postgres import PostgresEngine
from ragbench.extras.engines.search import Engine
from ragbench.extras.engines.sqlite import SqliteEngine
from ragbench.extras.engines.words import Terms
from ragbench.extras.ship import bundle, checks
from ragbench.extras.ship.deployment import BundleFolder
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.index.index import Index
from ragbench.models.access import Models
from ragbench.models.resolve import load_encoder
from ragbench.search.engine.pipeline import start
from ragbench.search.stages.fuse import Fuse


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
        model = load_encoder(spec) if "dense" in self.plan.depths else None
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
def load_job(
    measured: MeasuredArm,
    bench: Bench,
    format: str,
    evidence: Evidence,
    caution: str | None,
    self_contained: bool,
) -> Iterator[LoadJob]:
    """Make the bundle of an arm in a temporary folder, and open it."""
    settings, missing = plans.without_ranker(measured.settings), plans.left_out(measured.settings, format)
    if not plans.has_fusion(settings):
        settings, note = _nearest_fusion(settings)
        missing.append(f"fuse: {format} lacks {plans.fusion_of(measured.settings)}; nearest that it has: {note}")
    plan = SearchPlan.of(settings, format)
    temporary = temporary_folder("ragbench-export")
    try:
        folder = bundle.write(
            measured,
            bench.benchmark,
            temporary / "bundle",
            evidence=evidence,
            caution=caution,
            self_contained=self_contained,
        )
        sentences = file_format.sentences(measured, evidence, caution)
        with trust(), BundleFolder(folder).open(models=bench.builder.models) as loaded:  # written a moment ago
            yield LoadJob(loaded, settings, plan, tuple(sentences), tuple(missing))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _nearest_fusion(settings: Settings) -> tuple[Settings, str]:
    """The settings with a fusion that engines have, with the same weights, and what that is."""
    entry, configured = next(iter(settings.pipeline.all_of(Fuse).items()))
    nearest = replace(plans.NEAREST, weights=configured.weights)
    changes = {f"{entry}.{name}": getattr(nearest, name) for name in ("method", "k", "norm")}
    changes[f"{entry}.weights"] = dict(nearest.weights)
    return settings.with_values(changes), nearest.describe()


def answers(engine: Engine, bench: Bench) -> tuple[measures.Run, measures.Run, str]:
    """What an engine answers to the run's topics: with the learned order on top, alone, and as golden lines."""
    with opened.over(engine, bench.builder.models) as searchable:
        index = searchable.index
        states = dict(searchable.pipeline.steps(start(bench.queries()), index))
        _, cut = searchable.pipeline.stages[-1]
        ordered, alone = (measures.document_run(s, index.chunks) for s in (states["cut"], cut(states["engine"], index)))
        return ordered, alone, bundle.golden_lines(searchable.pipeline, index, states["cut"])


def measure_loss(with_order: measures.Run, alone: measures.Run, bench: Bench) -> tuple[Replay, Replay | None]:
    """What an engine scores with the learned order on top, and alone (None without such an order).

    Where sources of topics were masked, which the engine has whole, an arm of ragbench answers.
    """
    measured = bench.measured.settings
    ordered = plans.ranker_of(measured) is not None
    if any(topic.masked for topic in bench.benchmark.topics):
        plain = plans.without_ranker(measured)
        return bench.replay(plans.with_ranker(plain, measured)), bench.replay(plain) if ordered else None
    on_top = "in the backend, with the ranker" if ordered else "in the backend"
    return bench.score(with_order, on_top), bench.score(alone, "in the backend") if ordered else None


def ranker_sentence(priced: Replay, alone: Replay | None) -> list[str]:
    """What the learned order adds."""
    if alone is None:
        return []
    return [
        f"rank: the engine alone scores {alone.replayed:.3f} {console.interval(alone.low, alone.high)}; the learned "
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
    measured: MeasuredArm,
    format: str,
    target: Path | str,
    evidence: Evidence,
    caution: str | None,
    max_loss: float | None,
    self_contained: bool,
) -> tuple[str, list[str], Replay]:
    """Load a measured search into an engine and ask it the run's topics; it is kept when it loses no more than
    `max_loss`. Returns what it is called, sentences, and what it scores.
    """
    create = engine_factory(format, target)
    bench = Bench.of(measured)
    with load_job(measured, bench, format, evidence, caution, self_contained) as job:
        dimension = 0 if job.vectors is None else int(job.vectors.shape[1])
        with create(job.plan, dimension, job.facts()) as engine:
            write_all(engine, job)
            priced, sentences = finalize_load(engine, job, bench, max_loss, format)
            name = engine.name
    if isinstance(target, str):
        require_golden(target, bench.builder.models)
    return name, sentences, priced


def write_all(engine: Engine, job: LoadJob) -> None:
    """Load everything, in one transaction."""
    terms, vectors, total = Terms(job.plan.analyzer), job.vectors, job.index.chunks.n_documents
    with engine.transaction() as writer:
        for row in progress.counted("loading documents", content.rows(job.index, job.plan), total):
            writer.put(row, [None if vectors is None else vectors[chunk.number] for chunk in row.chunks], terms)
        writer.finish(terms.forms(), opened.pack(job.bundle.folder), {})


def finalize_load(
    engine: Engine, job: LoadJob, bench: Bench, max_loss: float | None, format: str
) -> tuple[Replay, list[str]]:
    """Ask a loaded engine the run's topics, keep its hits as golden ones, and write down what it scores."""
    with_order, without, golden = answers(engine, bench)
    priced, alone = measure_loss(with_order, without, bench)
    if max_loss is not None:
        priced.require(max_loss, format)
    with_golden(job.bundle.folder, golden)
    sentences = [*job.missing, *ranker_sentence(priced, alone)]
    with engine.transaction() as writer:
        facts = {"measured": [f"{priced.sentence}.", *sentences, *job.about]}
        writer.finish({}, opened.pack(job.bundle.folder), facts)
    return priced, sentences


def require_golden(address: str, models: Models) -> None:
    """Replay the golden queries as others see the engine. Raises BundleError when it gives other hits."""
    with opened.EngineDeployment(address).open(models=models) as loaded:
        check = checks.rankings(loaded)
    if check.outcome == "fails":
        raise BundleError(f"{address} is loaded, but {check.message}: export it again")
