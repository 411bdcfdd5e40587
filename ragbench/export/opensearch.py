"""Write a configuration as requests to OpenSearch 3.2 or later: an index, a search pipeline, a hybrid query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragbench.configuration import Settings
from ragbench.export import hybrid, lucene
from ragbench.export.hybrid import NAME, VECTOR, Hybrid

_SYSTEM = "OpenSearch"
FUSIONS = ("rrf", "convex/min_max", "convex/theoretical")


def render(settings: Settings, heading: Sequence[str]) -> tuple[str, list[str]]:
    """The file and what it cannot say; `heading` are sentences on where it comes from."""
    told, missing = hybrid.read(settings, _SYSTEM, "opensearch", FUSIONS)
    missing += hybrid.same_window(told, _SYSTEM) + lucene.left(told, _SYSTEM) + _kinds(told)
    queries = [*([_meaning(told)] if told.dense else []), *([lucene.words(told)] if told.lexical else [])]
    search: dict[str, Any] = {"size": told.top_n, "_source": {"excludes": ["vector"]}}
    requests: list[tuple[str, str, Any]] = [("PUT", f"/{NAME}", _index(told))]
    if told.fuse:
        search["query"] = {"hybrid": {"pagination_depth": told.window, "queries": queries}}
        requests.append(("PUT", f"/_search/pipeline/{NAME}", _pipeline(told)))
        requests.append(("POST", f"/{NAME}/_search?search_pipeline={NAME}", search))
    else:
        requests.append(("POST", f"/{NAME}/_search", {**search, "query": queries[0]}))
    return hybrid.file(told, heading, missing, requests), missing


def _index(told: Hybrid) -> dict[str, Any]:
    fields = lucene.fields(told)
    graph = _graph(told)
    if told.dense:
        fields["vector"] = {"type": "knn_vector", "dimension": told.dimension}
        if graph:
            fields["vector"]["method"] = {
                "name": "hnsw",
                "engine": "lucene",
                "space_type": "cosinesimil",
                "parameters": {"m": told.index["dense.m"], "ef_construction": told.index["dense.ef_construction"]},
            }
    knn = {"knn": True} if graph else {}
    return {"settings": {"index": {**lucene.settings(told), **knn}}, "mappings": {"properties": fields}}


def _graph(told: Hybrid) -> bool:
    return told.dense is not None and told.index["dense.kind"] in ("hnsw", "ivf_sq8")


def _meaning(told: Hybrid) -> dict[str, Any]:
    assert told.dense is not None
    if _graph(told):
        return {"knn": {"vector": {"vector": VECTOR, "k": told.dense.depth}}}
    exact = {"field": "vector", "query_value": VECTOR, "space_type": "cosinesimil"}
    script = {"lang": "knn", "source": "knn_score", "params": exact}
    return {"script_score": {"query": {"match_all": {}}, "script": script}}


def _pipeline(told: Hybrid) -> dict[str, Any]:
    assert told.fuse is not None
    weights = {"weights": hybrid.shares(told.weights)}
    if told.fuse.method == "rrf":
        ranks = {"technique": "rrf", "rank_constant": max(1, round(told.fuse.k)), "parameters": weights}
        return {"phase_results_processors": [{"score-ranker-processor": {"combination": ranks}}]}
    norm: dict[str, Any] = {"technique": "min_max"}
    if told.fuse.norm == "theoretical":
        norm["parameters"] = {"lower_bounds": [{"mode": "apply", "min_score": 0.0} for _ in told.weights]}
    mean = {"technique": "arithmetic_mean", "parameters": weights}
    return {"phase_results_processors": [{"normalization-processor": {"normalization": norm, "combination": mean}}]}


def _kinds(told: Hybrid) -> list[str]:
    kind = told.index["dense.kind"]
    if told.dense is None or kind in ("flat", "hnsw"):
        return []
    written = "a graph (hnsw)" if _graph(told) else "an exact search"
    return [f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so {written} is written"]
