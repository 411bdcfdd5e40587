"""`conf/` is a plain configuration of Hydra: whoever composes it gets what `ragbench run` uses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.config import available, composition

CONF = locations.configuration()
_PLAIN = """
import json, sys
import hydra, ragbench
from omegaconf import OmegaConf
folder, words = sys.argv[1], json.loads(sys.argv[2])
composed = {}
with hydra.initialize_config_dir(folder, version_base=None):
    for word in words:
        config = hydra.compose("config", [word] if word else [])
        composed[word] = OmegaConf.to_container(config, resolve=True)
print(json.dumps(composed))
"""
_SCRIPT = """
import hydra
import ragbench


@hydra.main(config_path=str(ragbench.configuration()), config_name="config", version_base=None)
def main(config):
    print("depth", config.p6.get("depth"), config.name)


main()
"""


def _python(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _words() -> list[str]:
    """A word for every preset and every option with a name of its own, and none; most live searches need an address."""
    by_group = available.read().by_group
    groups = {group: names for group, names in by_group.items() if group not in ("exp", "live")}
    named = [f"{group}={name}" for group, names in groups.items() for name in names if name not in ("on", "off")]
    return ["", *(f"+exp={name}" for name in by_group["exp"]), *named, "live=ragbench", "p13=on", "documents=on"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["", "+exp=phase3", "+exp=recommended", "calibration=table"], id="some"),
        pytest.param(_words(), id="every file", marks=pytest.mark.slow),
    ],
)
def test_plain_hydra_composes_what_ragbench_uses(words: list[str], tmp_path: Path) -> None:
    """In a process that imports nothing but Hydra and ragbench."""
    assert set(words) <= set(_words())
    composed = json.loads(_python("-c", _PLAIN, str(CONF), json.dumps(words), cwd=tmp_path))
    for word in words:
        ours = json.loads(json.dumps(composition.compose_alone([word] if word else []).config))
        assert composed[word] == ours, word


@pytest.mark.slow
def test_hydra_main_prints_sweeps_and_takes_own_presets(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_SCRIPT)
    own = tmp_path / "presets" / "exp"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(
        '# @package _global_\ndefaults:\n  - override /p6: "on"\n  - _self_\nname: mine\np6:\n  depth: 33\n'
    )
    search_path = f"hydra.searchpath=[file://{tmp_path / 'presets'}]"
    assert "depth 33 mine" in _python("script.py", "+exp=mine", search_path, cwd=tmp_path)
    assert "max_length: 256" in _python("script.py", "--cfg", "job", "p6=on", cwd=tmp_path)
    swept = _python("script.py", "-m", "p6=on", "p6.depth=5,7", cwd=tmp_path)
    assert "depth 5 None" in swept and "depth 7 None" in swept


@pytest.mark.parametrize("word", ["exp=phase3", "+exp=phase3"])
def test_preset_is_taken_with_and_without_plus(word: str) -> None:
    settings = composition.compose([word])
    assert settings.name == "phase3" and settings.config["p7"]["route"] == "always"


def test_compose_leaves_the_state_of_hydra_alone() -> None:
    import hydra
    from hydra.core.global_hydra import GlobalHydra

    with hydra.initialize_config_dir(str(CONF), version_base=None):
        before = GlobalHydra.instance().hydra
        composition.compose(["p6=on"])
        assert GlobalHydra.instance().hydra is before
        assert hydra.compose("config", ["p6=on"]).p6.depth == 10
    assert not GlobalHydra.instance().is_initialized()
