"""A bundle that is refreshed again and again while it is reloaded and searched: no answer is wrong.

    python -m research.faults.concurrent_refresh [REFRESHES KILLS]     prints a table; exit code 1 for harm

Harm is a false alarm (a bundle that was honestly refreshed is refused), an error of a search, or an answer that still
has what a confirmed edit took away. Kills strike `ragbench refresh` at a step of its writing or at any moment: what is
served stays whole, and the next refresh succeeds.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from ragbench.base.types import RagbenchError
from ragbench.extras.ship.deployment import load
from ragbench.extras.ship.refresh import Refresher
from ragbench.extras.ship.serving.messages import SearchRequest
from ragbench.extras.ship.serving.service import SearchService
from research.faults.campaign import SEED, VAULT, exported, figures

CLIENTS = 8
NOTE = "zebra.md"

# Kills itself at the nth file that is flushed or given its name; below zero, after so many hundredths of a second.
PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from ragbench.base import files, processes
from ragbench.commands import cli

at, steps = int(sys.argv[1]), 0
if at < 0:
    def strike():
        time.sleep(-at / 100)
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=strike, daemon=True).start()

def counting(original):
    def step(*given):
        global steps
        steps += 1
        if steps == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*given)
    return step

files.flush, Path.replace, Path.rename = map(counting, (files.flush, Path.replace, Path.rename))
code = cli.main(sys.argv[2:])
print("steps", steps)
sys.exit(code)
"""


class Company:
    """A bundle, the notes it follows, and what became of it."""

    def __init__(self, folder: Path, bundled: Path) -> None:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        self.counts: Counter[str] = Counter()
        self.harms: list[str] = []
        self._bundle, self._notes = bundled, folder / "notes"
        folder.mkdir(parents=True)
        shutil.copytree(VAULT, self._notes)

    def refresh(self, times: int) -> None:
        """Refresh so many times; each time the note has another word, and the word before is gone."""
        refresher = Refresher(self._bundle, self._notes)
        with self._served() as service:
            for number in range(times):
                self._edit(f"quagga{number}")
                refresher.refresh()
                self._reload(service, (f"quagga{number}",))
                self.counts["refreshes"] += 1

    def kill(self, times: int) -> None:
        """Kill the command at a step or any moment, after which the old or the new note answers; then let it end."""
        chance, steps, before = random.Random(SEED), 20, "okapi"
        self._edit(before)
        self._command(0)
        with self._served() as service:
            for number in range(times):
                word = f"okapi{number}"
                self._edit(word)
                # In hundredths of a second: starting takes most of them.
                at = -chance.randint(100, 500) if chance.random() < 0.3 else chance.randint(1, steps)
                killed = self._command(at)
                self.counts["kills"] += killed.returncode == -signal.SIGKILL
                self._reload(service, (word, before))
                whole = self._command(0)
                if whole.returncode:
                    self.harms.append(f"kill {number} at {at}, then: {whole.stderr[-200:]}")
                    continue
                steps = max(steps, int(whole.stdout.rsplit("steps", 1)[1]))
                self._reload(service, (word,))
                before = word

    def _edit(self, word: str) -> None:
        (self._notes / NOTE).write_text(f"# Zebra\n\nA zebra crossing {word}.\n", encoding="utf-8")

    def _command(self, at: int) -> subprocess.CompletedProcess[str]:
        words = ("refresh", self._bundle, "--corpus", self._notes, "--quiet")
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, str(at), *map(str, words)], capture_output=True, text=True, timeout=300
        )

    @contextlib.contextmanager
    def _served(self) -> Iterator[SearchService]:
        """The service of the bundle, with its clients, and somebody else who opens the bundle."""
        service = SearchService(self._bundle)
        over = threading.Event()
        with start_blocking_portal() as self._portal:
            threads = [threading.Thread(target=self._ask, args=(service, over)) for _ in range(CLIENTS)]
            threads.append(threading.Thread(target=self._open, args=(over,)))
            for thread in threads:
                thread.start()
            try:
                yield service
            finally:
                over.set()
                for thread in threads:
                    thread.join()
        service.close()

    def _reload(self, service: SearchService, words: tuple[str, ...]) -> None:
        """Serve what lies in the folder: the note must be found with one of the words that it may have."""
        try:
            self._portal.call(service.reload)
        except RagbenchError as error:
            self.harms.append(f"{words[0]}: {error}")
            return
        text = self._search(service, "zebra crossing")
        if not any(f"{word}." in text for word in words):
            self.harms.append(f"{words[0]}: another answer: {text[:80]}")

    def _ask(self, service: SearchService, over: threading.Event) -> None:
        while not over.wait(0.05):
            try:
                self._search(service, "how do lamps know when the sun sets")
                self.counts["searches"] += 1
            except Exception as error:
                self.harms.append(f"a search: {type(error).__name__} {error}")

    def _search(self, service: SearchService, query: str) -> str:
        """The text of the first hit."""
        answer = self._portal.call(service.search, SearchRequest.model_validate({"query": query, "top_n": 3}))
        return answer.hits[0].text

    def _open(self, over: threading.Event) -> None:
        """Somebody else who opens the bundle at any moment."""
        while not over.is_set():
            try:
                load(self._bundle).close()
                self.counts["openings at any moment"] += 1
            except RagbenchError as error:
                self.harms.append(f"opened at any moment: {error}")


def main() -> int:
    """Export a bundle of the small vault and refresh it."""
    times, kills = [int(word) for word in sys.argv[1:]] + [200, 40][len(sys.argv) - 1 :]
    with tempfile.TemporaryDirectory() as folder:
        company = Company(Path(folder) / "company", exported(Path(folder)))
        company.refresh(times)
        company.kill(kills)
        print(*figures("under load", company.counts, company.harms), *company.harms[:20], sep="\n")
        return int(bool(company.harms))


if __name__ == "__main__":
    raise SystemExit(main())
