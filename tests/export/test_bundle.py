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

import pytest
import yaml

from ragbench.base.errors import BundleError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.export import bundle, measured_arm
from ragbench.export.bundle import _cautions
from ragbench.results import store
from ragbench.results.measurements import Measurements


@pytest.fixture
def write(finished: Measurements, handbook: Benchmark) -> Callable[..., Path]:
    def call(out: Path, folder: Path = finished.folder, benchmark: Benchmark = handbook, **options) -> Path:
        arm = measured_arm.find(folder, "baseline")
        return bundle.write(arm, benchmark, out, evidence=measured_arm.evidence(arm), say=lambda line: None, **options)

    return call


def test_what_it_holds(bundle_of, finished: Measurements, questions: list[str]) -> None:
    folder = bundle_of("phase4")
    record = bundle.read_record(folder)
    assert {path.name for path in folder.iterdir()} == {
        *(bundle.RECORD, bundle.CONFIG, bundle.GOLDEN, bundle.MODIFIED),
        *(bundle.INDEX, bundle.README, bundle.SBOM),
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


def test_what_it_is_made_of(bundle_of) -> None:
    """As CycloneDX has it, with the licences of the models' cards."""
    folder = bundle_of("phase4")
    record, made_of = bundle.read_record(folder), json.loads((folder / bundle.SBOM).read_text())
    assert (made_of["bomFormat"], made_of["specVersion"]) == ("CycloneDX", "1.6")
    models = [part for part in made_of["components"] if part["type"] == "machine-learning-model"]
    assert [(part["name"], part["licenses"][0]["license"]["id"]) for part in models] == [
        ("bge-small-en-v1.5", "MIT"),
        ("ms-marco-MiniLM-L-12-v2", "Apache-2.0"),
    ]
    assert [part["hashes"][0]["content"] for part in models] == [model["digest"] for model in record["models"]]
    files = {part["name"]: part["hashes"][0]["content"] for part in models[0]["components"]}
    assert files == record["models"][0]["weights"]
    packages = {part["name"]: part for part in made_of["components"] if part["type"] == "library"}
    assert packages["numpy"]["purl"] == f"pkg:pypi/numpy@{packages['numpy']['version']}"
    references = [part["bom-ref"] for part in made_of["components"]]
    assert len(references) == len(set(references))
    pytest.importorskip("cyclonedx", reason="install cyclonedx-python-lib[json-validation]")
    from cyclonedx.model.bom import Bom
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(made_of)) is None
    assert {part.name for part in Bom.from_json(made_of).components} == {part["name"] for part in made_of["components"]}
    assert "- encoder bge-small-en-v1.5, licence MIT" in (folder / bundle.README).read_text()


def test_what_a_killed_export_left_behind_is_removed(write: Callable[..., Path], tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left, others = tmp_path / f".new.{ended.pid}", tmp_path / f".new.{os.getppid()}"
    for folder in (left, others):
        folder.mkdir()
    write(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([others.name, "new"])


def test_places_and_secrets_of_this_machine_stay_out(bundle_of, workplace: Path, handbook_folder: Path) -> None:
    folder = bundle_of("baseline")
    text = "".join(path.read_text() for path in folder.iterdir() if path.is_file())
    assert "secret" not in text
    config = yaml.safe_load((folder / bundle.CONFIG).read_text())
    assert set(config["paths"].values()) == {None}
    assert config["tracking"]["uri"] is None
    assert config["data"]["corpus"] == str(handbook_folder / "notes")


def test_a_caution_is_inside(write, tmp_path: Path) -> None:
    out = write(tmp_path / "forced", caution="It was forced.", include_index=False)
    assert json.loads((out / bundle.RECORD).read_text())["cautions"] == ["It was forced."]


def test_rankings_that_depend_on_more_than_the_bundle_are_told(composed) -> None:
    assert _cautions(composed("recency=on").pipeline) == [
        "recency counts ages from the clock, so rankings change with time: set recency.now to check them"
    ]
    assert _cautions(composed("recency=on", "recency.now=2026-01-31").pipeline) == []
    told = _cautions(composed("hyde=on", "hyde.endpoint=http://here", "hyde.model=m").pipeline)
    assert told == ["hyde asks the server http://here, which is not part of the bundle"]


def test_nothing_is_overwritten(write, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(BundleError, match="exists already"):
        write(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="cannot write the bundle"):
        write(tmp_path / "file" / "bundle")


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException) -> None:
    copy, done = shutil.copytree, []

    def full(*arguments, **options):
        if done:
            raise stop
        done.append(copy(*arguments, **options))

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises((BundleError, KeyboardInterrupt)):
        write(tmp_path / "out")
    assert done
    assert list(tmp_path.iterdir()) == []


def test_changed_documents_are_refused(write, handbook: Benchmark, tmp_path: Path) -> None:
    fewer = dataclasses.replace(handbook, documents=handbook.documents[:-1])
    with pytest.raises(ResultsError, match="have changed since the run"):
        write(tmp_path / "out", benchmark=fewer)


def test_another_ranking_than_the_runs_is_refused(write, reseal, finished: Measurements, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    path = store.arm_path(folder, "baseline") / "run.trec"
    first, second, *rest = path.read_text().splitlines()
    a, b = first.split(), second.split()
    a[2], b[2] = b[2], a[2]
    path.write_text("\n".join([" ".join(a), " ".join(b), *rest]) + "\n")
    reseal(folder)
    with pytest.raises(ResultsError, match="has another ranking than in the run"):
        write(tmp_path / "out", folder=folder)
    assert not (tmp_path / "out").exists()
