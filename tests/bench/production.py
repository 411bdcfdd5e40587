"""The figures of docs/research/serving-benchmarks.md: freshness, memory, throughput while documents are refreshed.

    python tests/bench/production.py --notes 500 5000 --clients 1 8 32 --seconds 30 --keep made
    python tests/bench/production.py --notes 500 --clients 8 --seconds 600 --kills --swaps --keep made

For every number of notes: a bundle of the recommended search over generated notes, served with --corpus and --watch.
First single edits, one after the other: seconds from the end of writing until a search finds it. Then so many clients,
each asking as soon as it has its answer, while a note is edited every two seconds. With --kills the process that
refreshes is killed every twenty seconds; with --swaps the bundle as it was exported, under another name, is put in its
place by renaming every forty-five. At the end every edit must be found: what is not, is lost. Tables are markdown.

--keep keeps the exported bundles and their notes in a folder; a later call with the same folder makes none.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import psutil
from scaling_corpus import _words
from test_service_load import Connection

from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.experiment.run import run
from ragbench.export import measured_arm
from ragbench.extras.ship import bundle
from tests.sealing import reseal

EDIT_SECONDS, KILL_SECONDS, SWAP_SECONDS, PATIENCE = 2.0, 20.0, 45.0, 120.0
SEED = 13


def path_of(folder: Path, number: int) -> Path:
    """Where a note lies: a hundred in a folder."""
    return folder / f"part-{number // 100}" / f"note-{number}.md"


def write_notes(folder: Path, count: int) -> None:
    """Notes of about 150 words."""
    words, shares = _words()
    for number in range(count):
        chance = np.random.default_rng([SEED, number])
        drawn = words[np.searchsorted(shares, chance.random(150) * shares[-1]).clip(max=len(words) - 1)]
        place = path_of(folder, number)
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(part) for part in np.array_split(drawn, 10)]
        place.write_text(f"# Note {number} on {drawn[0]}\n\n" + ".\n".join(lines) + ".\n", encoding="utf-8")


def make_bundle(place: Path, count: int, overrides: list[str]) -> float:
    """Write notes and a bundle of them, with three golden queries, into a folder; seconds of the bundle."""
    notes = place / "notes"
    write_notes(notes, count)
    asked = [path_of(notes, number) for number in range(3)]
    rows = [f"{' '.join(note.read_text().split()[8:10])},{note.relative_to(notes)},test" for note in asked]
    (place / "questions.csv").write_text("\n".join(["text,relevant,split", *rows]), encoding="utf-8")
    started = time.perf_counter()
    settings = composition.compose(
        [
            *("+exp=recommended", "data=vault", f"data.corpus={notes}", f"data.queries={place / 'questions.csv'}"),
            *("latency.enabled=false", "tracking.enabled=false", "name=notes", f"paths.results={place / 'results'}"),
            *(f"paths.index={place / 'index'}", f"paths.cache={place / 'cache'}", *overrides),
        ]
    )
    benchmark = load(settings.config)
    arm = measured_arm.find(run([settings], benchmark, folder=place / "run").folder)
    bundle.write(arm, benchmark, place / "bundle", evidence=measured_arm.evidence(arm))
    return time.perf_counter() - started


@contextmanager
def serving(folder: Path, notes: Path) -> Iterator[tuple[psutil.Process, int]]:
    """The service and its port, once its documents are followed."""
    command = [sys.executable, "-m", "ragbench", "serve", str(folder), "--port", "0", "--watch", "--corpus", str(notes)]
    with subprocess.Popen(
        [*command, "--queue", "256", "--per-client", "256"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+);", process.stdout.readline())
        assert found, "the service did not start"
        try:
            yield psutil.Process(process.pid), int(found[1])
        finally:
            process.terminate()


class Memory:
    """The most that a process and its children held at once, in bytes, sampled twenty times a second."""

    def __init__(self, process: psutil.Process) -> None:
        self.most = 0
        self._process = process
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._stopped.wait(0.05):
            self.most = max(self.most, sum(_held(each) for each in _family(self._process)))

    def stop(self) -> int:
        """The most so far."""
        self._stopped.set()
        self._thread.join()
        return self.most


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _held(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def edit(notes: Path, number: int, count: int) -> str:
    """Append a line with a word of its own to one of `count` notes; the word."""
    word = f"zq{number}x"
    with path_of(notes, number * 7 % count).open("a", encoding="utf-8") as file:
        file.write(f"\nThe word {word} was added.\n")
    return word


def is_found(http: httpx.Client, word: str) -> bool:
    """Whether a search by words shows the word."""
    try:
        answer = http.post("/search", json={"query": word, "top_n": 10, "mode": "keyword"}).json()
    except httpx.HTTPError:
        return False
    return any(word in hit["text"] for hit in answer.get("hits", []))


def until_found(http: httpx.Client, word: str, patience: float = PATIENCE) -> float:
    """Seconds until a search finds the word; infinite when it is lost."""
    started = time.perf_counter()
    while not is_found(http, word):
        if time.perf_counter() - started > patience:
            return float("inf")
        time.sleep(0.02)
    return time.perf_counter() - started


async def asked(port: int, clients: int, seconds: float) -> tuple[list[float], Counter[int]]:
    """Milliseconds and statuses (0: no answer) of so many clients, each asking as soon as it has its answer."""
    words, _ = _words()
    times: list[float] = []
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = None
        for turn in itertools.count():
            if time.perf_counter() > end:
                break
            chance = np.random.default_rng([SEED, number, turn])
            started = time.perf_counter()
            try:
                if connection is None:
                    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
                status, _ = await connection.search(" ".join(chance.choice(words, 3)))
            except (OSError, EOFError):
                status, connection = 0, None
                await asyncio.sleep(0.1)
            times.append(1e3 * (time.perf_counter() - started))
            statuses[status] += 1
        if connection is not None:
            connection.writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return times, statuses


def swap(place: Path, kept: Path, number: int) -> None:
    """Put the bundle as it was exported, under another name, in the place of the one that is served."""
    following, served, before = (place / name for name in ("next", "bundle", "before"))
    shutil.copytree(kept / "bundle", following)
    reseal(following / bundle.RECORD, name=f"swap {number}")
    shutil.rmtree(before, ignore_errors=True)
    served.rename(before)
    following.rename(served)


@dataclass
class Disturbance:
    """Edits, kills and swaps while clients ask: a thread, until it is stopped."""

    process: psutil.Process
    place: Path
    kept: Path
    count: int
    first: int
    kills: bool
    swaps: bool
    added: list[str] = field(default_factory=list)
    killed: int = 0
    swapped: int = 0

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Wait until nothing is disturbed any more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        started = time.perf_counter()
        while not self._stopped.wait(EDIT_SECONDS):
            self.added.append(edit(self.place / "notes", self.first + len(self.added), self.count))
            passed = time.perf_counter() - started
            if self.kills and passed > KILL_SECONDS * (self.killed + 1):
                self.killed += 1
                for child in _family(self.process)[1:]:
                    child.send_signal(signal.SIGKILL)
            if self.swaps and passed > SWAP_SECONDS * (self.swapped + 1):
                self.swapped += 1
                swap(self.place, self.kept, self.swapped)


def measure(count: int, arguments: argparse.Namespace, kept: Path) -> Iterator[tuple[str, list[str]]]:
    """Rows of the tables for one number of notes: the name of the table and its cells."""
    made = kept / "seconds"
    if not made.exists():
        shutil.rmtree(kept, ignore_errors=True)
        made.parent.mkdir(parents=True)
        made.write_text(f"{make_bundle(kept, count, arguments.overrides):.0f}")
        for name in ("results", "index", "cache", "run"):
            shutil.rmtree(kept / name, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for part in ("notes", "bundle"):
            shutil.copytree(kept / part, place / part)
        with (
            serving(place / "bundle", place / "notes") as (process, port),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http,
        ):
            # The process that refreshes begins, and prepares what makes later refreshes quick.
            first = until_found(http, edit(place / "notes", 0, count), 10 * PATIENCE)
            resting = sum(_held(each) for each in _family(process))
            memory = Memory(process)
            fresh = []
            for number in range(1, arguments.edits + 1):
                fresh.append(until_found(http, edit(place / "notes", number, count)))
                time.sleep(0.5)
            most = memory.stop()
            chunks = http.get("/health").json()["chunks"]
            found = [f"{np.median(fresh):.2f} s", f"{max(fresh):.2f} s"] if fresh else ["", ""]
            held = [f"{resting / 2**20:.0f} MiB", f"{most / 2**20:.0f} MiB"]
            yield "fresh", [f"{count:,}", f"{chunks:,}", f"{made.read_text()} s", f"{first:.2f} s", *found, *held]
            edits = arguments.edits + 1
            for clients in arguments.clients:
                disturbed = Disturbance(process, place, kept, count, edits, arguments.kills, arguments.swaps)
                times, statuses = asyncio.run(asked(port, clients, arguments.seconds))
                disturbed.stop()
                edits += len(disturbed.added)
                end = time.perf_counter() + PATIENCE
                left = (until_found(http, word, end - time.perf_counter()) for word in disturbed.added)
                lost = sum(seconds == float("inf") for seconds in left)
                about = http.get("/health").json()
                yield (
                    "load",
                    [
                        *(f"{count:,}", f"{clients}", f"{len(times):,}", f"{len(times) / arguments.seconds:.0f}"),
                        *(f"{value:.0f} ms" for value in np.percentile(times, [50, 95, 99])),
                        *(f"{len(times) - statuses[200]}", f"{len(disturbed.added)}", f"{disturbed.killed}"),
                        *(f"{disturbed.swapped}", f"{lost}"),
                        *(f"{about['chunks_changed']:.1%}", f"{about['golden_agreement']:.3f}"),
                    ],
                )


HEADS = {
    "fresh": "notes | chunks | bundle made in | first edit searchable after | edit searchable after (median) | maximum "
    "| idle memory | peak memory while refreshing",
    "load": "notes | clients | requests | per s | p50 | p95 | p99 | not answered | edits | kills | swaps | lost "
    "| chunks changed | golden agreement",
}


def main() -> None:
    """Read the options, measure, print each row as it is known and the tables at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=30.0, help="of each number of clients")
    parser.add_argument("--edits", type=int, default=10, help="single ones, for freshness")
    parser.add_argument("--kills", action="store_true", help="kill the process that refreshes from time to time")
    parser.add_argument("--swaps", action="store_true", help="put the exported bundle in its place from time to time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where exported bundles stay for the next time")
    parser.add_argument("--overrides", nargs="*", default=[], help="such as index.encoder.name=draft")
    arguments = parser.parse_args()
    rows: dict[str, list[list[str]]] = {name: [] for name in HEADS}
    with tempfile.TemporaryDirectory() as passing:
        for count in arguments.notes:
            named = re.sub(r"[^\w-]+", "-", "-".join([str(count), *arguments.overrides]))
            kept = (arguments.keep or Path(passing)).absolute() / named
            for table, cells in measure(count, arguments, kept):
                rows[table].append(cells)
                print(" | ".join(cells), flush=True)
    for name, head in HEADS.items():
        ruler = " | ".join("---" for _ in head.split(" | "))
        print("", *(f"| {line} |" for line in [head, ruler, *map(" | ".join, rows[name])]), sep="\n")


if __name__ == "__main__":
    main()
