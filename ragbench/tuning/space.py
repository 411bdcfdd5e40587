"""Search spaces: which parameters of a configuration are varied, and between what.

A space mirrors the configuration: `tune.space.p6.depth` says what `p6.depth` may be. A leaf has `low` and `high` (whole
numbers make a whole-number parameter), optionally `step` or `log`; or `choices`. `when` names a stage that must be on
or another parameter that must be true; `costly` says that the value changes how long a query takes. Parameters of
stages that are off are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ragbench.bounds import Checked
from ragbench.configuration import Settings, build
from ragbench.errors import ConfigError

if TYPE_CHECKING:
    from optuna import Trial

Value = bool | int | float | str
Values = Mapping[str, Value]
"""By key, the value of every parameter that has a say; those whose condition does not hold are absent."""


@dataclass(frozen=True)
class Parameter(Checked):
    """One parameter: its `key` in the configuration and what it may be; `also` are keys that interpolate it."""

    key: str
    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    when: str | None = None
    costly: bool = False
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
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return not self.choices and all(isinstance(bound, int) for bound in (self.low, self.high, self.step or 0))

    @property
    def ends(self) -> tuple[Value, ...]:
        """The values between which it lies, or all choices."""
        return self.choices or (self.low or 0, self.high or 0)

    def suggest(self, trial: Trial) -> Value:
        """The value that a trial tries."""
        if self.choices:
            return cast(Value, trial.suggest_categorical(self.key, self.choices))
        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(self.key, int(self.low or 0), int(self.high or 0), step=step, log=self.log)
        return tidy(trial.suggest_float(self.key, self.low or 0.0, self.high or 0.0, step=self.step, log=self.log))

    def contains(self, value: Any) -> bool:
        """Whether a search could try the value."""
        if self.choices:
            return value in self.choices
        low, high = float(self.low or 0), float(self.high or 0)
        if not low <= value <= high or (self.whole and value != int(value)):
            return False
        return self.step is None or abs((value - low) / self.step - round((value - low) / self.step)) < 1e-6

    def place(self, value: Any) -> float:
        """Where a value lies between low (0) and high (1), on the scale of the search; not for choices."""
        scale = math.log if self.log else float
        low, high = scale(self.low or 0.0), scale(self.high or 0.0)
        return (scale(value) - low) / (high - low)


def tidy(value: float) -> float:
    """Three significant digits: what a person would write, and what tells nearly equal trials they are the same."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def space(base: Settings, compose: Callable[[Sequence[str]], Settings]) -> tuple[Parameter, ...]:
    """The parameters of `base.config['tune']['space']` whose stages are on, those without a condition first.

    `compose` turns overrides into settings: with all parameters changed to learn which keys follow.
    """
    stages = [name for name, _ in base.pipeline]
    kept = []
    for key, node in _leaves(base.config["tune"]["space"] or {}, ""):
        parameter = build(Parameter, {**node, "key": key}, f"tune.space.{key}")
        if key.split(".")[0] not in base.config:
            raise ConfigError(f"tune.space.{key} names nothing in the configuration (see ragbench config)")
        if key.startswith("index."):
            raise ConfigError(f"tune cannot vary {key}: it shapes the index; sweep it with ragbench run -m")
        if any(key.startswith(f"{stage}.") for stage in stages):
            if value_of(base, key) is None:
                raise ConfigError(f"tune.space.{key} names no value of the configuration: give {key} one first")
            kept.append(parameter)
    keys = {parameter.key for parameter in kept}
    found = [p for p in kept if p.when is None or p.when in keys or _is_on(base, p.when, stages)]
    if not found:
        raise ConfigError("tune finds no parameter to vary: turn on a stage that has one, or add to tune.space")
    found.sort(key=lambda parameter: parameter.when in keys)
    follows = _followers(found, base, compose)
    return tuple(_checked(replace(parameter, also=follows[parameter.key]), base) for parameter in found)


def apply(base: Settings, parameters: Sequence[Parameter], values: Values) -> Settings:
    """The settings with these values; equal to composing `overrides(values)` on top."""
    settings = base
    for parameter in parameters:
        if parameter.key in values:
            for key in (parameter.key, *parameter.also):
                settings = settings.with_value(key, values[parameter.key])
    return settings


def suggest(parameters: Sequence[Parameter], trial: Trial) -> dict[str, Value]:
    """The values that a trial tries; a parameter whose condition is false is left out."""
    varied = {parameter.key for parameter in parameters}
    values: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.when not in varied or values.get(parameter.when or "", False):
            values[parameter.key] = parameter.suggest(trial)
    return values


def configured(parameters: Sequence[Parameter], base: Settings) -> dict[str, Value]:
    """The values that the configuration has, without those whose condition is false."""
    varied = {parameter.key for parameter in parameters}
    values = {parameter.key: value_of(base, parameter.key) for parameter in parameters}
    return {p.key: values[p.key] for p in parameters if p.when not in varied or values[p.when or ""]}


def overrides(values: Values) -> list[str]:
    """The values as a person types them."""
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items()]


def value_of(settings: Settings, key: str) -> Any:
    """The value of a dotted key, None where there is none."""
    node: Any = settings.config
    for part in key.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _leaves(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, each in node.items():
        if each is None:
            continue
        if not isinstance(each, Mapping):
            raise ConfigError(f"tune.space.{path}{name} must be a mapping with low and high, or choices; got {each!r}")
        if any(isinstance(item, Mapping) for item in each.values()) or not each:
            yield from _leaves(each, f"{path}{name}.")
        else:
            yield f"{path}{name}", each


def _is_on(base: Settings, condition: str, stages: Sequence[str]) -> bool:
    return any(stage == condition or stage.startswith(f"{condition}.") for stage in stages) or (
        value_of(base, condition) is True
    )


def _followers(
    parameters: Sequence[Parameter], base: Settings, compose: Callable[[Sequence[str]], Settings]
) -> dict[str, tuple[str, ...]]:
    """By parameter, the other keys that interpolate it: found by changing all at once, else one by one."""
    other = {p.key: next(end for end in p.ends if end != value_of(base, p.key)) for p in parameters}
    composed = compose([*base.overrides, *overrides(other)])
    follows: dict[str, list[str]] = {key: [] for key in other}
    for key in _changed(base.config, composed.config, ""):
        if key in other:
            continue
        before, after = value_of(base, key), value_of(composed, key)
        leaders = [led for led, value in other.items() if value == after and value_of(base, led) == before]
        if len(leaders) != 1:
            if len(parameters) == 1:
                raise ConfigError(
                    f"tune cannot vary {parameters[0].key}: {key} depends on it in a way it cannot follow"
                )
            return {p.key: _followers([p], base, compose)[p.key] for p in parameters}
        follows[leaders[0]].append(key)
    return {key: tuple(keys) for key, keys in follows.items()}


def _checked(parameter: Parameter, base: Settings) -> Parameter:
    """The parameter; every end of it must make a pipeline over the same index."""
    for end in parameter.ends:
        settings = apply(base, [parameter], {parameter.key: end})
        _ = settings.pipeline
        if settings.index != base.index:
            raise ConfigError(f"tune cannot vary {parameter.key}: it shapes the index; sweep it with ragbench run -m")
    return parameter


def _changed(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in before:
            yield from _changed(before[key], after.get(key), f"{path}.{key}" if path else str(key))
    elif before != after:
        yield path
