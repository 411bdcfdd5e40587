"""Compare ways to fuse the sources of a finished run on its training topics, and learn the weights of fusion.

ranx (Bassani and Romelli, CIKM 2022) has the methods of the literature; those that learn are not compared.

Weights are learned from judged queries: the mixture of the sources' rankings with the best results. Seed 001 names this
as future work ("Learned fusion"). With two to four sources a fixed set of mixtures drawn from the whole simplex finds
what finer searches find. As every mixture is measured on every query, cross-validation needs no further work.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragbench.base.errors import BenchmarkError, ResultsError
from ragbench.base.formatting import with_interval
from ragbench.base.progress import report
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.benchmark.benchmark import Benchmark, Qrels
from ragbench.benchmark.split import TRAIN
from ragbench.config.benchmark import load
from ragbench.config.settings import Settings
from ragbench.evaluation.headroom import SourceRuns
from ragbench.evaluation.measures import PRIMARY, decreasing, document_run, evaluate
from ragbench.evidence.policy import Policy
from ragbench.extras.fit import training
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index
from ragbench.results.measurements import SOURCES, Measurements
from ragbench.search.stages.fuse import Fuse

_RANX = "ranx"
_NORMS = ("min-max", "max", "sum", "rank", "zmuv", "borda")
_OF_SCORES = ("min", "max", "med", "sum", "anz", "mnz")
_OF_RANKS = ("isr", "log_isr", "bordafuse", "condorcet")
Hits = Mapping[str, Mapping[str, float]]
Gain = Callable[[Sequence[Ranking]], NDArray[np.float64]]
"""The measure to raise: one value for every query's fused ranking, in the order of the states."""


@dataclass(frozen=True)
class Fused:
    """A way to fuse: what has it (`home`), its method and norm.

    `words` turn it on on a command line; `values` has nDCG@10 by qid.
    """

    home: str
    method: str
    norm: str
    words: str
    values: Mapping[str, float]


def has_ranx() -> bool:
    """Whether ranx is installed."""
    return importlib.util.find_spec("ranx") is not None


def measure(runs: SourceRuns, qrels: Qrels, qids: Sequence[str], configured: Fuse) -> list[Fused]:
    """Measure every way on the topics `qids`, the configured one first."""
    qids = sorted(qids)
    scores_by_retriever = {source: {qid: run.get(qid, {}) for qid in qids} for source, run in runs.items()}
    ways = [*_ways_of_stage(configured), *(_ways_of_ranx() if has_ranx() else [])]
    compared = []
    for way in ways:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=_RANX)  # numba warns once for each function that it compiles
            if way.home == _RANX:
                fused = _by_ranx(scores_by_retriever, way)
            else:
                fused = _by_stage(scores_by_retriever, _stage(way, configured))
        frame = evaluate({qid: _ordered(fused.get(qid, {})) for qid in qids}, qrels, [PRIMARY])
        rows = frame[frame["measure"] == PRIMARY]
        compared.append(replace(way, values=dict(zip(rows["qid"], rows["value"].astype(float), strict=True))))
    return compared


def _ways_of_stage(configured: Fuse) -> Iterator[Fused]:
    """The configured fusion, then others of its stage with the same weights."""
    norm = configured.norm if configured.method == "convex" else ""
    yield Fused("configured", configured.method, norm, "", {})
    for k in (1.0, 10.0, 60.0):
        yield Fused("fuse", f"rrf (k {k:g})", "", f"fuse.method=rrf fuse.k={k:g}", {})
    for norm in ("min_max", "theoretical", "z", "three_sigma"):
        for missing in ("lowest", "nothing"):
            overrides = f"fuse.method=convex fuse.norm={norm} fuse.missing={missing}"
            yield Fused("fuse", f"convex (missing {missing})", norm, overrides, {})


def _ways_of_ranx() -> Iterator[Fused]:
    for method in _OF_RANKS:
        yield Fused(_RANX, method, "", "", {})
    for norm in _NORMS:
        for method in _OF_SCORES:
            yield Fused(_RANX, method, norm, "", {})


def _stage(way: Fused, configured: Fuse) -> Fuse:
    """The stage `fuse` as a way sets it; stored rankings have no exact scores of what a source did not return."""
    options = dict(option.removeprefix("fuse.").split("=") for option in way.words.split())
    values: dict[str, Any] = {**options, **({"k": float(options["k"])} if "k" in options else {})}
    stage = replace(configured, sources=(), **values)
    return replace(stage, missing="lowest") if stage.missing == "exact" else stage


def _by_stage(runs: SourceRuns, stage: Fuse) -> Hits:
    """Fuse by the stage `fuse`, documents instead of chunks."""
    docnos = sorted({docno for run in runs.values() for hits in run.values() for docno in hits})
    number = {docno: number for number, docno in enumerate(docnos)}
    fused_by_qid = {}
    for qid in next(iter(runs.values())):
        rankings = {
            source: Ranking.ordered([number[docno] for docno in hits[qid]], list(hits[qid].values()))
            for source, hits in runs.items()
        }
        state = QueryState(Query(qid, ""), rankings=rankings)
        fused = stage.fuse(state, cast("Index", None))  # an index is read for chunks of documents and exact scores only
        fused_by_qid[qid] = {
            docnos[number]: score for number, score in zip(fused.chunks.tolist(), fused.scores.tolist(), strict=True)
        }
    return fused_by_qid


def _by_ranx(runs: SourceRuns, way: Fused) -> Hits:
    import ranx

    # ranx refuses queries without hits: they get an unknown document
    filled = [{qid: dict(scores) or {"": 0.0} for qid, scores in hits.items()} for hits in runs.values()]
    fused = ranx.fuse([ranx.Run(hits) for hits in filled], norm=way.norm or None, method=way.method, params={})
    return cast(Hits, fused.to_dict())


def _ordered(hits: Mapping[str, float]) -> list[tuple[str, float]]:
    """Hits by score, equal ones by docno, without the unknown document; NaN counts as the lowest score."""
    scored = [(docno, float(np.nan_to_num(score, nan=-np.inf, posinf=1e30))) for docno, score in hits.items() if docno]
    return decreasing(sorted(scored, key=lambda hit: (-hit[1], hit[0])))


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


def compare(results: Measurements, arm: str | None = None) -> Fusions:
    """Compare, of the last arm unless one is named.

    Raises ResultsError for a run without stored sources or training topics.
    """
    name = arm or results.arms[-1]
    if name not in results.arms:
        raise ResultsError(f"{results.folder} has no arm '{name}'; it has {', '.join(results.arms)}")
    benchmark = load(results.config(name))
    if benchmark.digest != results.record["benchmark"]["digest"]:
        raise ResultsError(f"the data of {results.folder} have changed since: run it again")
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
    ways = measure(runs, benchmark.document_qrels, qids, configured)
    return Fusions(name, tuple(sorted(runs)), len(topics), _table(ways, settings))


def _table(ways: list[Fused], settings: Settings) -> pd.DataFrame:
    """Compare every way with the first, as one family."""
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


@dataclass(frozen=True)
class LearnedWeights:
    """The best weights by source, and the measure of every query with several weights.

    `before` is with the configured weights, `after` with `weights`, `held_out` with weights learned from the other
    folds: the gain to expect on new queries is that of `held_out`, not of `after`.
    """

    weights: Mapping[str, float]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    held_out: NDArray[np.float64]


def learn_weights(
    states: Sequence[QueryState],
    groups: Sequence[str],
    fuse: Fuse,
    index: Index,
    gain: Gain,
    *,
    draws: int = 100,
    seed: int = 13,
) -> LearnedWeights:
    """Choose among the configured weights and `draws` mixtures, drawn evenly from all (Dirichlet), by the mean gain.

    `groups` has one entry a query; queries of a group share a fold. All mixtures have the sum of the configured
    weights, so that fused scores keep their size for calibration. Equal gains go to the mixture nearest to the
    configured one.
    """
    sources = sorted({source for state in states for source, ranking in state.rankings.items() if len(ranking)})
    if len(sources) < 2:
        raise BenchmarkError(
            f"weights need at least two sources, and only {', '.join(sources) or 'none'} found anything: turn one on"
        )
    parts = list(training.leave_out(groups, "weights can only be learned from queries of at least two groups"))
    mixtures = _mixtures(np.array([fuse.weights.get(source, 1.0) for source in sources]), draws, seed)
    values = np.empty((len(mixtures), len(states)))
    for number, mixture in enumerate(mixtures):
        weighted = replace(fuse, weights=dict(zip(sources, mixture.tolist(), strict=True)))
        values[number] = gain([weighted.fuse(state, index) for state in states])
        if not ((values[number] >= 0) & (values[number] <= 1)).all():
            raise BenchmarkError(f"the measure to raise must be between 0 and 1, got {values[number].max():g}")
        report("trying weights", number + 1, len(mixtures))
    held_out = np.empty(len(states))
    for others, test in parts:
        held_out[test] = values[_best(values[:, others]), test]
    best = _best(values)
    weights = {source: round(float(weight), 3) for source, weight in zip(sources, mixtures[best], strict=True)}
    return LearnedWeights(weights, before=values[0], after=values[best], held_out=held_out)


def document_gain(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark) -> Gain:
    """What gives the primary measure of rankings, one for each state, by the best chunk of each document."""

    def gain(rankings: Sequence[Ranking]) -> NDArray[np.float64]:
        run = document_run([replace(s, fused=r) for s, r in zip(states, rankings, strict=True)], table)
        frame = evaluate(run, benchmark.document_qrels, [PRIMARY])
        rows = frame[frame["measure"] == PRIMARY]
        values = dict(zip(rows["qid"], rows["value"], strict=True))
        return np.array([values[state.query.qid] for state in states], dtype=np.float64)

    return gain


def _mixtures(configured: NDArray[np.float64], draws: int, seed: int) -> NDArray[np.float64]:
    """The configured weights, then drawn ones by their distance from them, shape (draws + 1, sources)."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(len(configured)), size=draws) * configured.sum()
    order = np.argsort(np.abs(drawn - configured).sum(axis=1), kind="stable")
    return np.vstack([configured, drawn[order]])


def _best(values: NDArray[np.float64]) -> int:
    """The first row of highest mean; differences as small as rounding errors of a sum do not count."""
    return int(np.argmax(np.round(values.mean(axis=1), 9)))
