"""A seeded campaign of faults against real commands: kills, flipped bits, full disks, company, and bad inputs.

    python -m tests.faults.campaign [KILLS FLIPS FULL CROWDS INPUTS]     prints what came of them; exit code 1 for harm

Harm is a result that was lost or altered and still taken for good, a traceback, a hang, or a process left behind.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from ragbench.base.errors import RagbenchError, ResultsError
from ragbench.base.files import digest
from ragbench.extras.ship import bundle
from ragbench.index.artefacts import ArtefactStore
from ragbench.results import measurements, store
from tests.faults import bad_inputs

SEED = 13
VAULT = Path(__file__).parents[1] / "data" / "vault"
QUERIES = """qid,text,relevant,split
t1,LNT-301,reference/errors.md,test
t2,how do lamps know when the sun sets,guides/schedules.md,test
t3,how many lamps may one account have,reference/limits.md,train
t4,how do programs prove their identity,guides/authentication.md,train
t5,the first lamp,guides/first-lamp.md,train
"""
POOL = "qid,section,grade\nt1,reference/errors#error-codes,3\nt2,guides/schedules#schedules,2\n"
COMMANDS = {
    "run": ("run", "-m", "p12=on,off", "split=all"),
    "ablate": ("ablate", "+exp=baseline", "design=add_one", "factors=[p12]", "split=all"),
    "tune": ("tune", "tune=[fuse]", "tune.starts=[]", "tune.trials=4", "tune.folds=0"),
    "index": ("index", "p1=on"),
    "export": ("export", "RUN", "--arm", "p12=on", "--force", "--out", "ROOT/bundle"),
    "merge": ("judge", "FOLDER/pool.csv", "--merge", "data.qrels=ROOT/qrels"),
    "track": ("track", "--all", "tracking.uri=sqlite:///ROOT/mlflow.db"),
}
"""By name; RUN is a finished run, FOLDER that of the campaign, ROOT that of the case."""
TABLES = ("per_query.parquet", "top.parquet", "run.trec", "sections.trec")
_SECONDS = 60  # an answer that takes longer is a hang

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


class Campaign:
    """Commands over a small vault in a folder of their own; `harms` says what went wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.harms: list[str] = []
        self._chance = random.Random(SEED)
        (folder / "queries.csv").write_text(QUERIES)
        (folder / "pool.csv").write_text(POOL)
        self._whole: dict[str, tuple[Any, int, float]] = {}
        self._undisturbed("run")

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the campaign's collection."""
        return ("data=vault", f"data.corpus={VAULT}", f"data.queries={self.folder / 'queries.csv'}")

    def export(self) -> Path:
        """A bundle of the run."""
        self._undisturbed("export")
        return self.folder / "whole-export" / "bundle"

    def kill(self, times: int, commands: tuple[str, ...] = tuple(COMMANDS)) -> None:
        """Kill a command at a step of its writing or any moment, run it again: the outcome is that of a whole one."""
        for case in range(times):
            name = commands[case % len(commands)]
            whole, steps, seconds = self._undisturbed(name)
            timed = steps == 0 or self._chance.random() < 0.3
            at = -self._chance.randint(1, max(1, int(seconds * 100))) if timed else self._chance.randint(1, steps)
            root = self._root(f"kill-{case}", name)
            killed = self._command(name, root, at)
            finished = killed.returncode == 0 and timed  # it was faster this time
            self._expect(
                finished or killed.returncode == -signal.SIGKILL, f"kill {case}: {name} was not killed at {at}"
            )
            if not (name == "export" and (root / "bundle").exists()):
                again = self._command(name, root)
                self._expect(again.returncode == 0, f"kill {case}: {name} at {at}, then: {again.stderr[-200:]}")
                self._quiet(f"kill {case} of {name}", again)
            self._expect(self._outcome(name, root) == whole, f"kill {case}: {name} at {at} has another outcome")
            shutil.rmtree(root, ignore_errors=True)
            self.counts[f"kills of {name}"] += 1

    def crowd(self, times: int) -> None:
        """Four of the same command at once, in one results folder: all are right, or say who is in the way."""
        for case in range(times):
            name = ("run", "index", "track", "merge")[case % 4]
            whole, *_ = self._undisturbed(name)
            root = self._root(f"crowd-{case}", name)
            calls = [self._started(name, root) for _ in range(4)]
            ended = [self._ended(call) for call in calls]
            for done in ended:
                self._quiet(f"crowd {case} of {name}", done)
                self._expect(done.returncode in (0, 2), f"crowd {case}: {name} ends with {done.returncode}")
            self._expect(any(done.returncode == 0 for done in ended), f"crowd {case}: no {name} succeeds")
            if name == "run":
                found = [tables(path) for path in sorted((root / "runs").iterdir())]
                self._expect(all(each == whole for each in found), f"crowd {case}: a run has other tables")
                self._expect(len(found) == sum(d.returncode == 0 for d in ended), f"crowd {case}: a run is lost")
            else:
                self._expect(self._outcome(name, root) == whole, f"crowd {case}: {name} has another outcome")
            shutil.rmtree(root, ignore_errors=True)
            self.counts["crowds of four"] += 1

    def flip(self, times: int) -> None:
        """Flip a bit of a file of results or of the index: it is noticed, or what is read is the same."""
        run = store.latest(self.folder / "whole-run")
        index = ArtefactStore(self.folder / "whole-run" / "index")
        known, sound = measurements.load(run), [each.fingerprint for each in index.list()]
        found = sorted(path for root in (run, index.root) for path in root.rglob("*") if path.is_file())
        found = [p for p in found if p.name[0] != "." and p.name not in (store.PLAN, "report.html", "write.lock")]
        for case in range(times):
            path = self._chance.choice([p for p in found if p.stat().st_size])
            with flipped(path, self._chance):
                if path.is_relative_to(run):
                    try:
                        read = measurements.load(run)
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
            name = ("run", "index", "export")[case % 3]
            whole, *_ = self._undisturbed(name)
            root = self._root(f"full-{case}", name)
            limit = int(2 ** self._chance.uniform(8, 18))
            full = self._command(name, root, limit=limit)
            said = f"full {case} of {limit} bytes, {name}"
            self._expect(full.returncode in (0, 1, 2), f"{said}: ends with {full.returncode}")
            self._quiet(said, full)
            if not (name == "export" and (root / "bundle").exists()):
                again = self._command(name, root)
                self._expect(again.returncode == 0, f"{said}: then {again.stderr[-200:]}")
            self._expect(self._outcome(name, root) == whole, f"{said}: the outcome is not whole")
            shutil.rmtree(root, ignore_errors=True)
            self.counts[f"full disks under {name}"] += 1

    def mistake(self, times: int | None = None) -> None:
        """Give bad inputs, a seeded sample of so many or all: each is refused in one sentence that names it."""
        known = bad_inputs.cases()
        chosen = known if times is None else self._chance.sample(known, min(times, len(known)))
        for number, case in enumerate(chosen):
            root = self.folder / f"input-{number}"
            harm = bad_inputs.harm(case, root)
            self._expect(not harm, f"input {case.name}: {harm}")
            shutil.rmtree(root, ignore_errors=True)
            self.counts["bad inputs"] += 1

    def _undisturbed(self, name: str) -> tuple[Any, int, float]:
        """The outcome of a command that nothing disturbs, its steps of writing, and the seconds it takes."""
        if name not in self._whole:
            root = self._root(f"whole-{name}", name)
            begun = time.monotonic()
            done = self._command(name, root)
            assert done.returncode == 0, done.stderr
            steps = int(done.stdout.rsplit("steps", 1)[1])
            self._whole[name] = self._outcome(name, root), steps, time.monotonic() - begun
        return self._whole[name]

    def _root(self, case: str, name: str) -> Path:
        """A new folder of results, with what the command needs to find there."""
        root = self.folder / case
        if name == "track":
            shutil.copytree(self.folder / "whole-run" / "runs", root / "runs")
        return root

    def _outcome(self, name: str, root: Path) -> Any:
        """What a command has made, without times and places; what went wrong when it cannot be read."""
        try:
            if name in ("run", "ablate"):
                return tables(store.latest(root))
            if name == "tune":
                return trials(root)
            if name == "index":
                return sorted((kind, name, why or "whole") for kind, name, why in ArtefactStore(root / "index").check())
            if name == "export":
                return contents(root / "bundle")
            if name == "merge":
                return {path.name: path.read_text() for path in sorted((root / "qrels").glob("[!.]*"))}
            return logged(root / "mlflow.db")
        except (RagbenchError, OSError, ValueError, sqlite3.Error) as error:
            return repr(error)

    def _command(
        self, name: str, root: Path, at: int = 0, limit: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self._ended(self._started(name, root, at, limit))

    def _started(self, name: str, root: Path, at: int = 0, limit: int | None = None) -> subprocess.Popen[str]:
        places = {"ROOT": root, "FOLDER": self.folder}
        if "RUN" in COMMANDS[name]:
            places["RUN"] = store.latest(self.folder / "whole-run")
        words = list(COMMANDS[name])
        for sign, place in places.items():
            words = [word.replace(sign, str(place)) for word in words]
        if name != "track":
            words += self.words
        words += [f"paths.results={root}", f"paths.cache={self.folder / 'cache'}"]
        if name in ("run", "ablate", "tune"):
            words += ["latency.enabled=false", "tracking.enabled=false"]
        words += [] if name == "merge" else ["--json" if name == "track" else "--quiet"]
        # The number of steps depends on what is built: every case builds its own index.
        before = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)) if limit else None
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(at), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )

    def _ended(self, call: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """What a command said; one that hangs is killed, and what it leaves behind is counted."""
        below: set[psutil.Process] = set()
        deadline, out, err = time.monotonic() + _SECONDS * 5, "", ""
        while True:
            with contextlib.suppress(psutil.NoSuchProcess):
                below |= set(psutil.Process(call.pid).children(recursive=True))
            try:
                out, err = call.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    call.kill()
                    self._expect(False, f"{call.args[4:6]} hangs")
        _, alive = psutil.wait_procs(below, timeout=5)
        self._expect(not alive, f"{call.args[4:6]} left {len(alive)} processes behind")
        for process in alive:
            process.kill()
        return subprocess.CompletedProcess(call.args, call.returncode, out, err)

    def _quiet(self, case: str, done: subprocess.CompletedProcess[str]) -> None:
        self._expect("Traceback" not in done.stderr, f"{case}: {done.stderr.strip().splitlines()[-1:]}")

    def _expect(self, held: bool, harm: str) -> None:
        if not held:
            self.harms.append(harm)


def tables(folder: Path) -> dict[str, bytes]:
    """What the arms of a run wrote, after it was compared with its digests."""
    found = measurements.load(folder)
    return {f"{arm} {name}": (found.arm_path(arm) / name).read_bytes() for arm in found.arms for name in TABLES}


def trials(root: Path) -> list[list[Any]]:
    """The trials of the only search below a folder: numbers, values, objectives."""
    (folder,) = [path.parent for path in root.glob(f"tune/*/{store.SEARCH_RECORD}")]
    store.read_search(folder)
    frame = pd.read_csv(folder / "trials.csv")
    return json.loads(
        frame[[name for name in frame.columns if name != "seconds" and "ms" not in name]].to_json(orient="values")
    )


def contents(folder: Path) -> dict[str, str]:
    """The files of a bundle with their digests; those that tell times and places without."""
    bundle.read_record(folder)
    bundle.read_golden(folder)
    vary = ("bundle.json", "manifest.json", "generation.json", "modified.json", "config.yaml")
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): "" if path.name in vary else digest(path) for path in found}


def logged(database: Path) -> list[str]:
    """The names of the runs in an MLflow store."""
    with sqlite3.connect(database) as connection:
        return sorted(name for (name,) in connection.execute("select name from runs where lifecycle_stage = 'active'"))


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
    given = [int(word) for word in sys.argv[1:]] + [300, 3000, 30, 40, 10_000][len(sys.argv) - 1 :]
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder))
        steps = (campaign.flip, campaign.fill, campaign.kill, campaign.crowd, campaign.mistake)
        for step, times in zip(steps, (given[1], given[2], given[0], given[3], given[4]), strict=True):
            step(times)
            print(*figures(campaign), *campaign.harms, sep="\n", flush=True)
    return int(bool(campaign.harms))


if __name__ == "__main__":
    raise SystemExit(main())
