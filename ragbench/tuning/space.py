"""Search spaces: which parameters of a configuration are varied, and between what.

A space mirrors the configuration: `tune.space.p6.depth` says what `p6.depth` may be. A leaf has `low` and `high` (whole
numbers make a whole-number parameter), optionally `step` or `log`; or `choices`. `when` names a stage that must be on,
another parameter that must be true, or, as `fuse.method=convex`, must have a value; `unless` names a key that must have
none; `costly` says that the value changes how long a query takes. Parameters of stages that are off are passed over.

`tune.starts` are overrides, each a place to begin besides the preset: other experiments, or what shapes the index,
which then has a variant for each start and no more. Which one is best is a parameter as others are, `start`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from ragbench.bounds import Checked
from ragbench.configuration import Settings, build
from ragbench.configuration.build import at
from ragbench.errors import ConfigError
from ragbench.workshop import Say

if TYPE_CHECKING:
    from optuna import Trial

START = "start"
"""The key of the parameter that says which of `tune.starts` a trial changes; the preset is `""`."""

Value = bool | int | float | str
Values = Mapping[str, Value]
"""By key, the value of every parameter that has a say; those whose condition does not hold are absent."""


@dataclass(frozen=True)
class Parameter(Checked):
    """One parameter: its `key` in the configuration and what it may be; `also` are keys that interpolate it.

    `starts` are those in which it has a say. The parameter `start` holds the settings of every start in `begins`.
    """

    key: str
    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    when: str | None = None
    costly: bool = False
    unless: str | None = None
    also: tuple[str, ...] = ()
    starts: tuple[str, ...] = ("",)
    begins: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

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


def space(
    base: Settings, compose: Callable[[Sequence[str]], Settings], say: Say = lambda sentence: None
) -> tuple[Parameter, ...]:
    """The parameters of `base.config['tune']['space']` whose stages are on in any start, `start` first where there are.

    `compose` turns overrides into settings: those of starts, and with all parameters changed to learn which keys
    follow. A start that does not go with the preset's own overrides is left out and said. Parameters without a
    condition come before others.
    """
    begins = {"": base}
    for words in base.tune.starts:
        try:
            settings = compose([*base.overrides, *shlex.split(words)])
        except ConfigError as error:
            say(f"tune.starts: '{words}' does not go with this preset and is left out: {error}")
            continue
        if all((settings.pipeline, settings.index) != (each.pipeline, each.index) for each in begins.values()):
            begins[words] = settings
    kept: dict[str, Parameter] = {}
    for words, settings in begins.items():
        for each in _of_start(base, settings, compose):
            known = kept.get(each.key)
            follows = tuple(dict.fromkeys((*(known.also if known else ()), *each.also)))
            kept[each.key] = replace(each, also=follows, starts=(*(known.starts if known else ()), words))
    if not kept:
        raise ConfigError("tune finds no parameter to vary: turn on a stage that has one, or add to tune.space")
    keys = set(kept)
    found = sorted(kept.values(), key=lambda parameter: _key(parameter.when) in keys)
    if len(begins) > 1:
        found.insert(0, Parameter(START, choices=tuple(begins), costly=True, starts=tuple(begins), begins=begins))
    return tuple(found)


def _of_start(base: Settings, settings: Settings, compose: Callable[[Sequence[str]], Settings]) -> list[Parameter]:
    stages = [name for name, _ in settings.pipeline]
    kept = []
    for key, node in _leaves(base.config["tune"]["space"] or {}, ""):
        parameter = build(Parameter, {**node, "key": key}, f"tune.space.{key}")
        if key.split(".")[0] not in base.config:
            raise ConfigError(f"tune.space.{key} names nothing in the configuration (see ragbench config)")
        if key.startswith("index."):
            raise ConfigError(f"tune cannot vary {key}: it shapes the index; give its values as tune.starts")
        if parameter.unless is not None and value_of(settings, parameter.unless):
            continue
        if any(key.startswith(f"{stage}.") for stage in stages):
            if value_of(settings, key) is None:
                raise ConfigError(f"tune.space.{key} names no value of the configuration: give {key} one first")
            kept.append(parameter)
    keys = {parameter.key for parameter in kept}
    found = [p for p in kept if p.when is None or _key(p.when) in keys or _is_on(settings, p.when, stages)]
    follows = _followers(found, settings, compose) if found else {}
    return [_checked(replace(parameter, also=follows[parameter.key]), settings) for parameter in found]


def _key(condition: str | None) -> str:
    return (condition or "").partition("=")[0]


def start_of(base: Settings, parameters: Sequence[Parameter], values: Values) -> Settings:
    """The settings that these values change."""
    start = values.get(START, "")
    return next(p.begins[str(start)] for p in parameters if p.key == START) if start else base


def apply(base: Settings, parameters: Sequence[Parameter], values: Values) -> Settings:
    """The settings with these values; equal to composing `overrides(values)` on top."""
    start, settings = str(values.get(START, "")), start_of(base, parameters, values)
    for parameter in parameters:
        if parameter.key in values and parameter.key != START and start in parameter.starts:
            for key in (parameter.key, *(each for each in parameter.also if value_of(settings, each) is not None)):
                settings = settings.with_value(key, values[parameter.key])
    return settings


def suggest(parameters: Sequence[Parameter], trial: Trial) -> dict[str, Value]:
    """The values that a trial tries; a parameter whose condition does not hold is left out."""
    values: dict[str, Value] = {}
    for parameter in parameters:
        start = str(values.get(START, ""))
        if start in parameter.starts and _has_a_say(parameter, _varied(parameters, start), values):
            values[parameter.key] = parameter.suggest(trial)
    return values


def configured(parameters: Sequence[Parameter], base: Settings, start: str = "") -> dict[str, Value]:
    """The values that a start has, the preset's by default, without those whose condition does not hold."""
    varied, settings = _varied(parameters, start), start_of(base, parameters, {START: start})
    values = {key: start if key == START else value_of(settings, key) for key in varied}
    return {p.key: values[p.key] for p in parameters if p.key in varied and _has_a_say(p, varied, values)}


def changed(parameters: Sequence[Parameter], base: Settings, values: Values) -> dict[str, Value]:
    """The values that differ from those of the start, which is among them where it is not the preset."""
    settings = start_of(base, parameters, values)
    changes = {k: v for k, v in values.items() if k != START and v != value_of(settings, k)}
    return {START: values[START], **changes} if values.get(START) else changes


def _varied(parameters: Sequence[Parameter], start: str) -> dict[str, None]:
    """The keys that are varied in a start, in their order."""
    return {parameter.key: None for parameter in parameters if start in parameter.starts}


def _has_a_say(parameter: Parameter, varied: Collection[str], values: Values) -> bool:
    """Whether the condition holds; one on what is not varied has been looked at already."""
    key, equals, wanted = (parameter.when or "").partition("=")
    if key not in varied:
        return True
    return str(values.get(key)) == wanted if equals else bool(values.get(key, False))


def overrides(values: Values) -> list[str]:
    """The values as a person types them; those of the start first."""
    begun = shlex.split(str(values.get(START, "")))
    rest = {key: value for key, value in values.items() if key != START}
    return [*begun, *(f"{key}={str(v).lower() if isinstance(v, bool) else v}" for key, v in rest.items())]


def value_of(settings: Settings, key: str) -> Any:
    """The value of a dotted key, None where there is none; a field of words without a weight has 0."""
    value = at(settings.config, key.split("."))
    *parents, _ = key.split(".")
    no_weight = value is None and parents[-1:] == ["fields"] and isinstance(at(settings.config, parents), Mapping)
    return 0.0 if no_weight else value


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
    key, equals, wanted = condition.partition("=")
    if equals:
        return str(value_of(base, key)) == wanted
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
        leaders = [led for led in leaders if led.rpartition(".")[2] == key.rpartition(".")[2]] or leaders
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
        settings = apply(base, [replace(parameter, starts=("",))], {parameter.key: end})
        _ = settings.pipeline
        if settings.index != base.index:
            raise ConfigError(f"tune cannot vary {parameter.key}: it shapes the index; give its values as tune.starts")
    return parameter


def _changed(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            yield from _changed(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif before != after:
        yield path
