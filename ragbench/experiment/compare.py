"""Compare finished runs: results folders, MLflow runs whose files are still there, TREC run files of other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.pool import read_run
from ragbench.comparison.statistics import compare_all, holm
from ragbench.errors import ResultsError
from ragbench.evaluation import measures
from ragbench.evaluation.measures import PRIMARY, Run
from ragbench.experiment import results, store

if TYPE_CHECKING:
    import pandas as pd


def values(sources: Sequence[str], benchmark: Benchmark, split: str, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """By arm, one row per query and one column per measure, for every arm of every source.

    A source is a results folder, an arm's folder below one, or a TREC run file. Arms that several sources name alike
    get the source's name before theirs.
    """
    topics = {topic.qid for topic in benchmark.select(split)}
    found: dict[str, pd.DataFrame] = {}
    for source in sources:
        for arm, run in _runs(Path(source)).items():
            name = arm if arm not in found else f"{Path(source).name}/{arm}"
            run = {qid: measures.decreasing(run.get(qid, [])) for qid in topics}
            frame = measures.evaluate(run, benchmark.document_qrels, names)
            found[name] = frame.pivot(index="qid", columns="measure", values="value").sort_index()
    return found


def compare(
    frames: Mapping[str, pd.DataFrame], baseline: str | None, measure: str = PRIMARY, *, seed: int = 13
) -> pd.DataFrame:
    """Every arm against the baseline (the first by default) on one measure: means, difference, interval, Holm's p."""
    import pandas as pd

    base = baseline or next(iter(frames))
    if base not in frames:
        raise ResultsError(f"there is no arm '{base}' to compare with; arms: {', '.join(frames)}")
    others = [name for name in frames if name != base]
    if not others:
        raise ResultsError("a comparison needs at least two arms: name another results folder or run file")
    if measure not in frames[base].columns:
        raise ResultsError(f"'{measure}' was not measured; measures: {', '.join(frames[base].columns)}")
    reference = frames[base][measure].dropna()
    stacked = np.stack([frames[name][measure].reindex(reference.index).to_numpy() for name in others])
    compared = compare_all(stacked, np.broadcast_to(reference.to_numpy(), stacked.shape), seed=seed)
    adjusted = holm([each.p_value for each in compared])
    rows = [
        {
            "arm": name,
            "against": base,
            "mean": each.mean_candidate,
            "baseline": each.mean_baseline,
            "difference": each.difference,
            "ci_low": each.ci_low,
            "ci_high": each.ci_high,
            "p": each.p_value,
            "p_holm": float(p_holm),
            "wins": each.wins,
            "ties": each.ties,
            "losses": each.losses,
            "mde": each.mde,
            "n": each.n,
        }
        for name, each, p_holm in zip(others, compared, adjusted, strict=True)
    ]
    return pd.DataFrame(rows)


def _runs(source: Path) -> dict[str, Run]:
    if source.is_file():
        return {source.stem: read_run(source)}
    if (source / store.RECORD).is_file():
        loaded = results.load(source)
        return {arm: read_run(loaded.arm_path(arm) / "run.trec") for arm in loaded.arms}
    if (source / "run.trec").is_file():
        return {source.name: read_run(source / "run.trec")}
    raise ResultsError(f"{source} is neither a results folder nor a TREC run file")
