"""The leaderboard: a row for every arm of all runs, with verdicts against a base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ragbench.base.errors import ResultsError
from ragbench.config.differences import flat
from ragbench.config.overrides import section_of
from ragbench.config.sections import AROUND
from ragbench.evaluation.measures import DOCUMENT, PASSAGE, PRIMARY
from ragbench.evidence.arms import Arms, JudgedContrast
from ragbench.evidence.policy import Policy
from ragbench.evidence.t_statistic import Mean
from ragbench.extras.studio.runs import ArmId, ListedArm, ListedRun, Runs
from ragbench.results import measured_data

_MOST_JUDGED = 40
"""The most arms that are judged against a base together: verdicts of a larger family are more cautious."""

_AROUND = frozenset({*AROUND, "latency"})


@dataclass(frozen=True)
class Row:
    """An arm on the leaderboard. `other` says why it cannot be compared with the base, empty where it can."""

    run: ListedRun
    arm: ListedArm
    documents: Mean | None
    passages: Mean | None
    difference: str
    judged: JudgedContrast | None = None
    other: str = ""
    pinned: bool = False

    @property
    def started(self) -> str:
        """When its run began, to the minute, in UTC."""
        return datetime.fromtimestamp(self.run.started, UTC).strftime("%Y-%m-%d %H:%M") if self.run.started else ""


_SORTS: Mapping[str, Callable[[Row], Any]] = {
    "documents": lambda row: -row.documents.mean if row.documents else 9.0,
    "passages": lambda row: -row.passages.mean if row.passages else 9.0,
    "p95": lambda row: row.arm.p95.p95 if row.arm.p95 else float("inf"),
    "date": lambda row: -row.run.started,
    "name": lambda row: (row.arm.id.arm.lower(), row.run.name),
}


def rows(
    runs: Sequence[ListedRun],
    *,
    measure: str = PRIMARY,
    digest: str = "",
    search_words: str = "",
    sort: str = "date",
    base: tuple[ListedRun, ListedArm] | None = None,
    pinned: Iterable[ArmId] = (),
) -> list[Row]:
    """The arms whose benchmark has this digest (empty: any) and whose text contains all words, pinned ones first."""
    first, wanted_words = set(pinned), search_words.casefold().split()
    listed = []
    for run in runs:
        if digest and run.digest != digest:
            continue
        for arm in run.arms:
            text = f"{arm.id} {run.record['benchmark']['name']} {' '.join(arm.overrides)}".casefold()
            if all(word in text for word in wanted_words) or arm.id in first:
                listed.append(
                    Row(
                        run,
                        arm,
                        arm.means.get((DOCUMENT, measure)),
                        arm.means.get((PASSAGE, PRIMARY)),
                        difference(base[1], arm) if base else "",
                        other=incomparable(base[0], run) if base else "",
                        pinned=arm.id in first,
                    )
                )
    key = _SORTS.get(sort, _SORTS["date"])
    return sorted(listed, key=lambda row: (not row.pinned, key(row)))


def with_verdicts(rows: Sequence[Row], base: ArmId, runs: Runs) -> list[Row]:
    """The rows with verdicts against the base, for the first of them that can have one."""
    unjudged = [row.arm.id for row in rows if not row.other and row.arm.id != base][:_MOST_JUDGED]
    by_arm = dict(zip(unjudged, judge(runs, base, unjudged), strict=True)) if unjudged else {}
    return [replace(row, judged=by_arm.get(row.arm.id)) for row in rows]


def judge(runs: Runs, base: ArmId, arms: Sequence[ArmId]) -> list[JudgedContrast]:
    """Arms of any runs against one, as one family, by the policy of the base's run. Raises ResultsError.

    The numbers are those of `ragbench compare`.
    """
    loaded = {name: runs.results(name) for name in dict.fromkeys([base.run, *(arm.run for arm in arms)])}
    first = loaded[base.run]
    for results in loaded.values():
        measured_data.require_same(first, results)
    policy = Policy.of(first.config(base.arm))
    split = str(first.record["split"])
    gathered = {name: Arms.of(results, policy, split) for name, results in loaded.items()}
    chosen = {str(arm): gathered[arm.run].arms[arm.arm] for arm in (base, *arms)}
    if silent := next((name for name, arm in chosen.items() if DOCUMENT not in arm.levels), None):
        raise ResultsError(f"arm '{silent}' has no '{policy.measure}' on split '{split}': run it again")
    if len(gathered) == 1:  # one run: its verdicts, whichever of its arms are shown
        by_arm = {row.contrast.factors[0]: row for row in gathered[base.run].against(base.arm)}
        return [by_arm[arm.arm] for arm in arms]
    return Arms(chosen, replace(policy, exploratory=True)).against(str(base))


def incomparable(base: ListedRun, second: ListedRun) -> str:
    """Why two runs cannot be compared; empty where they can."""
    one, two = base.record["benchmark"], second.record["benchmark"]
    if one["digest"] != two["digest"]:
        if one["name"] != two["name"]:
            return f"measured '{two['name']}', the base '{one['name']}'"
        parts = (("documents", "collection"), ("topics", "questions"))
        changed = [name for name, key in parts if one.get(key) != two.get(key)] or ["judgments"]
        return f"the {' and '.join(changed)} of '{one['name']}' changed between the runs"
    if base.split != second.split:
        return f"measured the split '{second.split}', the base '{base.split}'"
    return ""


def difference(base: ListedArm, arm: ListedArm) -> str:
    """The difference of a pipeline from the base's, in words."""
    if base.id == arm.id:
        return ""
    added = [step for step in arm.steps if step not in base.steps]
    removed = [step for step in base.steps if step not in arm.steps]
    parts = [f"adds: {', '.join(added)}"] if added else []
    parts += [f"without: {', '.join(removed)}"] if removed else []
    if parts:
        return "; ".join(parts)
    return "the same steps" if set(base.overrides) == set(arm.overrides) else "the same steps with other parameters"


def differing_values(base: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(key, value of the base, other value) where two configurations differ in what they measure."""
    one, two = flat(base), flat(second)
    keys = sorted(key for key in {*one, *two} if section_of(key) not in _AROUND and one.get(key) != two.get(key))
    return [(key, _shown(one, key), _shown(two, key)) for key in keys]


def _shown(values: Mapping[str, Any], key: str) -> str:
    return str(values[key]) if key in values else "absent"
