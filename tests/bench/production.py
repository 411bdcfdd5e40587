"""The figures of docs/production.md: freshness after an edit, memory, throughput while documents are refreshed.

    python tests/bench/production.py --notes 500 5000 --clients 1 8 32 --seconds 30
    python tests/bench/production.py --notes 500 --clients 8 --seconds 600 --kills

For every number of notes: a bundle of the recommended search over generated notes, served with --corpus and --watch.
First single edits, one after the other: seconds from the end of writing until a search finds it. Then so many clients,
each asking as soon as it has its answer, while a note is edited every two seconds; with --kills the process that
refreshes is killed every twenty. At the end every edit must be found: what is not, is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil
from scaling_corpus import _words
from test_service_load import Connection

from ragbench import app
from ragbench.experiment.run import run
from ragbench.export import bundle, measured_arm
from ragbench.topics.load import load

EDIT_SECONDS, KILL_SECONDS, PATIENCE = 2.0, 20.0, 120.0
SEED = 13


def write_notes(folder: Path, count: int) -> None:
    """Notes of about 150 words, in folders of 100."""
    words, shares = _words()
    for number in range(count):
        chance = np.random.default_rng([SEED, number])
        drawn = words[np.searchsorted(shares, chance.random(150) * shares[-1]).clip(max=len(words) - 1)]
        place = folder / f"part-{number // 100}" / f"note-{number}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(part) for part in np.array_split(drawn, 10)]
        place.write_text(f"# Note {number} on {drawn[0]}\n\n" + ".\n".join(lines) + ".\n", encoding="utf-8")


def make_bundle(place: Path, notes: Path, overrides: list[str]) -> Path:
    """A bundle of the notes, with three golden queries."""
    questions = [
        f"{note.read_text().split()[8]} {note.read_text().split()[9]}" for note in sorted(notes.rglob("*.md"))[:3]
    ]
    paths = [str(note.relative_to(notes)) for note in sorted(notes.rglob("*.md"))[:3]]
    rows = [f"{text},{path},test" for text, path in zip(questions, paths, strict=True)]
    (place / "questions.csv").write_text("\n".join(["text,relevant,split", *rows]), encoding="utf-8")
    settings = app.compose(
        [
            *("+exp=recommended", "data=vault", f"data.corpus={notes}", f"data.queries={place / 'questions.csv'}"),
            *("latency.enabled=false", "tracking.enabled=false", "name=notes", f"paths.results={place / 'results'}"),
            *(f"paths.index={place / 'index'}", f"paths.cache={place / 'cache'}", *overrides),
        ]
    )
    benchmark = load(settings.config)
    arm = measured_arm.find(run([settings], benchmark, folder=place / "run", say=lambda sentence: None).folder)
    return bundle.write(
        arm, benchmark, place / "bundle", evidence=measured_arm.evidence(arm), say=lambda sentence: None
    )


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
        yield psutil.Process(process.pid), int(found[1])
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


def edit(notes: Path, number: int) -> str:
    """Append a line with a word of its own to a note; the word."""
    word = f"zq{number}x"
    files = sorted(notes.rglob("*.md"))
    with files[number * 7 % len(files)].open("a", encoding="utf-8") as file:
        file.write(f"\nThe word {word} was added.\n")
    return word


def is_found(http: httpx.Client, word: str) -> bool:
    """Whether a search shows the word."""
    answer = http.post("/search", json={"query": word, "top_n": 10}).json()
    return any(word in hit["text"] for hit in answer.get("hits", []))


def until_found(http: httpx.Client, word: str) -> float:
    """Seconds until a search finds the word; infinite when it is lost."""
    started = time.perf_counter()
    while time.perf_counter() - started < PATIENCE:
        if is_found(http, word):
            return time.perf_counter() - started
        time.sleep(0.02)
    return float("inf")


async def asked(port: int, clients: int, seconds: float) -> tuple[list[float], Counter[int]]:
    """Milliseconds and statuses of so many clients, each asking as soon as it has its answer."""
    words, _ = _words()
    times: list[float] = []
    statuses: Counter[int] = Counter()
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
        for turn in itertools.count():
            if time.perf_counter() > end:
                break
            chance = np.random.default_rng([SEED, number, turn])
            started = time.perf_counter()
            status, _ = await connection.search(" ".join(chance.choice(words, 3)))
            times.append(1e3 * (time.perf_counter() - started))
            statuses[status] += 1
        connection.writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return times, statuses


def disturb(process: psutil.Process, notes: Path, first: int, stop: threading.Event, kills: bool) -> list[str]:
    """Edit until told to stop, killing what refreshes from time to time; the words of the edits."""
    added: list[str] = []
    killed = time.perf_counter()
    while not stop.wait(EDIT_SECONDS):
        added.append(edit(notes, first + len(added)))
        if kills and time.perf_counter() - killed > KILL_SECONDS:
            killed = time.perf_counter()
            for child in _family(process)[1:]:
                child.send_signal(signal.SIGKILL)
    return added


def measure(count: int, arguments: argparse.Namespace) -> None:
    """Print the rows of one number of notes."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        notes = place / "notes"
        write_notes(notes, count)
        started = time.perf_counter()
        made = make_bundle(place, notes, arguments.overrides)
        built = time.perf_counter() - started
        with (
            serving(made, notes) as (process, port),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http,
        ):
            first = until_found(http, edit(notes, 0))  # the process that refreshes begins
            resting = sum(_held(each) for each in _family(process))
            memory = Memory(process)
            fresh = []
            for number in range(1, arguments.edits + 1):
                fresh.append(until_found(http, edit(notes, number)))
                time.sleep(0.5)
            most = memory.stop()
            chunks = http.get("/health").json()["chunks"]
            print(f"{count} notes, {chunks} chunks: bundle in {built:.1f} s", flush=True)
            print(f"an edit is found after {np.median(fresh):.2f} s (median of {len(fresh)}), {max(fresh):.2f} at most")
            print(f"the first one, while the refreshing begins, after {first:.2f} s")
            print(f"memory {resting / 2**20:.0f} MiB at rest, {most / 2**20:.0f} while refreshing", flush=True)
            edits = arguments.edits + 1
            print(f"{'clients':>7}{'requests':>10}{'per s':>8}{'p50':>9}{'p95':>9}{'p99':>9}  not 200   edits  lost")
            for clients in arguments.clients:
                stop, added = threading.Event(), []
                editor = threading.Thread(
                    target=lambda: added.extend(disturb(process, notes, edits, stop, arguments.kills))  # noqa: B023
                )
                editor.start()
                times, statuses = asyncio.run(asked(port, clients, arguments.seconds))
                stop.set()
                editor.join()
                edits += len(added)
                lost = sum(until_found(http, word) == float("inf") for word in added)
                p50, p95, p99 = np.percentile(times, [50, 95, 99])
                others = sum(number for status, number in statuses.items() if status != 200)
                rate = len(times) / arguments.seconds
                row = f"{clients:>7}{len(times):>10}{rate:>8.0f}{p50:>9.1f}{p95:>9.1f}{p99:>9.1f}"
                print(f"{row}{others:>9}{len(added):>8}{lost:>6}", flush=True)
            about = http.get("/health").json()
            drift = f"{about['chunks_changed']:.1%} of chunks changed, golden agreement {about['golden_agreement']:.3f}"
            print(f"after {edits} edits: generation {about['generation']}, {drift}", flush=True)


def main() -> None:
    """Read the options, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=30.0, help="of each number of clients")
    parser.add_argument("--edits", type=int, default=10, help="single ones, for freshness")
    parser.add_argument("--kills", action="store_true", help="kill the process that refreshes from time to time")
    parser.add_argument("--overrides", nargs="*", default=[], help="such as index.encoder.name=draft")
    arguments = parser.parse_args()
    for count in arguments.notes:
        measure(count, arguments)


if __name__ == "__main__":
    main()
