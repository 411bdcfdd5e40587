"""Compare all ways to fuse the rankings of sources, by documents: those of the stage `fuse`, and those of ranx.

ranx (Bassani and Romelli, CIKM 2022) has the methods of the literature. Those with parameters, and those that learn,
are fitted on the other folds and measured on the held-out fold; folds keep groups of topics whole. Weighted
bordafuse and condorcet are not compared: a fit takes many minutes.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ragbench.base.types import Query, QueryState, Ranking
from ragbench.evaluation.headroom import SourceRuns
from ragbench.evaluation.measures import PRIMARY, decreasing, evaluate
from ragbench.search.stages.fuse import Fuse

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Qrels
    from ragbench.index.index import Index

_RANX = "ranx"
_NORMS = ("min-max", "max", "sum", "rank", "zmuv", "borda")
_OF_SCORES = ("min", "max", "med", "sum", "anz", "mnz")
_OF_RANKS = ("isr", "log_isr", "bordafuse", "condorcet")
_FITTED = (
    *("rrf", "rbc", "logn_isr"),
    *("bayesfuse", "mapfuse", "posfuse", "probfuse", "segfuse", "slidefuse"),
)
_FITTED_OF_SCORES = ("wsum", "wmnz", "mixed", "gmnz")
_METRIC = "ndcg@10"
_GRIDS: Mapping[str, Mapping[str, float]] = {
    **{method: {"step": 0.2} for method in ("wsum", "wmnz", "mixed")},
    "gmnz": {"min_gamma": 0.1, "step": 0.1},
    "logn_isr": {"min_sigma": 0.1, "step": 0.1},
    "rbc": {"min_phi": 0.1, "max_phi": 0.9, "step": 0.1},
    "probfuse": {"max_n_segments": 20},
    "slidefuse": {"max_w": 10},
    "rrf": {},
}
"""Coarser than ranx's own grids, which take an hour: a hundred topics do not suffice to choose between finer steps."""

Hits = Mapping[str, Mapping[str, float]]
Tick = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Fused:
    """A way to fuse: what has it (`home`), its method and norm, whether it is fitted on other folds.

    `words` turn it on on a command line; `values` has nDCG@10 by qid.
    """

    home: str
    method: str
    norm: str
    fitted: bool
    words: str
    values: Mapping[str, float]


def has_ranx() -> bool:
    """Whether ranx is installed."""
    return importlib.util.find_spec("ranx") is not None


def compare(
    runs: SourceRuns,
    qrels: Qrels,
    folds: Sequence[Sequence[str]],
    configured: Fuse,
    fitted: bool = False,
    tick: Tick | None = None,
) -> list[Fused]:
    """Measure every way on the topics of `folds`, the configured one first.

    With `fitted` also the ways of ranx that have parameters or learn: this takes minutes instead of seconds.
    """
    qids = sorted(qid for fold in folds for qid in fold)
    scores_by_retriever = {source: {qid: run.get(qid, {}) for qid in qids} for source, run in runs.items()}
    ways = [*_ways_of_stage(configured), *(_ways_of_ranx(fitted) if has_ranx() else [])]
    compared = []
    for number, way in enumerate(ways, start=1):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=_RANX)  # numba warns once for each function that it compiles
            fused = _fuse(scores_by_retriever, way, qrels, folds, configured)
        frame = evaluate({qid: _ordered(fused.get(qid, {})) for qid in qids}, qrels, [PRIMARY])
        rows = frame[frame["measure"] == PRIMARY]
        compared.append(replace(way, values=dict(zip(rows["qid"], rows["value"].astype(float), strict=True))))
        if tick is not None:
            tick("fusing", number, len(ways))
    return compared


def _ways_of_stage(configured: Fuse) -> Iterator[Fused]:
    """The configured fusion, then others of its stage with the same weights."""
    norm = configured.norm if configured.method == "convex" else ""
    yield Fused("configured", configured.method, norm, False, "", {})
    for k in (1.0, 10.0, 60.0):
        yield Fused("fuse", f"rrf (k {k:g})", "", False, f"fuse.method=rrf fuse.k={k:g}", {})
    for norm in ("min_max", "theoretical", "z", "three_sigma"):
        for missing in ("lowest", "nothing"):
            overrides = f"fuse.method=convex fuse.norm={norm} fuse.missing={missing}"
            yield Fused("fuse", f"convex (missing {missing})", norm, False, overrides, {})


def _ways_of_ranx(fitted: bool) -> Iterator[Fused]:
    for method in _OF_RANKS:
        yield Fused(_RANX, method, "", False, "", {})
    for norm in _NORMS:
        for method in _OF_SCORES:
            yield Fused(_RANX, method, norm, False, "", {})
    for method in _FITTED if fitted else ():
        yield Fused(_RANX, method, "", True, "", {})
    for norm in _NORMS:
        for method in _FITTED_OF_SCORES if fitted else ():
            yield Fused(_RANX, method, norm, True, "", {})


def _fuse(runs: SourceRuns, way: Fused, qrels: Qrels, folds: Sequence[Sequence[str]], configured: Fuse) -> Hits:
    if way.home != _RANX:
        return _by_stage(runs, _stage(way, configured))
    if not way.fitted:
        return _by_ranx(runs, way, {})
    fused: dict[str, Mapping[str, float]] = {}
    for fold in folds:
        others = [qid for training_fold in folds if training_fold is not fold for qid in training_fold]
        parameters = _fit(_part(runs, others), way, {qid: qrels[qid] for qid in others})
        fused |= _by_ranx(_part(runs, fold), way, parameters)
    return fused


def _part(runs: SourceRuns, qids: Sequence[str]) -> SourceRuns:
    return {source: {qid: run[qid] for qid in qids} for source, run in runs.items()}


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


def _by_ranx(runs: SourceRuns, way: Fused, parameters: Mapping[str, Any]) -> Hits:
    import ranx

    ranx_runs = [_ranx_run(hits) for hits in runs.values()]
    norm = way.norm or None
    fused = ranx.fuse(ranx_runs, norm=norm, method=way.method, params=dict(parameters))
    return cast(Hits, fused.to_dict())


def _fit(runs: SourceRuns, way: Fused, qrels: Qrels) -> Mapping[str, Any]:
    import ranx

    relevant = {qid: {docno: max(0, grade) for docno, grade in grades.items()} for qid, grades in qrels.items()}
    ranx_runs = [_ranx_run(hits) for hits in runs.values()]
    options: dict[str, Any] = {"norm": way.norm or None, "method": way.method, "metric": _METRIC}
    fitted = ranx.optimize_fusion(ranx.Qrels(relevant), ranx_runs, **options, **_options(way.method))
    return cast(Mapping[str, Any], fitted)


def _options(method: str) -> dict[str, Any]:
    return {**_GRIDS[method], "show_progress": False} if method in _GRIDS else {}


def _ranx_run(hits: Hits) -> Any:
    """A run for ranx, which refuses queries without hits: they get an unknown document."""
    import ranx

    return ranx.Run({qid: dict(scores) or {"": 0.0} for qid, scores in hits.items()})


def _ordered(hits: Mapping[str, float]) -> list[tuple[str, float]]:
    """Hits by score, equal ones by docno, without the unknown document; NaN counts as the lowest score."""
    scored = [(docno, float(np.nan_to_num(score, nan=-np.inf, posinf=1e30))) for docno, score in hits.items() if docno]
    return decreasing(sorted(scored, key=lambda hit: (-hit[1], hit[0])))
