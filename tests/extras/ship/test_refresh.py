"""A bundle follows its folder: many small refreshes give what one build from nothing gives."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ragbench.base.types import BundleError, CorpusError
from ragbench.boundary.json import read_checksummed, write_checksummed
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.deployment import load, verify
from ragbench.extras.ship.refresh import Refresher
from tests.answers import as_mapping
from tests.naming import naming
from tests.sealing import rewrite_part

ASKED = ("how do programs prove their identity", "cache", "zebra crossing", "why are requests slow")


@pytest.fixture
def notes(handbook_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))


@pytest.fixture
def make(copied: Path, notes: Path) -> Iterator[Callable[[], Refresher]]:
    yield lambda folder=copied: Refresher(folder, notes)


def answers(folder: Path) -> list[dict]:
    """Every hit of every question, without the times of stages."""
    with load(folder) as loaded:
        return [as_mapping(loaded.answer(question, 20, explain=True))["hits"] for question in ASKED]


def test_refresh_without_changes_makes_no_generation(make, copied: Path) -> None:
    before = answers(copied)
    refreshed = make().refresh()
    assert (refreshed.anything, refreshed.generation.number) == (False, 0)
    assert not (copied / generation.NAME).exists()
    assert answers(copied) == before


@pytest.mark.slow
def test_refresh_without_changes_deletes_abandoned_artefacts(make, copied: Path, notes: Path) -> None:
    for text in ("one", "two"):
        (notes / "zebra.md").write_text(f"# Zebra\n\n{text}\n", encoding="utf-8")
        make().refresh()
    left = copied / bundle.INDEX / "chunks" / "0123456789abcdef"
    left.mkdir()
    assert not make().refresh().anything
    assert not left.exists()
    assert answers(copied)


def test_changed_and_sealed_tables_are_one_sentence(make, copied: Path, notes: Path) -> None:
    (file,) = copied.glob(f"{bundle.INDEX}/chunks/*/blocks.arrow")
    for text in ("one", "two"):
        (notes / "zebra.md").write_text(f"# Zebra\n\n{text}\n", encoding="utf-8")
        if text == "one":
            make().refresh()
    rewrite_part(file, file.read_bytes()[:-20])
    with pytest.raises(BundleError, check=naming("ArrowInvalid")):
        make().refresh()


def test_changed_and_sealed_vectors_are_one_sentence(make, copied: Path, notes: Path) -> None:
    (vectors,) = copied.glob(f"{bundle.INDEX}/dense/*/vectors.npy")
    rewrite_part(vectors, vectors.read_bytes().replace(b"}", b"{", 1))
    (notes / "zebra.md").write_text("# Zebra\n", encoding="utf-8")
    with pytest.raises(BundleError, match=r"\(\w+Error\)"):
        make().refresh()


def test_refresh_takes_in_new_changed_moved_and_deleted_files(make, copied: Path, notes: Path) -> None:
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing is painted on the road.\n", encoding="utf-8")
    (notes / "caching.md").write_text("# Caching\n\nThe cache now lives for nine hours.\n", encoding="utf-8")
    (notes / "guide").mkdir()
    (notes / "team.md").rename(notes / "guide" / "team.md")
    (notes / "slow-requests.md").unlink()
    refreshed = make().refresh()
    assert refreshed.added == ("guide/team", "zebra")
    assert refreshed.changed == ("caching",)
    assert refreshed.deleted == ("slow-requests", "team")
    with load(copied) as loaded:
        assert loaded.search("zebra crossing", 1)[0].docno == "zebra"
        assert "nine hours" in loaded.document("caching").text
        assert loaded.document("slow-requests") is None
        assert loaded.serves.number == 1


def test_refresh_embeds_only_new_chunks(make, notes: Path, monkeypatch) -> None:
    refresher = make()
    encoder = refresher._models.encoder(refresher._settings.index.encoder).wrapped
    embedded: list[str] = []
    encode = type(encoder).encode_passages

    def counting(self, texts, progress=None):
        embedded.extend(texts)
        return encode(self, texts, progress)

    monkeypatch.setattr(type(encoder), "encode_passages", counting)
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing is painted on the road.\n", encoding="utf-8")
    refresher.refresh()
    assert len(embedded) == 1
    assert "zebra" in embedded[0]


def test_drift_says_which_golden_answers_changed_and_why(make, copied: Path, notes: Path) -> None:
    (notes / "authentication.md").unlink()
    (notes / "caching.md").write_text("# Cooking\n\nBoil the potatoes.\n", encoding="utf-8")
    drift = make().refresh().generation.drift
    changes = {change.query: change for change in drift.changes}
    fates = {name.partition("#")[0]: fate for change in changes.values() for name, fate in change.lost.items()}
    assert fates["authentication"] == "deleted"
    assert "how do programs prove their identity" in changes
    assert 0 < drift.agreement < 1
    with load(copied) as loaded:
        n_before = sum(1 for _ in loaded.index.chunks.chunk_ids)
    assert 0 < drift.chunks_changed < 1
    assert n_before


def test_refresh_keeps_the_evidence_and_verify_passes(make, copied: Path, notes: Path) -> None:
    evidence = {name: (copied / name).read_bytes() for name in (bundle.RECORD, bundle.GOLDEN, bundle.CONFIG)}
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    make().refresh()
    assert {name: (copied / name).read_bytes() for name in evidence} == evidence
    checks = {check.part.split(" ")[0]: check for check in verify(copied, corpus=notes, latency=False)}
    assert {check.outcome for part, check in checks.items() if part != "latency"} == {"passes"}
    assert checks["drift"].message.startswith("generation 1: ")
    refreshed = "20 documents, of generation 1: 1 added, 0 changed, 0 deleted since the measurement"
    assert checks["documents"].message == refreshed


@pytest.mark.parametrize(
    "broken", [b"", b"\xff\xfe\x00broken", b"# A\n\n```python\nprint(1)\n", b"---\ntitle: [\n---\nx"]
)
def test_broken_files_keep_their_earlier_version(make, copied: Path, notes: Path, broken: bytes) -> None:
    with load(copied) as loaded:
        before = loaded.document("caching")
    (notes / "caching.md").write_bytes(broken)
    refresher = make()
    kept = refresher.refresh().generation.kept
    assert len(kept) == 1
    assert kept[0].startswith("caching.md: ")
    with load(copied) as loaded:
        assert loaded.document("caching") == before
    (notes / "caching.md").write_text("# Caching\n\nMended.\n", encoding="utf-8")
    mended = refresher.refresh()
    assert (mended.changed, mended.generation.kept) == (("caching",), ())


@pytest.mark.slow
def test_refresh_opens_a_bundle_that_replaces_another(make, copied: Path, notes: Path, tmp_path: Path) -> None:
    following = Path(shutil.copytree(copied, tmp_path / "following"))
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    refresher = make()
    refresher.refresh()
    copied.rename(tmp_path / "before")
    following.rename(copied)
    assert refresher.refresh().added == ("zebra",)
    with load(copied) as loaded:
        assert loaded.search("zebra crossing", 1)[0].docno == "zebra"


def test_second_refresh_at_once_finds_nothing_new(make, copied: Path, notes: Path, monkeypatch) -> None:
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    first, second = make(), make()
    build = first._build
    with ThreadPoolExecutor(1) as pool:
        began = []

        def building(*given):
            began.append(pool.submit(second.refresh))
            return build(*given)

        monkeypatch.setattr(first, "_build", building)
        assert first.refresh().added == ("zebra",)
        refreshed = began[0].result(60)
    assert (refreshed.anything, refreshed.generation.number) == (False, 1)


def test_generation_is_not_given_to_another_bundle(make, copied: Path, notes: Path, monkeypatch) -> None:
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    refresher = make()
    build = refresher._build

    def exchanged(*given):
        made = build(*given)
        text = (copied / bundle.RECORD).read_bytes()
        (copied / bundle.RECORD).unlink()
        (copied / "other").write_bytes(text)
        (copied / "other").rename(copied / bundle.RECORD)
        return made

    monkeypatch.setattr(refresher, "_build", exchanged)
    with pytest.raises(BundleError, check=naming("another bundle")):
        refresher.refresh()
    assert not (copied / generation.NAME).exists()


def test_refresh_refuses_an_emptied_folder(make, copied: Path, notes: Path) -> None:
    before = answers(copied)
    for path in sorted(notes.rglob("*.md"))[1:]:
        path.unlink()
    with pytest.raises(CorpusError, check=naming("19 are served")):
        make().refresh()
    shutil.rmtree(notes)
    with pytest.raises(CorpusError):
        make().refresh()
    assert answers(copied) == before


@pytest.mark.slow
def test_refresh_deletes_artefacts_that_nothing_uses(make, copied: Path, notes: Path) -> None:
    refresher = make()
    for number in range(4):
        (notes / "zebra.md").write_text(f"# Zebra\n\nCrossing {number}.\n", encoding="utf-8")
        refresher.refresh()
    # what was measured, the generation before and the one that answers
    assert len(list((copied / bundle.INDEX / "chunks").glob("*/manifest.json"))) == 3
    assert answers(copied)


@pytest.mark.slow
def test_refresh_reports_other_numerics(copied: Path, notes: Path, caplog) -> None:
    record = read_checksummed(copied / bundle.RECORD)
    here = record["models"][0]["numerics"]
    record["models"][0]["numerics"] = "int8 elsewhere"
    write_checksummed(copied / bundle.RECORD, record)
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    Refresher(copied, notes).refresh()
    there = "than at the export (int8 elsewhere)"
    assert f"bge-small-en-v1.5 rounds differently here ({here}) {there}" in " ".join(caplog.messages)
    checks = {check.part: check for check in verify(copied, corpus=notes, latency=False)}
    assert checks["model bge-small-en-v1.5"].message.endswith(f"were int8 elsewhere at the export and are {here} here")
    assert checks["rankings"].outcome == "passes"


def test_damaged_generation_is_refused(make, copied: Path, notes: Path) -> None:
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    make().refresh()
    path = copied / generation.NAME
    path.write_text(path.read_text().replace('"number": 1', '"number": 2'))
    with pytest.raises(BundleError, check=naming("generation")):
        load(copied)


NAMES = st.sampled_from(["caching", "team", "zebra", "new/heron"])
TEXTS = st.sampled_from(
    [
        *("A zebra crossing.", "The cache of [[zebra]] is slow.", "Programs prove who they are."),
        *("deleted", "moved", b"", b"# Half \xff"),
    ]
)


@pytest.mark.slow
@given(edits=st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=4))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_small_refreshes_answer_as_one_build(
    bundle_of, handbook_folder: Path, tmp_path_factory: pytest.TempPathFactory, edits: list
) -> None:
    folder = tmp_path_factory.mktemp("many")
    notes = Path(shutil.copytree(handbook_folder / "notes", folder / "notes"))
    small, whole = (Path(shutil.copytree(bundle_of("baseline"), folder / name)) for name in ("small", "whole"))
    refresher = Refresher(small, notes)
    halves = [(name, "Mended.") for name, text in edits if isinstance(text, bytes)]
    for name, text in [*edits, *halves]:
        path = notes / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        if text == "deleted":
            path.unlink(missing_ok=True)
        elif text == "moved" and path.exists():
            path.rename(notes / f"moved-{path.name}")
        else:
            path.write_bytes(text if isinstance(text, bytes) else f"# {name}\n\n{text}\n".encode())
            os.utime(path, (1_700_000_000, 1_700_000_000))
        refresher.refresh()
    rebuilt = Refresher(whole, notes)
    rebuilt._keep_vectors = lambda last: None  # so that every chunk is embedded
    rebuilt.refresh()
    assert answers(small) == answers(whole)
    if all((path / generation.NAME).exists() for path in (small, whole)):  # edits may undo each other
        one, other = (json.loads((path / generation.NAME).read_text()) for path in (small, whole))
        assert one["artefacts"] == other["artefacts"]
        assert one["golden"] == other["golden"]


def test_refresh_needs_no_cache(make, copied: Path, notes: Path) -> None:
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    make().refresh()
    first = answers(copied)
    shutil.rmtree(copied / "cache")
    (notes / "lion.md").write_text("# Lion\n\nA lion.\n", encoding="utf-8")
    assert make().refresh().added == ("lion",)
    (notes / "lion.md").unlink()
    make().refresh()
    assert answers(copied) == first
    outcomes = {check.part: check.outcome for check in verify(copied, latency=False)}
    assert (outcomes["index"], outcomes["rankings"]) == ("passes", "passes")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["publish", "_prune"])
def test_killed_refresh_serves_one_whole_generation(
    make, copied: Path, notes: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Before and after the moment when the new generation answers."""
    (notes / "zebra.md").write_text("# Zebra\n\none\n", encoding="utf-8")
    make().refresh()
    first = answers(copied)
    (notes / "zebra.md").write_text("# Zebra\n\ntwo\n", encoding="utf-8")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(generation if moment == "publish" else Refresher, moment, _killed)
        make().refresh()
    served = load(copied).serves.number
    assert served == (1 if moment == "publish" else 2)
    assert (answers(copied) == first) == (moment == "publish")
    assert make().refresh().generation.number == 2
    assert answers(copied) != first
    assert {check.outcome for check in verify(copied, latency=False) if check.part == "rankings"} == {"passes"}


def _killed(*given: object) -> None:
    raise KeyboardInterrupt
