"""The section `tune` and search spaces: which parameters of a configuration are varied, and over which values.

A space mirrors the configuration: `tune.space.p6.depth` has the values that `p6.depth` may take. A leaf has `low` and
`high` (whole numbers make a whole-number parameter), optionally `step` or `log`; or `choices`. `when` names a stage
that must be on, another parameter that must be true, or one with its value, such as `fuse.method=convex`; `unless`
names a key that must have no value. Parameters of stages that are off are ignored.

`tune.starts` are overrides, each a starting point in addition to the preset: other experiments, or settings that shape
the index. The parameter `start` chooses one of them.
"""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from ragbench.base.options import Constraint, Count, Name, Seed, Validated, build, section, values_option
from ragbench.base.types import ConfigError
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config.overrides import section_of
from ragbench.config.settings import Settings

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

_LOG = logging.getLogger(__name__)


START = "start"
"""The key of the parameter that chooses which of `tune.starts` a trial changes; `""` is the preset."""
Value = bool | int | float | str
Values = Mapping[str, Value]
"""The values of all parameters whose condition holds, by key."""


_SPACES = read_yaml_file(Path(__file__).with_name("spaces.yaml"))
for _name, _space in _SPACES.items():
    values_option(f"tune={_name}", _space["about"], _space["space"], package="tune.space")
_DEFAULT = {key: node for name, space in _SPACES.items() if name != "names" for key, node in space["space"].items()}
values_option("tune=default", "All spaces but `names`.", _DEFAULT, package="tune.space")


@section("tune")
@dataclass(frozen=True)
class TuneSpec(Validated):
    """Settings of a hyperparameter search; `space` gives the ranges (`ragbench.extras.fit.tuning.space`)."""

    trials: Count = 200  # of the search, and of the search in every fold
    objective: Name = "ndcg_at_10"  # the measure to maximise, or `silence`
    # outer cross-validation folds over groups of queries; 0: none
    folds: Annotated[int, Constraint(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
    seed: Seed = 13  # random seed of trials and folds
    starts: tuple[str, ...] = ()  # additional starting points; each index that they need is built once
    space: Mapping[str, Any] = field(default_factory=dict)  # values to try, by key


def spec_of(settings: Settings) -> TuneSpec:
    """The section of a configuration."""
    return build(TuneSpec, settings.value("tune"), "tune")


@dataclass(frozen=True)
class TuneParameter(Validated):
    """One parameter: its `key` in the configuration and its possible values; `also` are keys that interpolate it."""

    key: str
    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    when: str | None = None
    unless: str | None = None
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.choices:
            if len(set(self.choices)) < 2:
                raise self.refused("choices", "must name at least two values")
            return
        if self.low is None or self.high is None or not self.low < self.high:
            raise self.refused("low", "must be below high, unless there are choices")
        if self.log and (self.low <= 0 or self.step is not None):
            raise self.refused("log", "needs low above 0 and no step")
        if self.step is not None:
            if not 0 < self.step <= self.high - self.low:
                raise self.refused("step", "must be above 0 and at most high - low")
            steps = math.floor((self.high - self.low) / self.step + 1e-9)
            object.__setattr__(self, "high", tidy(self.low + steps * self.step))

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number."""
        return not self.choices and all(isinstance(bound, int) for bound in (self.low, self.high, self.step or 0))

    @property
    def ends(self) -> tuple[Value, ...]:
        """Its lower and upper limit, or all choices."""
        return self.choices or (self.low or 0, self.high or 0)

    def suggest(self, trial: BaseTrial) -> Value:
        """The value that a trial tries."""
        if self.choices:
            return cast("Value", trial.suggest_categorical(self.key, self.choices))
        if self.is_integer:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(self.key, int(self.low or 0), int(self.high or 0), step=step, log=self.log)
        return tidy(trial.suggest_float(self.key, self.low or 0.0, self.high or 0.0, step=self.step, log=self.log))

    def contains(self, value: Any) -> bool:
        """Whether the value is in the search space."""
        if self.choices:
            return value in self.choices
        low, high = float(self.low or 0), float(self.high or 0)
        if not low <= value <= high or (self.is_integer and value != int(value)):
            return False
        return self.step is None or abs((value - low) / self.step - round((value - low) / self.step)) < 1e-6


def tidy(value: float) -> float:
    """Round to three significant digits, so that values are readable and nearly equal trials become equal."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class Space:
    """The parameters that a search varies, and the configurations that it starts from.

    `starts` has the settings of the preset by `""`, and those of every other start by its overrides. `varied` has the
    keys of the parameters that apply to each start. `start` is the first parameter where there are several starts; then
    follow parameters without a condition, then the others.
    """

    parameters: tuple[TuneParameter, ...]
    starts: Mapping[str, Settings]
    varied: Mapping[str, frozenset[str]]

    @property
    def base(self) -> Settings:
        """The settings of the preset."""
        return self.starts[""]

    def start_of(self, values: Values) -> Settings:
        """The settings that these values change."""
        return self.starts[str(values.get(START, ""))]

    def apply(self, values: Values) -> Settings:
        """The settings with these values; equal to composing `overrides(values)` on top."""
        return _apply(self.start_of(values), [p for p in self.parameters if p.key != START], values)

    def suggest(self, trial: BaseTrial) -> dict[str, Value]:
        """The values that a trial tries, without parameters whose condition does not hold."""
        values: dict[str, Value] = {}
        for parameter in self.parameters:
            if parameter.key == START or self._applies(parameter, values):
                values[parameter.key] = parameter.suggest(trial)
        return values

    def configured(self, start: str = "") -> dict[str, Value]:
        """The values of a start (default: of the preset), without parameters whose condition does not hold."""
        settings, values = self.starts[start], dict[str, Value]()
        for parameter in self.parameters:
            if parameter.key == START:
                values[START] = start
            elif self._applies(parameter, values | {START: start}):
                values[parameter.key] = value_of(settings, parameter.key)
        return values

    def changed(self, values: Values) -> dict[str, Value]:
        """The values that differ from those of the start, including the start unless it is the preset."""
        settings = self.start_of(values)
        return {
            key: value for key, value in values.items() if value != ("" if key == START else value_of(settings, key))
        }

    def _applies(self, parameter: TuneParameter, values: Values) -> bool:
        """Whether a parameter applies to the start among the values, and its condition on other values holds."""
        varied = self.varied[str(values.get(START, ""))]
        if parameter.key not in varied:
            return False
        key, equals, option = (parameter.when or "").partition("=")
        if key not in varied:
            return True  # it was checked before
        return str(values.get(key)) == option if equals else bool(values.get(key, False))


def space(base: Settings, compose: Callable[[Sequence[str]], Settings]) -> Space:
    """The space of the parameters in `tune.space` of the base that apply to any start.

    `compose` turns overrides into settings: of starts, and of all parameters changed at once, which shows the keys that
    follow them. A start that does not fit the preset is excluded.
    """
    starts = {"": base}
    for words in spec_of(base).starts:
        try:
            settings = compose([*base.overrides, *shlex.split(words)])
        except ConfigError as error:
            _LOG.info(f"tune.starts: '{words}' does not fit this preset and is excluded: {error}")
            continue
        if all((s.pipeline, s.index) != (settings.pipeline, settings.index) for s in starts.values()):
            starts[words] = settings
    unique: dict[str, TuneParameter] = {}
    varied = {}
    for words, settings in starts.items():
        parameters = _parameters(base, settings, compose)
        varied[words] = frozenset(parameter.key for parameter in parameters)
        for parameter in parameters:
            also = unique[parameter.key].also if parameter.key in unique else ()
            unique[parameter.key] = replace(parameter, also=tuple(dict.fromkeys((*also, *parameter.also))))
    if not unique:
        raise ConfigError("tune finds no parameter to vary: turn on a stage that has one, or add to tune.space")
    ordered = sorted(unique.values(), key=lambda parameter: _key(parameter.when) in unique)
    if len(starts) > 1:
        ordered.insert(0, TuneParameter(START, choices=tuple(starts)))
    return Space(tuple(ordered), starts, varied)


def _parameters(
    base: Settings, settings: Settings, compose: Callable[[Sequence[str]], Settings]
) -> list[TuneParameter]:
    """The parameters of the space of `base` that apply to these settings, checked, with the keys that follow each."""
    stages = [name for name, _ in settings.pipeline]
    applicable = []
    for key, node in _leaves(spec_of(base).space, ""):
        parameter = build(TuneParameter, {**node, "key": key}, f"tune.space.{key}")
        if key.startswith("index."):
            raise ConfigError(f"tune cannot vary {key}: it shapes the index; give its values as tune.starts")
        if not base.has(section_of(key)):
            raise ConfigError(f"tune.space.{key} names nothing in the configuration (see ragbench list config)")
        if parameter.unless is not None and value_of(settings, parameter.unless):
            continue
        if any(key.startswith(f"{stage}.") for stage in stages):
            if value_of(settings, key) is None:
                raise ConfigError(f"tune.space.{key} names no value of the configuration: give {key} one first")
            applicable.append(parameter)
    keys = {parameter.key for parameter in applicable}
    parameters = [p for p in applicable if p.when is None or _key(p.when) in keys or _is_on(settings, p.when, stages)]
    follows = _followers(parameters, settings, compose) if parameters else {}
    return [_check(replace(parameter, also=follows[parameter.key]), settings) for parameter in parameters]


def _key(condition: str | None) -> str:
    return (condition or "").partition("=")[0]


def _apply(settings: Settings, parameters: Collection[TuneParameter], values: Values) -> Settings:
    for parameter in parameters:
        if parameter.key in values:
            for key in (parameter.key, *(key for key in parameter.also if value_of(settings, key) is not None)):
                settings = settings.with_values({key: values[parameter.key]})
    return settings


def overrides(values: Values) -> list[str]:
    """The values as typed, the words of the start first."""
    first = shlex.split(str(values.get(START, "")))
    values_of_keys = {key: value for key, value in values.items() if key != START}
    return [*first, *(f"{key}={str(v).lower() if isinstance(v, bool) else v}" for key, v in values_of_keys.items())]


def value_of(settings: Settings, key: str) -> Any:
    """The value of a dotted key, None where there is none; a searched field without a weight has 0."""
    value, above = settings.value(key), key.rpartition(".")[0]
    no_weight = value is None and f".{above}".endswith(".fields") and isinstance(settings.value(above), Mapping)
    return 0.0 if no_weight else value


def _leaves(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, leaf in node.items():
        if leaf is None:
            continue
        if not isinstance(leaf, Mapping):
            raise ConfigError(f"tune.space.{path}{name} must be a mapping with low and high, or choices; got {leaf!r}")
        if any(isinstance(item, Mapping) for item in leaf.values()) or not leaf:
            yield from _leaves(leaf, f"{path}{name}.")
        else:
            yield f"{path}{name}", leaf


def _is_on(base: Settings, condition: str, stages: Sequence[str]) -> bool:
    key, equals, option = condition.partition("=")
    if equals:
        return str(value_of(base, key)) == option
    return any(stage == condition or stage.startswith(f"{condition}.") for stage in stages) or (
        value_of(base, condition) is True
    )


def _followers(
    parameters: Sequence[TuneParameter], base: Settings, compose: Callable[[Sequence[str]], Settings]
) -> dict[str, tuple[str, ...]]:
    """The other keys that interpolate a parameter, by its key: found by changing all at once, else one by one."""
    other_ends = {p.key: next(end for end in p.ends if end != value_of(base, p.key)) for p in parameters}
    composed = compose([*base.overrides, *overrides(other_ends)])
    follows: dict[str, list[str]] = {key: [] for key in other_ends}
    for key in _changed_keys(base.config, composed.config, ""):
        if key in other_ends:
            continue
        old, new = value_of(base, key), value_of(composed, key)
        leaders = [key for key, value in other_ends.items() if value == new and value_of(base, key) == old]
        leaders = [leader for leader in leaders if leader.rpartition(".")[2] == key.rpartition(".")[2]] or leaders
        if len(leaders) != 1:
            if len(parameters) == 1:
                raise ConfigError(
                    f"tune cannot vary {parameters[0].key}: {key} depends on it in a way it cannot follow"
                )
            return {p.key: _followers([p], base, compose)[p.key] for p in parameters}
        follows[leaders[0]].append(key)
    return {key: tuple(keys) for key, keys in follows.items()}


def _check(parameter: TuneParameter, base: Settings) -> TuneParameter:
    """The parameter, after a check that its ends give a pipeline over the same index. Raises ConfigError."""
    for end in parameter.ends:
        settings = _apply(base, [parameter], {parameter.key: end})
        _ = settings.pipeline
        if settings.index != base.index:
            raise ConfigError(f"tune cannot vary {parameter.key}: it shapes the index; give its values as tune.starts")
    return parameter


def _changed_keys(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {**old, **new}:
            yield from _changed_keys(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif old != new:
        yield path
