"""What can be configured: options are described, their keys are those of their classes."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from ragbench.base import locations, options
from ragbench.base.options import OFF, ON, option
from ragbench.base.types import ConfigError
from ragbench.config import available, composition, store
from ragbench.config.available import Parameter
from ragbench.config.comments import comment_above, comments_of
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.rerank import Rerank
from tests.naming import naming

KNOWN = available.read()
CONF = locations.configuration()
NAMED_BY_THE_USER = {
    "live=http": "live.url='http://localhost/{query}'",
    "live=opensearch": "live.url=http://localhost/docs/_search",
    "live=meilisearch": "live.url=http://localhost/indexes/docs/search",
    "live=command": "live.program=[search]",
    "live=mcp": "live.program=[server]",
    "live=engine": "live.engine=opensearch://localhost:9200/docs",
    "live=trec": "live.path=run.trec",
    "live=python": "live.retriever=mine",
}


def test_options_include_every_file() -> None:
    for path in CONF.glob("*/*.yaml"):
        assert path.stem in KNOWN.by_group[path.parent.name], path


def test_options_and_presets_are_described() -> None:
    for preset in KNOWN.presets:
        assert preset.description, preset.name
    for group in KNOWN.groups:
        assert all(choice.description for choice in group.options), group.name


def test_option_keys_are_the_fields_of_its_class() -> None:
    known = available.read()  # other tests declare options, too
    for choice in options.options():
        if not isinstance(choice.target, type) or choice.group == store.CLASS:
            continue
        fields = {
            field.name for field in dataclasses.fields(choice.target) if field.init and "made by" not in field.metadata
        }
        content = known.option(choice.group, choice.name).content
        keys = set(content[choice.inside] if choice.inside else content) - {"_target_", "loader"}
        assert keys == fields, choice.key


@pytest.mark.slow
def test_options_all_compose_with_their_defaults() -> None:
    for name, choice in [(group.name, choice) for group in KNOWN.groups for choice in group.options]:
        named = NAMED_BY_THE_USER.get(f"{name}={choice.name}", "")
        settings = composition.compose([f"{name}={choice.name}", *([named] if named else [])])
        assert len(settings.pipeline) >= 3 or settings.pipeline.live, f"{name}={choice.name}"
        for parameter in choice.parameters:
            if named.startswith(f"{parameter.key}=") or "${" in parameter.default:
                continue
            value = settings.config
            for part in parameter.key.split("."):
                value = value[part]
            assert value == yaml.safe_load(parameter.default), parameter.key


@pytest.mark.slow
def test_spaces_all_compose() -> None:
    for space in KNOWN.by_group["tune"]:
        assert composition.compose([f"tune=[{space}]"]).pipeline, space


@pytest.mark.slow
def test_preset_is_its_overrides() -> None:
    for preset in KNOWN.presets:
        named = composition.compose([f"+exp={preset.name}"])
        spelled = composition.compose([*preset.overrides, f"name={preset.name}"])
        assert named.config == spelled.config, preset.name


def test_comments_are_those_beside_fields() -> None:
    comments = comments_of(Rerank)
    assert comments["tail"].startswith("keep: results beyond depth follow")
    (parameter,) = [parameter for parameter in KNOWN.parameters if parameter.key == "p6.tail"]
    assert (parameter.default, parameter.comment) == ("keep", comments["tail"])


def test_file_comment_leaves_out_package_and_commands(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("# @package _global_\n# First\n# and second.\n# python -m ragbench run\nk: 1  # no\n")
    assert comment_above(file) == "First and second."


def test_long_list_is_shortened() -> None:
    default = f"[{', '.join(map(str, range(100)))}]"
    assert Parameter("x", default, "").short == "[0, 1, ... 99] (100 values)"
    assert Parameter("x", "[1, 2]", "").short == "[1, 2]"


def test_stage_class_names_its_switch_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class outside of conf/ becomes a switch, off unless a word turns it on."""
    monkeypatch.setattr(options, "_options", dict(options._options))
    option("second", after="fuse")(Cut)
    known = available.read()
    assert known.by_group["second"] == (OFF, ON) and known.defaults["second"] == OFF
    assert (
        known.option("second", ON).description
        == "Keep the first `top_n` (at least 1) hits, and in addition all guaranteed hits."
    )
    assert [parameter.key for parameter in known.option("second", ON).parameters] == ["second.top_n"]
    settings = composition.compose(["second=on", "second.top_n=7"])
    names = [name for name, _ in settings.pipeline]
    assert names[names.index("fuse") + 1] == "second" and dict(settings.pipeline)["second"] == Cut(top_n=7)
    assert "second" not in composition.compose([]).config
    option("second", after="fuze")(Cut)
    with pytest.raises(ConfigError, check=naming("'fuze'", "order", "fuse")):
        composition.compose(["second=on"])


class _Third(Cut):
    """A stage outside ragbench."""


def test_stage_class_without_a_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be on and never run."""
    monkeypatch.setattr(options, "_options", dict(options._options))
    option("third")(_Third)
    with pytest.raises(ConfigError, check=naming("third", "order", "before=", "after=")):
        composition.compose(["third=on"])
    listed = [*composition.compose([]).config["order"], "third"]
    names = [name for name, _ in composition.compose(["third=on", f"order=[{','.join(listed)}]"]).pipeline]
    assert names[-1] == "third"


@pytest.mark.slow
def test_defaults_stand_once() -> None:
    """No value of a preset is the one that it overwrites, and no switch that it chooses is the default."""
    repeated = {}
    for path in sorted(CONF.glob("exp/*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        entries = content.pop("defaults", [])
        parents = [entry for entry in entries if isinstance(entry, str) and entry != "_self_"]
        chosen = {
            name.rpartition("/")[2]: to for entry in entries if isinstance(entry, dict) for name, to in entry.items()
        }
        before = [KNOWN.preset(parent) for parent in parents]
        inherited = {group: to for preset in before for group, to in preset.options.items()}
        words = [word for preset in before for word in preset.overrides]
        start = composition.compose([*words, *(f"{group}={to}" for group, to in chosen.items())]).config
        same = [key for key, value in composition.flat(content).items() if _is_key(key) and _at(start, key) == value]
        same += [group for group, to in chosen.items() if {**KNOWN.defaults, **inherited}.get(group) == to]
        if same:
            repeated[path.stem] = same
    assert repeated == {}, "leave these out: they are the defaults"


def _is_key(key: str) -> bool:
    """Whether a key is one of the configuration, and neither the name nor inside a value such as weights."""
    return key != "name" and KNOWN.node(key.rpartition(".")[0])


def _at(config: object, key: str) -> object:
    for part in key.split("."):
        config = config.get(part, KNOWN) if isinstance(config, dict) else KNOWN
    return config


def test_sections_are_checked_dataclasses() -> None:
    for section, cls in options.sections().items():
        assert dataclasses.is_dataclass(cls) and cls.__doc__, section
