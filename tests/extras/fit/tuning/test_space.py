"""What may be varied, and between what."""

import pytest

from ragbench.base.errors import ConfigError
from ragbench.config import composition
from ragbench.extras.fit.tuning.space import (
    Parameter,
    apply,
    changed_values,
    configured_values,
    overrides,
    space,
    suggest,
    tidy,
)


def compose(words):
    return composition.compose(words)


def of(*words: str):
    base = compose(["tune.starts=[]", *words])
    return base, {parameter.key: parameter for parameter in space(base, compose)}


class Fixed:
    """A trial that takes the greatest value, or the one given."""

    def __init__(self, **given) -> None:
        self.given = given

    def suggest_categorical(self, key, choices):
        return self.given.get(key, choices[-1])

    def suggest_int(self, key, low, high, step=1, log=False):
        return high

    def suggest_float(self, key, low, high, step=None, log=False):
        return high


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({}, "low must be below high, unless there are choices"),
        ({"low": 2, "high": 2}, "low must be below high"),
        ({"choices": (1,)}, "at least two values"),
        ({"low": 0, "high": 1, "log": True}, "log needs low above 0"),
        ({"low": 1, "high": 9, "log": True, "step": 2}, "and no step"),
        ({"low": 0, "high": 1, "step": 3}, "step must be above 0"),
    ],
)
def test_a_parameter_refuses_nonsense(node: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Parameter("x.y", **node)


def test_places_steps_and_kinds() -> None:
    log = Parameter("x", low=1, high=100, log=True)
    assert (log.is_integer, log.normalized(10), log.normalized(1), log.normalized(100)) == (
        True,
        pytest.approx(0.5),
        0.0,
        1.0,
    )
    stepped = Parameter("x", low=0.5, high=1.0, step=0.2)
    assert stepped.high == 0.9  # 0.5, 0.7, 0.9
    assert [stepped.contains(value) for value in (0.5, 0.7, 0.8, 0.9, 1.1)] == [True, True, False, True, False]
    assert stepped.normalized(0.7) == pytest.approx(0.5)
    whole = Parameter("x", low=1, high=5)
    assert whole.contains(3) and not whole.contains(2.5) and not whole.contains(6)
    assert Parameter("x", choices=(False, True)).ends == (False, True)
    assert tidy(0.123456) == 0.123 and tidy(123456) == 123456


def test_only_what_is_on_is_varied() -> None:
    _, fused = of("+exp=baseline")
    words = {"lexical.k1", "lexical.b", "lexical.fields.title", "lexical.fields.path", "lexical.fields.headers"}
    # Calibration is on: its sigmoid is made for ranks, so the method of fusion stays.
    assert set(fused) == {"fuse.k", "fuse.weights.lexical", "dense.document", *words}
    _, without = of("+exp=baseline", "calibration=off", "p4=on")
    assert {"fuse.method", "fuse.norm"} < set(without)
    assert "lexical.fields.title" not in without  # P4 gives the weights
    _, reranked = of("+exp=baseline", "p6=on", "tune=[p6,p11]")
    assert list(reranked) == ["p6.depth", "p6.max_length", "p6.blend", "p6.k"]  # what depends on another comes after it


def test_every_preset_has_a_space_its_values_lie_in() -> None:
    base, found = of("+exp=all")
    assert len(found) >= 15
    assert "p8.semantic.threshold" not in found  # P11 takes its place
    given = configured_values(tuple(found.values()), base)
    assert "p6.k" not in given  # p6.blend is false
    assert apply(base, tuple(found.values()), given).pipeline == base.pipeline


def test_values_applied_equal_values_composed() -> None:
    base, found = of("+exp=all", "p6.blend=true")
    parameters = tuple(found.values())
    values = suggest(parameters, Fixed())
    assert "p6.k" in values
    assert "p6.k" not in suggest(parameters, Fixed(**{"p6.blend": False}))
    composed = compose([*base.overrides, *overrides(values)])
    applied = apply(base, parameters, values)
    # Dynamic weights interpolate those of fusion.
    assert found["fuse.weights.graph"].also == ("dynamic_weights.weights.graph",)
    assert applied.pipeline == composed.pipeline != base.pipeline


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tune=[p6]"], "finds no parameter to vary"),
        (["+tune.space.fuze.k={low: 1, high: 2}"], "tune.space.fuze.k names nothing in the configuration"),
        (["+tune.space.fuse.depth={low: 1, high: 2}"], "tune.space.fuse.depth names no value"),
        (["+tune.space.dense.depth={low: 0, high: 9}"], "depth must be at least 1"),
        (["+tune.space.index.encoder.max_tokens={low: 128, high: 512}"], "it shapes the index"),
        (["+tune.space.dense=7"], "tune.space.dense must be a mapping with low and high"),
        (["+tune.space.dense.depth={low: 1, hihg: 9}"], "did you mean .*high"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of(*words)


def test_a_start_is_a_parameter_with_parameters_of_its_own() -> None:
    words = "exp=recommended index.chunking.max_chars=3000"
    base = compose(["+exp=baseline", "p12=on", "tune=[fuse,lexical,p12]", f"tune.starts=['', 'p12=on', '{words}']"])
    found = space(base, compose)
    start = found[0]
    assert (start.key, start.choices) == ("start", ("", words))  # what is the preset already is no other start
    by_key = {parameter.key: parameter for parameter in found}
    assert by_key["lexical.k1"].also == ("documents.k1",)
    preset, other = configured_values(found, base), configured_values(found, base, words)
    assert "fuse.k" in preset and "fuse.method" not in preset
    assert other["fuse.method"] == "convex" and other["fuse.norm"] == "min_max" and "fuse.k" not in other
    assert other["lexical.fields.title"] == 3.0 and preset["lexical.fields.title"] == 0.0
    assert apply(base, found, preset).pipeline == base.pipeline
    varied = {**other, "lexical.k1": 2.0, "lexical.fields.path": 0.0}
    applied, composed = apply(base, found, varied), compose([*base.overrides, *overrides(varied)])
    assert (applied.pipeline, applied.index) == (composed.pipeline, composed.index)
    assert dict(applied.pipeline.stages)["documents"].k1 == 2.0
    assert applied.index != base.index
    assert changed_values(found, base, varied) == {"start": words, "lexical.k1": 2.0, "lexical.fields.path": 0.0}
    assert changed_values(found, base, preset) == {}
    tried = suggest(found, Fixed(start=words, **{"fuse.method": "rrf"}))
    assert "fuse.k" in tried and "fuse.norm" not in tried


def test_index_variants_are_drawn_once_and_no_more_than_asked() -> None:
    words = ["+exp=baseline", "tune.starts=['exp=recommended']", "tune.index_variants=4", "tune=[index,fuse]"]
    base = compose(words)
    found = space(base, compose)
    start = found[0]
    assert len(start.choices) == 4 and start.choices[:2] == ("", "exp=recommended")
    indexes = [apply(base, found, {"start": each}).index for each in start.choices]
    assert all(indexes.count(each) == 1 for each in indexes)
    assert all("index.chunking.max_chars=" in each and "index.passage.title=" in each for each in start.choices[2:])
    assert space(base, compose)[0].choices == start.choices
    assert space(compose([*words, "tune.seed=14"]), compose)[0].choices != start.choices
    assert len(space(compose([*words, "tune.index_variants=1"]), compose)[0].choices) == 2


SWITCHED = ("+exp=baseline", "tune=[fuse,p6,p8]", "tune.starts=['exp=recommended']")


def test_a_switch_is_a_parameter_and_decides_which_others_have_a_say() -> None:
    base = compose([*SWITCHED, "tune.switches=[p6,calibration]"])
    found = space(base, compose)
    assert [parameter.key for parameter in found[:3]] == ["start", "p6", "calibration"]
    preset = configured_values(found, base)
    assert (preset["p6"], preset["calibration"]) == ("off", "on") and "p6.depth" not in preset
    assert configured_values(found, base, "exp=recommended")["calibration"] == "off"
    chosen = {"start": "", "p6": "on", "calibration": "off", "fuse.method": "rrf"}
    values = suggest(found, Fixed(**chosen))
    assert values["p6.depth"] == 30 and "p8.limit.max_per_doc" not in values
    applied, composed = apply(base, found, values), compose([*base.overrides, *overrides(values)])
    assert applied.pipeline == composed.pipeline != base.pipeline and applied.index == composed.index == base.index
    assert "p6.depth" not in suggest(found, Fixed(start="", p6="off"))
    assert list(changed_values(found, base, {**preset, "p6": "on"})) == ["p6"]
    assert changed_values(found, base, preset) == {}


def test_a_switch_that_does_not_go_with_those_before_stays_as_it_was(caplog) -> None:
    base = compose([*SWITCHED, "tune.starts=[]", "tune.switches=[calibration,p10,p13]"])
    found = space(base, compose)
    assert caplog.messages == [
        "tune.switches: 'p13' is excluded: its options do not fit this preset, or they shape the index"
    ]
    values = suggest(found, Fixed(calibration="off", p10="on"))
    assert values["calibration"] == "off" and "p10" not in values  # it needs calibrated scores
    assert apply(base, found, values).pipeline == compose([*base.overrides, *overrides(values)]).pipeline


def test_what_is_no_switch_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tune\.switches names 'p66', which is not a switch; did you mean p6"):
        of("+exp=baseline", "tune.switches=[p66]")
