"""The catalogue against the configuration as Hydra and the dataclasses see it."""

import dataclasses
import importlib
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragbench.base import locations
from ragbench.base.errors import ConfigError
from ragbench.config import catalogue, composition
from ragbench.config.catalogue.fields import _StageEntry as StageEntry
from ragbench.config.catalogue.fields import docstring, fields_of
from ragbench.config.catalogue.nodes import Parameter

FOUND = catalogue.read()
CONF = locations.configuration()
MADE_BY_CODE = {
    "Fuse": {"sources"},
    "Calibrate": {"noise"},
    "CalibrateByCurve": {"noise"},
    "CalibrateByEvidence": {"noise"},
    "LivePython": {"number"},
}
"""Fields by class that the pipeline or a script gives."""


def test_every_option_and_experiment_is_in_it() -> None:
    groups = {group.name: {option.name for option in group.options} for group in FOUND.groups}
    groups |= {"exp": {each.name for each in FOUND.experiments}, "tune": set(FOUND.choices["tune"])}
    for path in CONF.glob("*/*.yaml"):
        assert path.stem in groups[path.parent.name], path
    for path in CONF.glob("*.yaml"):
        if path.stem != "config":
            keys = set(yaml.safe_load(path.read_text(encoding="utf-8")))
            assert (
                all(groups[key] == {"on", "off"} for key in keys)
                if path.stem == "switches"
                else (keys <= groups[path.stem])
            )
    assert len(list(CONF.rglob("*.yaml"))) <= 75, "small options go together: switches.yaml, live.yaml, tune.yaml"


def test_everything_is_described() -> None:
    for experiment in FOUND.experiments:
        assert experiment.description, experiment.name
    for group in FOUND.groups:
        assert all(option.description for option in group.options), group.name


CLASSES = sorted({target for group in FOUND.groups for option in group.options for target in option.targets})


def test_fields_are_read_as_python_has_them() -> None:
    """Names, defaults and docstrings from the source are those of the class or loader itself."""
    for target in sorted({*CLASSES, *FOUND.targets, *catalogue.SPECS.values(), *catalogue.CLASSES.values()}):
        compare(target)


def compare(target: str) -> None:
    module, _, name = target.rpartition(".")
    made = getattr(importlib.import_module(module), name)
    if isinstance(made, type):
        given = {each.name: _default(each) for each in dataclasses.fields(made) if each.init}
        assert docstring(target).split() == (made.__doc__ or "").split(), target
    else:
        parameters = inspect.signature(made).parameters.items()
        given = {
            key: None if each.default is each.empty else each.default for key, each in parameters if key != "topics"
        }
    read = {key: field.value for key, field in fields_of(target).items()}
    assert list(read) == [key for key in given if key not in MADE_BY_CODE.get(name, ())], target
    assert read == {key: _plain(given[key]) for key in read}, target


def _default(each: dataclasses.Field[Any]) -> Any:
    if each.default_factory is not dataclasses.MISSING:
        return each.default_factory()
    return None if each.default is dataclasses.MISSING else each.default


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value


NAMED_BY_THE_USER = {
    "live=http": "live.url='http://localhost/{query}'",
    "live=opensearch": "live.url=http://localhost/docs/_search",
    "live=meilisearch": "live.url=http://localhost/indexes/docs/search",
    "live=command": "live.program=[search]",
    "live=mcp": "live.program=[server]",
    "live=sqlite": "live.engine=notes.sqlite",
    "live=postgres": "live.engine=postgres://localhost/docs",
    "live=engine": "live.engine=opensearch://localhost:9200/docs",
    "live=pyserini": "live.index=cacm",
    "live=trec": "live.path=run.trec",
    "live=python": "live.retriever=mine",
}


def test_defaults_are_those_of_the_composed_configuration() -> None:
    for name, option in [(group.name, option) for group in FOUND.groups for option in group.options]:
        named = NAMED_BY_THE_USER.get(f"{name}={option.name}", "")
        settings = composition.compose([f"{name}={option.name}", *([named] if named else [])])
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


@pytest.mark.slow
def test_an_experiment_is_its_overrides() -> None:
    for experiment in FOUND.experiments:
        named = composition.compose([f"+exp={experiment.name}"])
        spelled = composition.compose([*experiment.overrides, f"name={experiment.name}"])
        assert named.config == spelled.config


def test_sections_with_a_class() -> None:
    for section, target in catalogue.SPECS.items():
        fields = set(fields_of(target))
        keys = {each.key.removeprefix(f"{section}.") for each in FOUND.settings if each.key.startswith(f"{section}.")}
        assert keys in (set(), fields)
        assert docstring(target)


def test_a_key_says_what_it_means_where_its_class_stands(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('defaults:\n  - p6: "off"\n', encoding="utf-8")
    (tmp_path / "p6").mkdir()
    (tmp_path / "p6" / "on.yaml").write_text(
        "# Reads.\n_target_: ragbench.search.stages.rerank.Rerank\nmax_length: 128   # fewer\ndepth: 5\n",
        encoding="utf-8",
    )
    (group,) = catalogue.read(tmp_path).switches
    found = {each.key: (each.default, each.comment) for each in group.parameters}
    of_class = {key: field.comment for key, field in fields_of("ragbench.search.stages.rerank.Rerank").items()}
    assert found["p6.max_length"] == ("128", "fewer")
    assert found["p6.depth"] == ("5", of_class["depth"])
    assert found["p6.tail"] == ("keep", of_class["tail"]) and of_class["tail"].startswith(
        "keep: results beyond depth follow"
    )
    assert [option.name for option in group.options] == ["off", "on"]


def test_a_parameter_is_read_with_its_comment(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "defaults:\n  - p1: \"off\"\n  - _self_\nk: 60   # a # b\nlist:\n  - 1\n  - 2\npaths:\n  cache: 'x # y'  # z\n"
    )
    (tmp_path / "p1").mkdir()
    (tmp_path / "p1" / "on.yaml").write_text("# First\n# and second.\n_target_: a.B\nvalues: [1,\n  2]  # two\n")
    found = catalogue.read(tmp_path)
    written = ("k", "list", "paths.cache")
    assert {(each.key, each.default, each.comment) for each in found.settings if each.key in written} == {
        ("k", "60", "a # b"),
        ("list", "[1, 2]", ""),
        ("paths.cache", "'x # y'", "z"),
    }
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
    assert Parameter("x", default, "").short == "[0, 1, ... 99] (100 values)"
    assert Parameter("x", "[1, 2]", "").short == "[1, 2]"


def test_reading_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from ragbench.commands import cli\n"
        "assert cli.main(['list', 'switches']) == 0\n"
        "heavy = {'numpy', 'pandas', 'hydra', 'mlflow', 'faiss', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_stage_can_name_its_switch_and_its_place_in_the_class(tmp_path: Path, monkeypatch) -> None:
    def catalogue_with(**changed: str) -> catalogue.Catalogue:
        said = {"switch": "again", "target": "ragbench.search.stages.cut.Cut", "side": "after", "neighbour": "fuse"}
        entry = StageEntry(**{**said, "description": "Keep the first hits.", **changed})
        monkeypatch.setattr("ragbench.config.catalogue.stage_entries", lambda: (entry,))
        folder = tmp_path / f"conf-{len(changed)}"
        shutil.copytree(locations.configuration(), folder)
        return catalogue.read(folder)

    found = catalogue_with()
    assert found.choices["again"] == ("off", "on") and found.defaults["again"] == "off"
    assert found.option("again", "on").description == "Keep the first hits."
    assert [each.key for each in found.option("again", "on").parameters] == ["again.top_n"]
    order = next(each for each in found.settings if each.key == "order").default
    assert "fuse, again, merge" in order
    with pytest.raises(ConfigError, match="'fuze' is not an entry of order; did you mean fuse"):
        _ = catalogue_with(neighbour="fuze").base
