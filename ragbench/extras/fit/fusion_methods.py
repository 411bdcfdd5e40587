"""Compare all ways to fuse the rankings of sources, by documents: those of the stage `fuse`, and those of ranx.

ranx (Bassani and Romelli, CIKM 2022) has the methods of the literature; those that learn are not compared.
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
Hits = Mapping[str, Mapping[str, float]]
Tick = Callable[[str, int, int], None]


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


def compare(
    runs: SourceRuns,
    qrels: Qrels,
    qids: Sequence[str],
    configured: Fuse,
    tick: Tick | None = None,
) -> list[Fused]:
    """Measure every way on the topics `qids`, the configured one first."""
    qids = sorted(qids)
    scores_by_retriever = {source: {qid: run.get(qid, {}) for qid in qids} for source, run in runs.items()}
    ways = [*_ways_of_stage(configured), *(_ways_of_ranx() if has_ranx() else [])]
    compared = []
    for number, way in enumerate(ways, start=1):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=_RANX)  # numba warns once for each function that it compiles
            fused = _fuse(scores_by_retriever, way, configured)
        frame = evaluate({qid: _ordered(fused.get(qid, {})) for qid in qids}, qrels, [PRIMARY])
        rows = frame[frame["measure"] == PRIMARY]
        compared.append(replace(way, values=dict(zip(rows["qid"], rows["value"].astype(float), strict=True))))
        if tick is not None:
            tick("fusing", number, len(ways))
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


def _fuse(runs: SourceRuns, way: Fused, configured: Fuse) -> Hits:
    return _by_ranx(runs, way) if way.home == _RANX else _by_stage(runs, _stage(way, configured))


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

    ranx_runs = [_ranx_run(hits) for hits in runs.values()]
    fused = ranx.fuse(ranx_runs, norm=way.norm or None, method=way.method, params={})
    return cast(Hits, fused.to_dict())


def _ranx_run(hits: Hits) -> Any:
    """A run for ranx, which refuses queries without hits: they get an unknown document."""
    import ranx

    return ranx.Run({qid: dict(scores) or {"": 0.0} for qid, scores in hits.items()})


def _ordered(hits: Mapping[str, float]) -> list[tuple[str, float]]:
    """Hits by score, equal ones by docno, without the unknown document; NaN counts as the lowest score."""
    scored = [(docno, float(np.nan_to_num(score, nan=-np.inf, posinf=1e30))) for docno, score in hits.items() if docno]
    return decreasing(sorted(scored, key=lambda hit: (-hit[1], hit[0])))
