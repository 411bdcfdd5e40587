"""Compare ways to fuse the sources of a finished run with the configured way, on its training topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ragbench.base.errors import ResultsError
from ragbench.base.formatting import with_interval
from ragbench.benchmark.split import TRAIN
from ragbench.config.settings import Settings
from ragbench.evaluation.headroom import SourceRuns
from ragbench.evidence.policy import Policy
from ragbench.extras.fit import fusion_methods
from ragbench.extras.fit.fusion_methods import Fused
from ragbench.results.measurements import SOURCES, Measurements
from ragbench.search.stages.fuse import Fuse

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark


@dataclass(frozen=True)
class Fusions:
    """`table` has a row for every way, best first: home, method, norm, nDCG@10, and the difference to the
    configured one with its interval and p, corrected over all ways; `use` are the words that turn it on."""

    arm: str
    sources: tuple[str, ...]
    topics: int
    table: pd.DataFrame

    @property
    def sentences(self) -> list[str]:
        """The conclusion in words."""
        usable = self.table[self.table["use"] != ""]
        best = usable.iloc[0] if len(usable) else None
        if best is None or best["difference"] <= 0:
            return ["No other fusion of the stage `fuse` is better on these topics: keep the configured one."]
        certainty = "significant" if best["low"] > 0 else "not significant"
        change = with_interval(best["difference"], best["low"], best["high"], 4)
        return [
            f"Best of the stage `fuse`: {change}, {certainty}. "
            f"Use it with {best['use']}, and confirm it with ragbench run -m on the test topics."
        ]


def compare(
    results: Measurements,
    arm: str | None = None,
) -> Fusions:
    """Compare, of the last arm unless one is named.

    Raises ResultsError for a run without stored sources or training topics.
    """
    import pandas as pd

    name = arm or results.arms[-1]
    if name not in results.arms:
        raise ResultsError(f"{results.folder} has no arm '{name}'; it has {', '.join(results.arms)}")
    benchmark = _benchmark(results, name)
    path = results.arm_path(name) / SOURCES
    runs = read_source_frame(pd.read_parquet(path)) if path.is_file() else {}
    if len(runs) < 2:
        raise ResultsError(f"{results.folder} has stored fewer than two sources of '{name}': run it again")
    measured = {qid for run in runs.values() for qid in run}
    topics = benchmark.with_answer(t for t in benchmark.topics if t.split == TRAIN and t.qid in measured)
    if not topics:
        raise ResultsError(f"{results.folder} measured no training topic with an answer: run it with split=train")
    settings = Settings(name, results.config(name))
    configured = settings.pipeline.first(Fuse)
    if configured is None:
        raise ResultsError(f"'{name}' does not fuse by the stage `fuse`: name another arm with --arm")
    qids = [topic.qid for topic in topics]
    ways = fusion_methods.compare(runs, benchmark.document_qrels, qids, configured)
    return Fusions(name, tuple(sorted(runs)), len(topics), _table(ways, settings))


def _benchmark(results: Measurements, arm: str) -> Benchmark:
    from ragbench.config.benchmark import load

    benchmark = load(results.config(arm))
    if benchmark.digest != results.record["benchmark"]["digest"]:
        raise ResultsError(f"the data of {results.folder} have changed since: run it again")
    return benchmark


def _table(ways: list[Fused], settings: Settings) -> pd.DataFrame:
    """Compare every way with the first, as one family."""
    import numpy as np
    import pandas as pd

    qids = sorted(ways[0].values)
    values = np.array([[way.values[qid] for qid in qids] for way in ways])
    compared = Policy.of(settings.config).compare(values[1:], np.broadcast_to(values[0], values[1:].shape))
    rows = [
        {
            **{"home": way.home, "method": way.method, "norm": way.norm},
            "nDCG@10": float(np.mean(values[i])),
            "difference": fold.difference if fold else 0.0,
            "low": fold.ci_low if fold else 0.0,
            "high": fold.ci_high if fold else 0.0,
            "p": fold.p_value if fold else 1.0,
            "use": way.words,
        }
        for i, (way, fold) in enumerate(zip(ways, [None, *compared], strict=True))
    ]
    return pd.DataFrame(rows).sort_values("nDCG@10", ascending=False, kind="stable").reset_index(drop=True)


def read_source_frame(frame: pd.DataFrame) -> SourceRuns:
    """The inverse of `source_frame`."""
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for (source, qid), rows in frame.groupby(["source", "qid"], observed=True, sort=True):
        runs.setdefault(str(source), {})[str(qid)] = dict(zip(rows["docno"], rows["score"].astype(float), strict=True))
    return runs
