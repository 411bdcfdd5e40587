"""A seeded campaign of faults against real commands: kills at steps of writing, flipped bits, disks that are full.

    python tests/faults/campaign.py [KILLS] [FLIPS] [FULL]      prints what came of them; exit code 1 for any harm

Harm is a result that was lost or altered and still taken for good, a traceback, or a process left behind.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ragbench.errors import ResultsError
from ragbench.experiment import results, store
from ragbench.index.artefacts import ArtefactStore

SEED = 13
VAULT = Path(__file__).parents[1] / "data" / "vault"
QUERIES = (
    "qid,text,relevant\nt1,LNT-301,reference/errors.md\nt2,how do lamps know when the sun sets,guides/schedules.md\n"
)
COMMANDS = {
    "run": ("run", "-m", "p12=on,off"),
    "ablate": ("ablate", "+exp=baseline", "design=add_one", "factors=[p12]"),
}
TABLES = ("per_query.parquet", "top.parquet", "run.trec", "sections.trec")
_SECONDS = 120

# Kills itself at the nth file that is flushed or given its name.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from ragbench import cli, files

at, steps = int(sys.argv[1]), 0

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


class Campaign:
    """Commands over a small vault in a folder of their own; `harms` says what went wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.harms: list[str] = []
        self._chance = random.Random(SEED)
        (folder / "queries.csv").write_text(QUERIES)
        self._whole = {name: self._undisturbed(name) for name in COMMANDS}

    def kill(self, times: int) -> None:
        """Kill a command at a step of its writing, run it again: its tables must be those of an undisturbed one."""
        for case in range(times):
            name = self._chance.choice(list(COMMANDS))
            whole, steps = self._whole[name]
            at = self._chance.randint(1, steps)
            root = self.folder / f"kill-{case}"
            killed = self._command(name, root, at)
            self._expect(killed.returncode == -signal.SIGKILL, f"kill {case}: {name} was not killed at step {at}")
            again = self._command(name, root)
            self._expect(again.returncode == 0, f"kill {case}: {name} at step {at} ends with {again.returncode}")
            self._quiet(f"kill {case}", again)
            if again.returncode == 0:
                self._expect(tables(store.latest(root)) == whole, f"kill {case}: {name} at step {at} altered a table")
            shutil.rmtree(root, ignore_errors=True)
            self.counts["kills"] += 1

    def flip(self, times: int) -> None:
        """Flip a bit of a file of results or of the index: it is noticed, or what is read is the same."""
        run = store.latest(self.folder / "whole-run")
        index = ArtefactStore(self.folder / "whole-run" / "index")
        known, sound = results.load(run), [each.fingerprint for each in index.list()]
        found = sorted(path for root in (run, index.root) for path in root.rglob("*") if path.is_file())
        found = [p for p in found if p.name[0] != "." and p.name not in (store.PLAN, "report.html", "write.lock")]
        for case in range(times):
            path = self._chance.choice([p for p in found if p.stat().st_size])
            with flipped(path, self._chance):
                if path.is_relative_to(run):
                    try:
                        read = results.load(run)
                    except ResultsError:
                        self.counts["flips noticed"] += 1
                    else:
                        same = dict(read.record) == dict(known.record) and read.per_query.equals(known.per_query)
                        self._expect(same, f"flip {case}: {path} is read as something else")
                else:
                    noticed = [each.fingerprint for each in index.list()] != sound
                    self.counts["flips noticed"] += noticed
                    harmless = path.name == "manifest.json"  # white space, and how long the build took
                    self._expect(noticed or harmless, f"flip {case}: {path} is taken for whole")
            self.counts["flips"] += 1

    def fill(self, times: int) -> None:
        """Let no file grow beyond a size: the command says so in one sentence, or needs no more."""
        for case in range(times):
            root = self.folder / f"full-{case}"
            limit = int(2 ** self._chance.uniform(8, 18))
            full = self._command("run", root, limit=limit)
            self._expect(full.returncode in (0, 1, 2), f"full {case}: {limit} bytes end with {full.returncode}")
            self._quiet(f"full {case} of {limit} bytes", full)
            again = self._command("run", root)
            whole = again.returncode == 0 and tables(store.latest(root)) == self._whole["run"][0]
            self._expect(whole, f"full {case}: after {limit} bytes the results are not whole")
            shutil.rmtree(root, ignore_errors=True)
            self.counts["full disks"] += 1

    def _undisturbed(self, name: str) -> tuple[dict[str, bytes], int]:
        root = self.folder / f"whole-{name}"
        done = self._command(name, root)
        assert done.returncode == 0, done.stderr
        return tables(store.latest(root)), int(done.stdout.rsplit("steps", 1)[1])

    def _command(
        self, name: str, root: Path, at: int = 0, limit: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = [*COMMANDS[name], "data=vault", f"data.corpus={VAULT}", f"data.queries={self.folder / 'queries.csv'}"]
        words += ["split=all", "latency.enabled=false", "tracking.enabled=false", "--quiet"]
        words += [f"paths.results={root}", f"paths.cache={self.folder / 'cache'}"]
        # The number of steps depends on what is built: every case builds its own index.
        before = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)) if limit else None
        call = [sys.executable, "-c", PROGRAM, str(at), *words]
        return subprocess.run(
            call,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
            preexec_fn=before,
        )

    def _quiet(self, case: str, done: subprocess.CompletedProcess[str]) -> None:
        self._expect("Traceback" not in done.stderr, f"{case}: {done.stderr.strip().splitlines()[-1:]}")

    def _expect(self, held: bool, harm: str) -> None:
        if not held:
            self.harms.append(harm)


def tables(folder: Path) -> dict[str, bytes]:
    """What the arms of a run wrote, after it was compared with its digests."""
    found = results.load(folder)
    return {f"{arm} {name}": (found.arm_path(arm) / name).read_bytes() for arm in found.arms for name in TABLES}


class flipped:  # noqa: N801 -- reads as `with flipped(path, chance)`
    """A file with one bit the other way, as a context."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.content = path, path.read_bytes()
        self.bit = chance.randrange(len(self.content) * 8)

    def __enter__(self) -> None:
        changed = bytearray(self.content)
        changed[self.bit // 8] ^= 1 << self.bit % 8
        self.path.write_bytes(changed)

    def __exit__(self, *exception: object) -> None:
        self.path.write_bytes(self.content)


def figures(campaign: Campaign) -> Iterator[str]:
    """The table of what came of the campaign."""
    yield "| faults | cases |"
    yield "| --- | ---: |"
    for name, count in sorted(campaign.counts.items()):
        yield f"| {name} | {count:,} |"
    yield f"| harms | {len(campaign.harms)} |"


def main() -> int:
    """Run the campaign with the numbers of cases that are given."""
    kills, flips, full = (int(word) for word in (sys.argv[1:] or ("300", "3000", "30")))
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder))
        campaign.flip(flips)
        campaign.kill(kills)
        campaign.fill(full)
    print("\n".join([*figures(campaign), *campaign.harms]))
    return int(bool(campaign.harms))


if __name__ == "__main__":
    raise SystemExit(main())
