"""Examples of requests and answers, for the description of the service (`GET /openapi.json`)."""

from __future__ import annotations

from pydantic.config import JsonDict, JsonValue

REQUESTS: list[JsonValue] = [
    {"query": "how do I rotate a key", "top_n": 3},
    {"query": "--max-lag", "mode": "keyword", "filters": {"tags": ["operations"], "modified_after": "2026-01-31"}},
]

ANSWER: JsonDict = {
    "hits": [
        {
            "rank": 1,
            "score": 0.0325,
            "chunk_id": "guides/rotate-keys#2",
            "docno": "guides/rotate-keys",
            "path": "guides/rotate-keys.md",
            "title": "Rotate keys",
            "header_path": ["Rotate keys", "Before you begin"],
            "heading_level": 2,
            "start": 310,
            "end": 402,
            "start_line": 12,
            "end_line": 14,
            "text": "Make the new key before you revoke the old one.",
            "context": None,
            "matches": ["dense", "lexical"],
            "guaranteed": False,
            "metadata": {
                "last_modified": "2026-02-03T09:30:00+00:00",
                "file_size": 2210,
                "tags": ["operations"],
                "doc_type": "guide",
                "product": "guides",
                "component": "",
                "is_chunked": True,
                "chunk_method": "header",
            },
            "explanation": None,
        }
    ],
    "filter_results": 0,
    "total": 1,
    "filters_applied": {},
    "notes": [],
    "context": None,
    "bundle": "recommended",
    "version": "3f0c1a9be2d4",
    "stage_ms": {"dense": 5.1, "lexical": 0.8, "fuse": 0.1},
    "took_ms": 6.2,
}
