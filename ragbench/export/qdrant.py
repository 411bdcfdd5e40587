"""Write a configuration as requests to Qdrant 1.17 or later: a collection, and a query with prefetches and fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragbench.configuration import Settings
from ragbench.errors import ConfigError
from ragbench.export import hybrid
from ragbench.export.hybrid import NAME, QUERY, VECTOR, Hybrid

_SYSTEM = "Qdrant"
FUSIONS = ("rrf", "dbsf")
_BM25 = "Qdrant/bm25"


def render(settings: Settings, heading: Sequence[str]) -> tuple[str, list[str]]:
    """The file and what it cannot say; `heading` are sentences on where it comes from."""
    told, missing = hybrid.read(settings, _SYSTEM, "qdrant", FUSIONS)
    prefetch = [*([_meaning(told)] if told.dense else []), *([_words(told)] if told.lexical else [])]
    missing += _left(told)
    shown = {"limit": told.top_n, "with_payload": True}
    query = {"prefetch": prefetch, "query": _fusion(told), **shown} if told.fuse else {**prefetch[0], **shown}
    path = f"/collections/{NAME}"
    requests = [("PUT", path, _collection(told)), ("POST", f"{path}/points/query", query)]
    return hybrid.file(told, heading, missing, requests), missing


def _collection(told: Hybrid) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if told.dense:
        found["vectors"] = {"dense": {"size": told.dimension, "distance": "Cosine"}}
        if told.index["dense.kind"] != "flat":
            graph = {"m": told.index["dense.m"], "ef_construct": told.index["dense.ef_construction"]}
            found["vectors"]["dense"]["hnsw_config"] = graph
    if told.lexical:
        found["sparse_vectors"] = {"lexical": {"modifier": "idf"}}
    return found


def _meaning(told: Hybrid) -> dict[str, Any]:
    assert told.dense is not None
    flat = told.index["dense.kind"] == "flat"
    params = {"exact": True} if flat else {"hnsw_ef": told.index["dense.ef_search"]}
    return {"query": VECTOR, "using": "dense", "limit": told.dense.depth, "params": params}


def _words(told: Hybrid) -> dict[str, Any]:
    assert told.lexical is not None
    document = {"text": QUERY, "model": _BM25, "options": {"k": told.lexical.k1, "b": told.lexical.b}}
    return {"query": document, "using": "lexical", "limit": told.lexical.depth}


def _fusion(told: Hybrid) -> dict[str, Any]:
    assert told.fuse is not None
    weights = list(told.weights.values())
    even = len(set(weights)) == 1
    if told.fuse.method == "dbsf":
        if not even:
            raise ConfigError(
                "--format qdrant cannot fuse by dbsf with different weights: export another arm, or a bundle"
            )
        return {"fusion": "dbsf"}
    # Its ranks begin at 0.
    return {"rrf": {"k": round(told.fuse.k) + 1, **({} if even else {"weights": weights})}}


def _left(told: Hybrid) -> list[str]:
    found = []
    if told.lexical:
        if set(told.lexical.fields) != {"content"}:
            names = ", ".join(f"{name} {weight:g}" for name, weight in told.lexical.fields.items())
            found.append(f"lexical.fields = {names}: {_SYSTEM} scores one text, so join the fields before")
        found.append(f"index.lexical.analyzer = {told.analyzer}: {_BM25} has its own words and stems")
    if told.dense and told.index["dense.kind"] in ("ivf_sq8", "auto"):
        kind = told.index["dense.kind"]
        found.append(f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so a graph (hnsw) is written")
    if told.fuse and told.fuse.method == "rrf" and len(set(told.weights.values())) > 1:
        found.append(f"fuse.weights: {_SYSTEM} divides ranks by them, here they multiply what a rank gives")
    return found
