"""What OpenSearch and Elasticsearch have in common: Lucene's analyzers, BM25 and fields."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ragbench.extras.engines.hybrid import QUERY, Hybrid
from ragbench.index.analyzers import CUSTOM, LANGUAGES
from ragbench.index.lexical import Bm25F

OF_DOCUMENT, JOIN = "document_", "kind"
"""How the fields of a whole document begin, and the field that joins a chunk to its document."""

_FILTERS = {
    "englishPossessive": {"type": "stemmer", "language": "possessive_english"},
    "lowercase": {"type": "lowercase"},
    "stop": {"type": "stop", "stopwords": "_english_"},
    "porterStem": {"type": "porter_stem"},
    "removeDuplicates": {"type": "remove_duplicates"},
}


def analysis(name: str) -> tuple[str, dict[str, Any]]:
    """The name in an index of an analyzer of ragbench, and what the settings of the index must define for it."""
    if name == "english" or name in LANGUAGES:
        return name, {}
    if name == "standard":
        return "ragbench", {"analyzer": {"ragbench": {"type": "standard", "stopwords": "_english_"}}}
    pattern, filters = CUSTOM[name]
    named = {f"ragbench_{number:02}": _filter(each) for number, each in enumerate(filters)}
    return "ragbench", {
        "tokenizer": {"ragbench": {"type": "pattern", "pattern": pattern, "group": 0}},
        "filter": named,
        "analyzer": {"ragbench": {"type": "custom", "tokenizer": "ragbench", "filter": list(named)}},
    }


def _filter(each: tuple[str, ...]) -> dict[str, Any]:
    kind, options = each[0], dict(zip(each[1::2], each[2::2], strict=True))
    if kind == "length":
        return {"type": "length", "min": int(options["min"]), "max": int(options["max"])}
    if kind == "patternCaptureGroup":
        return {"type": "pattern_capture", "preserve_original": True, "patterns": [options["pattern"]]}
    if kind == "keywordMarker":
        return {"type": "keyword_marker", "keywords_pattern": options["pattern"]}
    return _FILTERS[kind]


def settings(bm25: Bm25F | None, analyzer: str) -> dict[str, Any]:
    """The settings of an index: one shard, so that word statistics are of the whole collection."""
    found: dict[str, Any] = {"number_of_shards": 1}
    if bm25 is not None:
        _, k1 = bm25.scaled
        found["similarity"] = {"default": {"type": "BM25", "k1": round(k1, 9), "b": bm25.b}}
        if defined := analysis(analyzer)[1]:
            found["analysis"] = defined
    return found


def fields(hybrid: Hybrid) -> dict[str, Any]:
    """The fields of a chunk, without its vector."""
    found: dict[str, Any] = {name: {"type": "keyword"} for name in ("chunk_id", "docno")}
    found["content"] = {"type": "text", "index": False}
    if hybrid.lexical:
        name, _ = analysis(hybrid.analyzer)
        found |= {field: {"type": "text", "analyzer": name} for field in hybrid.lexical.fields}
    if hybrid.documents:
        name, _ = analysis(hybrid.analyzer)
        found |= {f"{OF_DOCUMENT}{field}": {"type": "text", "analyzer": name} for field in hybrid.documents.fields}
        found[JOIN] = {"type": "join", "relations": {"document": "chunk"}}
    return found


def words(hybrid: Hybrid) -> dict[str, Any]:
    """The lexical query: BM25F, or BM25 where one field is searched."""
    return by_words(hybrid.bm25)


def documents(hybrid: Hybrid) -> dict[str, Any]:
    """The lexical query for whole documents: every chunk has the score of its document."""
    assert hybrid.documents is not None
    query = by_words(hybrid.documents.scoring, OF_DOCUMENT)
    return {"has_parent": {"parent_type": "document", "score": True, "query": query}}


def by_words(bm25: Bm25F, prefix: str = "", text: str = QUERY) -> dict[str, Any]:
    """The query for a text in fields whose names begin with `prefix`."""
    weights, _ = bm25.scaled
    if len(weights) == 1:
        return {"match": {f"{prefix}{weights[0][0]}": {"query": text}}}
    fields = [f"{prefix}{name}^{weight:g}" for name, weight in weights]
    return {"combined_fields": {"query": text, "fields": fields}}


def differences(hybrid: Hybrid, system: str, alone_in: Collection[str] = ()) -> list[str]:
    """A sentence where a system counts words in another way than ragbench.

    `alone_in`: the queries in which it scores terms of one position by themselves, as ragbench does.
    """
    scored = [hybrid.bm25, *([hybrid.documents.scoring] if hybrid.documents else [])] if hybrid.lexical else []
    if hybrid.analyzer in CUSTOM and any(set(by_words(each)) - set(alone_in) for each in scored):
        difference = f"{system} counts a term and its parts as one, here each counts for itself"
        return [f"index.lexical.analyzer = {hybrid.analyzer}: {difference}"]
    return []
