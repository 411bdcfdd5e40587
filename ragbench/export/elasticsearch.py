"""Write a configuration as requests to Elasticsearch 9.2 or later: an index, and a search by retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragbench.configuration import Settings
from ragbench.export import hybrid, lucene
from ragbench.export.hybrid import NAME, VECTOR, Hybrid

_SYSTEM = "Elasticsearch"
FUSIONS = ("rrf", "convex/min_max")


def render(settings: Settings, heading: Sequence[str]) -> tuple[str, list[str]]:
    """The file and what it cannot say; `heading` are sentences on where it comes from."""
    told, missing = hybrid.read(settings, _SYSTEM, "elasticsearch", FUSIONS)
    missing += hybrid.same_window(told, _SYSTEM) + lucene.left(told, _SYSTEM)
    kind = told.index["dense.kind"]
    if told.dense and kind not in ("flat", "hnsw"):
        missing.append(f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so a graph (hnsw) is written")
    fields = lucene.fields(told)
    if told.dense:
        fields["vector"] = {"type": "dense_vector", "dims": told.dimension, "index": True, "similarity": "cosine"}
        fields["vector"]["index_options"] = {"type": "flat"} if kind == "flat" else _graph(told)
    index = {"settings": {"index": lucene.settings(told)}, "mappings": {"properties": fields}}
    body = {"size": told.top_n, "_source": {"excludes": ["vector"]}, "retriever": _retriever(told)}
    requests = [("PUT", f"/{NAME}", index), ("POST", f"/{NAME}/_search", body)]
    return hybrid.file(told, heading, missing, requests), missing


def _graph(told: Hybrid) -> dict[str, Any]:
    return {"type": "hnsw", "m": told.index["dense.m"], "ef_construction": told.index["dense.ef_construction"]}


def _retriever(told: Hybrid) -> dict[str, Any]:
    retrievers: list[dict[str, Any]] = []
    if told.dense:
        breadth = max(told.dense.depth, told.index.get("dense.ef_search", 0))
        nearest = {"field": "vector", "query_vector": VECTOR, "k": told.dense.depth, "num_candidates": breadth}
        retrievers.append({"knn": nearest})
    if told.lexical:
        retrievers.append({"standard": {"query": lucene.words(told)}})
    if told.fuse is None:
        return retrievers[0]
    weighted = [
        {"retriever": each, "weight": weight} for each, weight in zip(retrievers, told.weights.values(), strict=True)
    ]
    if told.fuse.method == "rrf":
        constant = max(1, round(told.fuse.k))
        return {"rrf": {"retrievers": weighted, "rank_constant": constant, "rank_window_size": told.window}}
    return {
        "linear": {
            "retrievers": [{**each, "normalizer": "minmax"} for each in weighted],
            "rank_window_size": told.window,
        }
    }
