"""Where arms are computed: a failed arm stops no other, and another execution gives the same bytes."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragbench.base import registry
from ragbench.base.types import ArmsFailed, ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.experiment.run import run
from ragbench.results.measurements import Measurements
from tests.naming import naming

if TYPE_CHECKING:
    from distributed import Client

# Stages for tests of what goes wrong, in a module that workers can import as a user's own stages are.
TROUBLE = '''
import os, signal
from dataclasses import dataclass
from pathlib import Path

from ragbench.search.stages.stage import Stage

@dataclass(frozen=True)
class Trouble(Stage):
    """Note that it ran; the first `times` times, kill the process or raise."""

    folder: str
    times: int = 1
    kill: bool = False

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

ARMS = ["p3=on,off", "p12=on,off"]


def composed(folder: Path, workplace: Path, kind: str, *overrides: str, arms: Sequence[str] = ARMS) -> list[Settings]:
    """Settings of arms whose results go to a folder and whose index and caches are shared."""
    around = [f"paths.results={folder / kind}", f"paths.index={workplace / 'index'}"]
    around += [f"paths.cache={workplace / 'cache'}", "split=all", "latency.enabled=false", f"execution.kind={kind}"]
    return composition.sweep([*arms, *around, *overrides])


@pytest.fixture
def compose(tmp_path: Path, workplace: Path) -> Callable[..., list[Settings]]:
    return partial(composed, tmp_path, workplace)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, workplace: Path, benchmark_small: Benchmark) -> Measurements:
    """What one process measures."""
    return run(composed(tmp_path_factory.mktemp("one"), workplace, "local"), benchmark_small)


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


ONE_BY_ONE = """
from ragbench.experiment.execution import failed
from ragbench.search.engine.pipeline import Session

def one_by_one(plan, evaluation):
    errors = {}
    for arm in plan.arms.values():
        try:
            yield evaluation(arm, Session(plan.queries).outcome(arm))
        except ValueError as error:
            errors[arm.name] = error
    if errors:
        raise failed(plan, errors)
"""


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An execution of ten lines, registered as an installed package would."""
    (tmp_path / "one_by_one.py").write_text(ONE_BY_ONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("execution.one_by_one", "one_by_one:one_by_one", registry.GROUP)
    monkeypatch.setattr(registry, "_installed", lambda: {point.name: point})
    yield
    sys.modules.pop("one_by_one", None)


def test_execution_registered_execution_writes_the_same_bytes(
    registered, compose, local, benchmark_small: Benchmark
) -> None:
    other = run(compose("one_by_one"), benchmark_small)
    assert len(list(local.folder.glob("arms/*/run.trec"))) == 4
    assert files(other) == files(local)
    assert other.arms == local.arms


@pytest.mark.parametrize("kind", ["local", "one_by_one"])
def test_execution_failed_arm_is_reported_after_the_others(
    kind: str, registered, compose, trouble, benchmark_small: Benchmark, tmp_path: Path, caplog
) -> None:
    (healthy, order), (broken, _) = trouble(times=0, kill=False), trouble(times=99, kill=False)
    settings = compose(kind, order, arms=[f"{healthy},{broken.partition('=')[2]}"])
    with pytest.raises(ArmsFailed, match=r"^1 of 2 arms failed .*ValueError: out of luck") as caught:
        run(settings, benchmark_small)
    assert "\n" not in str(caught.value)
    assert sum("Traceback" in message for message in caplog.messages) == 1
    (written,) = (tmp_path / kind).glob("runs/*/arms/*/done.json")
    for number in range(99):
        (tmp_path / "marks" / f"past-{number}").touch()
    finished = run(settings, benchmark_small)
    assert "continuing the stopped experiment" in caplog.messages[-1]
    assert written.is_relative_to(finished.folder)
    assert len(files(finished)) > 0
    assert set(finished.per_query["arm"]) == {arm.name for arm in settings}


def test_execution_kind_must_be_installed() -> None:
    with pytest.raises(ConfigError, check=naming("execution.kind")):
        composition.compose(["execution.kind=slurm"]).execution  # noqa: B018 -- read when it is first asked for
    with pytest.raises(ConfigError, check=naming("'slurm'")):
        composition.compose(["execution=slurm"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Two workers in processes of their own, each with its own folder of artefacts and caches."""
    from distributed import Client, LocalCluster

    folder = str(tmp_path_factory.mktemp("dask"))
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0", local_directory=folder) as started,
        Client(started) as client,
    ):
        yield client


@pytest.mark.slow
def test_dask_workers_with_own_caches_write_the_bytes_of_local(
    cluster, compose, local, benchmark_small: Benchmark, tmp_path: Path, caplog
) -> None:
    caplog.set_level(logging.INFO, "ragbench")
    fresh = [f"paths.index={tmp_path / 'index'}", f"paths.cache={tmp_path / 'cache'}", "cache.shipped=false"]
    address = f"execution.address={cluster.scheduler.address}"
    other = run(compose("dask", *fresh, address), benchmark_small)
    assert files(other) == files(local)
    assert any("computing with 2 Dask workers" in message for message in caplog.messages)
    assert any(message.startswith("sent ") for message in caplog.messages)
    assert not any("computed here" in message for message in caplog.messages)
    assert other.record["execution"] == {"kind": "dask", "latency": "on the machine of the command"}


@pytest.mark.slow
def test_dask_workers_take_artefacts_from_a_shared_address(
    cluster, compose, local, benchmark_small: Benchmark, tmp_path: Path, caplog
) -> None:
    caplog.set_level(logging.INFO, "ragbench")
    cluster.run(_forget_artefacts)
    (tmp_path / "shared").mkdir()
    url = f"artefacts.url={(tmp_path / 'shared').as_uri()}"
    other = run(compose("dask", url), benchmark_small)
    assert files(other) == files(local)
    assert sum(message.startswith("uploaded ") for message in caplog.messages) >= 3
    assert not any(message.startswith("sent ") for message in caplog.messages)
    assert all(cluster.run(_kept_artefacts).values())


@pytest.mark.slow
def test_dask_measure_that_only_this_process_knows_is_evaluated_here(
    cluster, compose, benchmark_small: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = ("measure", "second")
    monkeypatch.setitem(registry._registered, second, lambda ranked, grades: float(grades.get(ranked[1], 0) > 0))
    words = [f"execution.address={cluster.scheduler.address}", "measures=[nDCG@10,second]"]
    other = run(compose("dask", *words, arms=["p3=on,off"]), benchmark_small)
    assert 0 < other.per_query.loc[other.per_query["measure"] == "second", "value"].mean() < 1
    assert files(other) == files(run(compose("local", words[1], arms=["p3=on,off"]), benchmark_small))


def _forget_artefacts(dask_worker) -> None:
    shutil.rmtree(Path(dask_worker.local_directory) / "ragbench" / "index", ignore_errors=True)


def _kept_artefacts(dask_worker) -> list[str]:
    return [path.name for path in (Path(dask_worker.local_directory) / "ragbench" / "index").glob("*/*")]


@pytest.mark.slow
def test_dask_arm_of_a_killed_worker_is_computed_by_another(
    cluster, compose, trouble, benchmark_small: Benchmark, tmp_path: Path, caplog
) -> None:
    words = trouble(times=1, kill=True)
    cluster.upload_file(str(tmp_path / "trouble.py"))
    lost = run(compose("dask", *words), benchmark_small)
    marks = [path.name.split("-")[1] for path in (tmp_path / "marks").iterdir()]
    assert len(set(marks)) > 1 and str(os.getpid()) not in marks
    assert not any("computed here" in message for message in caplog.messages)
    assert files(lost) == files(run(compose("local", *words), benchmark_small))


@pytest.mark.slow
def test_dask_worker_with_a_full_disk_is_named_and_leaves_its_arms_to_others(
    cluster, compose, local, benchmark_small: Benchmark, caplog
) -> None:
    address = f"execution.address={cluster.scheduler.address}"
    cluster.run(_forget_artefacts)
    full = next(iter(cluster.scheduler_info()["workers"]))
    cluster.run(_limit_files, 4096, workers=[full])
    try:
        other = run(compose("dask", address), benchmark_small)
    finally:
        cluster.run(_limit_files, resource.RLIM_INFINITY, workers=[full])
    assert files(other) == files(local)
    # Dask may offer the arms to the idle worker a second time: then they are computed here.
    named = [message for message in caplog.messages if message.startswith(f"worker {full} cannot use its files (")]
    assert named and all("too large): other workers compute" in message for message in named)


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class Workers:
    """A client whose scheduler has the workers of `addresses`, and counts how often it was asked for them."""

    status = "running"

    def __init__(self, *addresses: str) -> None:
        self.addresses = set(addresses)
        self.asked = 0

    def scheduler_info(self, n_workers: int) -> dict[str, set[str]]:
        self.asked += 1
        return {"workers": set(self.addresses)}

    def wait(self) -> None:
        """Wait until the scheduler was asked three times more, so that one of the answers has been read."""
        until = self.asked + 3
        while self.asked < until:
            time.sleep(0.001)


def test_cluster_without_a_worker_is_named_once_for_each_loss(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    execution = pytest.importorskip("ragbench.extras.cluster.execution")
    monkeypatch.setattr(execution, "_WITHOUT_WORKERS", 0.001)
    client, lost = Workers("tcp://127.0.0.1:1"), []
    with execution._watched(client):
        for workers in ({"tcp://127.0.0.1:1"}, set(), {"tcp://127.0.0.1:2"}, set()):
            client.addresses = workers
            client.wait()
            lost.append(sum(text.startswith("the cluster has no worker left") for text in caplog.messages))
    assert lost == [0, 1, 1, 2]


def test_cluster_that_does_not_close_in_time_ends_no_run(caplog) -> None:
    execution = pytest.importorskip("ragbench.extras.cluster.execution")

    @contextmanager
    def slow() -> Iterator[int]:
        yield 1
        raise TimeoutError

    with execution._closing(slow()) as opened:
        assert opened == 1
    assert caplog.messages[0].startswith("the cluster did not close (TimeoutError (line ")


@pytest.mark.slow
def test_dask_run_goes_on_without_a_killed_scheduler(
    compose, local, benchmark_small: Benchmark, tmp_path: Path, caplog
) -> None:
    caplog.set_level(logging.INFO, "ragbench")
    file, started = tmp_path / "scheduler.json", list[subprocess.Popen[bytes]]()
    own = ["--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path / "worker")]

    def kill(record: logging.LogRecord) -> bool:
        """Kill the scheduler once it is known what the workers have."""
        if record.getMessage().startswith("computing with 1 Dask worker"):
            started[0].kill()
        return True

    caplog.handler.addFilter(kill)
    try:
        for words in (["scheduler", "--host", "127.0.0.1", "--port", "0"], ["worker", *own]):
            command = [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]]
            command += ["--scheduler-file", str(file), "--no-dashboard"]
            started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            while not file.exists():
                time.sleep(0.1)
        fresh = [f"paths.index={tmp_path / 'index'}", f"paths.cache={tmp_path / 'cache'}"]
        lost = run(compose("dask", *fresh, f"execution.address={file}"), benchmark_small)
    finally:
        caplog.handler.removeFilter(kill)
        for process in started:
            process.kill()
            process.wait()
    assert started[0].returncode == -signal.SIGKILL
    assert any("the cluster lost" in message and "computed here" in message for message in caplog.messages)
    assert files(lost) == files(local)


@pytest.mark.slow
def test_dask_worker_with_other_packages_is_refused_before_the_run(
    cluster, compose, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    versions = {"_PACKAGES": ("no-such-package",)}
    cluster.run(exec, f"from ragbench.results import environment; environment.__dict__.update({versions})")
    pattern = r"^worker tcp://\S+ has faiss-cpu missing, and the machine of the command has [\d.]+: install the same on"
    with pytest.raises(ConfigError, match=pattern):
        run(compose("dask"), benchmark_small)
    assert not list((tmp_path / "dask").glob("runs/*/arms/*/done.json"))
