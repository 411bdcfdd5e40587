"""One measured search in every engine: its score there, what is lost, the time of a query, and the size.

    ragbench run +exp=recommended split=test
    python tests/bench/engines.py results/runs/... --load postgres=postgres://localhost/docs?schema=bench

prints the table of docs/production.md. Times are those of the learned order on top, one query at a time, after each
query has been asked once; the bundle is timed by the same loop.

    python tests/bench/engines.py --synthetic 100000 --load postgres=postgres://localhost/docs?schema=synthetic

loads generated words and vectors instead, and prints a row of docs/scaling.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from ragbench.base.types import Query
from ragbench.export import loaded_bundle, measured_arm
from ragbench.export.engines import opened, postgres
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.search import Vector
from ragbench.export.replay import Bench
from ragbench.export.write import write
from ragbench.index.lexical import Bm25F
from ragbench.models.access import Models

_DIMENSION, _WORDS, _VOCABULARY, _CHUNKS_OF_A_NOTE = 384, 60, 50_000, 8


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--load", action="append", default=[], metavar="FORMAT=ADDRESS")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--synthetic", type=int, metavar="CHUNKS")
    arguments = parser.parse_args()
    loads = dict(each.split("=", 1) for each in arguments.load)
    if arguments.synthetic:
        print(synthetic(loads["postgres"], arguments.synthetic, arguments.queries))
        return
    for row in table(arguments.run, loads, arguments.queries):
        print(row, flush=True)


def table(run: Path, loads: dict[str, str], n_queries: int) -> Iterator[str]:
    """The rows of the table."""
    yield "| engine | nDCG@10 | loss | without the learned order | p50 ms | p95 ms | MB |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    folder = Path(tempfile.mkdtemp())
    models = Models(cache=None)
    queries = Bench.of(measured_arm.find(run), say=print).queries()[:n_queries]
    made = write(run, folder / "bundle", force=True, say=lambda _: None)
    quality = measured_arm.find(run).quality["nDCG@10"]
    with loaded_bundle.load(Path(made.out), models=models) as found:
        size = sum(path.stat().st_size for path in Path(made.out).rglob("*") if path.is_file())
        yield f"| bundle | {quality:.3f} | | | {timed(found, queries)} | {size / 2**20:.0f} |"
    for format in ("sqlite", *loads):
        place = loads.get(format)
        out = None if place else folder / f"x.{format}"
        written = write(run, out, format=format, load=place, force=True, say=lambda _: None)
        priced = written.replay
        alone = next((each.split("scores ")[1].split(" ")[0] for each in written.missing if "alone scores" in each), "")
        with opened.load(place or str(written.out), models=models) as engine:
            size = Path(written.out).stat().st_size if out else bytes_of(place or "")
            loss = f"{priced.loss:+.3f} [{-priced.high:+.3f}, {-priced.low:+.3f}]"
            scored = f"{priced.replayed:.3f} | {loss} | {alone}"
            yield f"| {format} | {scored} | {timed(engine, queries)} | {size / 2**20:.0f} |"


def timed(bundle: loaded_bundle.LoadedBundle, queries: list[Query]) -> str:
    """p50 and p95 of a query in milliseconds."""
    times = []
    for again in (False, True):
        for query in queries:
            started = time.perf_counter()
            bundle.pipeline([query], bundle.index)
            times += [1e3 * (time.perf_counter() - started)] if again else []
    return " | ".join(f"{np.percentile(times, share):.1f}" for share in (50, 95))


def bytes_of(address: str) -> int:
    """The size of a schema, its indexes included."""
    with closing(opened.connect(address)) as engine:
        ((found,),) = engine._rows(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace = "
            "current_schema::regnamespace"
        )
        return int(found)


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
    took = f"{copied:.0f} | {loaded - copied:.0f} | {bytes_of(address) / 2**20:,.0f}"
    return f"| {n_chunks:,} | {took} | {p50:.1f} | {p95:.1f} | {np.mean(recalls):.3f} |"


def near(centres: np.ndarray, rng: np.random.Generator, number: int) -> Vector:
    """A unit vector near the centre of a chunk."""
    spread = rng.standard_normal(_DIMENSION) / np.sqrt(np.arange(1, _DIMENSION + 1))
    found = centres[number % len(centres)] + 0.5 * spread
    return (found / np.linalg.norm(found)).astype(np.float32)


if __name__ == "__main__":
    main()
