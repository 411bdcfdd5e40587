"""Every configuration file composes; what is wrong is said in one sentence."""

from pathlib import Path

import pytest

from ragbench import app, locations
from ragbench.configuration import build, make
from ragbench.errors import ConfigError
from ragbench.index.dense import DenseSpec

CONF = locations.configuration()
# What a file cannot know.
COMPANY = {
    "live=http": ["live.url='http://localhost/{query}'"],
    "live=opensearch": ["live.url=http://localhost/docs/_search"],
    "live=meilisearch": ["live.url=http://localhost/indexes/docs/search"],
    "live=command": ["live.program=[search]"],
    "live=mcp": ["live.program=[server]"],
}
# Data sets are loaded by their own tests.
GROUPS = sorted(path for path in CONF.glob("*/*.yaml") if path.parent.name != "data")


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: f"{path.parent.name}={path.stem}")
def test_every_file_composes(path: Path) -> None:
    group, option = path.parent.name, path.stem
    override = f"+exp={option}" if group == "exp" else f"{group}={option}"
    if group in ("tune", "design"):
        override = f"+{override}"
    settings = app.compose([override, *COMPANY.get(override, ())])
    assert len(settings.pipeline) >= 3 or settings.pipeline.live


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["p2=maybe"], r"p2 cannot be 'maybe': the choices are off, on"),
        (["nonsense=1"], r"unknown key 'nonsense'"),
        (["dense.depht=5"], r"unknown key '(dense\.)?depht'"),
        (["+dense.depht=5"], r"unknown key dense\.depht; did you mean depth\?"),
        (["dense.depth=ten"], r"dense\.depth must be a whole number of at least 1, got 'ten'"),
        (["dense.depth=0"], r"dense\.depth must be at least 1, got 0"),
        (["fuse.weights.dense=-1"], r"fuse\.weights\.dense must be at least 0"),
        (["calibration.steepness=0"], r"calibration\.steepness must be above 0"),
        (["split=dev"], r"split must be one of train, test, all, got dev"),
        (["order=[dense,fuse,fuse]"], r"order names 'fuse' more than once"),
        (["order=[dense,fuze]"], r"order names 'fuze', which is no stage"),
        (["order=[fuse,dense]"], r"stage 'fuse' needs a ranking"),
        (["index.dense.kind=annoy"], r"index\.dense\.kind must be one of flat, hnsw, ivf_sq8, auto, got 'annoy'"),
        (["+index.lexical.fields.colour=1.0"], r"index\.lexical\.fields has no field 'colour'"),
        (["latency.rounds=0"], r"latency\.rounds must be at least 1"),
        (["dense._target_=os.nothing"], r"dense\._target_ names os\.nothing, which cannot be imported"),
        (["p2="], r"p2"),
        (["=3"], r"."),
        (["dense.depth=[1"], r"."),
        (["+exp=nothing"], r"exp cannot be 'nothing'"),
    ],
)
def test_what_is_wrong_is_one_sentence(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        app.compose(overrides)
    assert "\n" not in str(caught.value)


def test_a_switch_changes_only_its_artefact() -> None:
    plain, weighted = (app.compose(overrides).index for overrides in ([], ["p4=on"]))
    assert plain.lexical != weighted.lexical
    assert (plain.chunker, plain.dense, plain.headings) == (weighted.chunker, weighted.dense, weighted.headings)


def test_a_sweep_is_every_combination_with_telling_names() -> None:
    settings = app.sweep(["p2=on,off", "fuse.k=20,60", "dense.depth=50"])
    assert [each.name for each in settings] == [
        "p2=on fuse.k=20",
        "p2=on fuse.k=60",
        "p2=off fuse.k=20",
        "p2=off fuse.k=60",
    ]
    assert [each.index.headings for each in settings] == [True, True, False, False]


def test_an_experiment_names_its_arm() -> None:
    assert app.compose(["+exp=baseline"]).name == "baseline"
    assert app.compose([]).name == "default"


def test_two_arms_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two arms would be called 'same'"):
        app.sweep(["name=same", "+exp=baseline,baseline"])


def test_missing_and_unknown_keys_and_wrong_types() -> None:
    with pytest.raises(ConfigError, match=r"unknown key here\.kindd; did you mean kind\?"):
        build(DenseSpec, {"kindd": "flat"}, "here")
    with pytest.raises(ConfigError, match=r"here\.m must be a whole number between 2 and 64, got true"):
        build(DenseSpec, {"m": True}, "here")
    with pytest.raises(ConfigError, match=r"here\.m must be a whole number between 2 and 64, got '32'"):
        build(DenseSpec, {"m": "32"}, "here")
    with pytest.raises(ConfigError, match="which is not a dataclass"):
        make({"_target_": "pathlib.Path"}, "here")
