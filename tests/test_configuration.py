"""Every configuration file composes; what is wrong is said in one sentence."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.options import build, make
from ragbench.base.types import ConfigError
from ragbench.config import composition
from ragbench.index.dense import DenseSpec
from ragbench.index.lexical import LexicalSpec
from ragbench.index.texts import PassageTemplate
from tests.naming import naming
from tests.tables import rows

CONF = locations.configuration()


def test_configuration_refuses_a_loader_that_is_a_list(conf: Path) -> None:
    (conf / "data").mkdir()
    (conf / "data" / "mine.yaml").write_text("# Mine.\nloader: [vault]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"data\.loader must be one of"):
        composition.compose(["data=mine"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        *rows("configuration", "configuration_refuses_wrong_words_in_one_sentence"),
        (["seed=" + "9" * 5000], r"seed cannot be read from '9999999"),
    ],
)
def test_configuration_refuses_wrong_words_in_one_sentence(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        composition.compose(overrides)
    assert "\n" not in str(caught.value)


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder of one's own."""
    shutil.copytree(CONF, tmp_path / "conf")
    monkeypatch.setattr(locations, "configuration", lambda: tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "conf"


HEAD = "# @package _global_\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "dense:\n\tdepth: 5\n", r"conf/exp/mine\.yaml:3: is not YAML \(found character"),
        (HEAD + "name: a: b\n", r"conf/exp/mine\.yaml:2: is not YAML \(mapping values are not allowed"),
        (HEAD + "name: x\nname: y\n", r"conf/exp/mine\.yaml:3: is not YAML \(found duplicate key name\)"),
        (HEAD + "dense: &a\n  depth: *a\n", r"conf/exp/mine\.yaml contains itself"),
        ("- a\n", r"must begin with the line `# @package _global_`"),
        ("dense:\n  depth: 5\n", r"must begin with the line `# @package _global_`"),
        (
            HEAD + "dense:\n  depht: 5\n",
            r"dense\.depht cannot be set \(Key 'depht' not in .*\(in conf/exp/mine\.yaml\)",
        ),
        (HEAD + "dense:\n  depth: 0\n", r"dense\.depth must be at least 1, got 0 \(in conf/exp/mine\.yaml\)"),
        (HEAD + "fuse:\n  k: ${fuse\n", r"cannot be composed"),
        (HEAD + "index: null\n", r"index\.chunking must name a class .* \(in conf/exp/mine\.yaml\)"),
        (HEAD + "p6:\n  depth: 5\n", r"p6\.depth cannot be set with p6=off: add p6=on \(in conf/exp/mine\.yaml\)"),
        (HEAD + "defaults:\n  - override /p6: on\n", r"write on and off in quotes"),
        (HEAD + "defaults:\n  - phase9\n", r"exp cannot be 'phase9'; did you mean .* \(in conf/exp/mine\.yaml\)"),
        (HEAD + "defaults:\n  - mine\n", r"conf/exp/mine\.yaml contains itself"),
        (HEAD + "defaults:\n  - [phase1]\n", r"conf/exp/mine\.yaml cannot be composed"),
        (HEAD + "defaults: phase1\n", r"conf/exp/mine\.yaml cannot be composed .*defaults must be a list"),
        (HEAD + "defaults:\n  - override /p6: maybe\n", r"p6 cannot be 'maybe': .* \(in conf/exp/mine\.yaml\)"),
        (HEAD + "defaults:\n  - override /rerank: x\n", r"chooses 'rerank', which is not a switch; did you mean p6\?"),
        (HEAD + "hydra:\n  run: x\n", r"conf/exp/mine\.yaml"),
    ],
)
def test_configuration_names_the_file_of_a_slip(conf: Path, text: str, message: str) -> None:
    (conf / "exp" / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        composition.compose(["exp=mine"])
    assert "\n" not in str(caught.value)
    assert str(conf) not in str(caught.value).replace(f"{conf}/exp/mine.yaml", "")


def test_configuration_names_broken_files_and_switches(conf: Path) -> None:
    (conf / "exp" / "mine.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"mine\.yaml is not UTF-8 text"):
        composition.compose(["exp=mine"])
    (conf / "exp" / "mine.yaml").unlink()
    (conf / "p6").mkdir()
    (conf / "p6" / "bad.yaml").write_text("_target_: ragbench.nothing.X\n")
    with pytest.raises(ConfigError, match=r"p6\._target_ names ragbench\.nothing\.X, which cannot be imported"):
        composition.compose(["p6=bad"])


def test_experiment_of_ones_own_and_its_values(conf: Path) -> None:
    (conf / "exp" / "mine.yaml").write_text(f'{HEAD}defaults:\n  - override /p6: "on"\nname: mine\np6:\n  depth: 20\n')
    assert composition.compose(["exp=mine"]).config["p6"]["depth"] == 20
    assert composition.compose(["exp=mine"]).config == composition.compose(["+exp=mine"]).config
    assert composition.compose(["exp=mine", "rerank=off"]).config["p6"] == {}


def test_experiment_builds_on_another(conf: Path) -> None:
    (conf / "exp" / "mine.yaml").write_text(
        f'{HEAD}defaults:\n  - ragdocs_api\n  - phase1\n  - override /graph: "off"\nname: mine\n'
        "fuse:\n  weights: {lexical: 3}\n"
    )
    composed = composition.compose(["exp=mine"]).config
    assert composed["graph"] == {}
    assert composed["fuse"]["weights"] | {"code": 0, "graph": 0, "documents": 0} == (
        {"dense": 0.8, "lexical": 3, "code": 0, "graph": 0, "documents": 0}
    )
    assert composed["recency"]["bias"] == 0.3 and composed["p8"]["limit"] is None  # MMR in its place, seed 001


def test_own_options_and_switches_are_files(conf: Path) -> None:
    """A file gives what differs from a class, or from another option of its group; a switch is a folder with two."""
    for name, text in {
        "p6/deep": "# Reads more.\ndefaults: [on, _self_]\ndepth: 50\n".replace("on,", '"on",'),
        "p6/deeper": "# Reads all.\ndefaults: [deep, _self_]\ndepth: 100\nblend: true\n",
        "graph/far": '# Two links.\ndefaults: ["on", _self_]\nhops: 2\n',
        "again/on": "# Again.\n_target_: ragbench.search.stages.redundancy.LimitPerDocument\nmax_per_doc: 2\n",
        "again/off": "{}\n",
    }.items():
        (conf / name).parent.mkdir(exist_ok=True)
        (conf / f"{name}.yaml").write_text(text, encoding="utf-8")
    text = (conf / "config.yaml").read_text(encoding="utf-8")
    text = text.replace("  - cut\n", "  - again\n  - cut\n").replace("  - _self_\n", '  - again: "off"\n  - _self_\n')
    (conf / "config.yaml").write_text(text, encoding="utf-8")
    depths = [arm.config["p6"]["depth"] for arm in composition.sweep(["p6=on,deep,deeper", "graph=far"])]
    assert depths == [10, 50, 100]
    mine = composition.compose(["p6=deeper", "graph=far", "again=on", "again.max_per_doc=4"])
    stages = dict(mine.pipeline)
    assert (stages["p6"].blend, stages["p6"].max_length, stages["graph"].hops) == (True, 256, 2)
    assert stages["again"].max_per_doc == 4
    assert [arm.name for arm in composition.sweep(["graph=glob(*)"])] == ["graph=far", "graph=off", "graph=on"]


def test_arms_share_words_and_win_over_them() -> None:
    first, second = composition.arms(
        {"off": ["p6=off"], "at 20": ["rerank=on", "rerank.depth=20"]}, ["p6=on", "fuse.k=5"]
    )
    assert (first.name, second.name) == ("off", "at 20")
    assert [name for name, _ in first.pipeline] == [name for name, _ in second.pipeline if name != "p6"]
    assert dict(second.pipeline)["p6"].depth == 20
    assert first.config["fuse"]["k"] == second.config["fuse"]["k"] == 5
    with pytest.raises(ConfigError, match=r"p6\.depth must be at least 1, got 0 \(arm 'bad'\)"):
        composition.arms({"bad": ["p6=on", "p6.depth=0"]})


def test_sweep_is_limited() -> None:
    with pytest.raises(ConfigError, match=r"the sweep has 999999 arms, at most 1024 are possible"):
        composition.sweep(["fuse.k=range(1,1000000)"])
    with pytest.raises(ConfigError, match=r"'fuse.k=interval\(1,2\)' cannot be swept: list its values"):
        composition.sweep(["fuse.k=interval(1,2)"])


def test_field_weights_act_when_searching() -> None:
    plain, weighted = (composition.compose(overrides) for overrides in ([], ["p4=on", "lexical.k1=1.2"]))
    assert plain.index == weighted.index
    assert plain.pipeline != weighted.pipeline
    stage = dict(weighted.pipeline)["lexical"]
    assert (stage.k1, stage.fields) == (1.2, {"content": 1.0, "title": 3.0, "headers": 2.5, "tags": 2.0})


def test_passage_headings_change_only_what_is_embedded() -> None:
    plain, headed = (composition.compose(overrides).index for overrides in ([], ["p2=on"]))
    assert headed.passage == PassageTemplate(headings=True)
    assert replace(headed, passage=plain.passage) == plain


def test_configuration_names_sources() -> None:
    settings = composition.compose(
        [
            "+sources.small={kind: dense, depth: 20, index: {encoder: {name: all-MiniLM-L6-v2}}}",
            "+sources.small.index.passage={title: true}",
            "+sources.exact={kind: lexical, index: {analyzer: standard}, k1: 1.2}",
            "documents=on",
        ]
    )
    stages = dict(settings.pipeline)
    assert list(stages)[:5] == ["dense", "lexical", "documents", "sources.exact", "sources.small"]
    assert settings.pipeline.needs >= {"dense", "dense:small", "encoder:small", "lexical:exact", "lexical:documents"}
    assert settings.index.words("documents") == LexicalSpec(unit="document")
    assert settings.index.words("exact") == LexicalSpec(analyzer="standard")
    assert settings.index.vectors("small").encoder.name == "all-MiniLM-L6-v2"
    assert settings.index.vectors("small").passage == PassageTemplate(title=True)
    assert (stages["sources.small"].source, stages["sources.small"].depth) == ("small", 20)


def test_sweep_is_every_combination_with_telling_names() -> None:
    settings = composition.sweep(["p2=on,off", "fuse.k=20,60", "dense.depth=50"])
    assert [setting.name for setting in settings] == [
        "p2=on fuse.k=20",
        "p2=on fuse.k=60",
        "p2=off fuse.k=20",
        "p2=off fuse.k=60",
    ]
    assert [setting.index.passage.headings for setting in settings] == [True, True, False, False]


def test_experiment_names_its_arm() -> None:
    assert composition.compose(["+exp=baseline", "latency.rounds=2", "design=add_one"]).name == "baseline"
    assert composition.compose(["p6=on", "exp=baseline", "dense.depth=50"]).name == "baseline p6=on dense.depth=50"
    assert composition.compose(["exp=baseline", "name=mine", "p6=on"]).name == "mine"
    swept = composition.sweep(["exp=baseline,phase1", "p6=on", "latency.rounds=1,2"])
    assert [arm.name for arm in swept][:2] == ["baseline p6=on latency.rounds=1", "baseline p6=on latency.rounds=2"]
    assert composition.compose([]).name == "default"


def test_two_arms_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, check=naming("'same'")):
        composition.sweep(["name=same", "+exp=baseline,baseline"])


def test_build_names_missing_unknown_and_mistyped_keys() -> None:
    with pytest.raises(ConfigError, check=naming("here.kindd", "here.kind?")):
        build(DenseSpec, {"kindd": "flat"}, "here")
    with pytest.raises(ConfigError, check=naming("here.m", "true")):
        build(DenseSpec, {"m": True}, "here")
    with pytest.raises(ConfigError, check=naming("here.m", "'32'")):
        build(DenseSpec, {"m": "32"}, "here")
    with pytest.raises(ConfigError, match="which is not a dataclass"):
        make({"_target_": "pathlib.Path"}, "here")
