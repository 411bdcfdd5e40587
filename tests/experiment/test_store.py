"""Folders of results: whose they are, what is finished, and that nothing changed is taken for what was written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ragbench.base import files, processes
from ragbench.base.types import ResultsError
from ragbench.results import store
from ragbench.results.store import RunFolder
from tests.naming import naming

PLAN = "0123456789abcdef"


def writing(root: Path, plan: str = PLAN) -> AbstractContextManager[RunFolder]:
    return store.writing(root, "run", "two words", plan, ["a", "B/c"], None)


def fill(folder: RunFolder) -> None:
    for arm in ("a", "B/c"):
        folder.arm(arm).text("run.trec", f"of {arm}")
        folder.arm(arm).finish_arm("key")
    folder.text("summary.csv", "mean\n0.5\n")


def finish(root: Path) -> Path:
    with writing(root) as folder:
        fill(folder)
        folder.finish({"arms": ["a", "B/c"], "seconds": 1.5})
    return folder.path


@pytest.mark.parametrize(
    ("arm", "folder"),
    [
        ("all-p10", "all-p10"),
        ("p1=on", "p1=on"),
        ("p1=on p6=off", "p1=on_p6=off~f5082b4c1c"),
        ("R&D", "R_D~1d168db4dc"),
        ("R/D", "R_D~a4b092343c"),
        ("../../etc", "_.._etc~74ccf3c5b4"),
        ("", "_~e3b0c44298"),
    ],
)
def test_store_arms_as_folders(arm: str, folder: str) -> None:
    """The digits are the first of `printf NAME | sha256sum`."""
    assert store.arm_folder(arm) == folder


@given(st.sets(st.text(max_size=300) | st.sampled_from(["a", "A", "a~", ".", "..", "a" * 48, "a" * 49]), max_size=20))
def test_store_arms_that_differ_have_folders_that_differ(arms: set[str]) -> None:
    folders = [store.arm_folder(arm) for arm in arms]
    assert len({folder.lower() for folder in folders}) == len(arms)
    assert all(len(folder) <= 60 and "/" not in folder and not folder.startswith(".") for folder in folders)


def test_store_folder_is_named_by_time_command_arm_and_plan(tmp_path: Path) -> None:
    with writing(tmp_path) as folder:
        stamp, _, rest = folder.path.name.partition("-run-")
        assert time.strptime(stamp, "%Y%m%d-%H%M%S")
        assert rest == "two_words-01234567"
    with store.writing(tmp_path, "run", "x" * 5000, "f" * 64, ["a"], None) as folder:
        assert len(folder.path.name) == len("20260101-000000-run-") + 40 + len("-ffffffff")


def test_store_reads_a_finished_run(tmp_path: Path) -> None:
    record = store.read(finish(tmp_path))
    assert (record["arms"], record["seconds"], record["format"]) == (["a", "B/c"], 1.5, store.FORMAT)
    assert set(record["files"]) == {"summary.csv", "arms/a/done.json", f"arms/{store.arm_folder('B/c')}/done.json"}


def test_store_every_flipped_bit_is_seen(tmp_path: Path) -> None:
    folder = finish(tmp_path)
    written = store.read(folder)
    seen = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != store.PLAN):
        if path.name.startswith("."):
            continue
        content = path.read_bytes()
        for bit in range(0, len(content) * 8, 11):  # all of them take a minute
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            try:
                assert store.read(folder) == written, (path, bit)  # white space of JSON
            except ResultsError as error:
                seen.append(str(error))
        path.write_bytes(content)
    assert store.read(folder) == written
    assert len(seen) > 400
    assert all("are damaged (" in message for message in seen)
    assert any("summary.csv has changed since it was written" in actual for actual in seen)


@pytest.mark.parametrize("name", ["summary.csv", "arms/a/run.trec", "arms/a/done.json"])
def test_store_lost_file_is_named(tmp_path: Path, name: str) -> None:
    folder = finish(tmp_path)
    (folder / name).unlink()
    with pytest.raises(ResultsError, check=naming(Path(name).name)):
        store.read(folder)


def test_store_names_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, check=naming("experiment.json")):
        store.read(tmp_path)
    with pytest.raises(ResultsError, check=naming(tmp_path / "runs")):
        store.latest(tmp_path)


def test_store_finished_experiment_is_never_written_over(tmp_path: Path) -> None:
    folder = finish(tmp_path)
    with writing(tmp_path) as other:
        assert other.path != folder
    with (
        pytest.raises(ResultsError, match="holds a finished experiment"),
        store.writing(tmp_path, "run", "a", PLAN, ["a"], folder),
    ):
        pass


def test_store_stopped_experiment_is_continued_without_its_drafts(tmp_path: Path, caplog) -> None:
    with writing(tmp_path) as folder:
        folder.arm("a").text("run.trec", "text")
        folder.arm("a").finish_arm("key")
        draft = files.draft_of(folder.arm("a").path / "top.parquet")
        draft.write_text("half")
    with writing(tmp_path) as again:
        assert again == folder
        assert not draft.exists()
        assert store.finished(again.path, "a", "key") and not store.finished(again.path, "a", "other key")
        assert not store.finished(again.path, "b", "key")
    assert caplog.messages == [f"continuing the stopped experiment in {folder.path}"]
    with store.writing(tmp_path, "run", "a", PLAN[::-1], ["a"], None) as other_plan:
        assert other_plan.path != folder.path


@pytest.mark.parametrize("half", [True, False])
def test_store_removes_a_folder_without_plan(tmp_path: Path, half: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    begun, users = tmp_path / "runs" / "begun", tmp_path / "runs" / "notes"
    for folder in (begun, users):
        folder.mkdir(parents=True)
    (begun / ".lock").touch()
    draft = files.draft_of(begun / "running.json").name.replace(f".{os.getpid()}-", f".{ended.pid}-")
    (begun / (draft if half else "running.json")).write_text("{}")
    (users / "notes.txt").touch()
    with writing(tmp_path) as actual:
        assert sorted((tmp_path / "runs").iterdir()) == [actual.path, users]


def test_store_arm_that_changed_is_run_again(tmp_path: Path, caplog) -> None:
    with writing(tmp_path) as folder:
        fill(folder)
    (folder.arm("B/c").path / "run.trec").write_text("of B/d")
    assert store.finished(folder.path, "a", "key")
    assert not store.finished(folder.path, "B/c", "key")
    damage = "run.trec has changed since it was written"
    assert caplog.messages == [f"arm 'B/c' in {folder.path} is damaged ({damage}) and is run again"]


def test_store_damaged_neighbour_is_passed_over_with_one_warning(tmp_path: Path, caplog) -> None:
    neighbours = []
    for plan in ("one", "two"):
        with writing(tmp_path, plan=plan) as folder:
            neighbours.append(folder.path)
        (folder.path / store.PLAN).write_text("{")
    caplog.clear()
    with writing(tmp_path) as folder:
        assert folder.path not in neighbours
    (sentence,) = caplog.messages
    assert sentence.startswith("skipped results that cannot be read: ")
    assert all(str(path) in sentence for path in neighbours)


def test_store_latest_is_the_last_that_was_finished_and_is_whole(tmp_path: Path, caplog) -> None:
    made = []
    for at, plan in enumerate(("a", "b", "c")):
        with writing(tmp_path, plan=plan) as folder:
            fill(folder)
            if plan != "c":
                folder.finish({"arms": ["a", "B/c"]})
                os.utime(folder.path / store.RECORD, (at, at))
        made.append(folder.path)
    assert store.latest(tmp_path) == made[1]
    (made[1] / store.RECORD).write_text("")
    assert store.latest(tmp_path) == made[0]
    assert caplog.messages == [f"skipped results that cannot be read: {made[1]}"]


OTHER = """
import sys
from pathlib import Path
from ragbench.results import store

with store.writing(Path(sys.argv[1]), "run", "two words", sys.argv[2], ["a"], None) as place:
    print(place.path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process at work on the same experiment, and its folder."""
    command = [sys.executable, "-c", OTHER, str(tmp_path), PLAN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_store_running_experiment_is_not_a_stopped_one(other, tmp_path: Path, caplog) -> None:
    process, folder = other
    who = json.loads((folder / "running.json").read_text())
    assert who["pid"] == process.pid
    with writing(tmp_path) as actual:
        assert actual.path != folder
    assert f"the same experiment is running (process {process.pid} on " in caplog.messages[0]
    with (
        pytest.raises(ResultsError, check=naming(process.pid)),
        store.writing(tmp_path, "run", "a", PLAN, ["a"], folder),
    ):
        pass
    process.kill()
    process.wait()
    with store.writing(tmp_path, "run", "a", PLAN, ["a"], folder) as again:
        assert again.path == folder
    assert not (folder / "running.json").exists()


@pytest.mark.parametrize(
    ("number", "message"),
    [(errno.ENOSPC, "free space there"), (errno.EROFS, "check its permissions"), (errno.EFBIG, "free space there")],
)
def test_store_write_error_is_one_sentence(tmp_path: Path, monkeypatch, number: int, message: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with writing(tmp_path) as folder:
        folder.text("summary.csv", "before")
        monkeypatch.setattr(Path, "write_text", refuse)
        with pytest.raises(ResultsError, match=f"{os.strerror(number)}.: {message}, or name another folder with paths"):
            folder.text("summary.csv", "after")
        monkeypatch.undo()
        assert (folder.path / "summary.csv").read_text() == "before"
        assert [path.name for path in folder.path.iterdir() if ".summary" in path.name] == []


def test_store_interrupted_run_says_what_is_kept_and_how_it_goes_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    typed = processes.TYPED.set(("ragbench", "run", "-m", "exp=baseline,two words"))
    with pytest.raises(KeyboardInterrupt) as stop, writing(tmp_path) as actual:
        actual.arm("B/c").finish_arm("key")
        raise KeyboardInterrupt
    processes.TYPED.reset(typed)
    kept = f"1 of 2 arms finished (B/c) and kept in runs/{actual.path.name}"
    command = "ragbench run -m 'exp=baseline,two words'"
    assert str(stop.value) == f"interrupted; {kept}; to continue: {command}"

    (stopped,) = store.stopped_runs(tmp_path)
    assert (stopped.arms, stopped.finished, stopped.working) == (("a", "B/c"), ("B/c",), "")
    with pytest.raises(ResultsError, check=naming("1 of 2 arms")):
        store.latest(tmp_path)
    (elsewhere := tmp_path / "else where").mkdir()
    monkeypatch.chdir(elsewhere)
    assert stopped.go_on == f"cd {tmp_path}; {command}"
    assert [item.folder for item in store.stopped_runs(finish(tmp_path).parents[1])] == []


def test_store_run_of_a_script_is_continued_by_the_script(tmp_path: Path) -> None:
    message = r"0 of 2 arms finished .* run the same experiment again"
    with pytest.raises(KeyboardInterrupt, match=message), writing(tmp_path):
        raise KeyboardInterrupt
    with writing(tmp_path):
        (stopped,) = store.stopped_runs(tmp_path)
    assert stopped.working.startswith(f"process {os.getpid()} on ")
