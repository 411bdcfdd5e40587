"""The section `tune` and search spaces: which parameters of a configuration are varied, and over which values.

A space mirrors the configuration: `tune.space.p6.depth` has the values that `p6.depth` may take. A leaf has `low` and
`high` (whole numbers make a whole-number parameter), optionally `step` or `log`; or `choices`. `when` names a stage
that must be on, another parameter that must be true, or one with its value, such as `fuse.method=convex`; `unless`
names a key that must have no value; `costly` says that the value changes how long a query takes. Parameters of stages
that are off are ignored.

`tune.starts` are overrides, each a starting point in addition to the preset: other experiments, or settings that shape
the index. The parameter `start` chooses one of them. `tune.index_variants` adds starts, drawn from the choices of
`tune.space.index`, until there are that many indexes; each is built once. `tune.switches` are switches that a trial
turns on and off; they must not shape the index."""

from __future__ import annotations

import logging
import math
import random
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from annotated_types import MinLen

from ragbench.base.bounds import Constraint, Count, Name, Positive, Seed, Validated, one_of
from ragbench.base.build import build, value_at
from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import digest
from ragbench.base.suggestions import did_you_mean
from ragbench.boundary.permissions import Capability, Needs
from ragbench.config import catalogue
from ragbench.config.settings import Settings

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

_LOG = logging.getLogger(__name__)

SAMPLERS = ("tpe", "nsga2", "random")

_HALVING = "halving"
_INDEX = "index."
DRAWS = 200
"""The most draws of index variants."""
START = "start"
"""The key of the parameter that chooses which of `tune.starts` a trial changes; `""` is the preset."""
Value = bool | int | float | str
Values = Mapping[str, Value]
"""The values of all parameters whose condition holds, by key."""


@dataclass(frozen=True)
class TuneSpec(Validated):
    """Settings of a hyperparameter search; `space` gives the ranges (`ragbench.extras.fit.tuning.space`)."""

    trials: Count = 200
    # measures, `silence`, p95_ms; the first one decides between Pareto-optimal configurations
    objective: Annotated[tuple[Name, ...], MinLen(1)] = ("ndcg_at_10",)
    p95_ms: Positive | None = None  # maximum p95 latency in milliseconds; null: no limit
    # outer cross-validation folds over groups of queries; 0: none
    folds: Annotated[int, Constraint(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
    # repetitions of the cross-validation; null: 1, or 3 without test queries
    repeats: Count | None = None
    fold_trials: Count | None = None  # trials in each fold; null: as many as `trials`
    seed: Seed = 13
    # tpe, nsga2 or random; tpe for one objective and nsga2 for several when null
    sampler: Annotated[str, one_of(*SAMPLERS)] | None = None
    processes: Count = 1  # parallel processes, each with its own Java
    candidates: Count = 8  # maximum number of configurations that are timed at the end
    # journal of the trials; null: journal.log in the folder of the study
    storage: Annotated[Name, Needs(Capability.WRITES)] | None = None
    memory_mb: Count = 512  # memory of each process for intermediate results
    # halving: a trial continues with more queries only while it is in the best third; null: always all queries
    fidelity: Annotated[str, one_of(_HALVING)] | None = None
    starts: tuple[str, ...] = ()  # additional starting points; each index that they need is built once
    # starts with values of tune.space.index are added up to this number of indexes; null adds none
    index_variants: Count | None = None
    switches: tuple[
        str, ...
    ] = ()  # options that a trial turns on and off, such as [p6, p8, graph]; none may change the index
    space: Mapping[str, Any] = field(default_factory=dict)  # values to try, by key


def spec_of(settings: Settings) -> TuneSpec:
    """The section of a configuration."""
    return build(TuneSpec, settings.config["tune"], "tune")


@dataclass(frozen=True)
class Parameter(Validated):
    """One parameter: its `key` in the configuration and its possible values; `also` are keys that interpolate it.

    The parameter `start` and switches choose among options, which are in `structures`.
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
    is_switch: bool = False
    structures: Structures | None = field(default=None, repr=False, compare=False)

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

    def normalized(self, value: Any) -> float:
        """Where a value lies between low (0) and high (1), on the scale of the search; not for choices."""
        scale = math.log if self.log else float
        low, high = scale(self.low or 0.0), scale(self.high or 0.0)
        return (scale(value) - low) / (high - low)


def tidy(value: float) -> float:
    """Round to three significant digits, so that values are readable and nearly equal trials become equal."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def space(base: Settings, compose: Callable[[Sequence[str]], Settings]) -> tuple[Parameter, ...]:
    """The parameters of `base.config['tune']['space']` that apply to any start with any switch.

    `start` comes first where there is more than one, then the switches of `tune.switches`, then parameters without a
    condition, then the others. `compose` turns overrides into settings: of starts and switches, and of all parameters
    changed at once, which shows the keys that follow them. A start or switch that does not fit the preset is excluded.
    """
    structures = Structures(base, compose)
    for start_overrides in spec_of(base).starts:
        try:
            structures.add(start_overrides)
        except ConfigError as error:
            _LOG.info(f"tune.starts: '{start_overrides}' does not fit this preset and is excluded: {error}")
    structures.add_index_variants()
    switches = [
        parameter for parameter in (structures.switch(name) for name in spec_of(base).switches) if parameter is not None
    ]
    unique: dict[str, Parameter] = {}
    for settings in structures.all():
        for parameter in _of_structure(settings, structures):
            earlier = unique.get(parameter.key)
            unique[parameter.key] = replace(
                parameter, also=tuple(dict.fromkeys((*(earlier.also if earlier else ()), *parameter.also)))
            )
    if not unique and not switches:
        raise ConfigError("tune finds no parameter to vary: turn on a stage that has one, or add to tune.space")
    keys = set(unique)
    parameters = [*switches, *sorted(unique.values(), key=lambda parameter: _key(parameter.when) in keys)]
    if len(structures.starts) > 1:
        parameters.insert(0, Parameter(START, choices=structures.starts, costly=True, structures=structures))
    return tuple(parameters)


class Structures:
    """The settings of every start with every choice of switches, composed when first needed."""

    def __init__(self, base: Settings, compose: Callable[[Sequence[str]], Settings]) -> None:
        self.base = base
        self.starts: tuple[str, ...] = ("",)
        self.options: dict[str, tuple[str, ...]] = {}
        self._compose = compose
        self._known: dict[tuple[str, ...], Settings | None] = {(): base}
        self._varied: dict[tuple[str, ...], frozenset[str]] = {}

    def compose(self, overrides: Sequence[str], onto: Settings | None = None) -> Settings:
        """The preset, or the settings `onto`, with further overrides. Raises ConfigError."""
        return self._compose([*(onto or self.base).overrides, *overrides])

    def add(self, overrides: str) -> bool:
        """Add a start, unless it is one already. Raises ConfigError."""
        settings = self.compose(shlex.split(overrides))
        composed = [self.of({START: start}) for start in self.starts]
        if any(
            (settings.pipeline, settings.index) == (other_settings.pipeline, other_settings.index)
            for other_settings in composed
        ):
            return False
        self._known[tuple(shlex.split(overrides))] = settings
        self.starts = (*self.starts, overrides)
        return True

    def add_index_variants(self) -> None:
        """Add starts with choices of `tune.space.index`, drawn by the seed, until `tune.index_variants` are there."""
        spec, choices = spec_of(self.base), _index_choices(self.base)
        draw, starts = random.Random(spec.seed), self.starts
        for _ in range(DRAWS if choices else 0):
            if len({digest(self.of({START: start}).index) for start in self.starts}) >= (spec.index_variants or 0):
                return
            values = {key: draw.choice(values) for key, values in choices.items()}
            kept_overrides = [
                override for override in shlex.split(draw.choice(starts)) if override.partition("=")[0] not in values
            ]
            variant = shlex.join([*kept_overrides, *overrides(values)])
            try:
                settings = self.compose(shlex.split(variant))
            except ConfigError:
                continue  # such as min_chars above max_chars
            if all(settings.index != self.of({START: start}).index for start in self.starts):
                self.add(variant)

    def switch(self, name: str) -> Parameter | None:
        """A switch as a parameter; None where fewer than two of its options fit the preset.

        Raises ConfigError for a name that is not a switch.
        """
        groups = {group.name: group for group in catalogue.read().switches}
        if name not in groups:
            raise ConfigError(f"tune.switches names '{name}', which is not a switch{did_you_mean(name, groups)}")
        usable: dict[str, None] = {}
        for start in self.starts:
            usable |= {
                option.name: None for option in groups[name].options if self.fits({START: start}, name, option.name)
            }
        if len(usable) < 2:
            _LOG.info(
                f"tune.switches: '{name}' is excluded: its options do not fit this preset, or they shape the index"
            )
            return None
        self.options[name] = tuple(usable)
        return Parameter(name, choices=tuple(usable), costly=True, is_switch=True, structures=self)

    def fits(self, values: Values, name: str, option: Value) -> bool:
        """Whether a switch may have this option with the values: both are accepted, and the index stays the same."""
        overrides = self._words({**values, name: option}, (*self.options, name))
        if overrides not in self._known:
            try:
                composed = self.compose(overrides)
                _ = composed.pipeline  # refuses stages that do not go together
                self._known[overrides] = composed
            except ConfigError:
                self._known[overrides] = None
        settings = self._known[overrides]
        return settings is not None and settings.index == self.of({START: values.get(START, "")}).index

    def options_of(self, start: str) -> dict[str, Value]:
        """The option of every switch at a start, without switches whose parameters have values that no option has."""
        settings, applicable = self.of({START: start}), {}
        for name, options in self.options.items():
            for option in options:
                if self.fits({START: start}, name, option) and (
                    self.of({START: start, name: option}).pipeline == settings.pipeline
                ):
                    applicable[name] = cast("Value", option)
                    break
        return applicable

    def of(self, values: Values) -> Settings:
        """The settings of a start and the switches among the values."""
        overrides = self._words(values, tuple(self.options))
        if overrides not in self._known:
            self._known[overrides] = self.compose(overrides)
        settings = self._known[overrides]
        if settings is None:
            raise ConfigError(f"{' '.join(overrides)} does not go with this preset")
        return settings

    def varied_keys(self, values: Values) -> frozenset[str]:
        """The keys of the parameters that apply to this start with these switches."""
        overrides = self._words(values, tuple(self.options))
        if overrides not in self._varied:
            self._varied[overrides] = frozenset(parameter.key for parameter in _applicable(self.base, self.of(values)))
        return self._varied[overrides]

    def all(self) -> Iterator[Settings]:
        """The settings of every start, and of every start with each option of each switch alone."""
        for start in self.starts:
            yield self.of({START: start})
            for name, options in self.options.items():
                for option in options:
                    if self.fits({START: start}, name, option):
                        yield self.of({START: start, name: option})

    def _words(self, values: Values, switches: Sequence[str]) -> tuple[str, ...]:
        chosen = (f"{name}={values[name]}" for name in switches if name in values)
        return (*shlex.split(str(values.get(START, ""))), *chosen)


def _index_choices(base: Settings) -> dict[str, tuple[Value, ...]]:
    """The choices of the parameters that shape the index, by key."""
    choices = {}
    for key, node in _leaves(base.config["tune"]["space"] or {}, ""):
        if key.startswith(_INDEX):
            choices[key] = build(Parameter, {**node, "key": key}, f"tune.space.{key}").choices
            if not choices[key]:
                raise ConfigError(
                    f"tune.space.{key} must have choices: it shapes the index, so each value needs another index"
                )
    return choices


def _applicable(base: Settings, settings: Settings) -> list[Parameter]:
    """The parameters of the space of `base` that apply to these settings."""
    stages = [name for name, _ in settings.pipeline]
    applicable = []
    for key, node in _leaves(base.config["tune"]["space"] or {}, ""):
        parameter = build(Parameter, {**node, "key": key}, f"tune.space.{key}")
        if key.split(".")[0] not in base.config:
            raise ConfigError(f"tune.space.{key} names nothing in the configuration (see ragbench list config)")
        if key.startswith(_INDEX) or (parameter.unless is not None and value_of(settings, parameter.unless)):
            continue
        if any(key.startswith(f"{stage}.") for stage in stages):
            if value_of(settings, key) is None:
                raise ConfigError(f"tune.space.{key} names no value of the configuration: give {key} one first")
            applicable.append(parameter)
    keys = {parameter.key for parameter in applicable}
    return [p for p in applicable if p.when is None or _key(p.when) in keys or _is_on(settings, p.when, stages)]


def _of_structure(settings: Settings, structures: Structures) -> list[Parameter]:
    """The parameters that apply to these settings, checked, with the keys that follow each."""
    parameters = _applicable(structures.base, settings)
    follows = _followers(parameters, settings, structures) if parameters else {}
    return [_check(replace(parameter, also=follows[parameter.key]), settings) for parameter in parameters]


def _key(condition: str | None) -> str:
    return (condition or "").partition("=")[0]


def _structures(parameters: Sequence[Parameter]) -> Structures | None:
    """The options that the starts and switches among the parameters choose from; None without any."""
    return next((parameter.structures for parameter in parameters if parameter.structures is not None), None)


def start_of(base: Settings, parameters: Sequence[Parameter], values: Values) -> Settings:
    """The settings that these values change: those of the start, with the switches among the values."""
    structures = _structures(parameters)
    return structures.of(values) if structures is not None else base


def apply(base: Settings, parameters: Sequence[Parameter], values: Values) -> Settings:
    """The settings with these values; equal to composing `overrides(values)` on top."""
    settings = start_of(base, parameters, values)
    for parameter in parameters:
        if parameter.key in values and parameter.key != START and not parameter.is_switch:
            for key in (parameter.key, *(key for key in parameter.also if value_of(settings, key) is not None)):
                settings = settings.with_values({key: values[parameter.key]})
    return settings


def suggest(parameters: Sequence[Parameter], trial: BaseTrial) -> dict[str, Value]:
    """The values that a trial tries, without parameters whose condition does not hold.

    A switch whose option does not fit the start and the switches before it is excluded, too: it keeps its option.
    """
    structures = _structures(parameters)
    values: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.key == START or (structures is not None and parameter.is_switch):
            tried = parameter.suggest(trial)
            if structures is None or parameter.key == START or structures.fits(values, parameter.key, tried):
                values[parameter.key] = tried
    varied = _varied_keys(parameters, values)
    for parameter in parameters:
        if parameter.key in varied and _condition_holds(parameter, varied, values):
            values[parameter.key] = parameter.suggest(trial)
    return values


def configured_values(parameters: Sequence[Parameter], base: Settings, start: str = "") -> dict[str, Value]:
    """The values of a start (default: of the preset), without parameters whose condition does not hold."""
    values = _start_and_switches(parameters, start)
    settings, varied = start_of(base, parameters, {START: start}), _varied_keys(parameters, {START: start})
    values |= {p.key: value_of(settings, p.key) for p in parameters if p.key in varied}
    return {
        p.key: values[p.key]
        for p in parameters
        if p.key in values and (p.key not in varied or _condition_holds(p, varied, values))
    }


def changed_values(parameters: Sequence[Parameter], base: Settings, values: Values) -> dict[str, Value]:
    """The values that differ from those of the start, including the start and switches that differ from the preset."""
    settings, original = start_of(base, parameters, values), _start_and_switches(parameters, str(values.get(START, "")))
    switched = {p.key for p in parameters if p.is_switch}
    return {
        key: value
        for key, value in values.items()
        if value != ("" if key == START else original.get(key) if key in switched else value_of(settings, key))
    }


def _start_and_switches(parameters: Sequence[Parameter], start: str) -> dict[str, Value]:
    """The start and the options of its switches, as far as they are varied."""
    structures = _structures(parameters)
    if structures is None:
        return {}
    return {**({START: start} if any(p.key == START for p in parameters) else {}), **structures.options_of(start)}


def _varied_keys(parameters: Sequence[Parameter], values: Values) -> frozenset[str]:
    """The keys that are varied at the start and switches among the values, other than start and switches."""
    structures = _structures(parameters)
    keys = frozenset(p.key for p in parameters if p.key != START and not p.is_switch)
    return keys if structures is None else keys & structures.varied_keys(values)


def _condition_holds(parameter: Parameter, varied: Collection[str], values: Values) -> bool:
    """Whether the condition of a parameter holds; conditions on keys that are not varied were checked before."""
    key, equals, option = (parameter.when or "").partition("=")
    if key not in varied:
        return True
    return str(values.get(key)) == option if equals else bool(values.get(key, False))


def overrides(values: Values) -> list[str]:
    """The values as typed, the words of the start first."""
    first = shlex.split(str(values.get(START, "")))
    values_of_keys = {key: value for key, value in values.items() if key != START}
    return [*first, *(f"{key}={str(v).lower() if isinstance(v, bool) else v}" for key, v in values_of_keys.items())]


def value_of(settings: Settings, key: str) -> Any:
    """The value of a dotted key, None where there is none; a searched field without a weight has 0."""
    value = value_at(settings.config, key.split("."))
    *parents, _ = key.split(".")
    no_weight = value is None and parents[-1:] == ["fields"] and isinstance(value_at(settings.config, parents), Mapping)
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


def _followers(parameters: Sequence[Parameter], base: Settings, structures: Structures) -> dict[str, tuple[str, ...]]:
    """The other keys that interpolate a parameter, by its key: found by changing all at once, else one by one."""
    other_ends = {p.key: next(end for end in p.ends if end != value_of(base, p.key)) for p in parameters}
    composed = structures.compose(overrides(other_ends), base)
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
            return {p.key: _followers([p], base, structures)[p.key] for p in parameters}
        follows[leaders[0]].append(key)
    return {key: tuple(keys) for key, keys in follows.items()}


def _check(parameter: Parameter, base: Settings) -> Parameter:
    """The parameter, after a check that its ends give a pipeline over the same index. Raises ConfigError."""
    for end in parameter.ends:
        settings = apply(base, [parameter], {parameter.key: end})
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
