"""Write a configuration as requests to Elasticsearch 9.2 or later: an index, and a search by retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragbench.config.settings import Settings
from ragbench.extras.engines import hybrid
from ragbench.extras.engines.files import lucene
from ragbench.extras.engines.formats import EngineFile
from ragbench.extras.engines.hybrid import NAME, VECTOR, Hybrid
from ragbench.search.stages.fuse import Fuse

_SYSTEM = "Elasticsearch"
FUSIONS = ("rrf", "convex/min_max")
_TIERS = (
    "the retrievers rrf and linear need Elastic's Enterprise subscription (or a trial) as of version 9; with the basic "
    "licence send the searches inside `retrievers` one by one and fuse them in your program by the weights given here"
)

NEAREST = (Fuse("convex", norm="min_max"), Fuse("rrf"))
"""The fusions among which the nearest is looked for."""
replayed = hybrid.with_one_window


def render(settings: Settings, origin: Sequence[str], version: str | None = None) -> tuple[str, list[str]]:
    """The file, and sentences for what it cannot express; `origin` are sentences on where it comes from."""
    plan, missing = hybrid.translate(settings, _SYSTEM, "elasticsearch", FUSIONS)
    missing += hybrid.same_window(plan, _SYSTEM) + lucene.differences(plan, _SYSTEM)
    if plan.fuse:
        missing.append(f"licence: {_TIERS}")
    kind = plan.index["dense.kind"]
    if plan.dense and kind not in ("flat", "hnsw"):
        missing.append(f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so a graph (hnsw) is written")
    fields = lucene.fields(plan)
    if plan.dense:
        fields["vector"] = {"type": "dense_vector", "dims": plan.dimension, "index": True, "similarity": "cosine"}
        fields["vector"]["index_options"] = {"type": "flat"} if kind == "flat" else _graph(plan)
    index = {
        "settings": {"index": lucene.settings(plan.bm25 if plan.lexical else None, plan.analyzer)},
        "mappings": {"properties": fields},
    }
    body = {"size": plan.top_n, "_source": {"excludes": ["vector"]}, "retriever": _retriever(plan)}
    requests = [("PUT", f"/{NAME}", index), ("POST", f"/{NAME}/_search", body)]
    return hybrid.file(plan, origin, missing, requests, _basic(plan)), missing


def _basic(plan: Hybrid) -> dict[str, Any]:
    """The searches one by one and how to fuse them, which the basic licence allows; nothing where nothing is fused."""
    if plan.fuse is None:
        return {}
    shown = {"size": plan.window, "_source": {"excludes": ["vector"]}}
    searches = {}
    for stage, each in zip(plan.sources, _searches(plan), strict=True):
        searches[stage.source] = {**shown, **each.get("standard", each)}
    fusion = {"method": plan.fuse.method, "k": plan.fuse.k, "norm": plan.fuse.norm, "weights": dict(plan.weights)}
    return {"basic_licence": {"searches": searches, "fusion": fusion}}


def _graph(plan: Hybrid) -> dict[str, Any]:
    return {"type": "hnsw", "m": plan.index["dense.m"], "ef_construction": plan.index["dense.ef_construction"]}


def _searches(plan: Hybrid) -> list[dict[str, Any]]:
    retrievers: list[dict[str, Any]] = []
    if plan.dense:
        breadth = max(plan.dense.depth, plan.index.get("dense.ef_search", 0))
        nearest = {"field": "vector", "query_vector": VECTOR, "k": plan.dense.depth, "num_candidates": breadth}
        retrievers.append({"knn": nearest})
    if plan.lexical:
        retrievers.append({"standard": {"query": lucene.words(plan)}})
    if plan.documents:
        retrievers.append({"standard": {"query": lucene.documents(plan)}})
    return retrievers


def _retriever(plan: Hybrid) -> dict[str, Any]:
    retrievers = _searches(plan)
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


FORMAT = EngineFile(
    ".elasticsearch.json", render, lambda settings, version: replayed(settings), fusions=FUSIONS, nearest_of=NEAREST
)
