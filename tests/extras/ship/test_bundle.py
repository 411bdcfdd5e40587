"""What a bundle holds, and that there is never half a bundle."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ragbench.base.files import draft_of, sha256
from ragbench.base.types import BundleError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.export import measured_arm
from ragbench.extras.ship import bundle
from ragbench.extras.ship.bundle import _cautions
from ragbench.index.artefacts import MANIFEST, manifest_entry
from ragbench.models import bundled
from ragbench.results import store
from ragbench.results.measurements import Measurements
from tests.naming import naming


@pytest.fixture
def write(finished: Measurements, handbook: Benchmark) -> Callable[..., Path]:
    def call(
        out: Path,
        folder: Path = finished.folder,
        benchmark: Benchmark = handbook,
        caution: str | None = None,
        **options: Any,
    ) -> Path:
        arm = dataclasses.replace(measured_arm.find(folder, "baseline"), open_benchmark=benchmark)
        evidence = dataclasses.replace(measured_arm.evidence(arm), caution=caution)
        return bundle.write(arm, out, evidence=evidence, **options)

    return call


def test_bundle_holds_files_models_and_measurements(bundle_of, finished: Measurements, questions: list[str]) -> None:
    folder = bundle_of("phase4")
    record = bundle.read_record(folder)
    assert {path.name for path in folder.iterdir()} == {
        *(bundle.RECORD, bundle.CONFIG, bundle.GOLDEN, bundle.MODIFIED),
        *(bundle.INDEX, bundle.README),
    }
    assert [(model["kind"], model["name"]) for model in record["models"]] == [
        ("encoder", "bge-small-en-v1.5"),
        ("cross-encoder", "ms-marco-MiniLM-L-12-v2"),
    ]
    assert all(len(model["digest"]) == 64 and model["weights"] for model in record["models"])
    assert {"chunks", "dense", "lexical", "code", "encoder"} <= set(record["artefacts"])
    assert record["quality"]["nDCG@10"] == pytest.approx(finished.values("phase4").mean(), abs=1e-6)
    assert record["latency_ms"]["p95"] > 0
    assert record["evidence"]["baseline"] == "baseline"
    assert record["environment"]["export"]["packages"]
    assert record["golden"] == len(bundle.read_golden(folder)) == len(questions)


def test_record_has_the_digest_of_every_file(bundle_of) -> None:
    """Whoever signs `bundle.json` signs the bundle: it has the digests of manifests, which have those of the index."""
    folder = bundle_of("phase4")
    digests = bundle.read_record(folder)["files"]
    covered = dict(digests)
    for name in [name for name in digests if name.endswith(f"/{MANIFEST}")]:
        manifest = json.loads((folder / name).read_text())
        covered |= {(Path(name).parent / inner).as_posix(): entry for inner, entry in manifest["files"].items()}
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert set(covered) == set(paths) - {bundle.RECORD, bundle.README}
    for name, digest in covered.items():
        assert digest == (sha256(paths[name]) if name in digests else manifest_entry(paths[name])), name
    assert "- encoder bge-small-en-v1.5, licence MIT" in (folder / bundle.README).read_text()


def test_drafts_of_killed_exports_are_removed(write: Callable[..., Path], tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    draft, own = draft_of(tmp_path / "new").name, f".{os.getpid()}-"
    left, others = draft.replace(own, f".{ended.pid}-"), draft.replace(own, f".{os.getppid()}-")
    for name in (left, others, f".new.{ended.pid}"):  # the third may be a folder of the user
        (tmp_path / name).mkdir()
    (tmp_path / f"{left}-journal").touch()  # of a SQLite export
    write(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([others, f".new.{ended.pid}", "new"])


def test_paths_and_secrets_of_the_machine_stay_out(bundle_of, workplace: Path, handbook_folder: Path) -> None:
    folder = bundle_of("baseline")
    text = "".join(path.read_text() for path in folder.iterdir() if path.is_file())
    assert "tracking.example.org" not in text
    config = yaml.safe_load((folder / bundle.CONFIG).read_text())
    assert set(config["paths"].values()) == {None}
    assert config["tracking"]["uri"] is None
    assert config["data"]["corpus"] == str(handbook_folder / "notes")


def test_readme_has_every_caution_of_the_record(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> bundled.Bundled:
        return dataclasses.replace(bundled.find(name), backend="of a wheel that cannot be carried")

    monkeypatch.setattr(bundle, "bundled", SimpleNamespace(**{**vars(bundled), "find": find}))
    out = write(tmp_path / "out", caution="It was forced.", self_contained=True)
    cautions = json.loads((out / bundle.RECORD).read_text())["cautions"]
    assert ["It was forced." in cautions, any("is not carried" in caution for caution in cautions)] == [True, True]
    assert [line[2:] for line in (out / bundle.README).read_text().splitlines() if line[2:] in cautions] == cautions


def test_cautions_name_what_is_outside_the_bundle(composed) -> None:
    assert _cautions(composed("recency=on").pipeline) == [
        "recency counts ages from the clock, so rankings change with time: set recency.now to check them"
    ]
    assert _cautions(composed("recency=on", "recency.now=2026-01-31").pipeline) == []
    cautions = _cautions(composed("hyde=on", "hyde.endpoint=http://here", "hyde.model=m").pipeline)
    assert cautions == ["hyde asks the server http://here, which is not part of the bundle"]


def test_write_overwrites_nothing(write, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(BundleError, check=naming("exists already")):
        write(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError):
        write(tmp_path / "file" / "bundle")


FULL = "No space left on device"


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, FULL), shutil.Error([("a", "b", FULL)]), KeyboardInterrupt()])
def test_failed_write_leaves_nothing(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    copy, done = shutil.copytree, []

    def full(*arguments, **options):
        if done:
            raise stop
        done.append(copy(*arguments, **options))

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises((BundleError, KeyboardInterrupt)) as raised:
        write(tmp_path / "out")
    assert done and (not str(raised.value) or "out (no space left on device): name another" in str(raised.value))
    assert list(tmp_path.iterdir()) == []


def test_changed_documents_are_refused(write, handbook: Benchmark, tmp_path: Path) -> None:
    fewer = dataclasses.replace(handbook, documents=handbook.documents[:-1])
    with pytest.raises(ResultsError, check=naming("changed")):
        write(tmp_path / "out", benchmark=fewer)


def test_rankings_unlike_the_run_are_refused(write, reseal, finished: Measurements, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    path = store.arm_path(folder, "baseline") / "run.trec"
    first, second, *rest = path.read_text().splitlines()
    a, b = first.split(), second.split()
    a[2], b[2] = b[2], a[2]
    path.write_text("\n".join([" ".join(a), " ".join(b), *rest]) + "\n")
    reseal(folder)
    with pytest.raises(ResultsError, check=naming("ranking")):
        write(tmp_path / "out", folder=folder)
    assert not (tmp_path / "out").exists()
