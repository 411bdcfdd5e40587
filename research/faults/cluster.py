"""Break parts of `execution=dask` at twenty points each: nothing may be lost, and no byte may differ.

    python -m research.faults.cluster [kills=20] [parts=command,worker,scheduler,disk] [after=0]

The points are spread over the lines of progress of a whole run; `after` leaves out the first ones. After the command
was killed it is called again, and may compute again neither an arm that was finished nor a vector that was kept. After
a worker or the scheduler was killed, the command must go on by itself or stop with a sentence, and then continue with
another cluster. The disk of one worker (a tmpfs, which needs root) has room for a part of the index only, and the
command must name that worker if it fails. The tables of the arms are compared with those of `local`. Prints a line for
each; exit code 1 for a difference.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from ragbench.results import store
from research.faults.campaign import QUERIES, VAULT, tables

ARMS = "exp=lexical_only,baseline,recommended,plain_hybrid"
_ROOM = 250_000
"""Bytes of such a disk, at most: fewer than all artefacts of the run take."""


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code, lines of progress, the vectors that it had to embed, the rest of what it said."""

    code: int
    lines: int
    embedded: int
    said: str


@dataclass(frozen=True)
class Kept:
    """What a stopped run left: finished arms with the times of their files, and vectors in the cache."""

    arms: dict[str, int]
    vectors: int

    @staticmethod
    def below(folder: Path) -> Kept:
        """What is below the folder of a run."""
        arms = {str(path): path.stat().st_mtime_ns for path in folder.glob("results/runs/*/arms/*/done.json")}
        cache = folder / "results" / "cache" / "embeddings.sqlite"
        if not cache.exists():
            return Kept(arms, 0)
        with closing(sqlite3.connect(cache)) as db:
            return Kept(arms, int(db.execute("SELECT count(*) FROM embeddings").fetchone()[0]))


def command(folder: Path, execution: Sequence[str]) -> list[str]:
    """The command of a run with its own results, index and cache."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "queries.csv").write_text(QUERIES)
    words = ["data=vault", f"data.corpus={VAULT}", f"data.queries={folder / 'queries.csv'}", "split=all"]
    words += [f"paths.results={folder / 'results'}", "cache.shipped=false", "latency.enabled=false"]
    words += ["tracking.enabled=false", *execution]
    return [sys.executable, "-m", "ragbench", "run", "-m", ARMS, *words]


def run(
    folder: Path, execution: Sequence[str], point: int | None = None, victims: Sequence[int] | None = None
) -> Ended:
    """Run, and at a line of progress kill `victims`: the command, if None; a worker that it started, if empty."""
    environment = {**os.environ, "RAGBENCH_PROGRESS": "lines"}
    words = command(folder, execution)
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines, embedded, said = 0, 0, ""
    for line in process.stderr:
        if not line.startswith("{"):
            said += line
            continue
        lines += 1
        shown = json.loads(line)
        embedded = max(embedded, shown["total"] if shown["progress"] == "embedding" else 0)
        if lines == point:
            for pid in [process.pid] if victims is None else victims or workers_of(process.pid)[:1]:
                psutil.Process(pid).kill()
    return Ended(process.wait(), lines, embedded, said)


def workers_of(pid: int) -> list[int]:
    """The workers that a command started (none before they have started)."""
    return [child.pid for child in psutil.Process(pid).children() if "spawn_main" in " ".join(child.cmdline())]


@contextmanager
def cluster(folder: Path, folders: Sequence[Path]) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A scheduler with a worker for each of the folders, as `dask scheduler` and `dask worker` start them."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    base, alone = [sys.executable, "-m"], ["--scheduler-file", str(file), "--no-dashboard"]
    words = [[*base, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *alone]]
    for own in folders:
        limits = ["--nthreads", "1", "--no-nanny", "--local-directory", str(own)]
        words.append([*base, "distributed.cli.dask_worker", *alone, *limits])
    started: list[subprocess.Popen[bytes]] = []
    with (folder / "log").open("ab") as log:
        try:
            for each in words:
                started.append(subprocess.Popen(each, stdout=log, stderr=log))
                while not file.exists():
                    time.sleep(0.1)
            yield file, started[0]
        finally:
            for process in started:
                process.kill()
                process.wait()


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def broken(folder: Path, part: str, share: float, lines: int) -> tuple[Ended, str]:
    """A run of which a part breaks at a share of its way, continued if it stopped; and what was computed again."""
    point = max(1, round(share * lines))
    if part == "command":
        run(folder, ["execution=dask"], point)
        return continued(folder, ["execution=dask"])
    if part == "worker":
        return run(folder, ["execution=dask"], point, ()), ""
    with ExitStack() as stack:
        if part == "disk":
            full = stack.enter_context(small_disk(folder / "full", int(share * _ROOM) + 50_000))
            file, _ = stack.enter_context(cluster(folder, [full, folder / "other"]))
            ended = run(folder, ["execution=dask", f"execution.address={file}"])
            signs = ("No space left", "disk is full", "the cluster lost")  # none: what the worker was given fitted
            failed = any(sign in ended.said for sign in signs)
            return ended, "no worker is named" if failed and "worker tcp://" not in ended.said else ""
        folders = [folder / "one", folder / "two"]
        with cluster(folder, folders) as (file, scheduler):
            ended = run(folder, ["execution=dask", f"execution.address={file}"], point, [scheduler.pid])
        if ended.code == 0:
            return ended, ""
        file, _ = stack.enter_context(cluster(folder, folders))
        return continued(folder, ["execution=dask", f"execution.address={file}"])


def continued(folder: Path, execution: Sequence[str]) -> tuple[Ended, str]:
    """Call the command again; what it computed although the stopped one had left it."""
    before = Kept.below(folder)
    ended = run(folder, execution)
    after = Kept.below(folder)
    again = [Path(arm).parent.name for arm, at in before.arms.items() if after.arms.get(arm) != at]
    if before.vectors and ended.embedded > after.vectors - before.vectors:
        again.append(f"{ended.embedded} vectors, {before.vectors} of {after.vectors} were there")
    return ended, f"computed again: {again}" if again else ""


def campaign(kills: int, part: str, expected: dict[str, bytes], lines: int, root: Path, after: int) -> Iterator[str]:
    """One word for every case: done, or what differs."""
    for number in range(after + 1, kills + 1):
        folder = root / f"{part}{number}"
        ended, fault = broken(folder, part, number / (kills + 1), lines)
        found = tables(store.latest(folder / "results")) if ended.code == 0 else {}
        wrong = [name for name in expected if found.get(name) != expected[name]]
        here = ", finished on the machine of the command" if "computed here" in ended.said else ""
        says = f"exit code {ended.code}, differs: {wrong}\n{ended.said}" if wrong else fault or f"done{here}"
        yield f"{part} {number} of {kills}: {says}"


def main(words: Sequence[str] = ()) -> int:
    """Break every part at every point."""
    given = dict(word.split("=") for word in words)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        assert run(root / "local", ["execution=local"]).code == 0
        whole = run(root / "dask", ["execution=dask"])
        assert whole.code == 0
        expected = tables(store.latest(root / "local" / "results"))
        parts = given.get("parts", "command,worker,scheduler,disk").split(",")
        kills, after = int(given.get("kills", "20")), int(given.get("after", "0"))
        results = itertools.chain(*(campaign(kills, part, expected, whole.lines, root, after) for part in parts))
        lost = 0
        for result in results:
            print(result, flush=True)
            lost += ": done" not in result
    print(f"{(kills - after) * len(parts)} cases, {len(expected)} tables each, {lost} lost")
    return int(lost > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
