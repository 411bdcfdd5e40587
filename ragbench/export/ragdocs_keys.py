"""The keys that two versions of mcp-markdown-ragdocs read from their configuration file, taken from their code.

They ignore unknown keys and sections silently, so a file is right only for the version it was written for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Version:
    """The keys of one version that shape a search.

    `sections`: the default of a key by section and key, which also gives its type; None without a default, and
    `optional` then has the type. `deprecated`: keys of `[search]` that are read and have no effect, with what to use
    instead, if anything.
    """

    name: str
    sections: Mapping[str, Mapping[str, Any]]
    optional: Mapping[str, type] = field(default_factory=dict)
    deprecated: Mapping[str, str] = field(default_factory=dict)


_JANUARY = Version(
    "2026-01",
    {
        "search": {
            "semantic_weight": 1.0,
            "keyword_weight": 1.0,
            "recency_bias": 0.5,
            "rrf_k_constant": 60,
            "min_confidence": 0.0,
            "max_chunks_per_doc": 0,
            "dedup_enabled": False,
            "dedup_similarity_threshold": 0.85,
            "ngram_dedup_enabled": True,
            "ngram_dedup_threshold": 0.7,
            "mmr_enabled": False,
            "mmr_lambda": 0.7,
            "rerank_enabled": False,
            "rerank_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
            "rerank_top_n": 10,
            "adaptive_weights_enabled": False,
            "code_search_enabled": False,
            "code_search_weight": 1.0,
            "query_expansion_enabled": True,
            "query_expansion_max_terms": 5000,
            "query_expansion_min_frequency": 2,
            "community_detection_enabled": True,
            "community_boost_factor": 1.1,
            "dynamic_weights_enabled": True,
            "variance_threshold": 0.1,
            "min_weight_factor": 0.5,
            "hyde_enabled": True,
        },
        "chunking": {
            "strategy": "header_based",
            "min_chunk_chars": 200,
            "max_chunk_chars": 1500,
            "overlap_chars": 100,
            "include_parent_headers": True,
            "parent_retrieval_enabled": False,
            "parent_chunk_min_chars": 1500,
            "parent_chunk_max_chars": 2000,
        },
        "llm": {"embedding_model": "local"},
    },
)

_AUGUST = Version(
    "2026-08",
    {
        "search": {
            "semantic_weight": 1.0,
            "keyword_weight": 1.0,
            "abstention_threshold": None,
            "reranker_model": None,
            "rerank_budget": 0,
        },
        "chunking": {
            "strategy": "header_based",
            "min_chunk_chars": 1000,
            "max_chunk_chars": 3000,
            "overlap_chars": 200,
            "parent_chunk_min_chars": 1500,
            "parent_chunk_max_chars": 4000,
        },
        "llm": {"embedding_model": None},
    },
    {"abstention_threshold": float, "reranker_model": str, "embedding_model": str},
    {
        "recency_bias": "",
        "min_confidence": "min_score of a request",
        "max_chunks_per_doc": "uniqueness_mode of a request",
        "dedup_threshold": "",
        "reranking_enabled": "reranker_model and rerank_budget",
        "rerank_top_n": "rerank_budget",
        "project_uplift_multiplier": "",
    },
)

VERSIONS: Mapping[str, Version] = {version.name: version for version in (_JANUARY, _AUGUST)}
NEWEST = _AUGUST.name
