"""A stand-in for OpenSearch and Elasticsearch: it answers the requests of ragbench in the shapes that they document.

It is no engine. It keeps documents in memory, refuses what their mappings and query languages refuse as far as that is
checked here, and scores by BM25F with the weights, k1 and b that it was sent: what is tested is our side.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from ragbench.extras.engines.words import Posting, Terms, postings
from ragbench.index.lexical import Bm25F
from tests.loopback import Loopback

SCRIPTS = {
    "opensearch": "1.0 + cosineSimilarity(params.vector, doc['vector'])",
    "elasticsearch": "1.0 + cosineSimilarity(params.vector, 'vector')",
}
VECTORS = {"opensearch": "knn_vector", "elasticsearch": "dense_vector"}


class Refused(Exception):
    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.body = {"error": {"type": kind, "reason": reason}, "status": status}


class OpenSearchServer(Loopback):
    """Serves on a free port; a request whose path holds `dies_at` is not answered well."""

    def __init__(self, system: str, analyzer: str, authorization: str | None = None) -> None:
        self.system, self.terms = system, Terms(analyzer)
        self.indices: dict[str, dict[str, Any]] = {}
        self.named: dict[str, set[str]] = {}
        self.asked: list[str] = []
        self.queries: list[dict[str, Any]] = []
        self.dies_at: str | None = None
        self.altered: dict[str, Any] = {}
        self.authorization = authorization
        self.busy: list[str] = []
        super().__init__()
        self.address = f"{system}://127.0.0.1:{self.port}"

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        try:
            if self.authorization not in (None, headers.get("authorization")):
                raise Refused(401, "security_exception", "missing authentication credentials")
            return 200, self.do(method, path, headers.get("content-type"), body)
        except Refused as error:
            return error.status, error.body
        except Exception as error:
            return 500, {"error": repr(error)}

    @property
    def aliases(self) -> dict[str, str]:
        return {alias: index for index, aliases in self.named.items() for alias in aliases}

    def remove_unit(self, alias: str) -> None:
        """Lose a chunk."""
        documents = self.indices[self.aliases[alias]]["documents"]
        del documents[next(key for key, row in documents.items() if row["kind"] == "chunk")]

    def do(self, method: str, path: str, kind: str | None, body: bytes) -> Any:
        parts, given = urlsplit(path), parse_qs(urlsplit(path).query)
        self.asked.append(f"{method} {parts.path}")
        if self.dies_at is not None and self.dies_at in path:
            raise ConnectionError("killed")
        lines = parts.path.endswith(("_bulk", "_msearch"))
        if body and kind != ("application/x-ndjson" if lines else "application/json"):
            raise Refused(406, "media_type_header_exception", str(kind))
        if lines and not body.endswith(b"\n"):
            raise Refused(400, "illegal_argument_exception", "must be terminated by a newline")
        sent = [json.loads(line) for line in body.splitlines()] if lines else json.loads(body or b"null")
        match method, parts.path.strip("/").split("/"):
            case "GET", [names, "_alias"]:
                assert given["ignore_unavailable"] == ["true"]
                wanted = [re.compile(name.replace("*", ".*")) for name in names.split(",")]
                named = {
                    index: {"aliases": {alias: {} for alias in aliases}}
                    for index, aliases in self.named.items()
                    if any(pattern.fullmatch(name) for pattern in wanted for name in (index, *aliases))
                }
                if not named:
                    raise Refused(404, "aliases_not_found_exception", "missing")
                return named
            case "POST", ["_aliases"]:
                return self.rename(sent["actions"])
            case "POST", ["_msearch"]:
                assert given["search_type"] == ["dfs_query_then_fetch"]
                requests = zip(sent[::2], sent[1::2], strict=True)
                answers = [self.search(self.index(header["index"]), request) for header, request in requests]
                return {"took": 1, "responses": [{**answer, "status": 200, **self.altered} for answer in answers]}
            case "PUT", [index]:
                return self.create(index, sent)
            case "DELETE", [index]:
                del self.indices[index], self.named[index]
                return {"acknowledged": True}
            case "POST", [index, "_bulk"]:
                assert given["refresh"] == ["true"]
                return self.bulk(index, sent)
            case "POST", [index, "_search"]:
                return self.search(self.index(index), sent)
            case "POST", [index, "_count"]:
                hits = [row for row in self.index(index)["documents"].values() if matches(row, sent["query"])]
                return {"count": len(hits), "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0}}
            case "POST", [index, "_delete_by_query"]:
                documents = self.index(index)["documents"]
                gone = [key for key, row in documents.items() if matches(row, sent["query"])]
                for key in gone:
                    del documents[key]
                return {"deleted": len(gone), "failures": [], "timed_out": False}
        raise Refused(400, "illegal_argument_exception", f"no handler for {method} {path}")

    def index(self, name: str) -> dict[str, Any]:
        try:
            return self.indices[self.aliases.get(name, name)]
        except KeyError:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]") from None

    def create(self, name: str, made: dict[str, Any]) -> Any:
        assert set(made) == {"settings", "mappings"} and set(made["settings"]) == {"index"}
        if name in self.indices or not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
            raise Refused(400, "resource_already_exists_exception", name)
        properties = made["mappings"]["properties"]
        settings = made["settings"]["index"]
        assert settings["number_of_shards"] >= 1
        for prefix in ("words", "wholes"):
            for field in properties.get(prefix, {}).get("properties", {}).values():
                assert field["analyzer"] in settings["analysis"]["analyzer"]
                assert (field["type"], field["search_analyzer"]) == ("text", "whitespace")
        if "vector" in properties:
            assert properties["vector"]["type"] == VECTORS[self.system]
            assert ("mapping.exclude_source_vectors" in settings) == (self.system == "elasticsearch")
        self.indices[name], self.named[name] = {"name": name, **made, "documents": {}}, set()
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def rename(self, actions: list[dict[str, Any]]) -> Any:
        named = {index: set(aliases) for index, aliases in self.named.items()}
        for action in actions:
            ((verb, what),) = action.items()
            if verb == "remove":
                named[what["index"]].remove(what["alias"])
            else:
                assert verb == "add" and what["alias"] not in self.indices
                named[what["index"]].add(what["alias"])
        self.named = named
        return {"acknowledged": True}

    def bulk(self, name: str, lines: list[dict[str, Any]]) -> Any:
        index = self.index(name)
        properties = index["mappings"]["properties"]
        items, wrong, busy = [], False, self.busy.pop() if self.busy else ""
        if busy == "request":
            raise Refused(429, "circuit_breaking_exception", "data too large")
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            (key,) = [action["index"]["_id"]]
            if busy == "items" and len(items) % 2:
                wrong = True
                reason = {"type": "rejected_execution_exception", "reason": "queue is full"}
                items.append({"index": {"_index": name, "_id": key, "status": 429, "error": reason}})
                continue
            known = set(document) <= set(properties) and all(
                set(document.get(prefix, {})) <= set(properties.get(prefix, {}).get("properties", {}))
                for prefix in ("words", "wholes")
            )
            fits = len(document.get("vector", [])) in (
                0,
                *(properties.get("vector", {}).get(k) for k in ("dimension", "dims")),
            )
            if not known or not fits:
                wrong = True
                reason = {"type": "document_parsing_exception", "reason": "not of this mapping"}
                items.append({"index": {"_index": name, "_id": key, "status": 400, "error": reason}})
                continue
            index["documents"][key] = document
            items.append({"index": {"_index": name, "_id": key, "status": 201, "result": "created"}})
        return {"took": 1, "errors": wrong, "items": items}

    def search(self, index: dict[str, Any], asked: dict[str, Any]) -> Any:
        self.queries.append(asked["query"])
        scores = self.scores(index, asked["query"])
        if "sort" in asked:
            assert asked["sort"] == [{"number": "asc"}]
            after = asked.get("search_after", [-1])[0]
            order = sorted(scores, key=lambda key: index["documents"][key]["number"])
            order = [key for key in order if index["documents"][key]["number"] > after]
        else:
            order = sorted(scores, key=lambda key: (-scores[key], index["documents"][key]["number"]))
        hits = []
        for key in order[: asked["size"]]:
            document = index["documents"][key]
            hit = {"_index": index["name"], "_id": key, "_score": None if "sort" in asked else scores[key]}
            hit["_source"] = {}
            for path in asked["_source"]:
                first, _, rest = path.partition(".")
                if first in index["mappings"]["_source"]["excludes"]:
                    continue
                shown = {rest: document[first][rest]} if rest else document[first]
                hit["_source"][first] = {**hit["_source"].get(first, {}), **shown} if rest else shown
            hits.append({**hit, **({"sort": [document["number"]]} if "sort" in asked else {})})
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        total = {"value": len(scores), "relation": "eq"}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"total": total, "hits": hits}}

    def scores(self, index: dict[str, Any], query: dict[str, Any]) -> dict[str, float]:
        documents = index["documents"]
        ((kind, body),) = query.items()
        if kind == "script_score":
            script = body["script"]
            assert set(script) == {"source", "params"} and script["source"] == SCRIPTS[self.system]
            asked = np.array(script["params"]["vector"])
            near = {key: np.array(row["vector"]) for key, row in documents.items() if matches(row, body["query"])}
            length = np.linalg.norm(asked)
            return {key: float(1 + asked @ vector / length / np.linalg.norm(vector)) for key, vector in near.items()}
        assert kind == "bool"
        scores = dict.fromkeys((key for key, row in documents.items() if matches(row, query)), 0.0)
        for clause in body.get("must", ()):
            by_words = self.by_words(index, clause)
            scores = {key: by_words[key] for key in scores if key in by_words}
        return scores

    def by_words(self, index: dict[str, Any], query: dict[str, Any]) -> dict[str, float]:
        ((kind, body),) = query.items()
        if kind == "match":
            ((field, asked),) = body.items()
            body = {"query": asked["query"], "fields": [f"{field}^1"]}
        assert kind in ("match", "combined_fields") and set(body) == {"query", "fields"}
        named = [name.partition("^") for name in body["fields"]]
        (prefix,) = {name.partition(".")[0] for name, _, _ in named}
        weights = tuple((name.partition(".")[2], float(weight)) for name, _, weight in named)
        assert all(weight >= 1 for _, weight in weights)
        similarity = index["settings"]["index"]["similarity"]["default"]
        assert similarity["type"] == "BM25"
        scoring = Bm25F(weights, similarity["k1"], similarity["b"])
        held = {key: row[prefix] for key, row in index["documents"].items() if prefix in row}
        units = [postings(texts, scoring, self.terms) for texts in held.values()]
        factor = 1 + similarity["k1"] if self.system == "elasticsearch" else 1.0
        scores = {}
        for key, unit, values in zip(held, units, impacts(units, scoring), strict=True):
            gives = {posting.term: value for posting, value in zip(unit, values, strict=True)}
            terms = [gives[term] for term in body["query"].split() if term in gives]
            if terms:
                scores[key] = factor * sum(terms)
        return scores


def matches(document: dict[str, Any], query: dict[str, Any]) -> bool:
    ((kind, body),) = query.items()
    if kind == "bool":
        assert set(body) <= {"filter", "must", "must_not"}
        return all(matches(document, clause) for clause in body.get("filter", ())) and not any(
            matches(document, clause) for clause in body.get("must_not", [])
        )
    ((field, wanted),) = body.items()
    held = document.get(field, [])
    held = held if isinstance(held, list) else [held]
    return bool(set(held) & set(wanted if kind == "terms" else [wanted]))


def impacts(units: Sequence[Sequence[Posting]], scoring: Bm25F) -> list[list[float]]:
    """What every posting of every unit adds to a query that has its term, by the formula of `words`."""
    fields, k1 = scoring.scaled
    frequencies = [
        Counter(posting.term for postings in units for posting in postings if posting.fields >> bit & 1)
        for bit in range(len(fields))
    ]
    filled = [
        sum(any(posting.fields >> bit & 1 for posting in postings) for postings in units) for bit in range(len(fields))
    ]
    n_units, total = max(filled, default=0), sum(posting.tf for postings in units for posting in postings)
    mean, b = total / max(n_units, 1), scoring.b
    highest = {term: max(counter[term] for counter in frequencies) for term in set().union(*frequencies)}
    idf = {term: math.log1p((n_units - df + 0.5) / (df + 0.5)) for term, df in highest.items()}
    return [
        [
            idf[posting.term] * posting.tf / (posting.tf + k1 * (1 - b + b * posting.length / mean))
            for posting in postings
        ]
        for postings in units
    ]
