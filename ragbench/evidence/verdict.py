"""The verdict: two axes and one word that say what a comparison means for a decision.

Quality is better, worse, equivalent or open; cost is within, over, open or off. Off means that latency was turned off
or does not apply: quality alone decides. Quality is judged at two levels, whole
documents and passages as the reader gets them. A change is better where one level is significantly better and the other
is shown not to lose as much as the smallest effect that matters; otherwise what harms passages could be adopted for its
documents, whenever there are too few queries to show the harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ragbench.base import minimums
from ragbench.base.types import counted, too_few, with_interval
from ragbench.evidence.cost import Cost
from ragbench.evidence.statistics import Comparison

_Quality = Literal["better", "worse", "equivalent", "open"]
_Outcome = Literal["adopt", "confirm", "equivalent", "inconclusive", "reject"]
"""Ordered from acceptance to rejection; `confirm` is better within the budget, in an exploratory comparison."""
QUALITY: Mapping[str, str] = {
    "better": "significantly better",
    "worse": "significantly worse",
    "equivalent": "equivalent",
    "open": "inconclusive",
}
UNPROVEN = "Not adopted: "
"""Begins the sentence on a significant gain at one level while the other may lose."""
LATENCY = {"within": "within budget", "over": "over budget", "open": "unknown", "off": "not judged"}
"""The axes in words, as `QUALITY`."""


@dataclass(frozen=True)
class LevelComparison:
    """A comparison at one level. `useful` is the effect if unjudged hits were as useful as judged ones at their rank.

    The measured effect counts unjudged hits as useless: judging them can show effects between the two. None where all
    hits are judged, or the measure has no such value.
    """

    name: str
    measure: str
    comparison: Comparison
    useful: float | None = None

    @property
    def sign_is_robust(self) -> bool:
        """Whether the effect has the same sign with unjudged hits useless and with them useful."""
        return self.useful is None or self.useful * self.comparison.difference > 0

    @property
    def needs_judgments(self) -> bool:
        """Whether enough queries changed to test the effect, and its sign depends on unjudged hits."""
        comparison = self.comparison
        tested = comparison.ties < comparison.n and comparison.n >= minimums.FOR_CI
        return tested and not self.sign_is_robust

    @property
    def worse(self) -> bool:
        """Whether the candidate is significantly worse, even by little."""
        return self._is_significant and self.comparison.difference < 0

    @property
    def better(self) -> bool:
        """Whether the candidate is significantly better, even by little."""
        return self._is_significant and self.comparison.difference > 0

    def at_least(self) -> float:
        """The lower bound of the effect, whether unjudged hits are useless or useful; NaN where there is none."""
        comparison = self.comparison
        return comparison.at_least + min(0.0, 0.0 if self.useful is None else self.useful - comparison.difference)

    def not_worse(self, margin: float) -> bool:
        """Whether a loss of `margin` or more is ruled out, at the confidence of one comparison alone."""
        return bool(self.at_least() > -margin)

    def quality(self, smallest_effect: float) -> _Quality:
        """The quality at this level; equivalent means that the effect is smaller than the smallest one of interest.

        Equivalence is shown by two one-sided tests (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987).
        """
        comparison = self.comparison
        if np.isnan(comparison.ci_low):
            return "open"
        enough = comparison.n >= minimums.FOR_MDE
        if enough and -smallest_effect < comparison.narrow_low and comparison.narrow_high < smallest_effect:
            return "equivalent"
        return "better" if self.better else "worse" if self.worse else "open"

    @property
    def _is_significant(self) -> bool:
        return self.comparison.significant and self.sign_is_robust

    def text(self, smallest_effect: float, brief: bool = False) -> str:
        """The numbers and what they mean: `documents +0.031 [+0.012, +0.050], p = 0.002: significantly better`.

        If `brief`, without the quality, which the sentence has already.
        """
        comparison, quality = self.comparison, self.quality(smallest_effect)
        if comparison.ties == comparison.n:
            return f"{self.name}s: none of {counted(comparison.n, 'query')} changed"
        change = with_interval(comparison.difference, comparison.ci_low, comparison.ci_high)
        numbers = f"{self.name}s {change}, {_p_text(comparison)}"
        if comparison.n < minimums.FOR_CI:
            return f"{self.name}s {comparison.difference:+.3f}: {too_few(comparison.n, 'query')} to test"
        if self.needs_judgments:
            return (
                f"{numbers}: inconclusive, because the effect is {self.useful:+.3f} if unjudged results are imputed at "
                "the relevance of judged ones; pool and judge them"
            )
        if quality == "equivalent":
            return f"{numbers}: equivalent (the effect is smaller than {smallest_effect:g})"
        if comparison.p_value <= 1 - comparison.confidence and not comparison.robust:
            few = comparison.ci_low > 0
            lack = (
                f"fewer than {minimums.WITHOUT_BOUND} queries" if few else "a few unseen queries that lose everything"
            )
            return f"{numbers}: inconclusive, because {lack} could " + (
                "show such a gain by chance" if few else "reverse it"
            )
        return numbers if brief else f"{numbers}: {QUALITY[quality]}"


@dataclass(frozen=True)
class Verdict:
    """Quality, cost, the outcome in one word, the reason, and the family it was judged with.

    `needs_judgments`: the sign of an effect depends on unjudged hits.
    """

    quality: _Quality
    cost: Cost
    outcome: _Outcome
    reason: str
    family: str = ""
    needs_judgments: bool = False

    @property
    def judged_by(self) -> str:
        """What decided: `quality and latency`, or `quality` alone."""
        return "quality" if self.cost.axis == "off" else "quality and latency"


def judge(
    levels: Mapping[str, LevelComparison],
    cost: Cost,
    smallest_effect: float,
    family: str = "",
    exploratory: bool = False,
) -> Verdict:
    """The verdict on a change from its comparisons by level and its cost.

    `family` names the comparisons it was judged with; `exploratory`: arms were compared on these queries before.
    """
    judged_levels = tuple(levels.values())
    quality = _combine(judged_levels, smallest_effect)
    outcome = _outcome(quality, cost)
    if exploratory and outcome == "adopt":
        outcome = "confirm"
    alike = {level.quality(smallest_effect) for level in judged_levels} == {quality}
    texts = "; ".join(level.text(smallest_effect, brief=alike) for level in judged_levels)
    within = f" ({family})" if family else ""
    alone = ", so quality alone decides" if cost.axis == "off" else ""
    sentences = [f"Quality {QUALITY[quality]}: {texts}{within}.", f"Latency {LATENCY[cost.axis]}{alone}: {cost.text}."]
    if quality == "open":
        sentences += _unproven(judged_levels, smallest_effect)
        if power := _power_sentence(judged_levels):
            sentences += [power, *_more_topics(judged_levels, smallest_effect)]
    if quality in ("better", "equivalent") and (cost.axis == "open" or not cost.wanted):
        sentences.append(f"{cost.remedy}.")
    if outcome == "confirm":
        sentences.append("Exploratory: confirm it on queries that no earlier comparison used.")
    needs_judgments = any(level.needs_judgments for level in judged_levels)
    return Verdict(quality, cost, outcome, " ".join(sentences), family, needs_judgments)


def _unproven(levels: tuple[LevelComparison, ...], smallest_effect: float) -> list[str]:
    """What keeps a gain at one level from counting: the other one may lose."""
    gain = [level for level in levels if level.quality(smallest_effect) == "better"]
    if not gain:
        return []
    reasons = []
    for level in levels:
        if level not in gain and not level.not_worse(smallest_effect):
            bound = level.at_least()
            may = "which too few queries show" if np.isnan(bound) else f"but may lose up to {-bound:.3f}"
            comma = "," if np.isnan(bound) else ""
            reasons.append(f"{UNPROVEN}{level.name}s must be non-inferior (margin {smallest_effect:g}){comma} {may}.")
    return reasons


def _combine(levels: tuple[LevelComparison, ...], smallest_effect: float) -> _Quality:
    """One quality for all levels: worse if any is worse; better if one is better and no other one may lose.

    "May lose": it is significantly worse, or a loss of `smallest_effect` is not ruled out. This needs no correction for
    several levels or arms: all conditions must hold at once (Berger, Technometrics 24, 1982).
    """
    qualities = [level.quality(smallest_effect) for level in levels]
    if "worse" in qualities:
        return "worse"
    if set(qualities) == {"equivalent"}:
        return "equivalent"
    may_lose = any(level.worse or not level.not_worse(smallest_effect) for level in levels)
    return "better" if "better" in qualities and not may_lose else "open"


def _outcome(quality: _Quality, cost: Cost) -> _Outcome:
    if cost.axis == "over" or quality == "worse":
        return "reject"
    if quality == "better":
        return "inconclusive" if cost.axis == "open" else "adopt"
    return "equivalent" if quality == "equivalent" and cost.axis != "open" else "inconclusive"


def _more_topics(levels: tuple[LevelComparison, ...], smallest_effect: float) -> list[str]:
    """How many more topics it takes: `About 340 more queries are needed to detect a difference of 0.020 (80% power).`

    Uses the first level whose detectable effect is known, documents before passages. The target is the difference
    found, but at least the smallest that matters; the detectable effect shrinks with the root of the number of topics.
    Empty where no detectable effect is known, or where judgments are missing and not topics.
    """
    level = next((level for level in levels if not np.isnan(level.comparison.mde)), None)
    if level is None or not level.sign_is_robust:
        return []
    comparison, target = level.comparison, max(abs(level.comparison.difference), smallest_effect)
    missing = int(np.ceil(comparison.n * ((comparison.mde / target) ** 2 - 1))) if target > 0 else 0
    if missing <= 0:
        return []
    queries = "1 more query is" if missing == 1 else f"{missing:,} more queries are"
    return [f"About {queries} needed to detect a difference of {target:.3f} (80% power)."]


def _power_sentence(levels: tuple[LevelComparison, ...]) -> str:
    """What this many topics can detect: `Minimum detectable effect with 84 queries: 0.070 (documents).`"""
    powered = [level for level in levels if not np.isnan(level.comparison.mde)]
    if not powered:
        n = max((level.comparison.n for level in levels), default=0)
        return "Too few queries changed to estimate the minimum detectable effect." if n else ""
    effects = " and ".join(f"{level.comparison.mde:.3f} ({level.name}s)" for level in powered)
    return f"Minimum detectable effect with {counted(powered[0].comparison.n, 'query')}: {effects}."


def _p_text(comparison: Comparison) -> str:
    """`p = 0.012`, never 0."""
    return "p < 0.0001" if comparison.p_value < 0.0001 else f"p = {comparison.p_value:.2g}"
