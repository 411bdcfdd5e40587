"""Artefacts shared by an address: uploaded once and whole, found by name, checked, and never by a stranger's file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ragbench.base.types import ConfigError
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.extras.cluster.artefacts import ArtefactBucket
from ragbench.index.artefacts import Artefact, ArtefactStore


def store(root: Path, url: str) -> ArtefactStore:
    return ArtefactStore(root, ArtefactBucket(url))


def get(store: ArtefactStore, text: str = "words") -> Artefact:
    """An artefact of two files in folders of their own; a stranger's build would fail."""

    def build(folder: Path) -> None:
        (folder / "part").mkdir()
        (folder / "part" / "a.txt").write_text(text)
        (folder / "b.bin").write_bytes(bytes(5_000_000))

    return store.get("kind", {"of": text}, build)


@pytest.fixture
def shared(tmp_path: Path) -> str:
    (tmp_path / "shared").mkdir()
    return (tmp_path / "shared").as_uri()


def test_artefact_is_built_by_one_machine_and_downloaded_by_another(tmp_path: Path, shared: str, caplog) -> None:
    caplog.set_level(logging.INFO, "ragbench")
    first = get(store(tmp_path / "one", shared))
    second = get(store(tmp_path / "two", shared))
    assert first.built and not second.built
    assert (second.folder / "part" / "a.txt").read_text() == "words"
    assert second.manifest == first.manifest
    assert [path.name for path in (tmp_path / "shared").rglob("*") if path.is_file()] == [f"{first.fingerprint}.tar"]
    size = f"kind {first.fingerprint} (4.8 MiB)"
    assert caplog.messages == [f"uploaded {size} to {shared}", f"downloaded {size} from {shared}"]


def test_artefact_that_was_there_before_the_address_is_uploaded_once(tmp_path: Path, shared: str, caplog) -> None:
    caplog.set_level(logging.INFO, "ragbench")
    get(ArtefactStore(tmp_path / "one"))
    assert not get(store(tmp_path / "one", shared)).built
    get(store(tmp_path / "one", shared))
    assert [message.partition(" ")[0] for message in caplog.messages] == ["uploaded"]


@pytest.mark.parametrize(
    ("at", "damage"), [(2_000_000, "b.bin has changed"), (0, "bad checksum")], ids=["in a file", "in the archive"]
)
def test_artefact_that_was_damaged_is_built_and_replaced(
    at: int, damage: str, tmp_path: Path, shared: str, caplog
) -> None:
    get(store(tmp_path / "one", shared))
    (file,) = (tmp_path / "shared" / "kind").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:at] + b"?" + content[at + 1 :])
    assert get(store(tmp_path / "two", shared)).built
    assert f"was damaged on its way: {damage}; it is built again" in caplog.text
    assert not get(store(tmp_path / "three", shared)).built


def test_upload_that_stops_leaves_nothing_under_the_name(tmp_path: Path, shared: str, monkeypatch, caplog) -> None:
    bucket = ArtefactBucket(shared)
    monkeypatch.setattr(type(bucket._files), "mv", lambda *paths: (_ for _ in ()).throw(OSError("disk full")))
    assert get(ArtefactStore(tmp_path / "one", bucket)).built
    assert "uploading kind" in caplog.text and "disk full" in caplog.text and "goes on without it" in caplog.text
    assert not [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]


def test_address_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^artefacts\.url=nowhere://x cannot be used \(.*\): install ragbench\[clust"
    ):
        ArtefactBucket("nowhere://x")


def test_address_with_a_password_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"artefacts\.url must hold no password"):
        composition.compose(["artefacts.url=s3://me:secret@bucket"]).artefacts  # noqa: B018


def test_address_in_a_project_file_needs_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("artefacts: {url: s3://theirs/x}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"artefacts\.url.*--trust"):
        composition.compose([])
    assert composition.compose(["artefacts.url=s3://mine/x"]).config["artefacts"]["url"] == "s3://mine/x"


def test_command_index_shares_what_it_builds_and_builds_anew(tmp_path: Path, shared: str, capsys) -> None:
    vault = Path(__file__).parents[2] / "data" / "vault"

    def index(machine: str, *options: str) -> dict[str, str]:
        words = ["exp=lexical_only", "data=vault", f"data.corpus={vault}", f"paths.index={tmp_path / machine}"]
        assert cli.main(["index", *options, *words, f"artefacts.url={shared}", "--json"]) == 0
        return {row["kind"]: row["state"] for row in json.loads(capsys.readouterr().out)}

    def files() -> dict[str, int]:
        return {path.parent.name: path.stat().st_mtime_ns for path in (tmp_path / "shared").glob("*/*.tar")}

    built = index("one")
    uploaded = files()
    assert set(built.values()) == {"built now"} and set(uploaded) == set(built)
    assert index("two") == dict.fromkeys(built, "ready")
    assert files() == uploaded
    assert index("two", "--rebuild") == built
    assert all(files()[kind] != uploaded[kind] for kind in built)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of an S3 server on this machine; its address and credentials are in the environment alone."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    s3fs = pytest.importorskip("s3fs")
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, address if name == "AWS_ENDPOINT_URL" else "testing")
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"shared-{uuid4().hex}"
    s3fs.S3FileSystem().mkdir(name)
    yield f"s3://{name}/ragbench"
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.slow
def test_object_storage_gives_the_same_artefact_once(bucket: str, tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.INFO, "ragbench")
    first, second = (get(store(tmp_path / name, bucket)) for name in ("one", "two"))
    assert first.built and not second.built and second.manifest == first.manifest
    listed = ArtefactBucket(bucket)._files.find(bucket)
    assert listed == [f"{bucket.removeprefix('s3://')}/kind/{first.fingerprint}.tar"]
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("ragbench")]
    assert [message.partition(" ")[0] for message in ours] == ["uploaded", "downloaded"]


def test_address_that_does_not_exist_is_not_made(tmp_path: Path, caplog) -> None:
    assert get(store(tmp_path / "one", (tmp_path / "unmounted").as_uri())).built
    assert not (tmp_path / "unmounted").exists()
    assert "uploading kind" in caplog.text and "the run goes on without it" in caplog.text


@pytest.mark.slow
def test_object_storage_without_the_bucket_does_not_stop_the_run(bucket: str, tmp_path: Path, caplog) -> None:
    assert get(store(tmp_path / "one", "s3://not-there/ragbench")).built
    assert "uploading kind" in caplog.text and "the run goes on without it" in caplog.text
