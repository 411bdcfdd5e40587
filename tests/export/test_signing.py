"""A signed bundle is told from any other, before anything of it is used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import ragbench
from ragbench.base.errors import BundleError, RagbenchError
from ragbench.commands import cli
from ragbench.export import bundle, signing
from ragbench.export import generation as generations
from ragbench.export.memory import Memory
from ragbench.export.opening import load
from ragbench.export.refresh import Refresher
from ragbench.index.artefact import manifest_entry
from ragbench.serving.service import SearchService
from tests.sealing import reseal


def written(place: Path, key: Ed25519PrivateKey | X25519PrivateKey) -> Path:
    place.with_suffix(".pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    place.with_suffix(".pub").write_bytes(public)
    return place.with_suffix(".pem")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key; its public half has the ending .pub."""
    return written(tmp_path / "key", Ed25519PrivateKey.generate())


@pytest.fixture
def public(key: Path) -> Path:
    return key.with_suffix(".pub")


@pytest.fixture
def signed(copied: Path, key: Path) -> Path:
    with load(copied) as loaded:
        signing.sign(copied, signing.private_key(key), loaded.index.artefacts())
    return copied


@pytest.fixture
def notes(handbook_folder: Path, tmp_path: Path) -> Path:
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    return notes


def test_what_was_signed_is_opened(signed: Path, public: Path) -> None:
    with ragbench.load(signed, key=public) as loaded:
        assert loaded.search("cache", 1)


def alter_record(folder: Path) -> None:
    reseal(folder / bundle.RECORD, name="other")


def alter_configuration(folder: Path) -> None:
    path = folder / bundle.CONFIG
    path.write_text(path.read_text().replace("ragbench.search.stages", "evil.stages", 1))


def alter_texts(folder: Path) -> None:
    """The text of the chunks, with the digests in their manifest."""
    manifest = next((folder / bundle.INDEX / "chunks").glob("*/manifest.json"))
    row = json.loads(manifest.read_text())
    name = max(row["files"], key=lambda name: row["files"][name]["bytes"])
    path = manifest.parent / name
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    manifest.write_text(json.dumps({**row, "files": {**row["files"], name: manifest_entry(path)}}))


def alter_vectors(folder: Path) -> None:
    """One file of an artefact, its manifest left alone."""
    path = next((folder / bundle.INDEX / "dense").glob("*/*.npy"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def alter_signature(folder: Path) -> None:
    (path,) = (folder / signing.FOLDER).iterdir()
    row = json.loads(path.read_text())
    first = "A" if row["signature"][0] != "A" else "B"
    path.write_text(json.dumps({**row, "signature": first + row["signature"][1:]}))


def add_a_file_to_those_signed(folder: Path) -> None:
    (path,) = (folder / signing.FOLDER).iterdir()
    row = json.loads(path.read_text())
    path.write_text(json.dumps({**row, "files": {**row["files"], "new": "00"}}))


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (alter_record, "has no signature of its present state"),
        (alter_configuration, "config.yaml is not as it was signed"),
        (alter_texts, "manifest.json is not as it was signed"),
        (alter_vectors, "(is damaged|is not as it was signed)"),
        (alter_signature, "was signed with another key, or its signature was changed"),
        (add_a_file_to_those_signed, "was signed with another key, or its signature was changed"),
    ],
)
def test_what_was_altered_is_refused(signed: Path, public: Path, alter: Callable[[Path], None], said: str) -> None:
    alter(signed)
    with pytest.raises(RagbenchError, match=said):
        load(signed, key=public)


def test_an_artefact_that_was_not_signed_is_refused(copied: Path, key: Path, public: Path) -> None:
    with load(copied) as loaded:
        signing.sign(copied, signing.private_key(key), loaded.index.artefacts()[1:])
    with pytest.raises(BundleError, match="is not as it was signed: do not use the bundle"):
        load(copied, key=public)


def test_unsigned_and_signed_with_another_key(signed: Path, bundle_of, public: Path, tmp_path: Path, capsys) -> None:
    assert cli.main(["verify", str(bundle_of("baseline")), "--key", str(public), "--json"]) == 1
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert check["part"] == "signature"
    assert "has no signature of its present state" in check["said"]
    other = written(tmp_path / "other", Ed25519PrivateKey.generate())
    with pytest.raises(BundleError, match="was signed with another key"):
        load(signed, key=other.with_suffix(".pub"))
    for words, outcome in ((["--key", str(public)], "passes"), ([], "not checked")):
        assert cli.main(["verify", str(signed), "--no-latency", "--json", *words]) == 0
        check = json.loads(capsys.readouterr().out)["checks"][0]
        assert (check["part"], check["outcome"]) == ("signature", outcome)


def test_files_that_are_no_keys(signed: Path, key: Path, public: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "text").write_text("no key")
    curve = written(tmp_path / "curve", X25519PrivateKey.generate())
    for command, option, path, said in (
        ("verify", "--key", tmp_path / "nowhere", "cannot be read (no such file or directory): name a PEM file"),
        ("verify", "--key", tmp_path / "text", "holds no public key in PEM form"),
        ("verify", "--key", key, "holds no public key in PEM form"),
        ("verify", "--key", curve.with_suffix(".pub"), "is not an Ed25519 key"),
        ("refresh", "--sign", public, "holds no private key without a password in PEM form"),
        ("refresh", "--sign", curve, "is not an Ed25519 key"),
    ):
        assert cli.main([command, str(signed), option, str(path)]) == 2
        err = capsys.readouterr().err
        assert (err.startswith(f"ragbench: {option} {path} {said}"), err.count("\n")) == (True, 1)


def test_a_refresh_signs_what_it_makes(signed: Path, key: Path, public: Path, notes: Path) -> None:
    refresher = Refresher(signed, notes, sign=key, say=lambda sentence: None)
    for number in range(3):
        (notes / "zebra.md").write_text(f"# Zebra\n\nA zebra crossing {number}.\n", encoding="utf-8")
        refresher.refresh()
    with load(signed, key=public) as loaded:
        assert loaded.search("zebra crossing", 1)[0].docno == "zebra"
    assert len(list((signed / signing.FOLDER).iterdir())) == 1  # those of the export and of before are gone


def test_a_refreshed_bundle_does_not_roll_back_to_its_export(
    signed: Path, key: Path, public: Path, notes: Path
) -> None:
    Refresher(signed, notes, sign=key, say=lambda sentence: None).refresh()
    (signed / generations.NAME).unlink()
    with pytest.raises(BundleError, match="has no signature of its present state"):
        load(signed, key=public)


def test_copies_of_an_earlier_generation_are_refused_by_memory(
    signed: Path, key: Path, public: Path, notes: Path, tmp_path: Path
) -> None:
    refresher = Refresher(signed, notes, sign=key, say=lambda sentence: None)
    refresher.refresh()
    shutil.copytree(signed, tmp_path / "kept")
    load(signed, key=public, memory=Memory(tmp_path / "state.json")).close()
    (notes / "zebra.md").unlink()
    refresher.refresh()
    load(signed, key=public, memory=Memory(tmp_path / "state.json")).close()
    shutil.rmtree(signed)
    shutil.copytree(tmp_path / "kept", signed)
    load(signed, key=public).close()  # without a memory nothing tells it from the latest
    with pytest.raises(BundleError, match=r"is older than what it was before \(generation 1, .* after generation 2"):
        load(signed, key=public, memory=Memory(tmp_path / "state.json"))
    with pytest.raises(BundleError, match="is generation 1, older than --at-least 2"):
        load(signed, key=public, memory=Memory(tmp_path / "new.json", at_least=2))
    load(signed, key=public, memory=Memory(tmp_path / "new.json", at_least=1)).close()
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(BundleError, match=r"cannot be used .*: delete it if you trust"):
        load(signed, key=public, memory=Memory(tmp_path / "state.json"))


def test_a_memory_that_cannot_be_written_lasts_as_long_as_the_process(
    signed: Path, key: Path, public: Path, notes: Path, tmp_path: Path
) -> None:
    refresher = Refresher(signed, notes, sign=key, say=lambda sentence: None)
    (tmp_path / "file").write_text("")
    said: list[str] = []
    memory = Memory(tmp_path / "file" / "state.json", say=said.append)
    shutil.copytree(signed, tmp_path / "kept")
    refresher.refresh()
    load(signed, key=public, memory=memory).close()
    assert "cannot be written" in said[0]
    shutil.rmtree(signed)
    shutil.copytree(tmp_path / "kept", signed)
    with pytest.raises(BundleError, match="is older than what it was before"):
        load(signed, key=public, memory=memory)


def test_a_refresh_that_does_not_sign_is_not_served(signed: Path, key: Path, public: Path, notes: Path) -> None:
    service, said = SearchService(signed, key=public), []
    try:
        Refresher(signed, notes, say=said.append).refresh()
        with pytest.raises(BundleError, match="has no signature of its present state"):
            service.reload()
    finally:
        service.close()
    assert said == [f"{signed} is signed, and refreshed generations will not be: add --sign FILE"]
    with pytest.raises(BundleError, match="has no signature of its present state"):  # nor signed later
        Refresher(signed, notes, sign=key, say=said.append)


def test_what_is_followed_must_be_signed_as_well(signed: Path, key: Path, public: Path, notes: Path, capsys) -> None:
    words = ["serve", str(signed), "--port", "0", "--watch", "--corpus", str(notes), "--key", str(public)]
    assert cli.main(words) == 2
    assert "--key refuses what is refreshed unsigned: add --sign FILE" in capsys.readouterr().err
    assert cli.main(["serve", str(signed), "--port", "0", "--sign", str(key)]) == 2
    assert "--sign goes with --corpus" in capsys.readouterr().err


def test_a_rollback_is_signed_anew_and_passes_what_refuses_older_generations(
    signed: Path, key: Path, public: Path, notes: Path, tmp_path: Path
) -> None:
    memory = Memory(tmp_path / "state.json")
    Refresher(signed, notes, sign=key, say=lambda _: None).refresh()
    load(signed, key=public, memory=memory).close()
    with pytest.raises(RagbenchError):
        Refresher(signed, notes, sign=written(tmp_path / "other", Ed25519PrivateKey.generate())).rollback()
    assert cli.main(["rollback", str(signed), "--sign", str(key)]) == 0
    with load(signed, key=public, memory=Memory(tmp_path / "state.json", at_least=2)) as opened:
        assert opened.serves.number == 2 and opened.document("zebra") is None
    with pytest.raises(BundleError, match="older than --at-least 3"):
        load(signed, key=public, memory=Memory(tmp_path / "new.json", at_least=3))
    assert cli.main(["rollback", str(signed)]) == 0  # unsigned: who asks for a signature refuses it
    with pytest.raises(BundleError, match="has no signature of its present state"):
        load(signed, key=public)
