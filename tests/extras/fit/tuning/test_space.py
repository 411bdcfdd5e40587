"""What may be varied, and between what."""

import pytest

from ragbench.base.types import ConfigError
from ragbench.config import composition
from ragbench.extras.fit.tuning.space import Space, TuneParameter, overrides, space, tidy


def compose(words):
    return composition.compose(words)


def of(*words: str) -> tuple[Space, dict[str, TuneParameter]]:
    varied = space(compose(["tune.starts=[]", *words]), compose)
    return varied, {parameter.key: parameter for parameter in varied.parameters}


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
    ("node", "reason"),
    [
        ({}, "low must be below high, unless there are choices"),
        ({"low": 2, "high": 2}, "low must be below high"),
        ({"choices": (1,)}, "at least two values"),
        ({"low": 0, "high": 1, "log": True}, "log needs low above 0"),
        ({"low": 1, "high": 9, "log": True, "step": 2}, "and no step"),
        ({"low": 0, "high": 1, "step": 3}, "step must be above 0"),
    ],
)
def test_space_parameter_refuses_nonsense(node: dict, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        TuneParameter("x.y", **node)


def test_space_places_steps_and_kinds() -> None:
    assert TuneParameter("x", low=1, high=100, log=True).is_integer
    stepped = TuneParameter("x", low=0.5, high=1.0, step=0.2)
    assert stepped.high == 0.9  # 0.5, 0.7, 0.9
    assert [stepped.contains(value) for value in (0.5, 0.7, 0.8, 0.9, 1.1)] == [True, True, False, True, False]
    whole = TuneParameter("x", low=1, high=5)
    assert whole.contains(3) and not whole.contains(2.5) and not whole.contains(6)
    assert TuneParameter("x", choices=(False, True)).ends == (False, True)
    assert tidy(0.123456) == 0.123 and tidy(123456) == 123456


def test_space_varies_stages_that_are_on() -> None:
    _, fused = of("+exp=baseline")
    words = {"lexical.k1", "lexical.b", "lexical.fields.title", "lexical.fields.path", "lexical.fields.headers"}
    # Calibration is on: its sigmoid is made for ranks, so the method of fusion stays.
    assert set(fused) == {"fuse.k", "fuse.weights.lexical", "dense.document", *words}
    _, without = of("+exp=baseline", "calibration=off", "p4=on")
    assert {"fuse.method", "fuse.norm"} < set(without)
    assert "lexical.fields.title" not in without  # P4 gives the weights
    _, reranked = of("+exp=baseline", "p6=on", "tune=[p6,p11]")
    assert list(reranked) == ["p6.depth", "p6.max_length", "p6.blend", "p6.k"]  # what depends on another comes after it


def test_space_contains_the_values_of_presets() -> None:
    varied, parameters = of("+exp=all")
    assert len(parameters) >= 15
    assert "p8.semantic.threshold" not in parameters  # P11 takes its place
    values = varied.configured()
    assert "p6.k" not in values  # p6.blend is false
    assert varied.apply(values).pipeline == varied.base.pipeline


def test_space_values_applied_equal_values_composed() -> None:
    varied, parameters = of("+exp=all", "p6.blend=true")
    values = varied.suggest(Fixed())
    assert "p6.k" in values
    assert "p6.k" not in varied.suggest(Fixed(**{"p6.blend": False}))
    composed = compose([*varied.base.overrides, *overrides(values)])
    # Dynamic weights interpolate those of fusion.
    assert parameters["fuse.weights.graph"].also == ("dynamic_weights.weights.graph",)
    assert varied.apply(values).pipeline == composed.pipeline != varied.base.pipeline


@pytest.mark.parametrize(
    ("words", "reason"),
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
def test_space_that_cannot_be_searched_is_refused(words: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        of(*words)


def test_space_start_is_a_parameter_with_parameters_of_its_own() -> None:
    words = "exp=recommended index.chunking.max_chars=3000"
    base = compose(["+exp=baseline", "p12=on", "tune=[fuse,lexical,p12]", f"tune.starts=['', 'p12=on', '{words}']"])
    varied = space(base, compose)
    start = varied.parameters[0]
    assert (start.key, start.choices) == ("start", ("", words))  # what is the preset already is no other start
    by_key = {parameter.key: parameter for parameter in varied.parameters}
    assert by_key["lexical.k1"].also == ("documents.k1",)
    preset, other = varied.configured(), varied.configured(words)
    assert "fuse.k" in preset and "fuse.method" not in preset
    assert other["fuse.method"] == "convex" and other["fuse.norm"] == "min_max" and "fuse.k" not in other
    assert other["lexical.fields.title"] == 3.0 and preset["lexical.fields.title"] == 0.0
    assert varied.apply(preset).pipeline == base.pipeline
    values = {**other, "lexical.k1": 2.0, "lexical.fields.path": 0.0}
    applied, composed = varied.apply(values), compose([*base.overrides, *overrides(values)])
    assert (applied.pipeline, applied.index) == (composed.pipeline, composed.index)
    assert dict(applied.pipeline.stages)["documents"].k1 == 2.0
    assert applied.index != base.index
    assert varied.changed(values) == {"start": words, "lexical.k1": 2.0, "lexical.fields.path": 0.0}
    assert varied.changed(preset) == {}
    tried = varied.suggest(Fixed(start=words, **{"fuse.method": "rrf"}))
    assert "fuse.k" in tried and "fuse.norm" not in tried
