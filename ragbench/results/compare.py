"""Compare finished runs: results folders, arms of them, and TREC run files of other systems."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.types import ResultsError
from ragbench.benchmark.benchmark import Benchmark, Qrels
from ragbench.benchmark.runs import Run, file_names, read_run, renamed, trec_eval_order
from ragbench.evaluation import measures
from ragbench.evaluation.measures import DOCUMENT, if_useful
from ragbench.evidence.arms import Arms, BudgetSpec, ComparedArm, Policy, StatisticsSpec, verdict_table
from ragbench.evidence.cost import RECORDED
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class GatheredArms:
    """Arms of several sources over the same topics of a `split`; `notes` are remarks on the sources.

    `benchmark` is the name of the collection. `run` is the one run that all arms are of, whose comparison is not a new
    one; None if they are of several.
    """

    arms: Arms
    split: str
    benchmark: str
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

    Run files are evaluated on the benchmark of the runs; without a run, `benchmark` and `policy` are needed. An
    arm whose name an earlier source has used gets the name of its source in front. Raises ResultsError for runs over
    other data.
    """
    opened = [(source, *_read(source)) for source in sources]
    runs = [run for _, run, _ in opened if run is not None]
    for run in runs:
        measurements.require_same_benchmark(runs[0], run)
        if benchmark is not None:
            measurements.require_benchmark(run, benchmark)
    if runs:
        policy = Policy.of(runs[0].shared_config)
        split = split or str(runs[0].record["split"])
    if policy is None:
        raise ResultsError("a comparison needs a finished run: name a results folder")
    if measure is not None:
        policy = replace(policy, measure=measure)
    split = split or "all"
    if runs and len({run.folder if run else source for source, run, _ in opened}) == 1:
        return _of_one_run(runs[0], [arm for *_, arm in opened], policy, split)
    if len(runs) < len(opened):
        benchmark = benchmark or measurements.benchmark_of(runs[0])
    arms: dict[str, ComparedArm] = {}
    notes: list[str] = []
    for source, of_source, selected in opened:
        named, note = _of_source(source, of_source, selected, benchmark, policy, split)
        notes += [note] if note else []
        for name, arm in named.items():
            _require_measured(source, name, arm, policy, split)
            arms[name if name not in arms else f"{source.name}/{name}"] = arm
    _require_two(arms)
    name = benchmark.name if benchmark is not None and not runs else str(runs[0].record["benchmark"]["name"])
    return GatheredArms(Arms(arms, policy), split, name, tuple(notes))


def _of_source(
    source: Path,
    run: Measurements | None,
    selected: str | None,
    benchmark: Benchmark | None,
    policy: Policy,
    split: str,
) -> tuple[dict[str, ComparedArm], str]:
    """The arms of a source by name, and a remark on missing queries. A run file is evaluated on the benchmark."""
    if run is not None:
        of_run = Arms.of(run, policy, split)
        return {arm: of_run.arms[arm] for arm in run.arms if selected in (None, arm)}, ""
    assert benchmark is not None
    arm, missing = evaluate_run_file(source, benchmark, split, policy.measure)
    return {source.stem: arm}, f"{source} returned no hits for {missing} of the topics" if missing else ""


def _of_one_run(run: Measurements, names: Sequence[str | None], policy: Policy, split: str) -> GatheredArms:
    """Arms of one run: all of its arms are the family, whichever are asked for, so verdicts are those of the run."""
    arms = Arms.of(run, policy, split)
    selected = run.arms if None in names else [arm for arm in dict.fromkeys(names) if arm is not None]
    for name in selected:
        _require_measured(run.folder, name, arms.arms[name], policy, split)
    _require_two(selected)
    benchmark = run.record["benchmark"]
    return GatheredArms(arms.showing(selected), split, str(benchmark["name"]), run=run)


def _require_measured(source: Path, name: str, arm: ComparedArm, policy: Policy, split: str) -> None:
    if DOCUMENT not in arm.levels:
        raise ResultsError(f"{source}: '{policy.measure}' of arm '{name}' was not measured on split '{split}'")


def _require_two(arms: Sized) -> None:
    if len(arms) < 2:
        raise ResultsError(
            "a comparison needs at least two arms: name another run or run file, such as ragbench compare @1 @2"
        )


def evaluate_run_file(source: Path, benchmark: Benchmark, split: str, measure: str) -> tuple[ComparedArm, int]:
    """An arm made from a run file of another system, and the number of topics without an answer.

    Equal scores are ordered as trec_eval orders them. Raises ResultsError for a run without a hit for any topic.
    """
    measures.check([measure])
    run = renamed(read_run(source), {path: docno for docno, path in file_names(benchmark).items()})
    topics = [topic.qid for topic in benchmark.select(split)]
    missing = sum(qid not in run for qid in topics)
    if missing == len(topics):
        raise ResultsError(
            f"{source} has no hits for any topic of '{benchmark.name}', split '{split}': name a run for them"
        )
    frame = _values(run, benchmark.document_qrels, topics, [measure], benchmark.unanswerable)
    return _arm_of(frame, measure), missing


def judge_runs(
    runs: Mapping[str, Run], qrels: Qrels, names: Sequence[str], baseline: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts on runs against one of them by the first measure, and arm, qid, measure, value of judged queries.

    Nothing is known of their latency, so quality alone decides. A query without hits in a run counts as 0. Raises
    ResultsError for a run without a hit for any judged query.
    """
    import pandas as pd

    measures.check(names)
    for name, run in runs.items():
        if not run.keys() & qrels.keys():
            theirs, ours = (", ".join(list(qids)[:2]) for qids in (run, qrels))
            raise ResultsError(f"'{name}' has no hits for any judged query: it has {theirs}, the judgments {ours}")
    frames = {name: _values(run, qrels, sorted(qrels), names) for name, run in runs.items()}
    policy = Policy(names[0], StatisticsSpec(), BudgetSpec(None, None))
    arms = Arms({name: _arm_of(frame, names[0]) for name, frame in frames.items()}, policy)
    values = pd.concat([frame.assign(arm=name) for name, frame in frames.items()], ignore_index=True)
    values = values.loc[values["measure"].isin(names), ["arm", "qid", "measure", "value"]].reset_index(drop=True)
    return verdict_table(arms.against(baseline)), values


def _values(
    all_hits: Run, qrels: Qrels, qids: Sequence[str], names: Sequence[str], unanswerable: Collection[str] = ()
) -> pd.DataFrame:
    run = {qid: measures.decreasing(trec_eval_order(all_hits.get(qid, []))) for qid in qids}
    return measures.evaluate(run, qrels, names, unanswerable)


def _arm_of(frame: pd.DataFrame, measure: str) -> ComparedArm:
    values = {
        name: {str(q): float(v) for q, v in rows[["qid", "value"]].itertuples(index=False)}
        for name, rows in frame.groupby("measure")
    }
    useful = values.get(if_useful(measure))
    levels: Mapping[str, Mapping[str, float]] = {DOCUMENT: values.get(measure, {})}
    return ComparedArm(levels, {DOCUMENT: useful} if useful else {}, latency_off=RECORDED)


def _read(source: Path) -> tuple[Measurements | None, str | None]:
    """The run of a source, None for a run file; and the arm that the source names, None for all arms."""
    if source.is_file():
        return None, None
    folder = store.run_folder(source)
    if (folder / store.RECORD).is_file():
        run = measurements.load(folder)
        selected = [arm for arm in run.arms if run.arm_path(arm) == source]
        if selected or folder == source:
            return run, selected[0] if selected else None
    raise ResultsError(f"{source} is neither a results folder nor a TREC run file")
