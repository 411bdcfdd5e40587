"""Artefacts: built once, whole or not at all, and rebuilt when damaged."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragbench.index import artefacts
from ragbench.index.artefacts import ArtefactStore


def filling(text: str, calls: list[str] | None = None):
    def build(folder: Path) -> None:
        if calls is not None:
            calls.append(text)
        (folder / "data.txt").write_text(text)

    return build


def test_artefact_is_built_once(tmp_path: Path) -> None:
    store, calls = ArtefactStore(tmp_path), []
    first = store.get("words", {"a": 1}, filling("x", calls))
    second = store.get("words", {"a": 1}, filling("x", calls))
    assert (first.built, second.built, calls) == (True, False, ["x"])
    assert first.folder == second.folder
    assert second.size_bytes == 1


def test_other_inputs_are_another_artefact(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path)
    assert store.get("words", {"a": 1}, filling("x")).folder != store.get("words", {"a": 2}, filling("x")).folder


def test_artefact_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half.txt").write_text("half")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        ArtefactStore(tmp_path).get("words", 1, fail)
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".lock"] == []


@pytest.mark.parametrize("damage", ["flip", "shorten", "remove", "foreign", "manifest"])
def test_artefact_damage_is_named_and_repaired(tmp_path: Path, damage: str, caplog) -> None:
    store = ArtefactStore(tmp_path)
    folder = store.get("words", 1, filling("hello")).folder
    data = folder / "data.txt"
    if damage == "flip":
        data.write_text("jello")
    elif damage == "shorten":
        data.write_text("hell")
    elif damage == "remove":
        data.unlink()
    elif damage == "foreign":
        (folder / "other.txt").write_text("?")
    else:
        (folder / "manifest.json").write_text(json.dumps({"kind": "words"}))
    again = store.get("words", 1, filling("hello"))
    assert again.built
    assert data.read_text() == "hello"
    assert len(caplog.messages) == 1
    assert "built again" in caplog.messages[0]


SLOW = """
import sys, time
from pathlib import Path
from ragbench.index.artefacts import ArtefactStore

def build(folder):
    (folder / "one.txt").write_text("1")
    print("started", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "two.txt").write_text("2")

artefact = ArtefactStore(Path(sys.argv[1])).get("slow", sys.argv[3], build)
print("built" if artefact.built else "found", flush=True)
"""


def slow(folder: Path, seconds: float, inputs: str = "1") -> subprocess.Popen[str]:
    words = [sys.executable, "-c", SLOW, str(folder), str(seconds), inputs]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_artefact_of_a_killed_build_is_not_finished(tmp_path: Path) -> None:
    victim = slow(tmp_path, 60)
    assert victim.stdout.readline() == "started\n"
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    assert list(ArtefactStore(tmp_path).list()) == []
    assert len(drafts(tmp_path)) == 1
    survivor = slow(tmp_path, 0)
    out, _ = survivor.communicate()
    assert out.splitlines()[-1] == "built"
    assert drafts(tmp_path) == []


def drafts(folder: Path) -> list[Path]:
    return [path for path in (folder / "slow").iterdir() if path.name[0] == "." and path.suffix != ".lock"]


def test_artefact_build_clears_drafts_of_killed_builds_only(tmp_path: Path) -> None:
    victim, running = slow(tmp_path, 60, "victim"), slow(tmp_path, 60, "running")
    try:
        for process in (victim, running):
            assert process.stdout.readline() == "started\n"
        victim.kill()
        victim.wait()
        assert len(drafts(tmp_path)) == 2
        ArtefactStore(tmp_path).get("slow", "another", filling("x"))
        (left,) = drafts(tmp_path)
        assert f".{running.pid}-" in left.name
    finally:
        for process in (victim, running):
            process.kill()
            process.communicate()


def test_artefact_draft_is_not_listed(tmp_path: Path, caplog) -> None:
    store = ArtefactStore(tmp_path)

    def build(folder: Path) -> None:
        (folder / "manifest.json").write_text("{}")
        assert list(store.list()) == []

    store.get("words", 1, build)
    assert caplog.messages == []


def test_artefact_is_built_once_by_two_processes(tmp_path: Path) -> None:
    first = slow(tmp_path, 1.0)
    assert first.stdout.readline() == "started\n"
    second = slow(tmp_path, 1.0)
    time.sleep(0.1)
    answers = sorted([first.communicate()[0].splitlines()[-1], second.communicate()[0].splitlines()[-1]])
    assert answers == ["built", "found"]


def test_artefact_samples_large_files_unless_checked(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(artefacts, "_BLOCK_BYTES", 10)
    monkeypatch.setattr(artefacts, "_BLOCKS_READ", 8)

    def build(folder: Path) -> None:
        (folder / "large.bin").write_bytes(bytes(range(200)) * 5)  # 100 blocks
        (folder / "small.txt").write_text("small")

    store = ArtefactStore(tmp_path)
    artefact = store.get("words", 1, build)
    assert len(artefact.manifest["files"]["large.bin"]["blocks"]) == 100
    assert list(store.check()) == [("words", artefact.fingerprint, None)]
    content = (artefact.folder / "large.bin").read_bytes()
    seen = 0
    for block in range(100):  # the opening reads 8 of 100, always the same
        (artefact.folder / "large.bin").write_bytes(content[: block * 10] + b"x" * 10 + content[block * 10 + 10 :])
        assert [reason for _, _, reason in store.check()] == ["large.bin has changed"]
        seen += not list(store.list())
    assert seen == 8
    (artefact.folder / "large.bin").write_bytes(content[:500] + bytes(500))  # half of it lost
    assert not list(store.list())
    (artefact.folder / "large.bin").write_bytes(content)
    (artefact.folder / "small.txt").write_text("smile")
    assert not list(store.list())
