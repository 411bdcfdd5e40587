"""Arms in other processes: the same bytes as here, whatever dies or fails on the way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from ragbench.base.errors import ArmsFailed, ConfigError
from ragbench.base.pools import Failure
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.experiment.execution import dispatch, groups
from ragbench.experiment.plan import PlannedArm, surveyed
from ragbench.experiment.run import run
from ragbench.results.measurements import Measurements
from ragbench.search.engine.executor import Outcome

# Stages for tests of what goes wrong, in a module that workers can import as a user's own stages are.
TROUBLE = '''
import os, signal
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

@dataclass(frozen=True)
class Trouble:
    """Note that it ran; the first `times` times, kill the process or raise."""

    folder: str
    times: int = 1
    kill: bool = False
    needs: ClassVar = frozenset()
    requires: ClassVar = frozenset()
    provides: ClassVar = frozenset()
    forbids: ClassVar = {}

    def __call__(self, states, index):
        marks = len(list(Path(self.folder).iterdir()))
        (Path(self.folder) / f"{marks}-{os.getpid()}").touch()
        if marks < self.times:
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("out of luck")
        return list(states)

    def describe(self):
        return "trouble"
'''

ARMS = ["p3=on,off", "p12=on,off", "fuse.k=20,60"]


@pytest.fixture
def compose(tmp_path: Path, workplace: Path) -> Callable[..., list[Settings]]:
    """Settings of arms whose results go to a folder of the test and whose index and caches are shared."""

    def made(kind: str, *overrides: str, arms: Sequence[str] = ARMS) -> list[Settings]:
        around = [f"paths.results={tmp_path / kind}", f"paths.index={workplace / 'index'}"]
        around += [f"paths.cache={workplace / 'cache'}", "split=all", "latency.enabled=false", f"execution={kind}"]
        around += [] if kind == "local" else ["execution.workers=2"]
        return composition.sweep([*arms, *around, *overrides])

    return made


@pytest.fixture
def trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Overrides that add a stage which kills or raises; `marks()` says how often it ran."""
    (tmp_path / "trouble.py").write_text(TROUBLE)
    (tmp_path / "marks").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    def overrides(times: int, kill: bool) -> list[str]:
        config = (
            f"{{_target_: trouble.Trouble, folder: {tmp_path / 'marks'}, times: {times}, kill: {str(kill).lower()}}}"
        )
        return [f"+trouble={config}", "order=[dense,lexical,fuse,trouble,cut]"]

    yield overrides
    sys.modules.pop("trouble", None)


def files(results: Measurements) -> dict[str, bytes]:
    """What the arms wrote, without where and how."""
    return {
        path.relative_to(results.folder).as_posix(): path.read_bytes()
        for path in sorted(results.folder.glob("arms/*/*"))
        if path.name not in ("config.yaml", "done.json")
    }


@pytest.mark.slow
def test_the_same_bytes_as_in_this_process(compose, benchmark_small: Benchmark) -> None:
    here = run(compose("local"), benchmark_small)
    there = run(compose("joblib"), benchmark_small)
    assert len(list(here.folder.glob("arms/*/run.trec"))) == 8
    assert files(there) == files(here)
    assert there.arms == here.arms


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(compose, trouble, benchmark_small: Benchmark, tmp_path: Path, caplog) -> None:
    arms = ["fuse.k=10,20,30,40"]
    settings = compose("joblib", *trouble(times=2, kill=True), arms=arms)
    there = run(settings, benchmark_small)
    assert sum("its process died" in message for message in caplog.messages) == 2
    assert len(list((tmp_path / "marks").iterdir())) == 2 + 4
    here = run(compose("local", *trouble(times=2, kill=True), arms=arms), benchmark_small)
    assert files(there) == files(here)


@pytest.mark.parametrize("kind", ["local", pytest.param("joblib", marks=pytest.mark.slow)])
def test_a_failed_arm_is_reported_after_the_others(
    kind: str, compose, trouble, benchmark_small: Benchmark, tmp_path: Path, caplog
) -> None:
    (healthy, order), (broken, _) = trouble(times=0, kill=False), trouble(times=99, kill=False)
    settings = compose(kind, order, arms=[f"{healthy},{broken.partition('=')[2]}"])
    with pytest.raises(ArmsFailed, match=r"^1 of 2 arms failed .*ValueError: out of luck") as caught:
        run(settings, benchmark_small)
    assert "\n" not in str(caught.value)
    if kind == "local":  # with its traceback, and tried again only because the arms shared their first stages
        assert sum("Traceback" in message for message in caplog.messages) == 1
    else:
        assert sum("is tried again" in message for message in caplog.messages) == 2
        assert len(list((tmp_path / "marks").iterdir())) == 3 + 1
    (written,) = (tmp_path / kind).glob("runs/*/arms/*/done.json")
    for number in range(99):
        (tmp_path / "marks" / f"past-{number}").touch()
    finished = run(settings, benchmark_small)
    assert "continuing the stopped experiment" in caplog.messages[-1]
    assert written.is_relative_to(finished.folder)
    assert len(files(finished)) > 0
    assert set(finished.per_query["arm"]) == {each.name for each in settings}


@pytest.mark.slow
def test_the_command_line_answers_with_one(tmp_path: Path, workplace: Path, trouble, capsys) -> None:
    from ragbench.commands import cli

    vault = Path(__file__).parent.parent / "data" / "vault"
    queries = tmp_path / "queries.csv"
    queries.write_text("qid,text\nq1,how do lamps know when the sun sets\n")
    (healthy, _), (broken, _) = trouble(times=0, kill=True), trouble(times=99, kill=True)
    arms = f"{healthy},{broken.partition('=')[2]}"
    words = ["run", "-m", "data=vault", f"data.corpus={vault}", f"data.queries={queries}", arms, "--quiet"]
    words += ["order=[dense,fuse,trouble,cut]", "split=all", "latency.enabled=false", "allow_unjudged=true"]
    words += ["tracking.enabled=false", f"paths.results={tmp_path / 'results'}", f"paths.cache={workplace / 'cache'}"]
    assert cli.main([*words, "execution=joblib", "execution.retries=0", "execution.workers=2"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("ragbench: 1 of 2 arms failed (")
    assert "its process died" in said[-1]


class Pretended:
    """Workers of this process; `bad` says how often each arm still fails, and whether by dying."""

    def __init__(self, bad: dict[str, tuple[int, bool]]) -> None:
        self.count, self.bad, self.log, self.restarted = 2, bad, [], []

    def submit(
        self, number: int, function: Callable[..., object], name: str, config: object
    ) -> Future[Outcome | Failure]:
        self.log.append((number, name))
        future: Future[Outcome | Failure] = Future()
        left, dies = self.bad.get(name, (0, False))
        self.bad[name] = (left - 1, dies)
        if left > 0 and dies:
            future.set_exception(RuntimeError("gone"))
        else:
            future.set_result(Failure(name, "bad") if left > 0 else Outcome(name, (), ()))
        return future

    def restart(self, number: int) -> None:
        self.restarted.append(number)


def named(*names: str) -> list[PlannedArm]:
    return [PlannedArm(name, None, None, {}, ()) for name in names]


def test_retries_are_counted_for_each_arm() -> None:
    workers = Pretended({"a": (2, True), "b": (3, False)})
    answers = list(dispatch([named("a", "c"), named("b")], workers, 2))
    failed = [each.task for each in answers if isinstance(each, Failure)]
    assert failed == ["b"]
    names = [each.task if isinstance(each, Failure) else each.arm for each in answers]
    assert sorted(names) == ["a", "b", "c"]
    assert len(workers.restarted) == 2
    assert sum(name == "b" for _, name in workers.log) == 3


def test_an_idle_worker_helps_the_busiest_from_its_end() -> None:
    workers = Pretended({})
    answers = list(dispatch([named("a"), named("b", "c", "d", "e")], workers, 0))
    assert len(answers) == 5
    assert {name for number, name in workers.log if number == 0} >= {"a", "e"}


def test_groups_hold_every_arm_once_and_neighbours_together(benchmark_small: Benchmark, tmp_path: Path) -> None:
    words = ["p2=on,off", "p3=on,off", "fuse.k=20,60", "p12=on,off", "split=all", f"paths.results={tmp_path}"]
    arms = list(surveyed(composition.sweep(words), benchmark_small, "run").arms.values())
    for count in (1, 2, 3, 16, 40):
        parts = groups(arms, count)
        assert 1 <= len(parts) <= count
        assert all(parts)
        assert sorted(each.name for part in parts for each in part) == sorted(each.name for each in arms)
    # Classification (P3) stands first in the order, then what is embedded (P2).
    for count in (2, 4):
        parts = groups(arms, count)
        assert [len(part) for part in parts] == [16 // count] * count
        assert all(len({"p3=on" in each.name for each in part}) == 1 for part in parts)
    assert all(len({each.index.spec.passage.headings for each in part}) == 1 for part in parts)


def test_what_cannot_be_is_one_sentence() -> None:
    for overrides, said in (
        (["execution=joblib", "execution.workers=0"], r"execution\.workers must be at least 1, or null, got 0"),
        (["execution=joblib", "execution.retries=-1"], r"execution\.retries must be at least 0"),
        (
            ["execution=joblib", "execution.workers=two"],
            r"execution\.workers must be a whole number .*, got 'two'",
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            composition.compose(overrides).execution  # noqa: B018 -- read when it is first asked for
    with pytest.raises(ConfigError, match="execution cannot be 'dask': the choices are joblib, local"):
        composition.compose(["execution=dask"])
