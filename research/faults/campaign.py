"""A campaign of faults against real commands, every case of which follows from a seed.

    python -m research.faults.campaign [--seed N] [--from CASE] [--command NAME] [--minutes N] [--page FILE]
                                     [KIND=CASES ...]

Kinds, such as kills=200: kills and errors at the nth change of a file (`shim.c`, needs gcc), of a named command at one
change after the other; bundles and databases with mutations, flips of results, crowds (four of a command at once),
inputs, and doors (`doors.py`). Every case but those of doors has a folder of its own and runs in a fork; bundles and
databases that are only opened share forks.
It prints what came of them; exit code 1 for harm: a result or an earlier state that is lost, or altered and still taken
for good; a traceback, a hang, a process or a draft left behind; a file changed outside the folder; a connection.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import datetime
import errno
import importlib
import io
import itertools
import json
import math
import os
import pickle
import pkgutil
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import yaml

import ragbench
from ragbench.base import processes
from ragbench.base.files import digest
from ragbench.base.fingerprint import text_digest
from ragbench.base.locations import PROJECT_FILE
from ragbench.base.types import RagbenchError, ResultsError
from ragbench.commands import cli
from ragbench.config import available, composition
from ragbench.extras.engines import sqlite
from ragbench.extras.engines.sqlite import SqliteEngine
from ragbench.extras.fit.tuning import tracking
from ragbench.extras.ship import bundle, generation as generations
from ragbench.index.artefacts import MANIFEST, ArtefactStore
from ragbench.results import measurements, store
from research.faults import bad_inputs
from tests.boundary.mutations import json_texts, yaml_texts
from tests.sealing import reseal, rewrite, rewrite_part
from tools import pages

SEED = 13
COUNTS = {"kills": 200, "errors": 200, "bundles": 1000, "databases": 300, "flips": 3000, "crowds": 40, "inputs": 2000}
COUNTS |= {"doors": 3000}  # last, for its servers keep threads
VAULT = Path(__file__).parents[2] / "tests" / "data" / "vault"
QUERIES = """qid,text,relevant,split
t1,LNT-301,reference/errors.md,test
t2,how do lamps know when the sun sets,guides/schedules.md,test
t3,how many lamps may one account have,reference/limits.md,train
t4,how do programs prove their identity,guides/authentication.md,train
t5,the first lamp,guides/first-lamp.md,train
"""
# What a ranker can be trained on: enough topics, each in a group of its own, whose answer is always the same page.
TRAINING = "qid,text,relevant,split,group\n" + "".join(
    f"f{number},{place} {subject},reference/limits.md,train,g{number}\n"
    for number, (place, subject) in enumerate(
        itertools.product(
            ("lamp", "schedule", "account", "error"), ("dusk", "limit", "code", "certificate", "password", "hour")
        )
    )
)
POOL = "qid,section,grade\nt1,reference/errors#error-codes,3\nt2,guides/schedules#schedules,2\n"
LOG = "".join(
    json.dumps({"query": text, "user": f"u{number}", "clicked": [], "time": f"2026-01-0{number + 1}T00:00:00Z"}) + "\n"
    for number, text in enumerate(("when does the sun set", "first lamp", "error LNT-301"))
)
MEASURED = ("latency.enabled=false", "tracking.enabled=false", "--quiet")
EXPORTED = ("export", "RUN", "--arm", "p12=on", "--force", "--quiet")
_LEARNED = ("--rounds", "2", "--quiet")
COMMANDS = {
    "run": ("run", "-m", "p12=on,off", "split=all", *MEASURED),
    "ablate": ("ablate", "+exp=baseline", "design=add_one", "factors=[p12]", "split=all", *MEASURED),
    "tune": ("tune", "tune=[fuse]", "tune.starts=[]", "tune.trials=4", "tune.folds=0", *MEASURED),
    "index": ("index", "p1=on", "--quiet"),
    "export": (*EXPORTED, "--out", "ROOT/bundle"),
    "export sqlite": (*EXPORTED, "--format", "sqlite", "--out", "ROOT/notes.sqlite"),
    "refresh": ("refresh", "ROOT/bundle", "--corpus", "ROOT/vault", "--quiet"),
    "refresh sqlite": ("refresh", "ROOT/notes.sqlite", "--corpus", "ROOT/vault", "--quiet"),
    "merge": ("judge", "FOLDER/pool.csv", "--merge", "data.qrels=ROOT/qrels"),
    "track": ("track", "--all", "tracking.uri=sqlite:///ROOT/mlflow.db", "--json"),
    "init": ("init", "ROOT/vault", "--yes", "--quiet", "--log", "FOLDER/log.jsonl"),
    "pool": ("data", "pool", "RUN", "--replace", "--out", "ROOT/pool.csv"),
    "from-log": ("topics", "from-log", "FOLDER/log.jsonl", "--replace", "--out", "ROOT/topics.jsonl"),
    "fit calibration": ("fit", "calibration", "--write", "mine", "--quiet"),
    "fit ranker": ("fit", "ranker", *_LEARNED, "--write", "mine"),
}
"""By name; RUN is a finished run, FOLDER that of the campaign, ROOT that of the case."""
QUERIES_OF = {"fit ranker": "training.csv"}
"""Commands that need other queries than `queries.csv`."""
TABLES = ("per_query.parquet", "top.parquet", "run.trec", "sections.trec")
TEXTS = tuple(line.split(",")[1] for line in QUERIES.splitlines()[1:])
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EIO)
_ANSWERED = 50
"""Bundles that one fork opens, so that what one of them leaves behind in it does not stay for long."""
_SECONDS = 180  # a case that takes longer hangs; other work may take most of the CPUs
_CASE = "RAGBENCH_FAULTS_CASE"
_MODULES = ("onnxruntime", "tokenizers", "hydra", "scipy.stats", "sqlite_vec", "pyarrow.parquet", "optuna")
"""What cases import, with all of ragbench."""


@dataclass
class Done:
    """What came of a case: its exit code (negative for a signal, None for a hang), what it said, its value."""

    code: int | None
    said: str
    value: Any = None
    steps: int = 0
    journal: list[str] = field(default_factory=list)


class Shim:
    """The library that counts changes of files, in this process and its forks; absent where it is not preloaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self.there = hasattr(self._library, "faults_arm")

    @staticmethod
    def preload(folder: Path) -> str:
        """Compile it; the path, or an empty string without a compiler."""
        made = folder / "shim.so"
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None or sys.platform != "linux":
            return ""
        source = Path(__file__).with_name("shim.c")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"], check=True)
        return str(made)

    def arm(self, root: Path, at: int = 0, error: int = 0, always: bool = False) -> None:
        """Count changes below a folder, and kill (error -1) or fail at one."""
        if self.there:
            self._library.faults_arm(str(root).encode(), ctypes.c_long(at), error, always)

    def watch(self, path: Path, folders: Sequence[Path]) -> None:
        """Write to a file what is changed elsewhere, and every connection."""
        if self.there:
            self._library.faults_watch(str(path).encode(), "".join(f"{each}:" for each in folders).encode())

    @property
    def steps(self) -> int:
        """The changes so far."""
        return int(self._library.faults_steps()) if self.there else 0


def words_in(folder: Path) -> tuple[str, ...]:
    """The words of a small collection, whose queries are written into a folder."""
    (folder / "queries.csv").write_text(QUERIES)
    return ("data=vault", f"data.corpus={VAULT}", f"data.queries={folder / 'queries.csv'}")


def exported(folder: Path) -> Path:
    """A bundle of a run in a folder."""
    places = (f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}")
    export = ("export", *EXPORTED[2:], "--out", str(folder / "bundle"), f"paths.results={folder / 'results'}")
    for words in ((*COMMANDS["run"], *words_in(folder), *places), export):
        subprocess.run([sys.executable, "-m", "ragbench", *words], check=True, stdout=subprocess.DEVNULL)
    return folder / "bundle"


class Campaign:
    """Commands over a small vault, each case in a fork and a folder of its own; `harms` has what went wrong."""

    def __init__(
        self,
        folder: Path,
        seed: int = SEED,
        first: int = 0,
        commands: Sequence[str] = tuple(COMMANDS),
        minutes: float = math.inf,
    ) -> None:
        self.commands, self._minutes = commands, minutes
        self.folder = folder.resolve()
        self.counts: Counter[str] = Counter()
        self.harms: list[str] = []
        self.shim = Shim()
        self._seed, self._first, self._case = seed, first, ""
        self.words = words_in(self.folder)
        (self.folder / "home").mkdir()  # that of the user, in which cases may only change what they name
        (folder / "pool.csv").write_text(POOL)
        (folder / "log.jsonl").write_text(LOG)
        (folder / "training.csv").write_text(TRAINING)
        (folder / "collections.yaml").write_text("".join(f"- {{name: {each}, words: name={each}}}\n" for each in "abc"))
        self._whole: dict[str, tuple[Any, Any, int]] = {}
        self._answering: tuple[int, Connection] | None = None
        modules = [each.name for each in pkgutil.walk_packages(ragbench.__path__, "ragbench.")]
        for name in (*_MODULES, *(each for each in modules if not each.endswith("__main__"))):
            with suppress(ImportError):  # of an extra
                importlib.import_module(name)
        composition.compose(["exp=recommended"]).pipeline  # noqa: B018 -- composes once for all cases
        self._undisturbed("run")

    def export(self) -> Path:
        """A bundle of the run."""
        self._undisturbed("export")
        return self.folder / "whole-export" / "bundle"

    def kills(self, times: int) -> None:
        """Kill a command at a change of a file and run it again: the outcome is that of a whole one."""
        for number, chance in self._cases("kills", times):
            name = self.commands[number % len(self.commands)]
            self._disturb(f"kills {number}", name, self._place(name, number, chance), -1)

    def errors(self, times: int) -> None:
        """Let a change of a file fail, once or from then on: one sentence, nothing is lost, the next call succeeds."""
        count = len(self.commands)
        for number, chance in self._cases("errors", times):
            name, error = self.commands[number % count], ERRORS[number // count % len(ERRORS)]
            self._disturb(f"errors {number}", name, self._place(name, number, chance), error, chance.random() < 0.7)

    def _place(self, name: str, number: int, chance: random.Random) -> int:
        """At which change of a file a command is disturbed: by chance, or one after the other of a single command."""
        steps = max(1, self._undisturbed(name)[2])
        return chance.randint(1, steps) if len(self.commands) > 1 else number % steps + 1

    def _disturb(self, case: str, name: str, at: int, error: int, always: bool = False) -> None:
        said = f"{case}: {name}, {'killed' if error < 0 else errno.errorcode[error] + ' always' * always} at {at}"
        before, whole, _ = self._undisturbed(name)
        root = self._root(case.replace(" ", "-"), name)
        done = self._command(name, root, at, error, always)
        killed = done.code == -signal.SIGKILL
        if error < 0 and not killed:
            self.counts["kills that came too late"] += 1
        self._expect(killed if error < 0 and done.steps == 0 else done.code in (0, 1, 2), said, done)
        if error > 0:
            lines = [line for line in done.said.splitlines() if line.startswith("ragbench: ")]
            self._expect("Traceback" not in done.said and (done.code == 0 or len(lines) > 0), said, done)
        if name in STATEFUL:
            state, *known = (_served_alone(each) for each in (self._outcome(name, root), before, whole))
            self._expect(state in known, f"{said}: the state is {_difference(state, known)}", done)
        if not (name == "export" and (root / "bundle").exists()):
            again = self._command(name, root)
            self._expect(again.code == 0, f"{said}, then", again)
        found = self._outcome(name, root)
        self._expect(found == whole, f"{said}: another outcome {_difference(found, whole)}")
        left = [each for each in root.rglob("*") if _LEFT.search(each.name)]
        self._expect(not left, f"{said}: left {[str(each.relative_to(root)) for each in left[:5]]}")
        shutil.rmtree(root, ignore_errors=True)
        self.counts[f"{'kills' if error < 0 else 'failing disks'}: {name}"] += 1

    def crowds(self, times: int) -> None:
        """Four of the same command at once, in one results folder: all are right, or name what is in the way."""
        for number, _ in self._cases("crowds", times):
            name = ("run", "index", "track", "merge")[number % 4]
            whole = self._undisturbed(name)[1]
            root = self._root(f"crowd-{number}", name)
            ended = [self._ended(each) for each in [self._started(self._work(name, root), root) for _ in range(4)]]
            said = f"crowds {number}: {name}"
            for done in ended:
                self._expect(done.code in (0, 2) and "Traceback" not in done.said, said, done)
            self._expect(any(done.code == 0 for done in ended), f"{said}: none succeeds")
            if name == "run":
                found = self._value(
                    lambda root=root: [tables(each) for each in sorted((root / "runs").iterdir())], root
                )
                self._expect(all(each == whole for each in found), f"{said}: a run has other tables")
                self._expect(len(found) == sum(done.code == 0 for done in ended), f"{said}: a run is lost")
            else:
                self._expect(self._outcome(name, root) == whole, f"{said}: another outcome")
            shutil.rmtree(root, ignore_errors=True)
            self.counts["crowds of four"] += 1

    def flips(self, times: int) -> None:
        """Flip a bit of a file of results or of the index: it is noticed, or what is read is the same."""
        noticed, harms = self._value(lambda: self._flip(times), self.folder / "whole-run")
        self.counts["flips"] += times
        self.counts["flips that are noticed"] += noticed
        self.harms += harms

    def _flip(self, times: int) -> tuple[int, list[str]]:
        run = store.latest(self.folder / "whole-run")
        index = ArtefactStore(self.folder / "whole-run" / "index")
        known, sound = measurements.load(run), [each.fingerprint for each in index.list()]
        found = sorted(path for root in (run, index.root) for path in root.rglob("*") if path.is_file())
        found = [p for p in found if p.name[0] != "." and p.name not in (store.PLAN, "report.html", "write.lock")]
        noticed, harms = 0, []
        for number, chance in self._cases("flips", times):
            path = chance.choice([p for p in found if p.stat().st_size])
            content = path.read_bytes()
            path.write_bytes(_flipped(content, chance))
            try:
                if path.is_relative_to(run):
                    read = measurements.load(run)
                    if dict(read.record) != dict(known.record) or not read.per_query.equals(known.per_query):
                        harms.append(f"flips {number}: {path} is read as something else")
                elif [each.fingerprint for each in index.list()] != sound:
                    noticed += 1
                elif path.name != MANIFEST:  # white space, and how long the build took
                    harms.append(f"flips {number}: {path} is taken for whole")
            except ResultsError:
                noticed += 1
            finally:
                path.write_bytes(content)
        return noticed, harms

    def bundles(self, times: int) -> None:
        """Damage a bundle, or change it as somebody who knows the format: it is refused, or answers as before.

        An untrusted file with correct digests may give other answers, and must do nothing else.
        """
        self._undisturbed("refresh")
        places = [self.export(), self.folder / "refreshed" / "bundle"]
        known = [self._value(partial(answers, place), place.parent) for place in places]
        for number, chance in self._cases("bundles", times):
            root = self.folder / f"bundle-{number}"
            which = chance.randrange(2)
            place = Path(shutil.copytree(places[which], root / "bundle"))
            what, sealed = (_sealed if number % 2 else _damaged)(place, chance), bool(number % 2)
            self._try(f"bundles {number}: {what}", place, root, known[which], sealed, chance)
            self.counts["bundles that somebody sealed" if sealed else "damaged bundles"] += 1
            if number % _ANSWERED == 0:
                self._stop_answering()
        self._stop_answering()

    def databases(self, times: int) -> None:
        """The same of an export to SQLite: bytes, pages, cuts, rows, schemas, journals beside it."""
        self._undisturbed("export sqlite")
        whole = self.folder / "whole-export sqlite" / "notes.sqlite"
        known = self._value(lambda: answers(whole), whole.parent)
        for number, chance in self._cases("databases", times):
            root = self.folder / f"database-{number}"
            root.mkdir()
            place = Path(shutil.copyfile(whole, root / "notes.sqlite"))
            what, sealed = _database(place, chance)
            self._try(f"databases {number}: {what}", place, root, known, sealed, chance)
            self.counts["SQLite files that somebody changed" if sealed else "damaged SQLite files"] += 1
            if number % _ANSWERED == 0:
                self._stop_answering()
        self._stop_answering()

    def _try(self, said: str, place: Path, root: Path, known: Any, sealed: bool, chance: random.Random) -> None:
        """Open it and ask it; now and then verify or refresh it before."""
        more = chance.random()
        if more < 0.15:
            words = ("verify", str(place), "--no-latency") if more < 0.1 else _refresh_of(place, root)
            done = self._ended(self._started(lambda: cli.main(words), root))
            self._expect("Traceback" not in done.said and done.code in (0, 1, 2), f"{said}, {words[0]}", done)
        verified = more < 0.1 and done.code == 0
        if more < 0.1 or more >= 0.15:
            done = self._answered(place, root)
            self._expect(done.code == 0, said, done)
            refused = isinstance(done.value, str)
            self.counts["of these refused when opened"] += refused
            unnoticed = not sealed and not refused and not _alike(done.value, known)
            if unnoticed and place.is_file() and more >= 0.1:  # its content is compared by verify
                check = self._ended(self._started(lambda: cli.main(["verify", str(place), "--no-latency"]), root))
                verified = check.code == 0
                unnoticed = verified
            self._expect(not unnoticed, f"{said}: other answers, verified {verified}: {str(done.value)[:200]}")
        shutil.rmtree(root, ignore_errors=True)

    def inputs(self, times: int) -> None:
        """Give bad inputs, those of `bad_inputs/` and others by the seed: each is refused in one sentence."""
        known = bad_inputs.cases()
        random.Random(self._seed).shuffle(known)
        for number, chance in self._cases("inputs", times):
            root = self.folder / f"input-{number}"
            case = known[number] if number < len(known) else bad_inputs.made(chance)
            call = self._started(lambda: 0, root, value=partial(bad_inputs.harm, case, root / "case"))
            done = self._ended(call, " ".join([*case.words, str(case.damage)]))
            self._expect(done.code == 0 and not done.value, f"inputs {number}: {case.name[:300]}: {done.value}", done)
            shutil.rmtree(root, ignore_errors=True)
            self.counts["bad inputs"] += 1

    def doors(self, times: int) -> None:
        """Put bad content through every door, each in turn: it is refused, or read as another parser reads it."""
        from research.faults.doors import Doors

        doors = Doors(self.folder / "doors", self.export(), self.words)
        try:
            doors.try_all(times)
        finally:
            doors.close()
        self.counts.update({f"doors: {name}": count for name, count in doors.counts.items()})
        self.counts["doors that refuse"] += doors.refused.total()
        self.harms += doors.harms

    def _cases(self, kind: str, times: int) -> Iterator[tuple[int, random.Random]]:
        """So many numbers of cases, each with chance of its own, so that a case can be repeated alone.

        Fewer where the minutes of a kind are over.
        """
        end = time.monotonic() + 60 * self._minutes
        for number in range(self._first, self._first + times):
            if time.monotonic() > end:
                break
            self._case = f"{kind} {number}"
            yield number, random.Random(f"{self._seed} {self._case}")

    def _undisturbed(self, name: str) -> tuple[Any, Any, int]:
        """The state before a command that nothing disturbs, its outcome, and the changes of files that it makes."""
        if name not in self._whole:
            if name == "refresh" and not (self.folder / "refreshed").exists():
                self._prepare_refreshed()
            root = self._root(f"whole-{name}", name)
            before = self._outcome(name, root)
            done = self._command(name, root)
            assert done.code == 0, done.said
            whole = self._outcome(name, root)
            assert not isinstance(whole, str), whole  # why it cannot be read
            self._whole[name] = before, whole, done.steps
        return self._whole[name]

    def _prepare_refreshed(self) -> None:
        """A bundle that was refreshed once."""
        root = self.folder / "refreshed"
        shutil.copytree(self.export(), root / "bundle")
        _edited(root / "vault", "one")
        done = self._command("refresh", root)
        assert done.code == 0, done.said

    def _root(self, case: str, name: str) -> Path:
        """A new folder of results, with what the command needs to find there."""
        root = self.folder / case
        root.mkdir()
        whole = self.folder / "whole-run"
        if name == "track":
            shutil.copytree(whole / "runs", root / "runs")
        if (whole / "cache").exists():
            shutil.copytree(whole / "cache", root / "cache")
        if name == "refresh":
            shutil.copytree(self.folder / "refreshed" / "bundle", root / "bundle")
        if name == "refresh sqlite":
            self._undisturbed("export sqlite")
            shutil.copyfile(self.folder / "whole-export sqlite" / "notes.sqlite", root / "notes.sqlite")
        if name.startswith("refresh"):
            _edited(root / "vault", "two")
        if name == "init":
            shutil.copytree(VAULT, root / "vault")
        if name.startswith("fit"):
            (root / PROJECT_FILE).write_text("data: vault\n")
            for group, earlier in (("calibration", "table"), ("ranker", "questions")):
                (root / "conf" / group).mkdir(parents=True)
                content = yaml.safe_dump(dict(available.read().option(group, earlier).content))
                (root / "conf" / group / "mine.yaml").write_text(content)
        return root

    def _outcome(self, name: str, root: Path) -> Any:
        """What a command has made, without times and places; what went wrong when it cannot be read."""
        return self._value(lambda: outcome(name, root), root)

    def _command(self, name: str, root: Path, at: int = 0, error: int = 0, always: bool = False) -> Done:
        return self._ended(self._started(self._work(name, root), root, at, error, always))

    def _work(self, name: str, root: Path) -> Callable[[], int]:
        places = {"ROOT": root, "FOLDER": self.folder}
        if "RUN" in COMMANDS.get(name, ()):
            self._undisturbed("run")
            places["RUN"] = self._value(lambda: store.latest(self.folder / "whole-run"), root)
        words = list(COMMANDS[name])
        for sign, place in places.items():
            words = [word.replace(sign, str(place)) for word in words]
        if name not in _BARE:
            words += self.words if name != "track" else ()
            words += [f"data.queries={self.folder / QUERIES_OF[name]}"] if name in QUERIES_OF else ()
            words += [f"paths.results={root}", f"paths.cache={root / 'cache'}"]
        return lambda: cli.main(words)

    def _value(self, work: Callable[[], Any], root: Path) -> Any:
        done = self._ended(self._started(lambda: 0, root, value=work))
        assert done.code == 0, done.said
        return done.value

    def _started(
        self,
        work: Callable[[], int],
        root: Path,
        at: int = 0,
        error: int = 0,
        always: bool = False,
        value: Callable[[], Any] = lambda: None,
    ) -> tuple[int, Path]:
        """Do something in a fork, with everything of the user in a folder of its own."""
        root.mkdir(exist_ok=True)
        told = Path(tempfile.mkdtemp(dir=self.folder, prefix="told-"))
        process = os.fork()
        if process:
            return process, told
        os.setsid()
        code = self._done_here(work, value, root, told, at, error, always)
        with suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        with suppress(BaseException):
            (told / "steps").write_text(str(self.shim.steps))
        os._exit(code)

    def _answered(self, place: Path, root: Path) -> Done:
        """The answers of a bundle or engine, by a fork that answers for many: Java starts once."""
        told = Path(tempfile.mkdtemp(dir=self.folder, prefix="told-"))
        if self._answering is None:
            ours, theirs = Pipe()
            process = os.fork()
            if not process:
                ours.close()
                self._answer_all(theirs)
            theirs.close()
            self._answering = process, ours
        process, ours = self._answering
        code: int | None = None
        with suppress(EOFError, OSError):  # it has died
            ours.send((place, root, told))
            code = ours.recv() if ours.poll(_SECONDS) else None
        if code is None:
            code = self._stop_answering()
        return self._done(process, told, code)

    def _answer_all(self, asked: Connection) -> None:
        try:
            os.setsid()
            while True:
                place, root, told = asked.recv()
                asked.send(self._done_here(lambda: 0, partial(answers, place), root, told))
        except EOFError:
            os._exit(0)
        finally:
            os._exit(70)

    def _stop_answering(self) -> int | None:
        """End the fork that answers; its exit code, None when it hangs."""
        if self._answering is None:
            return None
        process, ours = self._answering
        self._answering = None
        ours.close()
        return self._waited(process, time.monotonic() + 5)

    def _done_here(
        self,
        work: Callable[[], int],
        value: Callable[[], Any],
        root: Path,
        told: Path,
        at: int = 0,
        error: int = 0,
        always: bool = False,
    ) -> int:
        """Do something in this process and write its value; the exit code."""
        try:
            self._become(root, told, at, error, always)
            code, found = work(), value()
            (told / "value").write_bytes(pickle.dumps(found))
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            traceback.print_exc()
            code = 70
        return code

    def _become(self, root: Path, told: Path, at: int, error: int, always: bool) -> None:
        atexit._clear()
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]
        weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
        said = os.open(told / "said", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for standard, opened_file in ((0, nothing), (1, said), (2, said)):
            os.dup2(opened_file, standard)
        os.close(said)
        os.close(nothing)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(n, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
            for n in (1, 2)
        )
        (root / "tmp").mkdir(exist_ok=True)
        tempfile.tempdir = None
        os.environ |= {
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(root / "tmp"),
            "XDG_STATE_HOME": str(root / "state"),
            "PYTHONUNBUFFERED": "1",
            _CASE: str(root),
            **dict([processes.SAFE_PATH]),
        }
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            os.environ.pop(name, None)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(root)
        # Also changed: the cache that a run names, and the folder of ir_datasets, which its loader names.
        more = self.folder / "whole-run" / "cache", self.folder / "home" / ".ir_datasets"
        self.shim.watch(told / "journal", [root, told, *more])
        self.shim.arm(root, at, error, always)

    def _ended(self, call: tuple[int, Path], typed: str = "") -> Done:
        """What came of it; one that hangs is killed, and so is what it leaves behind. What is typed may be reached."""
        process, told = call
        return self._done(process, told, self._waited(process, time.monotonic() + _SECONDS), typed)

    def _waited(self, process: int, deadline: float) -> int | None:
        """The exit code of a process, None for one that was killed because it hangs."""
        status = None
        while status is None and time.monotonic() < deadline:
            found, state = os.waitpid(process, os.WNOHANG)
            status = state if found else None
            time.sleep(0 if status is not None else 0.01)
        if status is None:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        return None if status is None else os.waitstatus_to_exitcode(status)

    def _done(self, process: int, told: Path, code: int | None, typed: str = "") -> Done:
        said = (told / "said").read_text(errors="replace") if (told / "said").exists() else ""
        value = (told / "value").read_bytes() if (told / "value").exists() else pickle.dumps(None)
        steps = (told / "steps").read_text() if (told / "steps").exists() else "0"
        journal = (told / "journal").read_text(errors="replace").splitlines() if (told / "journal").exists() else []
        journal = [line for line in sorted(set(journal)) if line.rpartition(" ")[2] not in typed]
        self._expect(not journal, f"{self._case}: {journal[:5]}")
        left = [each for each in _descendants(process) if not _ends(each)]
        self._expect(not left, f"{[each.name() for each in left]} left behind")
        for each in left:
            each.kill()
        shutil.rmtree(told, ignore_errors=True)
        return Done(code, said, pickle.loads(value), int(steps or 0), journal)

    def _expect(self, held: bool, harm: str, done: Done | None = None) -> None:
        if not held:
            ended = "" if done is None else f": code {done.code}: {done.said.strip()[-1500:]}"
            self.harms.append(f"{harm}{ended}")
            print(f"harm: {harm}{ended}", file=sys.stderr, flush=True)


_LEFT = re.compile(r"^\..+\.\d+-[0-9a-f]{12}|-journal$|^ragbench-")
_BARE = frozenset({"refresh", "refresh sqlite", "init"})
STATEFUL = frozenset(
    {
        *("refresh", "refresh sqlite", "export sqlite"),
        *("fit calibration", "fit ranker"),
    }
)
"""Commands after whose failure the state is the earlier or the new one."""


def outcome(name: str, root: Path) -> Any:
    """What a command has made below `root`, without times and places; what went wrong when it cannot be read."""
    try:
        if name in ("run", "ablate"):
            return tables(store.latest(root))
        if name == "tune":
            return trials(root)
        if name == "index":
            return sorted((kind, name, why or "whole") for kind, name, why in ArtefactStore(root / "index").check())
        if name == "export":
            return contents(root / "bundle")
        if name == "refresh":
            return served(root / "bundle")
        if name.endswith("sqlite"):
            with closing(SqliteEngine(root / "notes.sqlite")) as engine:
                return sorted(engine.rows("SELECT docno, digest FROM documents")), engine.damage()
        if name == "track":
            return logged(root / "mlflow.db")
        if name.startswith("fit"):
            group = root / "conf" / name.replace("fit ", "")
            option = (group / "mine.yaml").read_text()
            named = re.findall(r"mine@(\w+)", option)
            return option, [text_digest((group / f"mine-{each}.txt").read_text(), 12) == each for each in named]
        made = {"merge": ["qrels/[!.]*"], "init": ["ragbench.yaml", "topics.jsonl"], "pool": ["pool.csv"]}
        paths = sorted(path for each in made.get(name, ["topics*"]) for path in root.glob(each))
        return {path.name: path.read_text().replace(str(root), "ROOT") for path in paths}
    except (RagbenchError, OSError, ValueError, sqlite3.Error) as error:
        return repr(error).replace(str(root), "ROOT")


def served(folder: Path) -> Any:
    """What a bundle serves, with the parts of its index."""
    record = bundle.read_record(folder)
    now = generations.current(folder, record)
    known = {*record["artefacts"].values(), *now.artefacts.values()}
    found = [(kind, name, why) for kind, name, why in ArtefactStore(folder / bundle.INDEX).check()]
    lost = known - {name for _, name, why in found if why is None}
    more = {name for _, name, _ in found} - known
    return now.collection, sorted(lost), sorted(more)


def _served_alone(found: Any) -> Any:
    """Without parts of an index that nothing uses, which the next refresh deletes."""
    return found[:2] if isinstance(found, tuple) and len(found) == 3 else found


def answers(place: Path) -> Any:
    """The answers of a bundle or engine to all queries, or why it is refused."""
    try:
        with ragbench.load(place) as loaded:
            return [[(hit.chunk_id, hit.score, hit.text) for hit in loaded.search(text, 5)] for text in TEXTS]
    except RagbenchError as error:
        assert "\n" not in str(error), f"several lines: {error}"
        return str(error) or "refused without a word"


def _alike(found: Any, known: Any) -> bool:
    pairs = [pair for ours, theirs in zip(found, known, strict=True) for pair in zip(ours, theirs, strict=False)]
    same = [len(each) for each in found] == [len(each) for each in known]
    return same and all(a[0] == b[0] and a[2] == b[2] and abs(a[1] - b[1]) < 1e-4 for a, b in pairs)


def _difference(found: Any, whole: Any) -> str:
    if isinstance(found, dict) and isinstance(whole, dict):
        return str([key for key in {*found, *whole} if found.get(key) != whole.get(key)][:5])
    return f"{str(found)[:400]} instead of {str(whole)[:400]}"


def _edited(folder: Path, word: str) -> None:
    """A copy of the notes with one that is new, one that is changed, and one that is gone."""
    shutil.copytree(VAULT, folder)
    (folder / "zebra.md").write_text(f"# Zebra\n\nA zebra crossing {word}.\n")
    changed = folder / "guides" / "schedules.md"
    changed.write_text(f"{changed.read_text()}\n## More\n\nSchedules {word}.\n")
    if word == "two":
        (folder / "reference" / "limits.md").unlink()


def _refresh_of(place: Path, root: Path) -> tuple[str, ...]:
    _edited(root / "vault", "two")
    return ("refresh", str(place), "--corpus", str(root / "vault"), "--quiet")


def _flipped(content: bytes, chance: random.Random) -> bytes:
    """With one bit the other way."""
    changed, bit = bytearray(content), chance.randrange(max(1, len(content) * 8))
    if content:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _mangled(content: bytes, chance: random.Random) -> bytes:
    """With a bit, a digit, a range or the length changed."""
    place, size = chance.randrange(max(1, len(content))), chance.choice((1, 8, 64, 512, 4096))
    digits = [n for n, byte in enumerate(content[:100_000]) if chr(byte).isdigit()]
    kind = chance.randrange(7)
    if kind == 0 and digits:
        place = chance.choice(digits)
        return content[:place] + str((content[place] - 47) % 10).encode() + content[place + 1 :]
    if kind == 1:
        return content[:place]
    if kind == 2:
        return content[:place] + bytes(size) + content[place + size :]
    if kind == 3:
        return content[:place] + chance.randbytes(size) + content[place + size :]
    if kind == 4:
        return content + chance.choice((content, b"\0", b"x", b"\n"))
    if kind == 5:
        return content[:place] + b"\xff" * size + content[place + size :]
    return _flipped(content, chance)


def _damaged(place: Path, chance: random.Random) -> str:
    """Damage one file or folder of a bundle; what was done."""
    found = sorted(path for path in place.rglob("*") if path.is_file())
    path, other = chance.choice(found), chance.choice(found)
    if chance.random() < 0.4:  # each as often as the large ones
        path = chance.choice([each for each in found if each.parent == place or each.name == MANIFEST])
    name = path.relative_to(place)
    kind = chance.randrange(12)
    if kind in (0, 3) and path.name == generations.NAME:
        kind = 6  # without this file a bundle serves what was exported
    if kind == 0:
        path.unlink()
    elif kind == 1:
        first, second = path.read_bytes(), other.read_bytes()
        path.write_bytes(second)
        other.write_bytes(first)
        return f"{name} and {other.relative_to(place)} swapped"
    elif kind == 2:
        path.unlink()
        path.mkdir()
    elif kind == 3:
        path.unlink()
        path.symlink_to(chance.choice((path.name, "/etc/passwd", "/dev/zero", "nowhere")))
    elif kind == 4:
        path.unlink()
        os.mkfifo(path)
    elif kind == 5:
        shutil.rmtree(path.parent if path.parent != place else place / bundle.INDEX)
        return f"{name}: its folder deleted"
    else:
        path.write_bytes(_mangled(path.read_bytes(), chance))
        return f"{name} mangled"
    return f"{name}, {('deleted', '', 'a folder', 'a link', 'a pipe')[kind]}"


def _sealed(place: Path, chance: random.Random) -> str:
    """Change a file of a bundle, and every digest over it, as somebody who knows the format."""
    kind = chance.randrange(6)
    if kind < 3:
        name = (bundle.CONFIG, bundle.GOLDEN, bundle.MODIFIED)[kind]
        text = (place / name).read_text()
        if name == bundle.CONFIG:
            changed = next(yaml_texts(text, chance))
        elif name == bundle.GOLDEN:
            lines = text.splitlines()
            line = chance.randrange(len(lines))
            lines[line] = next(json_texts(json.loads(lines[line]), chance)).decode("utf-8", "replace")
            changed = "\n".join(lines).encode()
        else:
            changed = next(json_texts(json.loads(text), chance))
        rewrite(place, name, changed.decode("utf-8", "replace"))
        return f"{name} changed and sealed"
    if kind == 3:
        for name in (bundle.RECORD, generations.NAME):
            if (place / name).exists():
                value = json.loads((place / name).read_text())
                key = chance.choice(sorted(value))
                new = chance.choice(
                    (None, -1, 1e300, "", "../../x", [], {}, [[]], {"a": {}}, [None], True, "\0", 2**60)
                )
                reseal(place / name, **{key: new})
                return f"{name}: {key} is {new!r} and sealed"
    parts = [
        p for each in (place / bundle.INDEX).rglob(MANIFEST) for p in sorted(each.parent.rglob("*")) if p.is_file()
    ]
    path = chance.choice(sorted(p for p in parts if p.name not in (MANIFEST, "write.lock")))
    content = path.read_bytes()
    rewrite_part(
        path, next(json_texts(json.loads(content), chance)) if path.suffix == ".json" else _mangled(content, chance)
    )
    return f"{path.relative_to(place)} changed and sealed"


HOSTILE = (
    "UPDATE about SET value = 'VACUUM INTO ''{0}/written''' WHERE key = 'search'",
    "UPDATE about SET value = 'ATTACH ''{0}/written'' AS x' WHERE key = 'search'",
    "UPDATE about SET value = replace(value, 'SELECT', 'SELECT load_extension(''x''),') WHERE key = 'search'",
    "CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM about; END",
    "CREATE VIEW v AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "ALTER TABLE forms RENAME TO f; CREATE VIEW forms AS SELECT form, load_extension(terms) AS terms FROM f",
    "CREATE INDEX i ON chunks (hex(zeroblob(100000000)))",
    "CREATE TABLE x (a, b AS (zeroblob(100000000)))",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'BLOB') WHERE name = 'chunks'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 2",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE about (' WHERE name = 'about'",
    "PRAGMA user_version = 99; PRAGMA application_id = 7",
    "PRAGMA journal_mode = WAL",
    "INSERT OR REPLACE INTO files SELECT '../../written', content FROM files LIMIT 1",
    "INSERT OR REPLACE INTO files SELECT '/tmp/written', content FROM files LIMIT 1",
    "INSERT OR REPLACE INTO files SELECT 'config.yaml/x', content FROM files LIMIT 1",
    "UPDATE files SET content = zeroblob(50000000)",
    "UPDATE files SET name = name || char(0)",
    "DROP TABLE forms",
    "DELETE FROM vectors",
    "UPDATE chunks SET chunk_id = chunk_id || 'x'",
    "UPDATE chunks SET document = 10000",
    "DELETE FROM documents WHERE id = 1",
)
VALUES = (
    "NULL",
    "''",
    "-1",
    "1e999",
    "9223372036854775807",
    "x'00ff'",
    "zeroblob(100)",
    "'x'",
    "randomblob(7)",
    "0.5",
    "'{'",
)


def _database(place: Path, chance: random.Random) -> tuple[str, bool]:
    """Damage a file, or change it with SQL; what was done, and whether its owner could mean it."""
    kind = chance.randrange(10)
    content = place.read_bytes()
    if kind < 4:
        header = kind == 0
        changed = _mangled(content[:100], chance) + content[100:] if header else _mangled(content, chance)
        if kind == 1:
            page = chance.randrange(len(content) // 4096) * 4096
            changed = content[:page] + chance.choice((bytes(4096), content[4096:8192])) + content[page + 4096 :]
        place.write_bytes(changed)
        return ("its header", "a page", "its bytes", "its bytes")[kind], False
    if kind == 4:
        beside = place.with_name(f"{place.name}-{chance.choice(('journal', 'wal', 'shm'))}")
        beside.write_bytes(
            chance.choice((b"", bytes(512), chance.randbytes(5000), content[:9000], sqlite._SUPER_JOURNAL))
        )
        return f"{beside.name} beside it", False
    statement = chance.choice(HOSTILE).format(place.parent)
    with closing(sqlite.connect(place)) as db:
        if kind > 6:
            named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'vectors%'"
            table = chance.choice(sorted(name for (name,) in db.execute(named)))
            column = chance.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
            row = f"(SELECT {column} FROM {table} LIMIT 1 OFFSET {chance.randrange(4)})"
            statement = f"UPDATE OR REPLACE {table} SET {column} = {chance.choice(VALUES)} WHERE {column} = {row}"
        with suppress(sqlite3.Error):
            db.executescript(statement)
    return statement, True


def tables(folder: Path) -> dict[str, bytes]:
    """What the arms of a run wrote, after it was compared with its digests."""
    found = measurements.load(folder)
    return {f"{arm} {name}": (found.arm_path(arm) / name).read_bytes() for arm in found.arms for name in TABLES}


def trials(root: Path) -> list[list[Any]]:
    """The trials of the only search below a folder: numbers, values, objectives."""
    (folder,) = [path.parent for path in root.glob(f"tune/*/{tracking.RECORD}")]
    tracking.read(folder)
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


def _descendants(process: int) -> list[psutil.Process]:
    """The processes of a session that was started by a case, except those that have ended."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if each.pid != process and os.getsid(each.pid) == process and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


def _ends(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        process.wait(10)
        return True
    return not process.is_running()


def figures(head: str, counts: Mapping[str, int], harms: Sequence[str]) -> list[str]:
    """The table of what came of a campaign."""
    rows = [f"| {name} | {count:,} |" for name, count in sorted(counts.items())]
    return [f"| {head} | cases |", "| --- | ---: |", *rows, f"| harms | {len(harms)} |"]


def main() -> int:
    """Run the kinds of cases that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="CASE")
    parser.add_argument("--command", action="append", choices=COMMANDS, metavar="NAME")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="N", help="at most, for each kind")
    parser.add_argument("--page", type=Path)
    parser.add_argument("cases", nargs="*", metavar="KIND=CASES")
    given = parser.parse_args()
    counts = {kind: int(number) for kind, _, number in (each.partition("=") for each in given.cases)} or COUNTS
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        if "FAULTS" not in os.environ:  # once more, with the shim
            made = Shim.preload(folder)
            environment = {**os.environ, "FAULTS": made, "LD_PRELOAD": made}
            return subprocess.run(
                [sys.executable, "-m", "research.faults.campaign", *sys.argv[1:]], env=environment, check=False
            ).returncode
        campaign = Campaign(folder, given.seed, given.first, given.command or tuple(COMMANDS), given.minutes)
        for kind, times in counts.items():
            if kind in ("kills", "errors") and not campaign.shim.there:
                print(f"{kind} are skipped: they need Linux and gcc")
                continue
            getattr(campaign, kind)(times)
        table = figures("faults", campaign.counts, campaign.harms)
        print(*table, *campaign.harms, sep="\n", flush=True)
        if given.page:
            said = f"Tried on {datetime.date.today()} by `python -m research.faults.campaign --seed {given.seed}`."
            pages.write_between(given.page, "campaign", "\n".join([*table, "", said]))
        return int(bool(campaign.harms))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
