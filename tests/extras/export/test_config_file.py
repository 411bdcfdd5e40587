"""A configuration as a preset and what differs: saved as an experiment it composes to the measured pipeline."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.boundary.permissions import trust
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.extras.export import config_file

ARMS = [
    ["exp=recommended"],
    ["exp=recommended", "p6=on", "fuse.k=30"],
    ["exp=phase4", "p1=off", "p6.depth=3"],
    ["exp=phase2", "graph=on", "index.encoder.name=all-MiniLM-L6-v2", "fuse.weights.lexical=0.4"],
    ["exp=lexical_v3", "chunking=librarian_fixed"],
    ["exp=librarian_hybrid", "recency=on", "recency.now='2026-01-01'"],
]


def search_of(settings: Settings) -> dict:
    return {key: value for key, value in composition.without_measurement(settings.config).items() if key != "name"}


@pytest.mark.slow
@pytest.mark.parametrize("overrides", ARMS, ids=" ".join)
def test_config_file_composes_to_the_measured_pipeline(
    overrides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = composition.compose(overrides)
    text, missing = config_file.render(measured, ["nDCG@10 .609 on 81 topics."])
    assert missing == [] and "# nDCG@10 .609 on 81 topics." in text
    conf = shutil.copytree(locations.configuration(), tmp_path / "conf")
    (name,) = (line.split()[1] for line in text.splitlines() if line.startswith("name: "))
    (arm,) = (line.removeprefix("#   ") for line in text.splitlines() if line.startswith(f"#   {name}: "))
    (tmp_path / "ragbench.yaml").write_text(f"arms:\n  {arm}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with trust():  # one of them names a class
        assert search_of(composition.compose([f"exp={name}"])) == search_of(measured)  # as an arm of a project
    (tmp_path / "ragbench.yaml").unlink()
    assert (
        f"save this file as conf/exp/{name}.yaml" in " ".join(text.replace("\n#", "").split())
        and not (conf / "exp" / f"{name}.yaml").exists()
    )
    (conf / "exp" / f"{name}.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(locations, "configuration", lambda: conf)
    loaded = composition.compose([f"exp={name}"])
    assert repr(loaded.pipeline) == repr(measured.pipeline)
    assert search_of(loaded) == search_of(measured)


def test_config_file_has_only_differences() -> None:
    nearest = config_file._nearest(composition.compose(["exp=phase4", "p1=off", "p6.depth=3"]))
    assert (nearest.preset, nearest.options, nearest.values) == ("phase4", {"p1": "off"}, {"p6.depth": 3})


@pytest.mark.slow
def test_config_file_names_the_nearest_preset() -> None:
    overrides = [f"{key}={value}" for key, value in (("p11", "off"), ("p12", "on"))]
    measured = composition.compose(["exp=phase4", *overrides])
    unnamed = Settings(measured.name, measured.config)
    assert config_file._nearest(unnamed).preset == "phase4"
