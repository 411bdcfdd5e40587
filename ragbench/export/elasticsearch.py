"""Write a configuration as requests to Elasticsearch 9.2 or later: an index, and a search by retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragbench.config.settings import Settings
from ragbench.export import hybrid, lucene
from ragbench.export.file_format import FileFormat
from ragbench.export.hybrid import NAME, VECTOR, Hybrid

_SYSTEM = "Elasticsearch"
FUSIONS = ("rrf", "convex/min_max")


def render(settings: Settings, origin: Sequence[str], version: str | None = None) -> tuple[str, list[str]]:
    """The file, and sentences for what it cannot express; `origin` are sentences on where it comes from."""
    plan, missing = hybrid.translate(settings, _SYSTEM, "elasticsearch", FUSIONS)
    missing += hybrid.same_window(plan, _SYSTEM) + lucene.differences(plan, _SYSTEM)
    kind = plan.index["dense.kind"]
    if plan.dense and kind not in ("flat", "hnsw"):
        missing.append(f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so a graph (hnsw) is written")
    fields = lucene.fields(plan)
    if plan.dense:
        fields["vector"] = {"type": "dense_vector", "dims": plan.dimension, "index": True, "similarity": "cosine"}
        fields["vector"]["index_options"] = {"type": "flat"} if kind == "flat" else _graph(plan)
    index = {"settings": {"index": lucene.settings(plan)}, "mappings": {"properties": fields}}
    body = {"size": plan.top_n, "_source": {"excludes": ["vector"]}, "retriever": _retriever(plan)}
    requests = [("PUT", f"/{NAME}", index), ("POST", f"/{NAME}/_search", body)]
    return hybrid.file(plan, origin, missing, requests), missing


def _graph(plan: Hybrid) -> dict[str, Any]:
    return {"type": "hnsw", "m": plan.index["dense.m"], "ef_construction": plan.index["dense.ef_construction"]}


def _retriever(plan: Hybrid) -> dict[str, Any]:
    retrievers: list[dict[str, Any]] = []
    if plan.dense:
        breadth = max(plan.dense.depth, plan.index.get("dense.ef_search", 0))
        nearest = {"field": "vector", "query_vector": VECTOR, "k": plan.dense.depth, "num_candidates": breadth}
        retrievers.append({"knn": nearest})
    if plan.lexical:
        retrievers.append({"standard": {"query": lucene.words(plan)}})
    if plan.fuse is None:
        return retrievers[0]
    weighted = [
        {"retriever": each, "weight": weight} for each, weight in zip(retrievers, plan.weights.values(), strict=True)
    ]
    if plan.fuse.method == "rrf":
        constant = max(1, round(plan.fuse.k))
        return {"rrf": {"retrievers": weighted, "rank_constant": constant, "rank_window_size": plan.window}}
    return {
        "linear": {
            "retrievers": [{**each, "normalizer": "minmax"} for each in weighted],
            "rank_window_size": plan.window,
        }
    }


FORMAT = FileFormat(".elasticsearch.json", render)
