"""Shards: whatever was finished is kept, through failures, kills and any number of workers."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from pickle import PicklingError

import pytest

from ragbench.base.bounds import Refused
from ragbench.base.errors import ConfigError, IndexError_
from ragbench.config import composition
from ragbench.config.execution_backends import sharding_of
from ragbench.index.shards import Sharding, Shards, _fill_in_process


def write(number: int, folder: Path) -> None:
    (folder / "number").write_text(f"{number} {os.getpid()}")


def fail(folder: Path) -> None:
    (folder / "half").write_text("half done")
    raise ValueError("no")


def fill_disk(place: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "vectors.npy")


def refuse(folder: Path) -> None:
    raise Refused("Sharding", "workers", "must be more")


class Locked:
    """A task that cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, folder: Path) -> None:
        """Do nothing."""


def die(folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def numbers(places: list[Path]) -> list[int]:
    return [int((place / "number").read_text().split()[0]) for place in places]


@pytest.fixture(
    params=[
        "index.build.workers=1",
        pytest.param("execution=joblib", marks=pytest.mark.slow),
        pytest.param("index.build.workers=2", marks=pytest.mark.slow),
    ]
)
def sharding(request: pytest.FixtureRequest) -> Sharding:
    more = [] if "build" in request.param else ["execution.workers=2"]
    return sharding_of(composition.compose([request.param, *more]))


def test_folders_come_in_the_order_of_the_tasks(tmp_path: Path, sharding: Sharding) -> None:
    heard: list[int] = []
    places = Shards(tmp_path, sharding).run([(n, partial(write, n)) for n in range(7)], heard.append)
    assert numbers(places) == list(range(7))
    assert sorted(heard) == list(range(7))
    assert {int((place / "number").read_text().split()[1]) == os.getpid() for place in places} == {
        not sharding.out_of_process
    }


def test_what_was_finished_before_a_failure_is_kept(tmp_path: Path, sharding: Sharding) -> None:
    shards = Shards(tmp_path, sharding)
    shards.run([(1, partial(write, 0))], lambda n: None)
    with pytest.raises((ValueError, RuntimeError), match="no") as raised:
        shards.run([(1, partial(write, 0)), (1, fail), (1, partial(write, 2))], lambda n: None)
    assert str(raised.value) == ("ValueError: no" if sharding.out_of_process else "no")
    assert not sharding.out_of_process or 'raise ValueError("no")' in raised.value.__notes__[0]
    first = (tmp_path / "000000" / "number").stat().st_mtime_ns
    heard: list[int] = []
    places = shards.run([(1, partial(write, n)) for n in range(3)], heard.append)
    assert numbers(places) == [0, 1, 2]
    assert (tmp_path / "000000" / "number").stat().st_mtime_ns == first
    assert not (places[1] / "half").exists()
    assert heard == [1, 1, 1]


def test_a_worker_that_dies_is_reported_in_one_sentence(tmp_path: Path, sharding: Sharding) -> None:
    if not sharding.out_of_process:
        pytest.skip("there is no other process")
    shards = Shards(tmp_path, sharding)
    with pytest.raises(IndexError_, match=r"run the command again \(finished parts are kept\)"):
        shards.run([(1, die)], lambda n: None)
    assert numbers(shards.run([(1, partial(write, 0))], lambda n: None)) == [0]


def test_an_error_that_cannot_be_unpickled_is_no_death(tmp_path: Path, sharding: Sharding) -> None:
    with pytest.raises((IndexError_, Refused), match=r"^Sharding.workers must be more$"):
        Shards(tmp_path, sharding).run([(1, refuse)], lambda n: None)


def test_a_full_disk_is_one_sentence(tmp_path: Path, sharding: Sharding) -> None:
    with pytest.raises((IndexError_, OSError)) as raised:
        Shards(tmp_path, sharding).run([(1, fill_disk)], lambda n: None)
    said = "vectors.npy cannot be used (no space left on device): check the path, its permissions and free space"
    assert not sharding.out_of_process or str(raised.value) == said


def test_a_task_that_cannot_be_pickled_is_no_death(tmp_path: Path, sharding: Sharding) -> None:
    if not sharding.out_of_process:
        pytest.skip("there is no other process")
    with pytest.raises((PicklingError, TypeError), match=r"(?i)pickle|serialize"):
        Shards(tmp_path, sharding).run([(1, Locked())], lambda n: None)


def test_a_machine_without_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(IndexError_, match=r"name a folder with paths.index that all machines share$"):
        _fill_in_process(partial(write, 0), tmp_path / "elsewhere" / "000000")


def test_discarded_shards_are_gone(tmp_path: Path) -> None:
    shards = Shards(tmp_path / "shards", Sharding())
    shards.discard()
    shards.run([(1, partial(write, 0))], lambda n: None)
    shards.discard()
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize("values", [{"shard_documents": 0}, {"workers": 0}])
def test_bad_values_are_named(values: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=f"Sharding.{next(iter(values))}"):
        Sharding(**values)


_BUILD = """
import sys, time
from functools import partial
from pathlib import Path
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index
from ragbench.index.spec import IndexSpec
from ragbench.index.shards import Sharding
from ragbench.corpus.reader import read_vault

class Slow:
    cache = threads = None
    dim, passage_digest = 4, "slow"
    def encoder(self, spec): return self
    def encode_passages(self, texts, progress=None):
        import numpy as np
        print("shard", flush=True)
        time.sleep(float(sys.argv[3]))
        return np.array([[len(t), 1, 0, 0] for t in texts], dtype="f4")

documents = read_vault(Path(sys.argv[1])).documents
store = ArtefactStore(Path(sys.argv[2]))
index = Index(IndexSpec(), "vault", lambda: documents, store, Slow(), sharding=Sharding(2, 1))
print("built", index.artefact("dense").folder, flush=True)
"""


@pytest.mark.slow
def test_a_killed_build_goes_on_where_it_was(vault_folder: Path, tmp_path: Path) -> None:
    def start(root: str, seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _BUILD, str(vault_folder), str(tmp_path / root), str(seconds)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole, _ = start("whole", 0).communicate()
    n_shards = whole.count("shard\n")
    assert n_shards >= 3
    killed = start("killed", 0.5)
    assert killed.stdout is not None
    for _ in range(2):
        assert killed.stdout.readline() == "shard\n"
    while not list((tmp_path / "killed" / "shards").glob("*/000000")):
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    finished = len(list((tmp_path / "killed" / "shards").glob("*/0*")))
    assert 1 <= finished < n_shards
    resumed, _ = start("killed", 0).communicate()
    assert resumed.count("shard\n") == n_shards - finished
    files = [Path(text.rpartition("built ")[2].strip()) / "vectors.npy" for text in (whole, resumed)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not list((tmp_path / "killed" / "shards").iterdir())
