"""Artefacts shared through a folder and through a real S3 protocol server: fetched, verified, built once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ragbench.base.errors import ConfigError, IndexError_
from ragbench.extras.remote.artefact_store import POINTER, RemoteStore
from ragbench.index.artefacts import Artefact, ArtefactStore


def filling(text: str, calls: list[str] | None = None) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "deep" / "data.txt").write_text(text)
        if calls is not None:
            calls.append(text)

    return build


def never(folder: Path) -> None:
    raise AssertionError("built although the store has it")


def store(root: Path, url: str, expiry: float = 60, said: list[str] | None = None) -> ArtefactStore:
    say = (said if said is not None else []).append
    return ArtefactStore(root, say, RemoteStore(url, say, expiry))


def place(url: str, artefact: Artefact) -> str:
    return f"{url}/{artefact.kind}/{artefact.fingerprint}"


def files(url: str, artefact: Artefact) -> list[str]:
    return [name.rpartition("/")[2] for name in RemoteStore(url)._names(place(url, artefact).removeprefix("s3://"))]


def test_built_once_and_fetched_by_others(url: str, tmp_path: Path) -> None:
    built = store(tmp_path / "a", url).get("words", {"x": 1}, filling("hello"))
    fetched = store(tmp_path / "b", url).get("words", {"x": 1}, never)
    assert (built.built, fetched.built) == (True, False)
    assert fetched.manifest == built.manifest
    assert (fetched.folder / "deep" / "data.txt").read_text() == "hello"
    archive, pointer = sorted(files(url, built), key=lambda name: name == POINTER)
    assert (archive.endswith(".tar"), pointer) == (True, POINTER)  # and no claim is left
    assert not list((tmp_path / "b").rglob("*tmp*"))


def test_what_is_here_already_is_offered(url: str, tmp_path: Path) -> None:
    ArtefactStore(tmp_path / "a").get("words", 1, filling("hello"))
    assert not store(tmp_path / "a", url).get("words", 1, never).built
    assert not store(tmp_path / "b", url).get("words", 1, never).built


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_damage_is_said_and_built_again(url: str, tmp_path: Path, damage: str) -> None:
    built = store(tmp_path / "a", url).get("words", 1, filling("hello"))
    remote = RemoteStore(url)
    (archive,) = (n for n in remote._names(place(url, built).removeprefix("s3://")) if n.endswith(".tar"))
    content = remote._files.cat_file(archive)
    if damage == "gone":
        remote._files.rm_file(archive)
    else:
        remote._files.pipe_file(archive, content[:700] if damage == "cut" else content.replace(b"hello", b"jello"))
    said: list[str] = []
    again = store(tmp_path / "b", url, said=said).get("words", 1, filling("hello"))
    assert again.built
    assert len(said) == 1
    assert "is damaged" in said[0]
    assert not store(tmp_path / "c", url).get("words", 1, never).built


def test_a_half_written_pointer_is_none(tmp_path: Path) -> None:
    url = str(tmp_path / "shared")
    built = store(tmp_path / "a", url).get("words", 1, filling("hello"))
    (Path(place(url, built)) / POINTER).write_text('{"arch')
    assert store(tmp_path / "b", url).get("words", 1, filling("hello")).built


def test_machines_that_want_the_same_build_it_once(url: str, tmp_path: Path) -> None:
    calls: list[str] = []

    def slow(folder: Path) -> None:
        time.sleep(0.5)
        filling("hello", calls)(folder)

    found: dict[int, Artefact] = {}

    def machine(number: int) -> None:
        found[number] = store(tmp_path / str(number), url, expiry=2).get("words", 1, slow)

    threads = [threading.Thread(target=machine, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == ["hello"]
    assert sorted(artefact.built for artefact in found.values()) == [False, False, True]


def test_a_long_build_renews_its_claim(url: str, tmp_path: Path) -> None:
    calls: list[str] = []

    def longer_than_a_claim(folder: Path) -> None:
        calls.append("begun")
        time.sleep(1.5)
        filling("hello")(folder)

    first = threading.Thread(target=lambda: store(tmp_path / "a", url, 0.6).get("words", 1, longer_than_a_claim))
    first.start()
    while not calls:
        time.sleep(0.01)
    assert not store(tmp_path / "b", url, expiry=0.6).get("words", 1, never).built
    first.join()


KILLED = """
import sys, time
from pathlib import Path
from ragbench.index.artefacts import ArtefactStore
from ragbench.extras.remote.artefact_store import RemoteStore

def build(folder):
    print("started", flush=True)
    time.sleep(600)

ArtefactStore(Path(sys.argv[1]), remote=RemoteStore(sys.argv[2])).get("words", 1, build)
"""


def test_the_claim_of_a_killed_builder_is_taken_over(url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "a"), url]
    victim = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert victim.stdout is not None
    assert victim.stdout.readline() == "started\n"
    victim.kill()
    victim.wait()
    victim.stdout.close()
    built = store(tmp_path / "b", url, expiry=0.5).get("words", 1, filling("hello"))
    assert built.built
    assert len(files(url, built)) == 2


def test_a_failed_build_gives_its_claim_back(url: str, tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match=r"^no space$"):  # not blamed on the store
        store(tmp_path / "a", url).get("words", 1, fail)
    assert store(tmp_path / "b", url).get("words", 1, filling("hello")).built


def test_only_one_takes_over_a_claim(url: str) -> None:
    remote = RemoteStore(url)
    held = f"{remote._root}/words/x"
    first = remote._create_claim(held, [])
    assert first is not None
    assert remote._create_claim(held, []) is None
    assert remote._create_claim(held, [first]) is not None
    assert remote._create_claim(held, [first]) is None


def test_what_cannot_be_used_is_one_sentence(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^artefacts\.url=nowhere://x cannot be opened"):
        RemoteStore("nowhere://x")
    with pytest.raises(IndexError_, match=r"artefacts\.url=s3://no-such-bucket/x cannot be used") as caught:
        store(tmp_path / "a", "s3://no-such-bucket/x").get("words", 1, never)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_away_is_one_sentence(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(IndexError_, match="cannot be used") as caught:
        store(tmp_path / "a", bucket).get("words", 1, never)
    assert "\n" not in str(caught.value)
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_foreign_archive_cannot_leave_its_folder(tmp_path: Path) -> None:
    import io
    import tarfile

    url = tmp_path / "shared"
    built = store(tmp_path / "a", str(url)).get("words", 1, filling("hello"))
    (archive,) = (url / "words" / built.fingerprint).glob("*.tar")
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo("../../../escaped.txt")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"!"))
    assert store(tmp_path / "b", str(url)).get("words", 1, filling("hello")).built
    assert not list(tmp_path.rglob("escaped.txt"))


def test_the_setting_reaches_the_store(tmp_path: Path) -> None:
    from ragbench.config import composition
    from ragbench.config.arm_builder import store_of

    settings = composition.compose([f"artefacts.url={tmp_path}/shared", f"paths.results={tmp_path}/results"])
    made = store_of(settings, print)
    assert made.remote is not None
    assert made.remote.url == f"{tmp_path}/shared"
    made.get("words", 1, filling("hello"))
    (pointer,) = (tmp_path / "shared").rglob(POINTER)
    assert list(json.loads(pointer.read_text())) == ["archive"]
    assert store_of(composition.compose([]), print).remote is None
