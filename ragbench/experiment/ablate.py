"""An ablation: the arms of a design, run together, and the verdict on every factor.

A factor is something that is on or off. A design names the arms it needs and the contrasts it draws between them; a
contrast turns the values of arms into one pair of values per query, which is then compared like any two arms. An arm is
named by the factors that are on, so that two designs over the same factors share it.

An effect is on minus off. An interaction is how much the effect of one factor grows when the other is turned on,
(both + neither) - (one + other): twice the interaction of the Yates convention. All main effects of a design are one
family, all interactions another.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations, compress, product
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base.files import write_text
from ragbench.base.options import Constraint, Natural, Validated, build
from ragbench.base.types import ConfigError
from ragbench.config import available
from ragbench.config.composition import with_added_stages
from ragbench.config.overrides import section_of, word
from ragbench.config.settings import Settings
from ragbench.evidence.arms import Arms, JudgedContrast
from ragbench.evidence.statistics import Contrast
from ragbench.results import measurements
from ragbench.results.measurements import Measurements
from ragbench.search.engine.pipeline import MissingInput

_Values = Mapping[str, NDArray[np.float64]]
"""By arm, one value per query, shape (n,), queries in the same order in every arm."""

_MOST_ARMS = 1024


@dataclass(frozen=True)
class Design(Validated, ABC):
    """Factors (kept in natural order: p2 before p10), the arms to run, and the contrasts between them.

    `whole` is the name of the arm with all factors on.
    """

    factors: tuple[str, ...]
    whole: str = field(default="all", kw_only=True)
    name: ClassVar[str]
    min_factors: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for factor in self.factors:
            if not re.fullmatch(r"\w+", factor) or factor in ("all", "none"):
                raise ConfigError(f"factor '{factor}' must be a word of letters, digits and _, and not 'all' or 'none'")
        if repeated := [factor for factor, count in Counter(self.factors).items() if count > 1]:
            raise ConfigError(f"factor '{repeated[0]}' is named twice; name every factor once")
        if len(self.factors) < self.min_factors:
            raise ConfigError(f"design={self.name} needs {self.min_factors} or more factors, got {len(self.factors)}")
        object.__setattr__(self, "factors", tuple(sorted(self.factors, key=_natural_key)))

    @abstractmethod
    def coalitions(self) -> Iterable[Collection[str]]:
        """The factors that are on in every arm, the base first where there is one; repetitions are allowed."""

    @abstractmethod
    def contrasts(self) -> tuple[Contrast, ...]:
        """Main effects in the order of the factors, then interactions."""

    @abstractmethod
    def describe(self) -> str:
        """One sentence for the methods section."""

    def arms(self) -> dict[str, dict[str, bool]]:
        """By arm name, the state of every factor; every arm once."""
        return {self.arm(on): {factor: factor in on for factor in self.factors} for on in self.coalitions()}

    def arm(self, on: Collection[str]) -> str:
        """The name of the arm with these factors on: `none`, `p1+p6`, `all-p3`, `all`; or `phase1-p2`, `phase1`."""
        off = [factor for factor in self.factors if factor not in on]
        if not off:
            return self.whole
        if len(off) < len(on):
            return "-".join([self.whole, *off])
        return "+".join(factor for factor in self.factors if factor in on) or "none"

    def standard_errors(self, values: _Values) -> Mapping[str, float]:
        """By factor, the standard error from sampling arms; empty where the design does not sample."""
        return {}


class _OneAtATime(Design):
    """A base state and every factor flipped alone."""

    base_on: ClassVar[bool]

    def coalitions(self) -> Iterable[Collection[str]]:
        """The base, then one flip each."""
        return [self._flip(), *(self._flip(factor) for factor in self.factors)]

    def contrasts(self) -> tuple[Contrast, ...]:
        """Compare arms with and without a factor, the others as in the base."""
        contrasts = []
        for factor in self.factors:
            base, changed = self.arm(self._flip()), self.arm(self._flip(factor))
            with_it, without = (base, changed) if self.base_on else (changed, base)
            contrasts.append(Contrast((factor,), {with_it: 1.0}, {without: 1.0}))
        return tuple(contrasts)

    def describe(self) -> str:
        """One sentence for the methods section."""
        n, (state, flip) = len(self.factors), ("on", "off") if self.base_on else ("off", "on")
        return f"All {n} factors {state} against each turned {flip} alone ({n + 1} arms)."

    def _flip(self, flipped: str | None = None) -> tuple[str, ...]:
        """The factors that are on in the base, or after one was flipped."""
        return tuple(factor for factor in self.factors if (factor == flipped) != self.base_on)


@dataclass(frozen=True)
class _LeaveOneOut(_OneAtATime):
    """All factors on, and every factor turned off in turn."""

    name: ClassVar[str] = "leave_one_out"
    base_on: ClassVar[bool] = True


@dataclass(frozen=True)
class _AddOne(_OneAtATime):
    """All factors off, and every factor turned on alone."""

    name: ClassVar[str] = "add_one"
    base_on: ClassVar[bool] = False


@dataclass(frozen=True)
class _Factorial(Design):
    """Every combination of the factors."""

    name: ClassVar[str] = "factorial"

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 ** len(self.factors) > _MOST_ARMS:
            raise ConfigError(
                f"design=factorial over {len(self.factors)} factors needs {2 ** len(self.factors)} arms; "
                f"use design=shapley, or name at most {int(math.log2(_MOST_ARMS))} factors"
            )

    def coalitions(self) -> Iterable[Collection[str]]:
        """All combinations, all off first."""
        return [tuple(compress(self.factors, states)) for states in product((False, True), repeat=len(self.factors))]

    def contrasts(self) -> tuple[Contrast, ...]:
        """Compare the mean of the arms with a factor on and with it off; two-way interactions likewise."""
        arms = {self.arm(on): set(on) for on in self.coalitions()}
        contrasts = []
        for chosen in (*combinations(self.factors, 1), *combinations(self.factors, 2)):
            weight = 2.0 * len(chosen) / len(arms)
            plus = {arm: weight for arm, on in arms.items() if len(set(chosen) - on) % 2 == 0}
            contrasts.append(Contrast(chosen, plus, {arm: weight for arm in arms if arm not in plus}))
        return tuple(contrasts)

    def describe(self) -> str:
        """One sentence for the methods section."""
        return f"Full factorial over {len(self.factors)} factors ({2 ** len(self.factors)} arms)."


@dataclass(frozen=True)
class _Shapley(Design):
    """The total gain divided among the factors: the mean gain of a factor over the orders of adding them.

    Shapley 1953; permutation sampling by Castro, Gomez and Tejada 2009, each order with its reverse (Mitchell et al.,
    JMLR 2022). The values sum to `all` minus `none` for every query. `orders` is even and at least 4. Where all
    coalitions together are no more than the orders could touch, the values are exact and their standard error is 0.
    Intervals and p values are over queries with the sampled orders held fixed.
    """

    orders: Annotated[int, Constraint(lambda n: n >= 4 and n % 2 == 0, "must be an even number of at least 4")] = 20
    seed: Natural = 13
    name: ClassVar[str] = "shapley"
    min_factors: ClassVar[int] = 2

    @property
    def exact(self) -> bool:
        """Whether all coalitions are run."""
        n = len(self.factors)
        return bool(2**n <= 2 + self.orders * (n - 1))

    def sampled_orders(self) -> list[tuple[str, ...]]:
        """The orders in which factors are added, each followed by its reverse."""
        generator = np.random.default_rng(self.seed)
        orders = []
        for _ in range(self.orders // 2):
            order = tuple(self.factors[i] for i in generator.permutation(len(self.factors)))
            orders += [order, order[::-1]]
        return orders

    def coalitions(self) -> Iterable[Collection[str]]:
        """None, all, then the coalitions that each order passes through; or all coalitions by size."""
        if self.exact:
            return [on for size in range(len(self.factors) + 1) for on in combinations(self.factors, size)]
        return [(), self.factors, *(order[:size] for order in self.sampled_orders() for size in range(1, len(order)))]

    def contrasts(self) -> tuple[Contrast, ...]:
        """Compare the mean value after a factor joins with the mean before."""
        joined: dict[str, Counter[str]] = {factor: Counter() for factor in self.factors}
        counts: dict[str, Counter[str]] = {factor: Counter() for factor in self.factors}
        for on, factor, ways in self._joinings():
            joined[factor][self.arm((*on, factor))] += ways
            counts[factor][self.arm(on)] += ways
        orders = math.factorial(len(self.factors)) if self.exact else self.orders
        return tuple(
            Contrast((factor,), _shares(joined[factor], orders), _shares(counts[factor], orders))
            for factor in self.factors
        )

    def _joinings(self) -> Iterator[tuple[tuple[str, ...], str, int]]:
        """(factors already on, the factor that joins, number of orders in which this happens)."""
        if not self.exact:
            for order in self.sampled_orders():
                for position, factor in enumerate(order):
                    yield order[:position], factor, 1
            return
        n = len(self.factors)
        for on in map(tuple, self.coalitions()):
            for factor in self.factors:
                if factor not in on:
                    yield on, factor, math.factorial(len(on)) * math.factorial(n - len(on) - 1)

    def standard_errors(self, values: _Values) -> Mapping[str, float]:
        """The standard error of the mean over queries, from the spread of independent pairs of orders."""
        if self.exact:
            return dict.fromkeys(self.factors, 0.0)
        means = {arm: float(np.mean(values[arm])) for arm in self.arms()}
        gains: dict[str, list[float]] = {factor: [] for factor in self.factors}
        for on, factor, _ in self._joinings():
            gains[factor].append(means[self.arm((*on, factor))] - means[self.arm(on)])
        pairs = {factor: np.reshape(gains_of_factor, (-1, 2)).mean(axis=1) for factor, gains_of_factor in gains.items()}
        return {factor: float(pair.std(ddof=1) / np.sqrt(len(pair))) for factor, pair in pairs.items()}

    def describe(self) -> str:
        """One sentence for the methods section."""
        how = "exactly" if self.exact else f"over {self.orders} sampled orders (with their reverses, seed {self.seed})"
        return f"Shapley values of {len(self.factors)} factors {how} ({len(self.arms())} arms)."


_DESIGNS: Mapping[str, type[Design]] = {design.name: design for design in (_LeaveOneOut, _AddOne, _Factorial, _Shapley)}


def _design_named(name: str, factors: Sequence[str], **options: Any) -> Design:
    """The design of this name; `options` are its own parameters, such as `orders`."""
    if name not in _DESIGNS:
        raise ConfigError(f"design '{name}' is unknown; choose one of {', '.join(_DESIGNS)}")
    allowed = [field.name for field in fields(_DESIGNS[name]) if field.name not in ("factors", "whole")]
    if unknown := [option for option in options if option not in allowed]:
        raise ConfigError(f"design={name} has no option '{unknown[0]}'; it has {', '.join(allowed) or 'none'}")
    return build(_DESIGNS[name], {**options, "factors": factors}, "design_options")


def _shares(ways: Mapping[str, int], orders: int) -> dict[str, float]:
    return {arm: count / orders for arm, count in ways.items()}


def _natural_key(factor: str) -> tuple[Any, ...]:
    parts = re.split(r"(\d+)", factor)
    return (*(int(part) if i % 2 else part for i, part in enumerate(parts)), factor)


_CONDITIONS = ("calibration", "filters", "hyde", "recency")
"""Switches that are varied only when `factors` names them: they are the conditions of a search."""


@dataclass(frozen=True)
class Ablation:
    """A design with the settings of its arms, in the design's order; `notes` are sentences about its factors."""

    design: Design
    settings: tuple[Settings, ...]
    notes: tuple[str, ...] = ()


_Candidates = Mapping[str, Sequence[str]]
"""Overrides by name that are added to the base together, as one factor."""


def plan(
    base: Settings, compose: Callable[[Sequence[str]], Settings], candidates: _Candidates | None = None
) -> Ablation:
    """The arms that `base` asks for by `design`, `factors` and `design_options`; `candidates` are factors as well.

    `compose` turns overrides into settings. Without `factors` and candidates: the switches that are on in the base; for
    add_one those that the preset `all` turns on and the base does not. A switch that needs another one which is off
    becomes a factor that turns on both and has both in its name, such as `p10_with_calibration`.
    """
    candidates, basics = dict(candidates or {}), base.basics
    factors = basics.factors or ([] if candidates else _default_factors(base, basics.design))
    known = _on_off_switches()
    for factor in factors:
        if factor not in known:
            raise ConfigError(f"factor '{factor}' is not a switch; switches: {', '.join(known)}")
    if alias := next((name for name in candidates if base.has(name)), None):
        raise ConfigError(f"--arm {alias} has the name of a key of the configuration: give it another name")
    switches, notes = [str(factor) for factor in factors], []
    flipped = _flipped(base, switches, compose)
    for factor in flipped:
        missing = _missing_input(base, factor, flipped)
        if missing is None:
            continue
        both = f"{factor}_with_{_needed(missing, switches)}"
        switches = [both if switch == factor else switch for switch in switches]
        candidates[both] = (f"{factor}=on", missing.override)
        notes.append(
            f"{factor} needs {missing.meaning}: the factor {both} is {factor}=on {missing.override}, and its effect is "
            "that of both"
        )
    names = [*switches, *(factor for factor in candidates if factor not in switches)]
    design = _design_named(basics.design, names, **basics.design_options)
    design = replace(design, whole=_whole(base, names))
    arms = {}
    for arm, states in design.arms().items():
        added = [override for factor, overrides in candidates.items() if states[factor] for override in overrides]
        start = compose([*base.overrides, *added]) if added else base
        arms[arm] = _arm(start, arm, {factor: on for factor, on in states.items() if factor not in candidates}, flipped)
    return Ablation(design, tuple(arms.values()), tuple(notes))


def _whole(base: Settings, factors: Sequence[str]) -> str:
    """The name of the arm with all factors on: that of the base if they are on there, else `all`."""
    is_base = base.name not in factors and all(base.has(each) and _is_on(base.value(each)) for each in factors)
    return base.name if is_base else "all"


def _needed(missing: MissingInput, switches: Sequence[str]) -> str:
    """The switch that provides what is missing; ConfigError if the design varies it."""
    needed = section_of(missing.override)
    if needed in switches:
        raise ConfigError(f"{missing}, so '{needed}' cannot be a factor of the same design: omit one of the two")
    return needed


def _missing_input(base: Settings, factor: str, flipped: Mapping[str, Any]) -> MissingInput | None:
    """What the base lacks for a switch that is off in it; None if nothing, or if no override is known to add it."""
    if _is_on(base.value(factor)):
        return None
    try:
        _arm(base, factor, {factor: True}, flipped)
    except MissingInput as missing:
        return missing if missing.override else None
    return None


def _flipped(base: Settings, factors: Sequence[str], compose: Callable[[Sequence[str]], Settings]) -> Mapping[str, Any]:
    """The configuration of every factor with its switch flipped; None for one that is then not there.

    All are composed at once, as a composition takes a third of a second.
    """
    remaining = [override for override in base.overrides if section_of(override) not in factors]
    toggled = [f"{factor}={'off' if _is_on(base.value(factor)) else 'on'}" for factor in factors]
    try:
        composed = compose([*remaining, *toggled]).config
    except MissingInput as missing:
        if not missing.override:
            raise
        _needed(missing, factors)
        composed = compose([*remaining, *toggled, missing.override]).config
    return {factor: composed.get(factor) for factor in factors}


def _arm(base: Settings, name: str, states: Mapping[str, bool], flipped: Mapping[str, Any]) -> Settings:
    """The base with some factors flipped; the others keep all of their parameters.

    A switch that `order` does not name runs at the place of its class.
    """
    changed = [factor for factor, on in states.items() if on != _is_on(base.value(factor))]
    config = {**base.config, "name": name, **{factor: flipped[factor] for factor in changed}}
    absent = {factor for factor in changed if flipped[factor] is None}
    config = {key: value for key, value in config.items() if key not in absent}
    config["order"] = [entry for entry in base.basics.order if section_of(entry) not in absent]
    overrides = [override for override in base.overrides if section_of(override) not in (*changed, "name")]
    toggled = [f"{factor}={'on' if on else 'off'}" for factor, on in states.items() if factor in changed]
    return Settings(name, with_added_stages(config), (*overrides, *toggled, word("name", name))).check()


def judge(ablation: Ablation, results: Measurements) -> list[JudgedContrast]:
    """The verdict on every main effect of the design, one family, then its interactions, another."""
    arms, contrasts = Arms.of(results), ablation.design.contrasts()
    main = [contrast for contrast in contrasts if len(contrast.factors) == 1]
    return [*arms.judge(main), *arms.judge([contrast for contrast in contrasts if contrast not in main])]


def conclude(ablation: Ablation, results: Measurements) -> None:
    """Write the verdicts, and a description of the design, next to the results."""
    values = {arm.name: results.values(arm.name).to_numpy(dtype=np.float64) for arm in ablation.settings}
    measurements.write_verdicts(results, judge(ablation, results), ablation.design.standard_errors(values))
    sentences = [ablation.design.describe(), *(f"{note[0].upper()}{note[1:]}." for note in ablation.notes)]
    write_text(results.folder / measurements.DESIGN, "".join(f"{sentence}\n" for sentence in sentences))


def _default_factors(base: Settings, design: str) -> list[str]:
    on = [name for name in _on_off_switches() if _is_on(base.value(name)) and name not in _CONDITIONS]
    chosen = [name for name in _proposals() if name not in on] if design == "add_one" else on
    if not chosen:
        raise ConfigError(f"design={design} finds no switch to vary: add exp=all, or factors=[p1,p6]")
    return chosen


def _on_off_switches() -> list[str]:
    """The switches that can be on or off, also those of stages outside ragbench."""
    known = available.read()
    return [group for group in known.defaults if {"on", "off"} <= set(known.by_group[group])]


def _proposals() -> list[str]:
    """The switches that the preset `all` turns on."""
    overrides = available.read().preset("all").overrides
    return [override.removesuffix("=on") for override in overrides if override.endswith("=on")]


def _is_on(node: Any) -> bool:
    """Whether a switch's configuration is on: a target, a number above 0, `true`, or a part that is on."""
    if isinstance(node, Mapping):
        return "_target_" in node or any(_is_on(item) for item in node.values())
    return node is True or (isinstance(node, (int, float)) and not isinstance(node, bool) and node > 0)
