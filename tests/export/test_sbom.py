"""Parts lists: what they name is what is installed."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from ragbench.commands import cli
from ragbench.export import sbom
from ragbench.results import environment


def test_all_that_an_installation_uses_is_listed_with_its_version() -> None:
    found = sbom.installed()
    assert {name: importlib.metadata.version(name) for name in found} == found
    # Direct, and required by what is required.
    assert {"ragbench", "faiss-cpu", "numpy", "antlr4-python3-runtime", "MarkupSafe"} <= set(found)
    # What only tests need is no part of it.
    assert not {"hypothesis", "selenium", "moto", "mypy"} & set(found)


def test_a_bundle_lists_versions_that_are_installed() -> None:
    packages = environment.describe()["packages"]
    installed = {canonicalize_name(name): version for name, version in sbom.installed().items()}
    assert packages == {name: installed[name] for name in packages}


def test_doctor_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragbench.commands.doctor._parts", lambda overrides: iter(()))
    assert cli.main(["doctor", "--sbom", str(tmp_path / "sbom.json")]) == 0
    made_of = json.loads((tmp_path / "sbom.json").read_text())
    assert made_of["metadata"]["component"]["name"] == "ragbench"
    assert {part["name"]: part["version"] for part in made_of["components"]} == sbom.installed()
    validation = pytest.importorskip("cyclonedx.validation.json", reason="install cyclonedx-python-lib")
    schema = pytest.importorskip("cyclonedx.schema")
    strict = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)
    assert strict.validate_str(json.dumps(made_of)) is None


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--sbom", str(tmp_path / "none" / "sbom.json")]) == 2
    assert "whose folder does not exist: make it first" in capsys.readouterr().err
