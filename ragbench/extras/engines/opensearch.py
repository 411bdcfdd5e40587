"""A search in an index of OpenSearch or Elasticsearch, behind an alias.

    opensearch://host:9200/notes       over HTTPS: opensearchs://
    elasticsearch://host:9200/notes    over HTTPS: elasticsearchs://
    env:NAME, file:PATH                hold an address with a name and password, opensearchs://me:secret@host:9200/notes,
                                       or with a key of Elasticsearch and no name, elasticsearchs://:KEY@host:9200/notes

A document of the index is a chunk, a document, or a piece of a file for ragbench. One request (`_msearch`) asks the
sources: the cosine of every chunk by a script, and BM25F of chunks and documents by `combined_fields`, which index with
our analyzer. What a query is made of is analysed here and sent as terms, since Elasticsearch counts a term and its
parts as one. Nothing in it needs a paid tier: scores are fused here, not by retrievers.

Elasticsearch multiplies BM25 by k1 + 1, OpenSearch from 3.0 on does not.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import SplitResult, unquote

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base.errors import BundleError, ConfigError
from ragbench.extras.engines.aliased import AT_ONCE, AliasedEngine, Hit, Unit
from ragbench.extras.engines.plan import Plan
from ragbench.extras.engines.search import Vector
from ragbench.extras.remote.http import HttpError
from ragbench.index.analyzers import CUSTOM, LANGUAGES
from ragbench.index.lexical import Bm25F

_WORDS = {"lexical": "words.", "documents": "wholes."}
"""How the names of the fields begin that a source searches."""


class OpenSearchEngine(AliasedEngine):
    """An index of OpenSearch 3.2 or later behind an alias."""

    schemes: ClassVar[Mapping[str, str]] = {"opensearch": "http", "opensearchs": "https"}
    example = "opensearch://localhost:9200/notes"
    alias_form = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
    near = "1.0 + cosineSimilarity(params.vector, doc['vector'])"

    def _headers(self, parts: SplitResult) -> dict[str, str]:
        name, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not password:
            return {}
        if not name:
            return {"Authorization": f"ApiKey {password}"}
        return {"Authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}

    def _aliases(self) -> Mapping[str, Collection[str]]:
        """The aliases of the index that the name leads to, and of the indices of loads."""
        try:
            aliases = self.send("GET", f"/{self._alias},{self._alias}--*/_alias?ignore_unavailable=true")
        except BundleError as error:
            if isinstance(error.__cause__, HttpError) and error.__cause__.status == 404:
                return {}
            raise
        if self._alias in aliases:
            raise ConfigError(f"{self.name} is an index, not a search of ragbench: name another")
        return {str(name): set(entry["aliases"]) for name, entry in aliases.items()}

    def _collections(self) -> Mapping[str, bool]:
        return {name: bool(aliases) for name, aliases in self._aliases().items()}

    def _current(self) -> str | None:
        return next((name for name, aliases in self._aliases().items() if self._alias in aliases), None)

    def _make(self, collection: str, plan: Plan, dimension: int) -> None:
        scored = [scoring for scoring in (plan.words, plan.wholes) if scoring]
        if len({(scoring.scaled[1], scoring.b) for scoring in scored}) > 1:
            raise ConfigError(
                "an index scores chunks and documents by the same k1 and b, which this arm does not: export a bundle "
                "or another arm"
            )
        used, _ = analysis(plan.analyzer)
        text = {"type": "text", "analyzer": used, "search_analyzer": "whitespace"}
        properties: dict[str, Any] = {name: {"type": "keyword"} for name in ("kind", "name", "chunks")}
        properties |= {"number": {"type": "long"}, "payload": {"type": "object", "enabled": False}}
        for prefix, scoring in zip(_WORDS.values(), (plan.words, plan.wholes), strict=True):
            if scoring:
                properties[prefix[:-1]] = {"properties": {name: text for name, _ in scoring.weights}}
        if "dense" in plan.depths:
            properties["vector"] = self._vector(dimension)
        index = _settings(scored[0] if scored else None, plan.analyzer)
        settings = {"index": {**index, "max_terms_count": 2**20, **self._own_settings()}}
        mappings = {"dynamic": "strict", "_source": {"excludes": ["words", "wholes"]}, "properties": properties}
        self.send("PUT", f"/{collection}", {"settings": settings, "mappings": mappings})

    def _vector(self, dimension: int) -> dict[str, Any]:
        return {"type": "knn_vector", "dimension": dimension}

    def _own_settings(self) -> dict[str, Any]:
        return {}

    def _factor(self, k1: float) -> float:
        """How many times the score of BM25 its answer is."""
        return 1.0

    def _delete(self, collection: str) -> None:
        self.send("DELETE", f"/{collection}")

    def _rename(self, old_name: str | None, new_name: str) -> None:
        actions = [{"remove": {"index": old_name, "alias": self._alias}}] if old_name else []
        actions.append({"add": {"index": new_name, "alias": self._alias}})
        self.send("POST", "/_aliases", {"actions": actions})

    def _hits(
        self, terms: Counter[str], vector: Vector | None, only: Sequence[str] | None
    ) -> Mapping[str, Sequence[Hit]]:
        lines: list[Any] = []
        for source, depth in self.plan.depths.items():
            within = [_is("document" if source == "documents" else "chunk")]
            within += [] if only is None else [{"terms": {"chunks": list(only)}}]
            query = self._nearest(vector, within) if source == "dense" else self._by_words(source, terms, within)
            lines += [{"index": self._collection}, {"size": depth, "query": query, "_source": ["payload.chunks"]}]
        answers = self.send("POST", "/_msearch", _lines(lines))["responses"]
        return {
            source: [self._hit(source, hit) for hit in self._whole(answer)]
            for source, answer in zip(self.plan.depths, answers, strict=True)
        }

    def _nearest(self, vector: Vector | None, within: Sequence[Any]) -> dict[str, Any]:
        script = {"source": self.near, "params": {"vector": np.asarray(vector, np.float32).tolist()}}
        return {"script_score": {"query": {"bool": {"filter": list(within)}}, "script": script}}

    def _by_words(self, source: str, terms: Counter[str], within: Sequence[Any]) -> dict[str, Any]:
        scoring = self.plan.words if source == "lexical" else self.plan.wholes
        assert scoring is not None
        query = _by_words(scoring, _WORDS[source], " ".join(terms.elements()))
        return {"bool": {"must": [query], "filter": list(within)}}

    def _hit(self, source: str, hit: Mapping[str, Any]) -> Hit:
        result = Hit.of(hit["_source"]["payload"]["chunks"], hit["_score"], hit["_index"])
        scoring = self.plan.words if source == "lexical" else self.plan.wholes
        if source == "dense" or scoring is None:
            return replace(result, score=result.score - 1.0)
        return replace(result, score=result.score / self._factor(scoring.scaled[1]))

    def _whole(self, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The hits of an answer. Raises BundleError where it is a part, or an error."""
        if "error" in answer or answer["timed_out"] is not False or answer["_shards"]["failed"] != 0:
            error = json.dumps(answer.get("error", "a part of the answer is missing"))[:200]
            raise BundleError(f"{self.name} does not answer ({error})")
        hits: list[Mapping[str, Any]] = answer["hits"]["hits"]
        return hits

    def _scroll(self, within: Sequence[Any], fields: Sequence[str]) -> Iterator[Any]:
        search_after: list[Any] = []
        while True:
            body = {"size": AT_ONCE, "query": {"bool": {"filter": list(within)}}, "sort": [{"number": "asc"}]}
            body |= {"_source": list(fields), **({"search_after": search_after} if search_after else {})}
            hits = self._whole(self.send("POST", f"/{self._collection}/_search", body))
            yield from (hit["_source"] for hit in hits)
            if len(hits) < AT_ONCE or hits[-1]["sort"] == search_after:
                return
            search_after = hits[-1]["sort"]

    def _pieces(self, names: Collection[str] | None) -> Iterator[Mapping[str, Any]]:
        conditions = [_is("file"), *([] if names is None else [{"terms": {"name": list(names)}}])]
        return (hit["payload"] for hit in self._scroll(conditions, ["payload"]))

    def _passages(self) -> Iterator[tuple[str, ArrayLike]]:
        hits = self._scroll([_is("chunk")], ["payload.passage", "vector"])
        return ((hit["payload"]["passage"], hit["vector"]) for hit in hits)

    def _count(self) -> int:
        body = {"query": {"bool": {"must_not": [_is("file")]}}}
        return int(self.send("POST", f"/{self._collection}/_count", body)["count"])

    def _drop_files(self, collection: str, names: Collection[str], others: bool = False) -> None:
        named = {"terms": {"name": list(names)}}
        condition = {"filter": [_is("file")], "must_not": [named]} if others else {"filter": [_is("file"), named]}
        self.send("POST", f"/{collection}/_delete_by_query?refresh=true", {"query": {"bool": condition}})

    def _write_piece(self, collection: str, number: int, payload: Mapping[str, Any]) -> None:
        self._bulk(collection, [{"kind": "file", "name": payload["name"], "number": number, "payload": payload}])

    def _write(self, units: Sequence[Unit]) -> list[str]:
        rows: list[dict[str, Any]] = []
        for number, unit in enumerate(units, start=1):
            kind = unit.payload["kind"]
            row = {"kind": kind, "number": number, "chunks": unit.payload["chunks"], "payload": unit.payload}
            if unit.words:
                row["words" if kind == "chunk" else "wholes"] = dict(unit.fields)
            if unit.vector is not None:
                row["vector"] = np.asarray(unit.vector, np.float32).tolist()
            rows.append(row)
        self._bulk(self._collection, rows)
        return []

    def _bulk(self, collection: str, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), AT_ONCE):
            batch = rows[start : start + AT_ONCE]
            lines = [line for row in batch for line in ({"index": {"_id": str(row["number"])}}, row)]
            answer = self.send("POST", f"/{collection}/_bulk?refresh=true", _lines(lines))
            if answer.get("errors") is not False or len(answer["items"]) != len(batch):
                wrong = next((item for item in answer["items"] if "error" in item["index"]), answer)
                raise BundleError(f"{self.name} did not take everything ({json.dumps(wrong)[:200]})")


class ElasticsearchEngine(OpenSearchEngine):
    """An index of Elasticsearch 9.2 or later behind an alias; the basic licence is enough."""

    schemes: ClassVar[Mapping[str, str]] = {"elasticsearch": "http", "elasticsearchs": "https"}
    example = "elasticsearch://localhost:9200/notes"
    near = "1.0 + cosineSimilarity(params.vector, 'vector')"

    def _vector(self, dimension: int) -> dict[str, Any]:
        return {"type": "dense_vector", "dims": dimension, "index": False}

    def _own_settings(self) -> dict[str, Any]:
        return {"mapping.exclude_source_vectors": False}  # a refresh reads them again

    def _factor(self, k1: float) -> float:
        return 1.0 + k1


def _is(kind: str) -> dict[str, Any]:
    return {"term": {"kind": kind}}


def _lines(rows: Sequence[Any]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def analysis(name: str) -> tuple[str, dict[str, Any]]:
    """The name in an index of an analyzer of ragbench, and what the settings of the index must define for it."""
    if name == "english" or name in LANGUAGES:
        return name, {}
    if name == "standard":
        return "ragbench", {"analyzer": {"ragbench": {"type": "standard", "stopwords": "_english_"}}}
    pattern, filters = CUSTOM[name]
    named = {f"ragbench_{number:02}": _filter(token_filter) for number, token_filter in enumerate(filters)}
    return "ragbench", {
        "tokenizer": {"ragbench": {"type": "pattern", "pattern": pattern, "group": 0}},
        "filter": named,
        "analyzer": {"ragbench": {"type": "custom", "tokenizer": "ragbench", "filter": list(named)}},
    }


_FILTERS = {
    "englishPossessive": {"type": "stemmer", "language": "possessive_english"},
    "lowercase": {"type": "lowercase"},
    "stop": {"type": "stop", "stopwords": "_english_"},
    "porterStem": {"type": "porter_stem"},
    "removeDuplicates": {"type": "remove_duplicates"},
}


def _filter(token_filter: tuple[str, ...]) -> dict[str, Any]:
    kind, options = token_filter[0], dict(zip(token_filter[1::2], token_filter[2::2], strict=True))
    if kind == "length":
        return {"type": "length", "min": int(options["min"]), "max": int(options["max"])}
    if kind == "patternCaptureGroup":
        return {"type": "pattern_capture", "preserve_original": True, "patterns": [options["pattern"]]}
    if kind == "keywordMarker":
        return {"type": "keyword_marker", "keywords_pattern": options["pattern"]}
    return _FILTERS[kind]


def _settings(bm25: Bm25F | None, analyzer: str) -> dict[str, Any]:
    """The settings of an index: one shard, so that word statistics are of the whole collection."""
    index_settings: dict[str, Any] = {"number_of_shards": 1}
    if bm25 is not None:
        _, k1 = bm25.scaled
        index_settings["similarity"] = {"default": {"type": "BM25", "k1": round(k1, 9), "b": bm25.b}}
        if defined := analysis(analyzer)[1]:
            index_settings["analysis"] = defined
    return index_settings


def _by_words(bm25: Bm25F, prefix: str, text: str) -> dict[str, Any]:
    """The query for a text in fields whose names begin with `prefix`."""
    weights, _ = bm25.scaled
    if len(weights) == 1:
        return {"match": {f"{prefix}{weights[0][0]}": {"query": text}}}
    fields = [f"{prefix}{name}^{weight:g}" for name, weight in weights]
    return {"combined_fields": {"query": text, "fields": fields}}
