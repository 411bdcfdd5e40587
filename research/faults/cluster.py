"""Kill the command or a worker of `execution=dask` at twenty points each: nothing may be lost, and no byte may differ.

    python -m research.faults.cluster [kills=20] [parts=command,worker]    a line for each; exit code 1 for a difference

The points are spread over the lines of progress of a whole run. After the command was killed it is called again; after
a worker was killed the command must go on by itself. The tables of the arms are compared with those of `local`.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from ragbench.results import store
from research.faults.campaign import QUERIES, VAULT, tables

ARMS = "exp=lexical_only,baseline,recommended,plain_hybrid"


def command(folder: Path, execution: str) -> list[str]:
    """The command of a run with its own results, index and cache."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "queries.csv").write_text(QUERIES)
    words = ["data=vault", f"data.corpus={VAULT}", f"data.queries={folder / 'queries.csv'}", "split=all"]
    words += [f"paths.results={folder / 'results'}", "cache.shipped=false", "latency.enabled=false"]
    words += ["tracking.enabled=false", f"execution={execution}"]
    return [sys.executable, "-m", "ragbench", "run", "-m", ARMS, *words]


def run(folder: Path, execution: str, point: int | None = None, part: str = "command") -> tuple[int, int]:
    """Run, and kill a part at a line of progress; the exit code, and the lines of progress."""
    environment = {**os.environ, "RAGBENCH_PROGRESS": "lines"}
    words = command(folder, execution)
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines = 0
    for line in process.stderr:
        lines += line.startswith("{")
        if lines == point:
            kill(process.pid, part)
            point = None
    return process.wait(), lines


def kill(pid: int, part: str) -> None:
    """Kill the command, or one of the workers that it started (none before they have started)."""
    if part == "command":
        psutil.Process(pid).kill()
        return
    workers = [child for child in psutil.Process(pid).children() if "spawn_main" in " ".join(child.cmdline())]
    for worker in workers[:1]:
        worker.kill()


def campaign(kills: int, part: str, expected: dict[str, bytes], lines: int, root: Path) -> Iterator[str]:
    """One word for every kill: done, or what differs."""
    for number in range(1, kills + 1):
        folder, point = root / f"{part}{number}", max(1, round(number * lines / (kills + 1)))
        code, _ = run(folder, "dask", point, part)
        if part == "command":
            code, _ = run(folder, "dask")
        found = tables(store.latest(folder / "results")) if code == 0 else {}
        wrong = [name for name in expected if found.get(name) != expected[name]]
        yield f"{part} {number} at line {point}: {'done' if not wrong else f'exit code {code}, differs: {wrong}'}"


def main(words: Sequence[str] = ()) -> int:
    """Kill every part at every point."""
    given = dict(word.split("=") for word in words)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        assert run(root / "local", "local")[0] == 0
        code, lines = run(root / "dask", "dask")
        assert code == 0
        expected = tables(store.latest(root / "local" / "results"))
        parts = given.get("parts", "command,worker").split(",")
        kills = int(given.get("kills", "20"))
        results = itertools.chain(*(campaign(kills, part, expected, lines, root) for part in parts))
        lost = 0
        for result in results:
            print(result, flush=True)
            lost += not result.endswith("done")
    print(f"{kills * len(parts)} kills, {len(expected)} tables each, {lost} lost")
    return int(lost > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
