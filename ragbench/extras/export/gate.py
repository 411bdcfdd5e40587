"""The gate: whether an arm of a finished run may replace another.

A non-inferiority test: a level passes where its loss is shown to be smaller than a margin, by the one-sided bound of
that comparison alone. It fails where it is significantly worse, by more than the margin or with a margin of 0. Where
there are too few topics to show either, it is not checked: that does not pass. Both levels must pass, so none needs a
correction (an intersection-union test; Berger, Technometrics 24, 1982).

The outcome as markdown names the queries that were lost and won, by rankings and judgments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ragbench.base import console
from ragbench.base.options import Confidence, Share, Validated, Weight
from ragbench.base.types import FAILED, NOT_CHECKED, ConfigError, ResultsError, counted, interval
from ragbench.benchmark import judgments
from ragbench.benchmark.runs import read_run
from ragbench.evaluation import contexts, measures
from ragbench.evidence import verdict
from ragbench.evidence.arms import Arms, JudgedContrast, Policy
from ragbench.extras.export import gate_page, moves
from ragbench.extras.export.measured_arm import MeasuredArm
from ragbench.results import comparisons, labels, measurements

_Outcome = Literal["passes", "fails", "not checked"]


@dataclass(frozen=True)
class Check:
    """A check: the part that was checked, the outcome, and a sentence about it.

    `undecided`: it was to be shown, and there is too little to show it. `levels`: those of quality. `excluded`: the
    qids with doubtful judgments, which take no part.
    """

    part: str
    outcome: _Outcome
    message: str
    undecided: bool = False
    levels: tuple[verdict.LevelComparison, ...] = ()
    excluded: frozenset[str] = frozenset()


def exit_code(checks: Iterable[Check]) -> int:
    """0 if all passed, else 1 where one failed, or 3 where one is undecided."""
    listed = list(checks)
    if any(check.outcome == "fails" for check in listed):
        return FAILED
    return NOT_CHECKED if any(check.undecided for check in listed) else 0


def show(checks: Iterable[Check], as_json: bool) -> int:
    """Print each check when it ends, or all as JSON; return the exit code."""
    from rich.console import Console
    from rich.text import Text

    marks = {"passes": ("passes ", "green"), "fails": ("FAILS  ", "bold red"), "not checked": ("-      ", "yellow")}
    screen = Console(highlight=False, soft_wrap=True)
    lines = []
    for check in checks:
        lines.append(check)
        if not as_json:
            unchecked = check.outcome == "not checked" and not check.undecided
            text = f"not checked: {check.message}" if unchecked else check.message
            screen.print(Text.assemble(marks[check.outcome], (f"{check.part:<30} ", "bold"), text))
    code = exit_code(lines)
    if as_json:
        rows = [{"part": check.part, "outcome": check.outcome, "said": check.message} for check in lines]
        console.print_json({"passes": code == 0, "checks": rows})
    return code


BASELINE, CANDIDATE = "baseline", "candidate"


@dataclass(frozen=True)
class Limits(Validated):
    """Limits of the gate; those that are None follow from the policy of the baseline.

    `measure`: of documents. `margin`: the loss at a level that must be excluded, half of `smallest_effect` when None;
    0: no significant loss. `latency_tolerance`: how much higher p95 may be, as a share of the baseline's. `confidence`:
    of the intervals that show a loss, or its absence (0.5 to 1). `changed_data`: whether documents, queries or
    judgments may have changed between the runs. `max_pollution`: of the candidate's contexts, not checked when None.
    """

    measure: str | None = None
    margin: Weight | None = None
    latency_tolerance: Weight | None = None
    confidence: Confidence | None = None
    changed_data: bool = False
    max_pollution: Share | None = None


def gate(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits | None = None) -> list[Check]:
    """The checks of a candidate against a baseline; ResultsError when they did not answer the same queries.

    Two arms of one run are judged as their run judged them, together with its other arms.
    """
    limits = limits or Limits()
    doubtful = _doubtful_queries(baseline, candidate)
    benchmark_check = replace(_benchmark(baseline, candidate, limits), excluded=doubtful)
    policy = _policy(baseline, limits)
    roles = {BASELINE: baseline, CANDIDATE: candidate}
    shared = _with_shared_labels(roles, doubtful)
    if not all(len(one.per_query) for one in shared.values()):
        raise ResultsError(
            "no query can be compared, because all have doubtful judgments, or none in one of the runs: "
            "repair them with ragbench data repair --write and run both again"
        )
    pair = Arms({role: Arms.of(shared[role], policy).arms[arm.name] for role, arm in roles.items()}, policy)
    for role, arm in pair.arms.items():
        if measures.DOCUMENT not in arm.levels:
            raise ConfigError(f"'{policy.measure}' was not measured by the {role}: name another with --measure")
    (alone,) = pair.against(BASELINE)
    judged = alone
    if baseline.results.folder == candidate.results.folder and baseline.name != candidate.name:
        (judged,) = Arms.of(baseline.results, policy).showing([candidate.name]).against(baseline.name)
    margin = policy.statistics.smallest_effect / 2 if limits.margin is None else limits.margin
    quality = _quality(judged, alone, margin, policy.statistics.smallest_effect)
    checks = [benchmark_check, *_with_labels(quality, baseline, candidate, margin, doubtful), _latency(judged)]
    return checks if limits.max_pollution is None else [*checks, _pollution(candidate, limits.max_pollution)]


def _policy(baseline: MeasuredArm, limits: Limits) -> Policy:
    policy = Policy.of(baseline.settings.config)
    if limits.measure is not None:
        policy = replace(policy, measure=limits.measure)
    if limits.confidence is not None:
        policy = replace(policy, statistics=replace(policy.statistics, confidence=limits.confidence))
    if limits.latency_tolerance is not None and baseline.latency is not None:
        allowed = baseline.latency["p95"] * limits.latency_tolerance
        policy = replace(policy, budget=replace(policy.budget, p95_ms=allowed, rerank_p95_ms=allowed))
    return policy


def _benchmark(baseline: MeasuredArm, candidate: MeasuredArm, limits: Limits) -> Check:
    first, second = (side.results.record["benchmark"]["digest"] for side in (baseline, candidate))
    if first == second:
        return Check("benchmark", "passes", "both runs used the same documents, queries and judgments")
    if not limits.changed_data:
        raise ResultsError(
            "documents, queries or judgments changed between the two runs: run the baseline again on the present ones, "
            "or add --changed-data to compare anyway"
        )
    return Check("benchmark", "not checked", "documents, queries or judgments changed between the runs")


def _quality(judged: JudgedContrast, alone: JudgedContrast, margin: float, smallest_effect: float) -> Check:
    levels = tuple(judged.levels.values())
    texts = "; ".join(level.text(smallest_effect) for level in levels)
    reasons = [f"{verdict.QUALITY[judged.verdict.quality]}: {texts} ({judged.verdict.family})"]
    if judged.verdict.quality != alone.verdict.quality:
        reasons.append(f"as a single comparison it would be {verdict.QUALITY[alone.verdict.quality]}")
    checks = [check_level(level, margin) for level in levels]
    reasons += [sentence for _, sentence in checks if sentence]
    outcomes = {outcome for outcome, _ in checks}
    outcome: _Outcome = "fails" if "fails" in outcomes else "not checked" if "not checked" in outcomes else "passes"
    if outcome == "passes" and judged.verdict.quality == "open":
        reasons[0] = f"no loss {f'of {margin:g}' if margin else 'is significant'}, a gain is {reasons[0]}"
    return Check("quality", outcome, "; ".join(reasons), outcome == "not checked", levels)


def _with_shared_labels(
    roles: Mapping[str, MeasuredArm], doubtful: frozenset[str]
) -> dict[str, measurements.Measurements]:
    """The results of both; where pages have moved, of the queries that have labels in both, and no doubtful ones."""
    results = {role: arm.results for role, arm in roles.items()}
    found = results[CANDIDATE].labels
    if not doubtful and (found is None or found.health.is_sound):
        return results
    old, new = (set(one.judged_queries) for one in results.values())
    shared = ((old & new) | (set(results[CANDIDATE].per_query["qid"]) - old - new)) - doubtful
    return {
        role: replace(one, per_query=one.per_query[one.per_query["qid"].isin(shared)]) for role, one in results.items()
    }


def _doubtful_queries(baseline: MeasuredArm, candidate: MeasuredArm) -> frozenset[str]:
    """The qids that two runs did not measure by the same judgments, because one had doubtful ones."""
    first, second = baseline.results, candidate.results
    if first.record["benchmark"]["digest"] == second.record["benchmark"]["digest"]:
        return frozenset()
    return frozenset(qid for one in (first, second) if one.labels is not None for qid, _ in one.labels.doubtful)


def _with_labels(
    quality: Check, baseline: MeasuredArm, candidate: MeasuredArm, margin: float, doubtful: frozenset[str]
) -> list[Check]:
    """The check of quality, and one of the labels where the candidate has them.

    A failure that is gone with labels that follow the judged pages is of the labels, so it decides nothing.
    """
    followed = candidate.results.labels
    if followed is None or (followed.health.is_sound and not doubtful):
        return [quality] if followed is None else [quality, Check("labels", "passes", followed.health.sentence())]
    written, now = _changes(baseline, candidate, doubtful)
    left = f"; {counted(len(doubtful), 'query')} with doubtful judgments excluded from both runs" if doubtful else ""
    said = f"; {followed.sentence(candidate.results.texts)}" if followed.doubtful else ""
    message = (
        f"{followed.health.sentence()}{said}{left}; {candidate.results.primary} changes by {written:+.3f} "
        f"with labels as written and by {now:+.3f} where the judged pages are now"
    )
    if quality.outcome != "fails" or now <= -margin or now <= written:
        return [quality, Check("labels", "not checked", message)]
    remedy = f"{message}: the loss is of the labels: repair them with ragbench data repair and run both again"
    undecided = replace(quality, outcome="not checked", undecided=True)
    return [undecided, Check("labels", "not checked", remedy, undecided=True)]


def _changes(baseline: MeasuredArm, candidate: MeasuredArm, doubtful: Collection[str]) -> tuple[float, float]:
    """The mean change of the measure, by labels as written and by labels that follow; NaN without common queries.

    `doubtful` queries are excluded from both. One whose labels are gone keeps its value as written: its answer is lost,
    not moved.
    """
    sides = [(side.results, side.name) for side in (baseline, candidate)]
    old, new = (
        {str(qid): float(value) for qid, value in results.values(name, results.primary).items() if qid not in doubtful}
        for results, name in sides
    )
    now = [written | labels.followed_values(*side) for written, side in zip((old, new), sides, strict=True)]
    old_now, new_now = ({qid: value for qid, value in values.items() if qid not in doubtful} for values in now)
    return _mean_change(old, new), _mean_change(old_now, new_now)


def _mean_change(old: Mapping[str, float], new: Mapping[str, float]) -> float:
    common = old.keys() & new.keys()
    return sum(new[qid] - old[qid] for qid in common) / len(common) if common else float("nan")


def check_level(level: verdict.LevelComparison, margin: float) -> tuple[_Outcome, str]:
    """Return whether a level excludes a loss of `margin` (0: is not significantly worse), and a sentence about it."""
    name, bound = level.name, level.at_least()
    if margin and level.not_worse(margin):
        smaller = f", smaller than the margin of {margin:g}" if level.worse else ""
        loss = f"{name}s: a significant loss of {-level.comparison.difference:.3f}{smaller}"
        return "passes", loss if smaller else ""
    if level.worse:
        loss = f"{name}s: a significant loss, not shown to be smaller than the margin of {margin:g}"
        return "fails", loss if margin else ""
    if not margin:
        return "passes", ""
    could = "" if np.isnan(bound) else f": it may be up to {-bound:.3f}"
    return "not checked", f"a loss of {margin:g} in {name}s is not excluded{could}{_more_topics(level, margin)}"


def _more_topics(level: verdict.LevelComparison, margin: float) -> str:
    """How many more topics would show that the loss is smaller than the margin, if the effect is the one found."""
    comparison = level.comparison
    slack = comparison.difference + margin
    if np.isnan(level.at_least()) or slack <= 0:
        return ""
    needed = comparison.n * ((comparison.difference - level.at_least()) / slack) ** 2
    return f"; about {max(1, int(np.ceil(needed - comparison.n))):,} more queries of this kind would exclude it"


def _latency(judged: JudgedContrast) -> Check:
    cost = judged.cost
    outcomes: dict[str, _Outcome] = {"over": "fails", "within": "passes", "open": "not checked", "off": "not checked"}
    measured = cost.added is not None or cost.queries > 0
    text = f"{cost.text}; {cost.remedy[0].lower()}{cost.remedy[1:]}" if cost.axis == "open" else cost.text
    return Check(
        "latency",
        outcomes[cost.axis],
        f"{verdict.LATENCY[cost.axis]}: {text}" if cost.added else text,
        undecided=measured and cost.axis == "open",
    )


def _pollution(candidate: MeasuredArm, limit: float) -> Check:
    """Whether the mean pollution of the candidate's contexts exceeds a share, by folder or by document type."""
    results, budget = candidate.results, candidate.settings.context_tokens
    pollution = {
        by: results.values(candidate.name, contexts.share_within(by, budget), level=measures.PASSAGE).mean()
        for by in contexts.GROUPS
    }
    if any(np.isnan(share) for share in pollution.values()):
        text = (
            "the candidate has no relevant sections, or an older version measured it: judge sections and run it again"
        )
        return Check("pollution", "not checked", text, undecided=True)
    shares = ", ".join(f"{share:.1%} by {by}" for by, share in pollution.items())
    over = [by for by, share in pollution.items() if share > limit]
    if not over:
        return Check("pollution", "passes", f"{shares}; at most {limit:.1%} is allowed")
    rows = contexts.polluters(results.delivered, limit=1)
    rows = rows[(rows["arm"] == candidate.name) & (rows["by"] == over[-1])]
    worst = "".join(
        f"; worst: {row.by} '{row.group}' with {row.pollution:.1%} ({row.useful:.1%} useful)"
        for row in rows.itertuples()
    )
    return Check("pollution", "fails", f"{shares}; more than the limit of {limit:.1%}{worst}")


DEPTH = 10
"""Hits among which a query is found."""
_OUTCOMES = {0: "passes", 1: "fails", 3: "is inconclusive"}
_ADVICE = {
    0: "Nothing: merge.",
    1: "Start with the lost queries: open them in `ragbench report`, then repair the change, or revert it. If the loss "
    "is worth the change, merge; or set `--margin`.",
    3: "Add judged queries, as many as the line on quality says, or set a larger `--margin`. A harmless change often "
    "ends like this with few queries.",
}
_FOLLOW = "Repair the judgments of pages that moved (`ragbench data repair --write`), in this change. "


def moved(
    checks: Sequence[Check], baseline: MeasuredArm, candidate: MeasuredArm
) -> tuple[list[moves.Moved], list[moves.Moved]]:
    """The lost and the won queries by their text, each by the best rank of a relevant document in its own run."""
    excluded = {qid for check in checks for qid in check.excluded}
    texts = {qid: text for qid, text in candidate.results.texts.items() if qid not in excluded}
    before, _ = _answers(baseline, texts)
    now, hits = _answers(candidate, texts)
    return moves.moves(before, now, DEPTH, hits)


def _answers(arm: MeasuredArm, texts: Mapping[str, str]) -> tuple[moves.Answers, Mapping[str, Sequence[str]]]:
    """By query, the ranks of the relevant documents and the names of the hits; empty where the arm has no files."""
    run, qrels = arm.folder / measurements.DOCUMENTS, arm.results.folder / "documents.qrels"
    if not run.is_file() or not qrels.is_file():
        return {}, {}
    found = {qid: [name for name, _ in ranked[:DEPTH]] for qid, ranked in read_run(run).items()}
    labels, names = arm.results.labels, arm.results.file_names
    judged = (
        judgments.read_judgments(qrels)
        if labels is None  # else where the judged pages are now
        else {
            qid: {names.get(name, name): grade for name, grade in of.items()}
            for qid, of in labels.document_qrels().items()
        }
    )
    answers, hits = {}, {}
    for qid, text in texts.items():
        listed, query = found.get(qid, []), text or qid
        relevant = [name for name, grade in judged.get(qid, {}).items() if grade > 0]
        answers[query] = {name: listed.index(name) + 1 if name in listed else None for name in relevant}
        hits[query] = listed
    return answers, hits


def markdown(checks: Sequence[Check], code: int, baseline: MeasuredArm, candidate: MeasuredArm) -> str:
    """The outcome of a gate for a pull request."""
    lost, won = moved(checks, baseline, candidate)
    levels = [level for check in checks for level in check.levels]
    table = [["level", "before", "now", "change and its CI", "verdict"], *map(_row, levels)] if levels else []
    facts = [f"**{check.part.capitalize()}**{_said(check)}" for check in checks]
    facts.append(f"**Queries** {_use_of_queries(candidate, levels)}")
    title = candidate.name if candidate.name == baseline.name else f"{baseline.name} → {candidate.name}"
    section = gate_page.GateSection(title, table, facts, lost, won, DEPTH)
    labels = candidate.results.labels
    follow = "" if labels is None or labels.health.is_sound else _FOLLOW
    return gate_page.page(_OUTCOMES[code], [section], follow + _ADVICE[code])


def _said(check: Check) -> str:
    outcome = {"passes": " passes", "fails": " fails", "not checked": ", not checked"}[check.outcome]
    return f"{outcome}: {gate_page.escaped(check.message.removeprefix('not checked: '))}."


def _row(level: verdict.LevelComparison) -> list[str]:
    found = level.comparison
    ci = "" if np.isnan(found.ci_low) else f" {gate_page.escaped(interval(found.ci_low, found.ci_high))}"
    quality = (
        "significantly worse" if level.worse else "significantly better" if level.better else verdict.QUALITY["open"]
    )
    name = gate_page.escaped(f"{level.name}s, {level.measure}")
    return [name, f"{found.mean_baseline:.3f}", f"{found.mean_candidate:.3f}", f"{found.difference:+.3f}{ci}", quality]


def _use_of_queries(arm: MeasuredArm, levels: Sequence[verdict.LevelComparison]) -> str:
    """How often arms were compared on the queries that decide."""
    record, qids = arm.results.record, set(arm.results.topics["qid"])
    of_name = comparisons.recorded(str(record["benchmark"]["name"]))
    used = sum(bool(qids.intersection(each["queries"])) for each in of_name)
    split = "" if record["split"] == "all" else f" of split {record['split']}"
    before = (
        f"compared on in {counted(used, 'earlier experiment')}" if used else "no earlier comparison is recorded here"
    )
    error = f"; each gate errs in {1 - levels[0].comparison.confidence:.0%} of the cases" if levels else ""
    return f"{counted(len(qids), 'query')}{split}, {before}{error}."
