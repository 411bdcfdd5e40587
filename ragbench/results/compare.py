"""Compare finished runs: results folders, arms of them, and TREC run files of other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ragbench.base.errors import ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.pool import read_run
from ragbench.benchmark.split import TEST
from ragbench.evaluation import measures
from ragbench.evaluation.levels import DOCUMENT
from ragbench.evaluation.measures import if_useful
from ragbench.evidence.arms import Arm, Arms
from ragbench.evidence.policy import Policy
from ragbench.results import measured_data, measurements, store
from ragbench.results.measurements import Measurements


@dataclass(frozen=True)
class GatheredArms:
    """Arms of several sources over the same topics of a `split`; `notes` are remarks on the sources.

    `benchmark` and `digest` are the name and digest of the benchmark; `looks_at_test`: test topics are among these.
    `run` is the one run that all arms are of: its look is no new one. None where they are of several.
    """

    arms: Arms
    split: str
    benchmark: str
    digest: str
    looks_at_test: bool
    notes: tuple[str, ...] = ()
    run: Measurements | None = None


def gather(
    sources: Sequence[Path],
    *,
    split: str | None = None,
    measure: str | None = None,
    benchmark: Benchmark | None = None,
    policy: Policy | None = None,
) -> GatheredArms:
    """The arms of every source, compared by the policy of the first run, over its split unless `split` is given.

    Run files are evaluated on the benchmark of the runs; where there is no run, `benchmark` and `policy` are needed. An
    arm whose name an earlier source has used gets the name of its source in front. Raises ResultsError for runs over
    other data.
    """
    found = [(source, *_read(source)) for source in sources]
    runs = [run for _, run, _ in found if run is not None]
    for each in runs:
        measured_data.require_same(runs[0], each)
        if benchmark is not None:
            measured_data.require(each, benchmark)
    if runs:
        policy = Policy.of(runs[0].config(runs[0].arms[0]))
        split = split or str(runs[0].record["split"])
    if policy is None:
        raise ResultsError("a comparison needs a finished run: name a results folder")
    if measure is not None:
        policy = replace(policy, measure=measure)
    split = split or "all"
    arms: dict[str, Arm] = {}
    notes: list[str] = []
    if len({run.folder if run else source for source, run, _ in found}) == 1 and runs:
        return _of_one_run(runs[0], [wanted for *_, wanted in found], policy, split)
    for source, run, wanted in found:
        if run is not None:
            of_run = Arms.of(run, policy, split)
            named = {arm: of_run.arms[arm] for arm in run.arms if wanted in (None, arm)}
        else:
            benchmark = benchmark or measured_data.benchmark_of(runs[0])
            arm, missing = evaluate_run_file(source, benchmark, split, policy.measure)
            named = {source.stem: arm}
            if missing:
                notes.append(f"{source} returned no hits for {missing} of the topics")
        for name, arm in named.items():
            _require_measured(source, name, arm, policy, split)
            arms[name if name not in arms else f"{source.name}/{name}"] = arm
    _require_two(arms)
    name = str(runs[0].record["benchmark"]["name"]) if runs else (benchmark.name if benchmark else "")
    digest = str(runs[0].record["benchmark"]["digest"]) if runs else (benchmark.digest if benchmark else "")
    splits = set(runs[0].per_query["split"]) if runs else set(benchmark.splits if benchmark else ())
    tested = TEST in (splits if split == "all" else {split})
    return GatheredArms(Arms(arms, policy), split, name, digest, tested, tuple(notes))


def _of_one_run(run: Measurements, wanted: Sequence[str | None], policy: Policy, split: str) -> GatheredArms:
    """Arms of one run: all of its arms are the family, whichever are asked for, so verdicts are those of the run."""
    arms = Arms.of(run, policy, split)
    asked = run.arms if None in wanted else [arm for arm in dict.fromkeys(wanted) if arm is not None]
    for name in asked:
        _require_measured(run.folder, name, arms.arms[name], policy, split)
    _require_two(asked)
    benchmark, splits = run.record["benchmark"], set(run.per_query["split"])
    tested = TEST in (splits if split == "all" else {split})
    return GatheredArms(arms.showing(asked), split, str(benchmark["name"]), str(benchmark["digest"]), tested, run=run)


def _require_measured(source: Path, name: str, arm: Arm, policy: Policy, split: str) -> None:
    if DOCUMENT not in arm.levels:
        raise ResultsError(f"{source}: '{policy.measure}' of arm '{name}' was not measured on split '{split}'")


def _require_two(arms: Sized) -> None:
    if len(arms) < 2:
        raise ResultsError("a comparison needs at least two arms: name another results folder or run file")


def evaluate_run_file(source: Path, benchmark: Benchmark, split: str, measure: str) -> tuple[Arm, int]:
    """An arm made from a run file of another system, and the number of topics without an answer.

    Equal scores are ordered as trec_eval orders them. Raises ResultsError for a run without a hit for any topic.
    """
    measures.check([measure])
    given = read_run(source)
    topics = [topic.qid for topic in benchmark.select(split)]
    missing = sum(qid not in given for qid in topics)
    if missing == len(topics):
        raise ResultsError(
            f"{source} has no hits for any topic of '{benchmark.name}', split '{split}': name a run for them"
        )
    run = {qid: trec_eval_order(given.get(qid, [])) for qid in topics}
    frame = measures.evaluate(run, benchmark.document_qrels, [measure], benchmark.unanswerable)
    values = {
        name: {str(q): float(v) for q, v in rows[["qid", "value"]].itertuples(index=False)}
        for name, rows in frame.groupby("measure")
    }
    useful = values.get(if_useful(measure))
    levels: Mapping[str, Mapping[str, float]] = {DOCUMENT: values.get(measure, {})}
    return Arm(levels, {DOCUMENT: useful} if useful else {}), missing


def trec_eval_order(hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The hits of a query in the order of trec_eval: by score in single precision, equal scores by descending id."""
    by_id = sorted(hits, key=lambda hit: hit[0], reverse=True)
    return measures.decreasing(sorted(by_id, key=lambda hit: -float(np.float32(hit[1]))))


def _read(source: Path) -> tuple[Measurements | None, str | None]:
    """The run of a source, None for a run file; and the arm that the source names, None for all arms."""
    if source.is_file():
        return None, None
    if (source / store.RECORD).is_file():
        return measurements.load(source), None
    if source.parent.name == "arms" and (source.parent.parent / store.RECORD).is_file():
        run = measurements.load(source.parent.parent)
        for arm in run.arms:
            if run.arm_path(arm) == source:
                return run, arm
    raise ResultsError(f"{source} is neither a results folder nor a TREC run file")
