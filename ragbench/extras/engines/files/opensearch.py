"""Write a configuration as requests to OpenSearch 3.2 or later: an index, a search pipeline, a hybrid query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragbench.config.settings import Settings
from ragbench.extras.engines import hybrid
from ragbench.extras.engines.files import lucene
from ragbench.extras.engines.formats import EngineFile
from ragbench.extras.engines.hybrid import NAME, VECTOR, Hybrid
from ragbench.search.stages.fuse import Fuse

_SYSTEM = "OpenSearch"
_ALONE = ("combined_fields",)
"""The queries whose terms of one position are clauses of their own (`CombinedFieldsQueryBuilder` of version 3.2)."""
FUSIONS = ("rrf", "convex/min_max", "convex/theoretical")

NEAREST = (Fuse("convex", norm="min_max"), Fuse("rrf"))
"""The fusions among which the nearest is looked for."""
replayed = hybrid.with_one_window


def render(settings: Settings, origin: Sequence[str], version: str | None = None) -> tuple[str, list[str]]:
    """The file, and sentences for what it cannot express; `origin` are sentences on where it comes from."""
    plan, missing = hybrid.translate(settings, _SYSTEM, "opensearch", FUSIONS)
    missing += hybrid.same_window(plan, _SYSTEM) + lucene.differences(plan, _SYSTEM, _ALONE) + _kinds(plan)
    queries = [*([_meaning(plan)] if plan.dense else []), *([lucene.words(plan)] if plan.lexical else [])]
    queries += [lucene.documents(plan)] if plan.documents else []
    search: dict[str, Any] = {"size": plan.top_n, "_source": {"excludes": ["vector"]}}
    requests: list[tuple[str, str, Any]] = [("PUT", f"/{NAME}", _index(plan))]
    if plan.fuse:
        search["query"] = {"hybrid": {"pagination_depth": plan.window, "queries": queries}}
        requests.append(("PUT", f"/_search/pipeline/{NAME}", _pipeline(plan)))
        requests.append(("POST", f"/{NAME}/_search?search_pipeline={NAME}", search))
    else:
        requests.append(("POST", f"/{NAME}/_search", {**search, "query": queries[0]}))
    return hybrid.file(plan, origin, missing, requests), missing


def _index(plan: Hybrid) -> dict[str, Any]:
    fields = lucene.fields(plan)
    graph = _graph(plan)
    if plan.dense:
        fields["vector"] = {"type": "knn_vector", "dimension": plan.dimension}
        if graph:
            fields["vector"]["method"] = {
                "name": "hnsw",
                "engine": "lucene",
                "space_type": "cosinesimil",
                "parameters": {"m": plan.index["dense.m"], "ef_construction": plan.index["dense.ef_construction"]},
            }
    knn = {"knn": True} if graph else {}
    return {
        "settings": {"index": {**lucene.settings(plan.bm25 if plan.lexical else None, plan.analyzer), **knn}},
        "mappings": {"properties": fields},
    }


def _graph(plan: Hybrid) -> bool:
    return plan.dense is not None and plan.index["dense.kind"] in ("hnsw", "ivf_sq8")


def _meaning(plan: Hybrid) -> dict[str, Any]:
    assert plan.dense is not None
    if _graph(plan):
        return {"knn": {"vector": {"vector": VECTOR, "k": plan.dense.depth}}}
    exact = {"field": "vector", "query_value": VECTOR, "space_type": "cosinesimil"}
    script = {"lang": "knn", "source": "knn_score", "params": exact}
    return {"script_score": {"query": {"match_all": {}}, "script": script}}


def _pipeline(plan: Hybrid) -> dict[str, Any]:
    assert plan.fuse is not None
    weights = {"weights": hybrid.shares(plan.weights)}
    if plan.fuse.method == "rrf":
        ranks = {"technique": "rrf", "rank_constant": max(1, round(plan.fuse.k)), "parameters": weights}
        return {"phase_results_processors": [{"score-ranker-processor": {"combination": ranks}}]}
    norm: dict[str, Any] = {"technique": "min_max"}
    if plan.fuse.norm == "theoretical":
        norm["parameters"] = {"lower_bounds": [{"mode": "apply", "min_score": 0.0} for _ in plan.weights]}
    mean = {"technique": "arithmetic_mean", "parameters": weights}
    return {"phase_results_processors": [{"normalization-processor": {"normalization": norm, "combination": mean}}]}


def _kinds(plan: Hybrid) -> list[str]:
    kind = plan.index["dense.kind"]
    if plan.dense is None or kind in ("flat", "hnsw"):
        return []
    structure = "a graph (hnsw)" if _graph(plan) else "an exact search"
    return [f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so {structure} is written"]


FORMAT = EngineFile(
    ".opensearch.json", render, lambda settings, version: replayed(settings), fusions=FUSIONS, nearest_of=NEAREST
)
