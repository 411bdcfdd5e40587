"""The catalogue against the configuration as Hydra and the dataclasses see it."""

import dataclasses
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ragbench.base import locations
from ragbench.base.build import REPLACES
from ragbench.base.errors import ConfigError
from ragbench.commands import completer as completion
from ragbench.config import catalogue, composition

FOUND = catalogue.read()
CONF = locations.configuration()
KEPT_IN_CODE = {"ExpandQueries": {"prompt"}, "Fuse": {"sources"}}
"""Fields by class that no file gives: too long for one (`+expansion.prompt=...` sets it), or known to the pipeline."""


def test_every_option_and_experiment_is_in_it() -> None:
    folders = {path.parent.name for path in CONF.glob("*/*.yaml")}
    assert {group.name for group in FOUND.groups} == folders - {"exp", "tune"}
    for group in FOUND.groups:
        assert {option.name for option in group.options} == {path.stem for path in (CONF / group.name).glob("*.yaml")}
    assert {each.name for each in FOUND.experiments} == {path.stem for path in (CONF / "exp").glob("*.yaml")}
    assert {each.name for each in FOUND.search_spaces} == {path.stem for path in (CONF / "tune").glob("*.yaml")}


def test_everything_is_described() -> None:
    for experiment in FOUND.experiments:
        assert experiment.description, experiment.name
    for group in FOUND.groups:
        assert all(option.description for option in group.options), group.name


def nodes(value):
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes(inner)


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONF)))
def test_a_file_that_names_a_class_gives_every_field(path: Path) -> None:
    """A key that is absent cannot be overridden, and would be missing from the reference."""
    for node in nodes(yaml.safe_load(path.read_text(encoding="utf-8"))):
        if "_target_" in node:
            module, _, name = node["_target_"].rpartition(".")
            cls = getattr(importlib.import_module(module), name)
            fields = {field.name for field in dataclasses.fields(cls) if field.init}
            given = set(node) - {"_target_", REPLACES}
            assert fields == given | KEPT_IN_CODE.get(name, set())
            assert catalogue.docstring(node["_target_"]).split() == (cls.__doc__ or "").split()


NAMED_BY_THE_USER = {
    "live=http": "live.url='http://localhost/{query}'",
    "live=opensearch": "live.url=http://localhost/docs/_search",
    "live=meilisearch": "live.url=http://localhost/indexes/docs/search",
    "live=command": "live.program=[search]",
    "live=mcp": "live.program=[server]",
    "live=sqlite": "live.engine=notes.sqlite",
}


@pytest.mark.parametrize("group", FOUND.groups, ids=lambda group: group.name)
def test_defaults_are_those_of_the_composed_configuration(group: catalogue.Group) -> None:
    for option in group.options:
        named = NAMED_BY_THE_USER.get(f"{group.name}={option.name}", "")
        settings = composition.compose([f"{group.name}={option.name}", *([named] if named else [])])
        for parameter in option.parameters:
            if named.startswith(f"{parameter.key}="):
                continue
            value = settings.config
            for part in parameter.key.split("."):
                value = value[part]
            if "${" not in parameter.default:
                assert value == yaml.safe_load(parameter.default), parameter.key


def test_settings_are_those_of_the_composed_configuration() -> None:
    settings = composition.compose([])
    for parameter in FOUND.settings:
        if parameter.key == "tune.space":  # filled from tune/
            continue
        value = settings.config
        for part in parameter.key.split("."):
            value = value[part]
        assert value == yaml.safe_load(parameter.default), parameter.key


def test_an_experiment_is_its_overrides() -> None:
    for experiment in FOUND.experiments:
        named = composition.compose([f"+exp={experiment.name}"])
        spelled = composition.compose([*experiment.overrides, f"name={experiment.name}"])
        assert named.config == spelled.config


def test_sections_with_a_class() -> None:
    for section, target in catalogue.SPECS.items():
        module, _, name = target.rpartition(".")
        fields = {field.name for field in dataclasses.fields(getattr(importlib.import_module(module), name))}
        keys = {each.key.removeprefix(f"{section}.") for each in FOUND.settings if each.key.startswith(f"{section}.")}
        assert keys <= fields
        assert catalogue.docstring(target)


def test_a_parameter_is_read_with_its_comment(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "defaults:\n  - p1: \"off\"\n  - _self_\nk: 60   # a # b\nlist:\n  - 1\n  - 2\nnested:\n  key: 'x # y'\n"
    )
    (tmp_path / "p1").mkdir()
    (tmp_path / "p1" / "off.yaml").write_text("# Off.\n{}\n")
    (tmp_path / "p1" / "on.yaml").write_text("# First\n# and second.\n_target_: a.B\nvalues: [1,\n  2]  # two\n")
    found = catalogue.read(tmp_path)
    assert [(each.key, each.default, each.comment) for each in found.settings] == [
        ("k", "60", "a # b"),
        ("list", "[1, 2]", ""),
        ("nested.key", "'x # y'", ""),
    ]
    (group,) = found.switches
    assert group.description == "First and second."
    assert [(each.key, each.default, each.comment) for each in group.parameters] == [("p1.values", "[1, 2]", "two")]


def test_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no config\.yaml"):
        catalogue.read(tmp_path)
    (tmp_path / "config.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match="is not YAML"):
        _ = catalogue.read(tmp_path).settings


def test_a_long_list_is_shortened() -> None:
    default = f"[{', '.join(map(str, range(100)))}]"
    assert catalogue.Parameter("x", default, "").short == "[0, 1, ... 99] (100 values)"
    assert catalogue.Parameter("x", "[1, 2]", "").short == "[1, 2]"


def test_reading_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from ragbench.commands import cli\n"
        "assert cli.main(['list', 'switches']) == 0\n"
        "heavy = {'numpy', 'pandas', 'hydra', 'mlflow', 'faiss', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("begun", "completed"),
    [
        ("+ex", ["+exp="]),
        ("exp=phase1,phase", [f"exp=phase1,phase{n}" for n in (2, 3, 4)]),
        ("+exp=baseline,phase", [f"+exp=baseline,phase{n}" for n in (1, 2, 3, 4)]),
        ("+exp=phase1,phase1", []),
        ("p6=", ["p6=off", "p6=on"]),
        ("p6=on,", ["p6=on,off"]),
        ("p6.b", ["p6.blend="]),
        ("p6.blend=", ["p6.blend=true", "p6.blend=false"]),
        ("fuse.k=", ["fuse.k=60.0"]),
        ("data=v", ["data=vault"]),
        ("nothing.like.it=", []),
    ],
)
def test_overrides_are_completed(begun: str, completed: list[str]) -> None:
    assert completion.overrides(begun, FOUND) == completed


def test_without_a_beginning_only_switches_are_offered() -> None:
    offered = completion.overrides("", FOUND)
    assert {"exp=", "p6=", "data="} <= set(offered)
    assert not any("." in word for word in offered)
