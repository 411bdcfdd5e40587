"""Queries that one run lost or won against another, from their rankings and judgments; and the outcome as markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ragbench.base import locations
from ragbench.base.console import counted, interval
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.runs import read_run
from ragbench.evaluation.moves import Answers, Moved, moves
from ragbench.evidence.verdict import QUALITY, LevelComparison
from ragbench.export import gate_page
from ragbench.export.gate import Check
from ragbench.export.measured_arm import MeasuredArm
from ragbench.results import comparisons
from ragbench.results.measurements import DOCUMENTS

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


def moved(checks: Sequence[Check], baseline: MeasuredArm, candidate: MeasuredArm) -> tuple[list[Moved], list[Moved]]:
    """The lost and the won queries by their text, each by the best rank of a relevant document in its own run."""
    excluded = {qid for check in checks for qid in check.excluded}
    texts = {qid: text for qid, text in candidate.results.texts.items() if qid not in excluded}
    before, _ = _answers(baseline, texts)
    now, hits = _answers(candidate, texts)
    return moves(before, now, DEPTH, hits)


def _answers(arm: MeasuredArm, texts: Mapping[str, str]) -> tuple[Answers, Mapping[str, Sequence[str]]]:
    """By query, the ranks of the relevant documents and the names of the hits; empty where the arm has no files."""
    run, qrels = arm.folder / DOCUMENTS, arm.results.folder / "documents.qrels"
    if not run.is_file() or not qrels.is_file():
        return {}, {}
    found = {qid: [name for name, _ in ranked[:DEPTH]] for qid, ranked in read_run(run).items()}
    labels, names = arm.results.labels, arm.results.file_names
    judged = (
        read_judgments(qrels)
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


def _row(level: LevelComparison) -> list[str]:
    found = level.comparison
    ci = "" if np.isnan(found.ci_low) else f" {gate_page.escaped(interval(found.ci_low, found.ci_high))}"
    quality = "significantly worse" if level.worse else "significantly better" if level.better else QUALITY["open"]
    name = gate_page.escaped(f"{level.name}s, {level.measure}")
    return [name, f"{found.mean_baseline:.3f}", f"{found.mean_candidate:.3f}", f"{found.difference:+.3f}{ci}", quality]


def _use_of_queries(arm: MeasuredArm, levels: Sequence[LevelComparison]) -> str:
    """How often arms were compared on the queries that decide."""
    record, qids = arm.results.record, set(arm.results.topics["qid"])
    of_name = comparisons.recorded(locations.ledger(), str(record["benchmark"]["name"]))
    used = sum(bool(qids.intersection(each["queries"])) for each in of_name)
    split = "" if record["split"] == "all" else f" of split {record['split']}"
    before = (
        f"compared on in {counted(used, 'earlier experiment')}" if used else "no earlier comparison is recorded here"
    )
    error = f"; each gate errs in {1 - levels[0].comparison.confidence:.0%} of the cases" if levels else ""
    return f"{counted(len(qids), 'query')}{split}, {before}{error}."
