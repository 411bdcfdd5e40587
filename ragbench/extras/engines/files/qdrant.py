"""Write a configuration as requests to Qdrant 1.17 or later: a collection, and a query with prefetches and fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.config.settings import Settings
from ragbench.extras.engines import hybrid
from ragbench.extras.engines.formats import EngineFile
from ragbench.extras.engines.hybrid import NAME, QUERY, VECTOR, Hybrid, with_one_window
from ragbench.search.stages.fuse import Fuse

_SYSTEM = "Qdrant"
FUSIONS = ("rrf", "dbsf")
NEAREST = (Fuse("rrf"), Fuse("dbsf"))
"""The fusions among which the nearest is looked for."""
_BM25 = "Qdrant/bm25"


def replayed(settings: Settings) -> Settings:
    """What the file makes Qdrant do: one text of all fields, stemmed, next to the vectors."""
    plain = with_one_window(settings)
    changes: dict[str, Any] = {"index.lexical.analyzer": "english", "documents": {}}
    words = hybrid.chunk_words(plain)
    if words is not None:
        changes["lexical.fields"] = dict.fromkeys(words.fields, 1.0)
    return plain.with_values(changes)


def render(settings: Settings, origin: Sequence[str], version: str | None = None) -> tuple[str, list[str]]:
    """The file, and sentences for what it cannot express; `origin` are sentences on where it comes from."""
    plan, missing = hybrid.translate(settings, _SYSTEM, "qdrant", FUSIONS)
    prefetch = [*([_meaning(plan)] if plan.dense else []), *([_words(plan)] if plan.lexical else [])]
    missing += _differences(plan)
    if plan.documents:
        missing.append("documents: this file has no search for whole documents")
        plan = replace(plan, documents=None, weights={k: v for k, v in plan.weights.items() if k != hybrid.DOCUMENTS})
    shown = {"limit": plan.top_n, "with_payload": True}
    query = {"prefetch": prefetch, "query": _fusion(plan), **shown} if plan.fuse else {**prefetch[0], **shown}
    path = f"/collections/{NAME}"
    requests = [("PUT", path, _collection(plan)), ("POST", f"{path}/points/query", query)]
    return hybrid.file(plan, origin, missing, requests), missing


def _collection(plan: Hybrid) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if plan.dense:
        found["vectors"] = {"dense": {"size": plan.dimension, "distance": "Cosine"}}
        if plan.index["dense.kind"] != "flat":
            graph = {"m": plan.index["dense.m"], "ef_construct": plan.index["dense.ef_construction"]}
            found["vectors"]["dense"]["hnsw_config"] = graph
    if plan.lexical:
        found["sparse_vectors"] = {"lexical": {"modifier": "idf"}}
    return found


def _meaning(plan: Hybrid) -> dict[str, Any]:
    assert plan.dense is not None
    flat = plan.index["dense.kind"] == "flat"
    params = {"exact": True} if flat else {"hnsw_ef": plan.index["dense.ef_search"]}
    return {"query": VECTOR, "using": "dense", "limit": plan.dense.depth, "params": params}


def _words(plan: Hybrid) -> dict[str, Any]:
    assert plan.lexical is not None
    document = {"text": QUERY, "model": _BM25, "options": {"k": plan.lexical.k1, "b": plan.lexical.b}}
    return {"query": document, "using": "lexical", "limit": plan.lexical.depth}


def _fusion(plan: Hybrid) -> dict[str, Any]:
    assert plan.fuse is not None
    weights = list(plan.weights.values())
    even = len(set(weights)) == 1
    if plan.fuse.method == "dbsf":
        if not even:
            raise ConfigError(
                "--format qdrant cannot fuse by dbsf with different weights: export another arm, or a bundle"
            )
        return {"fusion": "dbsf"}
    # Ranks of Qdrant begin at 0.
    return {"rrf": {"k": round(plan.fuse.k) + 1, **({} if even else {"weights": weights})}}


def _differences(plan: Hybrid) -> list[str]:
    found = []
    if plan.lexical:
        if set(plan.lexical.fields) != {"content"}:
            names = ", ".join(f"{name} {weight:g}" for name, weight in plan.lexical.fields.items())
            found.append(f"lexical.fields = {names}: {_SYSTEM} scores one text, so join the fields first")
        found.append(f"index.lexical.analyzer = {plan.analyzer}: {_BM25} has its own words and stems")
    if plan.dense and plan.index["dense.kind"] in ("ivf_sq8", "auto"):
        kind = plan.index["dense.kind"]
        found.append(f"index.dense.kind = {kind}: {_SYSTEM} has no such structure, so a graph (hnsw) is written")
    if plan.fuse and plan.fuse.method == "rrf" and len(set(plan.weights.values())) > 1:
        found.append(f"fuse.weights: {_SYSTEM} divides ranks by them, here they multiply what a rank gives")
    return found


FORMAT = EngineFile(
    ".qdrant.json", render, lambda settings, version: replayed(settings), fusions=FUSIONS, nearest_of=NEAREST, even=True
)
