"""The comparison of arms: their measured values, judged against a base by a policy, and the table of verdicts.

All commands use this module.

The recall within a token budget is compared, too. It is secondary: a family of its own, which no verdict depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragbench.base import minimums
from ragbench.base.columns import Column, Columns
from ragbench.base.options import Confidence, Count, Validated, Weight, active, build, section
from ragbench.base.types import BenchmarkError, ResultsError
from ragbench.evaluation.machine import share_lost
from ragbench.evaluation.measures import DOCUMENT, PASSAGE, PRIMARY, has_enough_judgments, if_useful, primary
from ragbench.evaluation.passages import recall_within
from ragbench.evidence.cost import END_TO_END, RECORDED, TURNED_OFF, Cost, Times, cost
from ragbench.evidence.statistics import Comparison, Contrast, compare_all
from ragbench.evidence.verdict import LevelComparison, Verdict, judge

if TYPE_CHECKING:
    import pandas as pd

LATENCY = "latency.parquet"
_Values = Mapping[str, float]
"""Values of a measure by qid."""
_OF_LEVEL = ("effect", "ci_low", "ci_high", "p", "n", "wins", "ties", "losses", "mde", "mean", "baseline")
PREFIX = {DOCUMENT: "", PASSAGE: "passage_"}
"""How the columns of a level begin in the table of verdicts."""
_SECONDARY = ("effect", "ci_low", "ci_high", "p", "n", "mean", "baseline")
_RECALL = "recall_"
_FIELDS = {"effect": "difference", "p": "p_value", "mean": "mean_candidate", "baseline": "mean_baseline"}
"""The fields of a comparison that columns have another name for."""
VERDICT_COLUMNS = Columns.of(
    *(Column(name, text=True) for name in ("kind", "factor", "other", "verdict", "judged_by", "quality", "cost")),
    *(f"{prefix}{name}" for prefix in PREFIX.values() for name in (*_OF_LEVEL, "useful")),
    *(f"{_RECALL}{name}" for name in _SECONDARY),
    *("standard_error", "latency_ms", "latency_low", "latency_high", "budget_ms", "needs_judgments"),
    *(Column(name, text=True) for name in ("untimed", "reason")),
)
"""`kind` is main or interaction; an interaction has no verdict. `judged_by`: `quality and latency`, or `quality` alone.

Columns of passages begin with `passage_`, columns of documents have no prefix. Columns that begin with `recall_` are of
the secondary measure, the recall of passages within `context_tokens`, a family of its own. `untimed` says why the added
latency is not known. `needs_judgments`: 1 if the sign of an effect depends on unjudged hits, else 0. `p` is adjusted
for the family; NaN: not measured, or unknown."""
TYPES = Columns.of(Column("kind", text=True), "n", "few", Column("arm", text=True), "mean", "difference", "low", "high")
"""`few`: too few queries for a stable mean."""


@section("statistics")
@dataclass(frozen=True)
class StatisticsSpec(Validated):
    """Settings of the tests; `smallest_effect` is in the unit of the primary measure."""

    draws: Count = 10_000  # number of sign flips, and of bootstrap samples
    confidence: Confidence = 0.95  # confidence level of intervals and tests
    smallest_effect: Weight = 0.02  # minimum effect of interest: an effect shown to be smaller is equivalent


@section("budget")
@dataclass(frozen=True)
class BudgetSpec(Validated):
    """How much a change may add to the p95 of a query, in milliseconds; None sets no limit. Seed 000.

    A change that turns re-ranking on may add the larger of the two.
    """

    p95_ms: Weight | None = 50.0  # milliseconds that a change may add to p95 (source 000); null: no limit
    rerank_p95_ms: Weight | None = 150.0  # the same for a change that turns re-ranking on

    @property
    def of_rerank_ms(self) -> float | None:
        """The budget of a change that turns re-ranking on."""
        return None if self.p95_ms is None or self.rerank_p95_ms is None else max(self.p95_ms, self.rerank_p95_ms)


@dataclass(frozen=True)
class Policy:
    """The confidence a difference needs, the size below which it does not matter, and what it may cost.

    `measure` is that of documents, `of_passages` that of passages, the primary measure of the run.
    `exploratory`: arms were compared on these queries before (`ragbench.results.comparisons`), so nothing is adopted.
    """

    measure: str
    statistics: StatisticsSpec
    budget: BudgetSpec
    seed: int = 13
    exploratory: bool = False
    of_passages: str = PRIMARY

    @staticmethod
    def of(config: Mapping[str, Any]) -> Policy:
        """The policy of a configuration."""
        return Policy(
            primary(config),
            build(StatisticsSpec, config["statistics"], "statistics"),
            build(BudgetSpec, config["budget"], "budget"),
            int(config["seed"]),
            of_passages=primary(config),
        )

    def compare(self, candidates: ArrayLike, baselines: ArrayLike) -> list[Comparison]:
        """Compare row by row as one family (`compare_all`) with the seed, draws and confidence of the policy."""
        spec = self.statistics
        return compare_all(candidates, baselines, seed=self.seed, draws=spec.draws, confidence=spec.confidence)

    def budget_ms(self, plus: Iterable[Mapping[str, Any]], minus: Iterable[Mapping[str, Any]]) -> float | None:
        """Milliseconds that the change from configurations `minus` to `plus` may add to p95; None without a limit.

        A change that turns re-ranking on has another budget.
        """
        turned_on = all(map(_reranks, plus)) and not any(map(_reranks, minus))
        return self.budget.of_rerank_ms if turned_on else self.budget.p95_ms


def _reranks(config: Mapping[str, Any]) -> bool:
    """Whether a configuration re-ranks with a cross-encoder; False for an empty configuration."""
    return bool(config) and any(str(node["_target_"]).endswith(".Rerank") for _, node in active(config))


class Measured(Protocol):
    """The parts of a finished run that a comparison reads; `ragbench.results.measurements.Measurements` has them."""

    @property
    def record(self) -> Mapping[str, Any]:
        """The record of the run."""

    @property
    def arms(self) -> list[str]:
        """The arms, in the order they were given."""

    def values(self, arm: str, measure: str, split: str, level: str) -> pd.Series:
        """One measure of one arm by qid."""

    def arm_tables(self, name: str, columns: Sequence[str], others: bool = False) -> pd.DataFrame:
        """A table that arms wrote, with its `others` columns if asked for."""

    def config(self, arm: str) -> Mapping[str, Any]:
        """The configuration of an arm."""


@dataclass(frozen=True)
class ComparedArm:
    """One arm: values by level and qid, samples of its time, its configuration.

    `useful` are the values if unjudged hits were as useful as judged ones. `times` is None where it was not timed.
    `latency_off`: why its latency does not count, such as `RECORDED`; `failed`: why timing it failed. `secondary`:
    values of passages by measure.
    """

    levels: Mapping[str, _Values]
    useful: Mapping[str, _Values] = field(default_factory=dict)
    times: Times | None = None
    config: Mapping[str, Any] | None = None
    latency_off: str = ""
    failed: str = ""
    secondary: Mapping[str, _Values] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedContrast:
    """A contrast with its comparisons by level, its verdict, and the comparison of a secondary measure if known."""

    contrast: Contrast
    levels: Mapping[str, LevelComparison]
    verdict: Verdict
    secondary: Comparison | None = None

    @property
    def cost(self) -> Cost:
        """The time that it adds to p95, and its budget."""
        return self.verdict.cost


@dataclass(frozen=True)
class Arms:
    """Arms over the same topics, and the policy that judges them.

    All arms are one family. `selected` are those whose verdicts are shown, all when empty: the others only take part in
    the family, so that an arm has the verdict of its run, requested alone or with others. `family` names it.
    """

    arms: Mapping[str, ComparedArm]
    policy: Policy
    selected: tuple[str, ...] = ()
    family: str = ""

    @staticmethod
    def of(measured: Measured, policy: Policy | None = None, split: str = "all") -> Arms:
        """The arms of a finished run, judged by the policy it recorded unless another is given."""
        configs = {arm: measured.config(arm) for arm in measured.arms}
        policy = policy or Policy.of(configs[measured.arms[0]])
        policy = replace(policy, exploratory=int(measured.record.get("comparison", 1)) > 1)
        samples = measured.arm_tables(LATENCY, ("arm", "qid", "total"), others=True)
        machine = _of_machine(measured.record)
        timed = dict(list(samples.groupby("arm"))) if len(samples) else {}
        times = {
            str(name): replace(machine, samples=samples, elsewhere=_is_elsewhere(configs[str(name)]))
            for name, samples in timed.items()
        }
        turned_off = "" if (measured.record.get("latency") or {}).get("enabled", True) else TURNED_OFF
        failed = measured.record.get("untimed") or {}
        names = {DOCUMENT: policy.measure, PASSAGE: policy.of_passages}
        useful = {level: if_useful(measure) for level, measure in names.items()}

        def by_level(arm: str, names: Mapping[str, str]) -> dict[str, _Values]:
            values = {level: measured.values(arm, name, split, level) for level, name in names.items()}
            largest = max(map(len, values.values()))
            return {
                level: _plain(of_level)
                for level, of_level in values.items()
                if has_enough_judgments(len(of_level), largest)
            }

        recall = recall_within(int(configs[measured.arms[0]]["context_tokens"]))
        recalls = {arm: _plain(measured.values(arm, recall, split, PASSAGE)) for arm in configs}
        by_name = {
            arm: ComparedArm(
                by_level(arm, names),
                by_level(arm, useful),
                times.get(arm),
                config,
                RECORDED if _live_class(config) == "LiveRun" else turned_off,
                str(failed.get(arm, "")),
                {recall: recalls[arm]} if recalls[arm] and recall != policy.of_passages else {},
            )
            for arm, config in configs.items()
        }
        return Arms(by_name, policy, family=f"in the run of {len(by_name)} arms" if len(by_name) > 2 else "")

    def showing(self, arms: Iterable[str]) -> Arms:
        """The same family, with verdicts of some arms only."""
        return replace(self, selected=tuple(arms))

    @property
    def levels(self) -> dict[str, str]:
        """The levels that every arm was measured at, with the measure of each; documents always."""
        shared = set.intersection(*(set(arm.levels) for arm in self.arms.values()))
        measures = {DOCUMENT: self.policy.measure, PASSAGE: self.policy.of_passages}
        return {level: measure for level, measure in measures.items() if level in shared or level == DOCUMENT}

    def against(self, base: str | None = None) -> list[JudgedContrast]:
        """Every other arm against one, by default the first that is asked for: one family, those asked for shown."""
        visible = self.selected or tuple(self.arms)
        base = base if base is not None else visible[0]
        if base not in self.arms:
            raise ResultsError(f"unknown arm '{base}' to compare with; arms: {', '.join(self.arms)}")
        judged = self.judge([Contrast.of(arm, base) for arm in self.arms if arm != base])
        return [row for row in judged if row.contrast.factors[0] in visible]

    def judge(self, contrasts: Sequence[Contrast]) -> list[JudgedContrast]:
        """The verdicts on contrasts as one family; none where no values exist. Raises as `levels_of`."""
        effect = self.policy.statistics.smallest_effect
        compared, secondary = self.levels_of(contrasts), self._secondary(contrasts)
        family, exploratory = self._family(len(contrasts)), self.policy.exploratory
        return [
            JudgedContrast(contrast, levels, judge(levels, self._cost(contrast), effect, family, exploratory), second)
            for contrast, levels, second in zip(contrasts, compared, secondary, strict=bool(compared))
        ]

    def levels_of(self, contrasts: Sequence[Contrast]) -> list[dict[str, LevelComparison]]:
        """The comparisons of contrasts by level: all contrasts and both levels are one family.

        Empty where no values exist. Raises ResultsError for an arm without values where others have some.
        """
        if not contrasts or not self.judgeable:
            return []
        rows = [(contrast, level) for contrast in contrasts for level in self.levels]
        pairs = [self._pair(contrast, level, useful=False) for contrast, level in rows]
        compared = self.policy.compare(np.stack([plus for plus, _ in pairs]), np.stack([minus for _, minus in pairs]))
        levels: list[dict[str, LevelComparison]] = [{} for _ in contrasts]
        for number, ((contrast, level), comparison) in enumerate(zip(rows, compared, strict=True)):
            useful = self._if_useful(contrast, level)
            judged_level = LevelComparison(level, self.levels[level], comparison, useful)
            levels[number // len(self.levels)][level] = judged_level
        return levels

    def _secondary(self, contrasts: Sequence[Contrast]) -> list[Comparison | None]:
        """The comparisons of the first secondary measure that every arm has for the same topics, as one family.

        None where passages are not compared.
        """
        if not contrasts or PASSAGE not in self.levels:
            return [None] * len(contrasts)
        arms = list(self.arms.values())
        for measure, values in arms[0].secondary.items():
            if all(arm.secondary.get(measure, {}).keys() == values.keys() for arm in arms):
                of = {
                    name: np.array([arm.secondary[measure][qid] for qid in values]) for name, arm in self.arms.items()
                }
                sides = [_sides(contrast, of.__getitem__, len(values)) for contrast in contrasts]
                return list(self.policy.compare(*np.swapaxes(sides, 0, 1)))
        return [None] * len(contrasts)

    @property
    def judgeable(self) -> bool:
        """Whether there is any value to judge by."""
        return bool(self._qids())

    def differences(self, contrast: Contrast, level: str) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """All topics, and the contrast of each at a level: NaN where it has no value."""
        plus, minus = self._pair(contrast, level, useful=False)
        return self._qids(), plus - minus

    def matrix(self, level: str) -> NDArray[np.float64]:
        """The values of every arm by topic, (arms, topics): NaN where the level has none."""
        qids = self._qids()
        return np.stack([self._values(arm, level, qids, useful=False) for arm in self.arms])

    def _family(self, comparisons: int) -> str:
        """The comparisons that a verdict was judged with."""
        alone = comparisons == 1
        judged = "a single comparison" if alone else f"one of {comparisons} comparisons corrected together"
        return ", ".join(filter(None, ("" if alone else self.family, judged)))

    def _cost(self, contrast: Contrast) -> Cost:
        times = {arm: arm_scores.times for arm, arm_scores in self.arms.items() if arm_scores.times is not None}
        sides = [[self.arms[arm].config or {} for arm in side] for side in (contrast.plus, contrast.minus)]
        budget_ms = self.policy.budget_ms(*sides)
        involved = [self.arms[arm] for arm, weight in contrast.weights.items() if weight]
        if reason := next((arm.latency_off for arm in involved if arm.latency_off), ""):
            return Cost(None, budget_ms, reason, wanted=False)
        if len({_is_elsewhere(arm.config or {}) for arm in involved}) > 1:
            return Cost(None, budget_ms, END_TO_END, wanted=False)
        if reason := next((arm.failed for arm in involved if arm.failed), ""):
            return Cost(None, budget_ms, reason)
        return cost(contrast, times, budget_ms, self.policy.seed)

    def _qids(self) -> tuple[str, ...]:
        """All topics with a value at any level, sorted: a column is the same topic at every level."""
        return tuple(sorted({q for arm in self.arms.values() for values in arm.levels.values() for q in values}))

    def _pair(self, contrast: Contrast, level: str, *, useful: bool) -> tuple[NDArray[np.float64], ...]:
        """Both sides of a contrast over all topics, NaN where the level has no value."""
        qids = self._qids()
        return _sides(contrast, lambda arm: self._values(arm, level, qids, useful), len(qids))

    def _values(self, arm: str, level: str, qids: Iterable[str], useful: bool) -> NDArray[np.float64]:
        judged_arm = self.arms[arm].useful if useful else self.arms[arm].levels
        first = next(iter(self.arms.values())).levels.get(level, {})
        values = judged_arm.get(level, {})
        if not values:
            raise ResultsError(f"arm '{arm}' has no {self.levels[level]} of {level}s: it failed or never ran; run it")
        if mismatch := sorted(set(values) ^ set(first)):
            raise ResultsError(
                f"arm '{arm}' and arm '{next(iter(self.arms))}' do not share topic '{mismatch[0]}': "
                "run both over the same topics"
            )
        return np.array([values.get(qid, np.nan) for qid in qids], dtype=np.float64)

    def _if_useful(self, contrast: Contrast, level: str) -> float | None:
        """The effect if unjudged hits were as useful as judged ones; None where that is unknown."""
        if any(level not in self.arms[arm].useful for arm in contrast.weights):
            return None
        plus, minus = self._pair(contrast, level, useful=True)
        return float(np.nanmean(plus - minus))


def _is_elsewhere(config: Mapping[str, Any]) -> bool:
    return _live_class(config) not in ("", "LivePython")


def _live_class(config: Mapping[str, Any]) -> str:
    """The class of a live search, empty for a pipeline."""
    return str((config.get("live") or {}).get("_target_", "")).rpartition(".")[2]


def _of_machine(record: Mapping[str, Any]) -> Times:
    """The machine on which a run was timed, by its record, without samples."""
    import pandas as pd

    observed, environment = record.get("machine") or {}, record.get("environment") or {}
    named = f"{environment.get('processor', '')}, {environment.get('cpus', '')} CPUs"
    states = [observed[name] for name in ("before", "timing") if observed.get(name)]
    lost = max(map(share_lost, states), default=0.0)
    stolen = max((float(state.get("steal", 0.0)) for state in states), default=0.0)
    return Times(pd.DataFrame(), named, disturbed(record), lost, stolen)


def disturbed(record: Mapping[str, Any]) -> str:
    """How others disturbed the machine while a run was timed, by its record; empty when they did not."""
    return str((record.get("machine") or {}).get("busy") or "")


def _sides(
    contrast: Contrast, of: Callable[[str], NDArray[np.float64]], topics: int
) -> tuple[NDArray[np.float64], ...]:
    """Both sides of a contrast: the weighted sums of the values `of` its arms."""
    return tuple(
        sum((weight * of(arm) for arm, weight in side.items()), np.zeros(topics))
        for side in (contrast.plus, contrast.minus)
    )


def _plain(values: pd.Series) -> dict[str, float]:
    return {str(qid): float(value) for qid, value in values.items()}


def verdict_table(judged: Sequence[JudgedContrast], standard_errors: Mapping[str, float] | None = None) -> pd.DataFrame:
    """One row for every contrast, with `VERDICT_COLUMNS`; `standard_errors` are those of a design that samples arms."""
    rows = [_row(contrast, (standard_errors or {}).get(contrast.contrast.factors[0], np.nan)) for contrast in judged]
    return VERDICT_COLUMNS.frame(rows)


def _row(judged: JudgedContrast, standard_error: float) -> dict[str, Any]:
    (factor, *others), verdict = judged.contrast.factors, judged.verdict
    words = {
        "verdict": verdict.outcome,
        "judged_by": verdict.judged_by,
        "quality": verdict.quality,
        "cost": verdict.cost.axis,
        "untimed": "" if verdict.cost.added else verdict.cost.unknown,
        "reason": verdict.reason,
    }
    row: dict[str, Any] = {
        "kind": "interaction" if others else "main",
        "factor": factor,
        "other": ":".join(others),
        **(dict.fromkeys(words, "") if others else words),
        "standard_error": standard_error,
        "budget_ms": np.nan if judged.cost.budget_ms is None else judged.cost.budget_ms,
        "needs_judgments": np.nan if others else int(verdict.needs_judgments),
    }
    added = judged.cost.added
    if added is not None:
        row["latency_ms"] = added.p95_ms
        if added.has_interval:
            row |= {"latency_low": added.low_ms, "latency_high": added.high_ms}
    for level, of_level in judged.levels.items():
        row |= _numbers(of_level.comparison, PREFIX[level], _OF_LEVEL)
        row[f"{PREFIX[level]}useful"] = np.nan if of_level.useful is None else of_level.useful
    return row | ({} if judged.secondary is None else _numbers(judged.secondary, _RECALL, _SECONDARY))


def _numbers(comparison: Comparison, prefix: str, names: Sequence[str]) -> dict[str, float]:
    return {f"{prefix}{name}": getattr(comparison, _FIELDS.get(name, name)) for name in names}


def by_type(values: Mapping[str, ArrayLike], base: str, kinds: Sequence[str | None], policy: Policy) -> pd.DataFrame:
    """A row for every type and arm, with `TYPES`: mean, and difference from the base with its interval (low, high).

    `values` (n,) by arm and `kinds` belong to the same queries in the same order. The arms of a type are one family,
    different types are not: use this table to explore, not to decide.
    """
    stacked = np.stack([np.asarray(column, dtype=np.float64) for column in values.values()])
    if stacked.shape[1] != len(kinds):
        raise BenchmarkError(
            f"{stacked.shape[1]} values and {len(kinds)} query types cannot be paired; give every query one of each"
        )
    base_row = list(values).index(base)
    names = np.array([kind or "(none)" for kind in kinds], dtype=object)
    rows = []
    for name in sorted(set(names)):
        in_group = stacked[:, names == name]
        against = np.broadcast_to(in_group[base_row], in_group.shape)
        for arm, comparison in zip(values, policy.compare(in_group, against), strict=True):
            means = (arm, comparison.mean_candidate, comparison.difference, comparison.ci_low, comparison.ci_high)
            rows.append((name, comparison.n, comparison.n < minimums.PER_TYPE, *means))
    return TYPES.frame(rows)
