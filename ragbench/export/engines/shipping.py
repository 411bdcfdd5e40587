"""Load a measured search into an engine, ask it, and price it; take changed documents in."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import BundleError
from ragbench.base.files import sha256
from ragbench.base.types import Query
from ragbench.boundary.sealed import read_sealed, write_sealed
from ragbench.config.arm_builder import Progress, Say
from ragbench.config.settings import Settings
from ragbench.export import bundle, provenance
from ragbench.export.engines import content, opened, sqlite
from ragbench.export.engines.plan import FUSIONS, NEAREST, Plan, left_out, order_of, with_order, without_order
from ragbench.export.engines.search import Engine
from ragbench.export.engines.words import Terms
from ragbench.export.hybrid import expresses, fusion_of
from ragbench.export.loaded_bundle import LoadedBundle, load
from ragbench.export.measured_arm import Evidence, MeasuredArm
from ragbench.export.replay import Bench, Replay
from ragbench.index.index import Index
from ragbench.models.access import Models
from ragbench.models.resolve import load_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Shipment:
    """A measured search that is ready to be loaded: its bundle, what the engine does of it, and sentences about it.

    `settings` are those that the engine runs, with another fusion than the measured one where it lacks that.
    """

    bundle: LoadedBundle
    settings: Settings
    plan: Plan
    about: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def index(self) -> Index:
        """The index of the bundle."""
        return self.bundle.index

    @property
    def vectors(self) -> NDArray[Any] | None:
        """The vectors of the chunks, None where nothing is searched by meaning."""
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
            "licences": {each["name"]: each["licence"] for each in models},
        }


@contextmanager
def shipment(
    measured: MeasuredArm,
    bench: Bench,
    format: str,
    evidence: Evidence,
    caution: str | None,
    progress: Progress | None,
    say: Say,
) -> Iterator[Shipment]:
    """Make the bundle of an arm in a temporary folder, and open it."""
    settings, missing = without_order(measured.settings), left_out(measured.settings, format)
    if not expresses(settings, FUSIONS):
        settings, said = bench.nearest(settings, NEAREST)
        missing.append(f"fuse: {format} lacks {fusion_of(measured.settings)}; nearest that it has: {said}")
    plan = Plan.of(settings, format)
    place = Path(tempfile.mkdtemp(prefix="ragbench-export-"))
    try:
        folder = bundle.write(
            measured,
            bench.benchmark,
            place / "bundle",
            evidence=evidence,
            caution=caution,
            progress=progress,
            say=say,
        )
        about = provenance.sentences(measured, evidence, caution)
        with load(folder, models=bench.builder.models) as made:
            yield Shipment(made, settings, plan, tuple(about), tuple(missing))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def price(place: str | Path, bench: Bench, models: Models) -> tuple[Replay, Replay | None]:
    """What a loaded engine scores with the learned order on top, and alone (None where there is no such order).

    Where sources of topics were masked, an arm of ragbench answers: the engine has the whole documents.
    """
    measured = bench.measured.settings
    orders = [True, False] if order_of(measured) else [True]
    if any(topic.masked for topic in bench.benchmark.topics):
        plain = without_order(measured)
        found = [bench.replay(with_order(plain, measured) if order else plain) for order in orders]
    else:
        found = []
        for order in orders:
            with opened.load(place, models=models, order=order) as engine:
                where = "by the engine" + (", learned order on top" if order and len(orders) > 1 else "")
                found.append(bench.replay_by(partial(_docnos, engine), where))
    return found[0], found[1] if len(found) > 1 else None


def _docnos(engine: LoadedBundle, text: str) -> list[str]:
    (state,) = engine.pipeline([Query("q", text)], engine.index)
    table = engine.index.chunks
    return [table.docnos[row] for row in table.document[state.fused.chunks].tolist()] if state.fused else []


def order_sentence(priced: Replay, alone: Replay | None) -> list[str]:
    """What the learned order adds."""
    if alone is None:
        return []
    return [
        f"rank: the engine alone scores {alone.replayed:.3f} [{alone.low:+.3f}, {alone.high:+.3f}]; the learned order, "
        f"which ragbench serve --engine puts on top, adds {priced.replayed - alone.replayed:+.3f}"
    ]


def golden_of(place: str | Path, queries: Sequence[Query], models: Models) -> str:
    """The golden queries with the hits that the engine gives."""
    with opened.load(place, models=models) as engine:
        return "".join(bundle._golden_lines(engine.pipeline(queries, engine.index), engine.index))


def with_golden(folder: Path, lines: str) -> None:
    """Put other golden hits into a bundle's folder."""
    (folder / bundle.GOLDEN).write_text(lines, encoding="utf-8")
    record = dict(read_sealed(folder / bundle.RECORD))
    record["files"] = {**record["files"], bundle.GOLDEN: sha256(folder / bundle.GOLDEN)}
    write_sealed(folder / bundle.RECORD, record)


def write_sqlite(
    measured: MeasuredArm,
    out: Path,
    evidence: Evidence,
    caution: str | None,
    max_loss: float | None,
    progress: Progress | None,
    say: Say,
) -> tuple[list[str], Replay]:
    """Write the file, ask it the run's topics, and put it in its place when it loses no more than `max_loss`."""
    bench = Bench.of(measured, progress, say)
    with shipment(measured, bench, "sqlite", evidence, caution, progress, say) as goods:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = out.with_name(f".{out.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        try:
            dimension = 0 if goods.vectors is None else int(goods.vectors.shape[1])
            with closing(sqlite.SqliteEngine.create(draft, goods.plan, dimension, goods.facts())) as engine:
                fill(engine, goods, progress)
                priced, said = settle(engine, draft, goods, bench, max_loss, "sqlite")
            draft.replace(out)
        except OSError as error:
            raise BundleError(f"cannot write {out} ({error.strerror}): name another file with --out") from None
        finally:
            draft.unlink(missing_ok=True)
    return said, priced


def fill(engine: Engine, goods: Shipment, progress: Progress | None) -> None:
    """Load everything, in one transaction."""
    terms, vectors, total = Terms(goods.plan.analyzer), goods.vectors, goods.index.chunks.n_documents
    with engine.transaction():
        for done, row in enumerate(content.rows(goods.index, goods.plan), start=1):
            engine.put(row, [None if vectors is None else vectors[chunk.number] for chunk in row.chunks], terms)
            if progress is not None:
                progress("loading documents", done, total)
        engine.finish(terms.forms(), opened.pack(goods.bundle.folder), {})


def settle(
    engine: Engine, place: str | Path, goods: Shipment, bench: Bench, max_loss: float | None, format: str
) -> tuple[Replay, list[str]]:
    """Ask a loaded engine the run's topics, keep its hits as golden ones, and write down what it scores."""
    models = bench.builder.models
    priced, alone = price(place, bench, models)
    if max_loss is not None:
        priced.require(max_loss, format)
    with_golden(goods.bundle.folder, golden_of(place, bench.queries(), models))
    said = [*goods.missing, *order_sentence(priced, alone)]
    with engine.transaction():
        engine.finish({}, opened.pack(goods.bundle.folder), {"measured": [f"{priced.sentence}.", *said, *goods.about]})
    return priced, said
