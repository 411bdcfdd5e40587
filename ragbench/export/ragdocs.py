"""Write a configuration as the TOML of mcp-markdown-ragdocs (seeds 000, 001 and 003).

Every key of `[search]`, `[search.advanced]` and `[chunking]` is written, those of switches that are off with the value
that turns them off. What the system cannot be told stands as comments at the top.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragbench.configuration import Settings
from ragbench.corpus.chunking import HeaderChunker, ParentChildChunker
from ragbench.export.expressed import Reading
from ragbench.models import bundled
from ragbench.stages.calibrate import Calibrate
from ragbench.stages.classify import Classify
from ragbench.stages.code import RetrieveCode
from ragbench.stages.community import BoostCommunity
from ragbench.stages.confidence import FilterByConfidence
from ragbench.stages.cut import Cut
from ragbench.stages.dedup_exact import DropEqualTexts
from ragbench.stages.dedup_ngram import DropNearCopies
from ragbench.stages.dedup_semantic import DropParaphrases
from ragbench.stages.dense import RetrieveDense
from ragbench.stages.dynamic_weights import WeighByDecisiveness
from ragbench.stages.expand_parents import ExpandToParents
from ragbench.stages.expand_terms import ExpandTerms
from ragbench.stages.fuse import Fuse
from ragbench.stages.graph import FollowLinks
from ragbench.stages.hyde import SupposeAnswer
from ragbench.stages.lexical import RetrieveLexical
from ragbench.stages.limit import LimitPerDocument
from ragbench.stages.mmr import Diversify
from ragbench.stages.recency import BoostRecent
from ragbench.stages.rerank import Rerank

_SYSTEM = "ragdocs"
_RERANKER = "cross-encoder/ms-marco-MiniLM-L-6-v2"  # the seed's default, while re-ranking is off

# The order of seed 001, "Processing Pipeline".
_ORDER: tuple[type[Any], ...] = (
    Classify,
    ExpandTerms,
    SupposeAnswer,
    RetrieveDense,
    RetrieveLexical,
    RetrieveCode,
    FollowLinks,
    WeighByDecisiveness,
    Fuse,
    BoostCommunity,
    BoostRecent,
    Calibrate,
    FilterByConfidence,
    DropEqualTexts,
    DropNearCopies,
    DropParaphrases,
    Diversify,
    LimitPerDocument,
    Rerank,
    ExpandToParents,
    Cut,
)

# What the system does without being asked, in the words of its documents.
_FIXED: dict[tuple[str, str], Any] = {
    ("Classify", "factual"): 1.5,
    ("Classify", "navigational"): 1.5,
    ("Classify", "exploratory"): 1.3,
    ("Classify", "override"): None,
    ("ExpandTerms", "top_k"): 3,
    ("ExpandTerms", "threshold"): 0.5,
    ("ExpandTerms", "sources"): ["dense"],
    ("FollowLinks", "factor"): 0.5,
    ("FollowLinks", "hops"): 1,
    ("RetrieveCode", "language"): None,
    ("RetrieveCode", "route"): "always",
    ("RetrieveCode", "min_match"): 0.0,
    ("BoostRecent", "tiers"): [[7.0, 1.2], [30.0, 1.1]],
    ("BoostRecent", "now"): None,
    ("WeighByDecisiveness", "sources"): ["dense", "lexical"],
    ("DropNearCopies", "unit"): "character",
    ("Diversify", "candidates"): 50,
    ("Diversify", "scale"): "score",
    ("Diversify", "by_class"): {},
    ("Rerank", "blend"): False,
    ("Rerank", "max_length"): 512,
    ("Rerank", "headings"): False,
    ("Rerank", "tail"): "drop",
    ("SupposeAnswer", "text"): None,
    ("SupposeAnswer", "endpoint"): None,
    ("index", "headings"): True,
    ("index", "encoder.name"): "bge-small-en-v1.5",
    ("index", "encoder.query_prefix"): "",
    ("index", "encoder.passage_prefix"): "",
    ("index", "encoder.max_tokens"): 512,
    ("index", "dense.kind"): "flat",
    ("index", "vocabulary.size"): 10000,
    ("index", "vocabulary.min_length"): 3,
    ("index", "lexical.k1"): 1.2,  # BM25F of Whoosh
    ("index", "lexical.b"): 0.75,
    ("index", "lexical.analyzer"): "standard",
    ("index", "lexical.fields"): {
        "content": 1.0,
        "title": 3.0,
        "headers": 2.5,
        "keywords": 2.5,
        "description": 2.0,
        "tags": 2.0,
        "aliases": 1.5,
        "author": 1.0,
    },
    ("index", "chunker.min_chars"): 200,
    ("index", "chunker.max_chars"): 1500,
    ("index", "chunker.overlap_chars"): 100,
    ("index", "chunker.child_overlap"): 100,
    ("index", "chunker.parent_overlap"): 200,
}


def values(settings: Settings) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The tables of the file by name, and a sentence for everything they cannot say."""
    read = Reading(settings)
    weights = dict(read.value(Fuse, "weights", {}))
    read.value(WeighByDecisiveness, "weights", {})  # those of the fusion again

    def weight(cls: type[Any], source: str) -> float:
        value = float(weights.pop(source, 1.0))
        return value if read.stage(cls) else 0.0

    reranker = str(read.value(Rerank, "model", _RERANKER))
    packed = bundled.find(reranker)
    parents = read.stage(ExpandToParents) is not None
    sizes = {
        "parent_chunk_min_chars": read.index_value("chunker.parent_min") or 1500,
        "parent_chunk_max_chars": read.index_value("chunker.parent_max") or 2000,
        "child_chunk_min_chars": read.index_value("chunker.child_min") or 400,
        "child_chunk_max_chars": read.index_value("chunker.child_max") or 600,
    }
    chunker = read.index_value("chunker")
    tables: dict[str, dict[str, Any]] = {
        "search": {
            "semantic_weight": weight(RetrieveDense, "dense"),
            "keyword_weight": weight(RetrieveLexical, "lexical"),
            "recency_bias": float(read.value(BoostRecent, "bias", 0.0)),
            "rrf_k_constant": _whole(float(read.value(Fuse, "k", 60))),
            "adaptive_weights_enabled": read.stage(Classify) is not None,
            "query_expansion_enabled": read.stage(ExpandTerms) is not None,
            "code_search_enabled": read.stage(RetrieveCode) is not None,
            "code_search_weight": float(weights.pop("code", 1.0)),
            "score_calibration_threshold": float(read.value(Calibrate, "threshold", 0.035)),
            "score_calibration_steepness": float(read.value(Calibrate, "steepness", 150.0)),
            "min_confidence": float(read.value(FilterByConfidence, "threshold", 0.0)),
            "max_chunks_per_doc": int(read.value(LimitPerDocument, "max_per_doc", 0)),
            "ngram_dedup_enabled": read.stage(DropNearCopies) is not None,
            "ngram_dedup_threshold": float(read.value(DropNearCopies, "threshold", 0.7)),
            "dedup_enabled": read.stage(DropParaphrases) is not None,
            "dedup_similarity_threshold": float(read.value(DropParaphrases, "threshold", 0.85)),
            "mmr_enabled": read.stage(Diversify) is not None,
            "mmr_lambda": float(read.value(Diversify, "lambda_", 0.7)),
            "rerank_enabled": read.stage(Rerank) is not None,
            "rerank_model": packed.aliases[0] if packed and packed.aliases else reranker,
            "rerank_top_n": int(read.value(Rerank, "depth", 10)),
            "parent_retrieval_enabled": parents,
        },
        "search.advanced": {
            "community_detection_enabled": read.stage(BoostCommunity) is not None,
            "community_boost_factor": float(read.value(BoostCommunity, "factor", 1.1)),
            "dynamic_weights_enabled": read.stage(WeighByDecisiveness) is not None,
            "variance_threshold": 0.1,
            "hyde_enabled": read.stage(SupposeAnswer) is not None,
        },
        "chunking": {"parent_retrieval_enabled": parents, **sizes},
    }
    missing = read.left_over(_ORDER, _fixed(read), _SYSTEM)
    missing += _always_on(read, chunker, weights, packed is not None and packed.backend == "onnx")
    return tables, missing + read.out_of_order(_ORDER, _SYSTEM)


def render(settings: Settings, heading: Sequence[str]) -> tuple[str, list[str]]:
    """The file and what it cannot say; `heading` are sentences for its first comments."""
    tables, missing = values(settings)
    lines = [_comment(line) for line in heading]
    if missing:
        lines += ["#", "# Not expressed by this format, so not part of what this file configures:"]
        lines += [_comment(f"- {sentence}") for sentence in missing]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n", missing


def _fixed(read: Reading) -> Mapping[tuple[str, str], Any]:
    rerank = read.stage(Rerank)
    # The constant of a blend says nothing where nothing is blended.
    return _FIXED if rerank is None or rerank.blend else {**_FIXED, ("Rerank", "k"): rerank.k}


def _always_on(read: Reading, chunker: str, weights: Mapping[str, float], quantised: bool) -> list[str]:
    """Where the system does something by itself that this configuration does not, or does it with other means."""
    found = []
    if not any(read.stage(retriever) for retriever in (RetrieveDense, RetrieveLexical, RetrieveCode)):
        found.append(f"no source of this configuration exists in {_SYSTEM}: by this file it finds nothing")
    if chunker not in (HeaderChunker.__name__, ParentChildChunker.__name__):
        found.append(f"index.chunker = {chunker}: {_SYSTEM} cuts along headings, with parents by sizes of their own")
    if read.stage(FollowLinks) is None:
        found.append(f"graph is off: {_SYSTEM} always follows links, one hop at factor 0.5")
    elif weights.get("graph", 1.0) != 1.0:
        found.append(f"fuse.weights.graph = {weights['graph']:g}: {_SYSTEM} has no key for it")
    for source, value in sorted(weights.items()):
        if source != "graph" and value != 1.0:
            found.append(f"fuse.weights.{source} = {value:g}: {_SYSTEM} has no such source")
    if read.stage(Calibrate) is None:
        found.append(f"calibration by a sigmoid is off: {_SYSTEM} always applies it")
    if read.stage(DropEqualTexts) is None:
        found.append(f"p8.content_hash is off: {_SYSTEM} always drops equal texts")
    if read.stage(Diversify) is not None and read.stage(LimitPerDocument) is not None:
        found.append(f"p11 and p8.limit are both on: {_SYSTEM} applies max_chunks_per_doc only without MMR")
    if read.stage(Rerank) is not None and quantised:
        found.append(f"p6.model was measured with int8 weights in ONNX form: {_SYSTEM} loads the PyTorch weights")
    if read.stage(RetrieveDense) is not None:
        found.append(f"index.encoder was measured with the weights named in the run: {_SYSTEM} loads its own copy")
    return found


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _comment(line: str) -> str:
    printable = "".join(sign if sign.isprintable() else " " for sign in line)
    return f"# {printable}"
