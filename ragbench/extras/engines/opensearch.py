"""A search in an index of OpenSearch or Elasticsearch, behind an alias.

    opensearch://host:9200/notes       over HTTPS: opensearchs://
    elasticsearch://host:9200/notes    over HTTPS: elasticsearchs://
    env:NAME                           holds an address with a name and password, opensearchs://me:secret@host:9200/notes,
                                       or with a key of Elasticsearch and no name, elasticsearchs://:KEY@host:9200/notes

A document of the index is a chunk, a document, or a piece of a file for ragbench. One request (`_msearch`) asks the
sources: the cosine of every chunk by a script, and BM25F of chunks and documents by `combined_fields`, which index with
our analyzer. What a query is made of is analysed here and sent as terms, since Elasticsearch counts a term and its
parts as one. Nothing in it needs a paid tier: scores are fused here, not by retrievers.

Everything is written into a new index, to which the alias then moves.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import numpy as np

from ragbench.base.types import BoundaryError, BundleError, ConfigError
from ragbench.boundary import paths
from ragbench.boundary.json import read_json
from ragbench.extras.engines.content import DocumentRow, passage_key
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.search import Found, Vector, number, parse_errors, unzipped
from ragbench.extras.engines.words import Terms, query_terms
from ragbench.extras.remote.http import Client, HttpError
from ragbench.index import analyzers, languages
from ragbench.index.lexical import Bm25F

FORMAT = 2
ABOUT, FORMS = "about.json", "forms.json"
"""Files of the engine itself, next to those of the bundle."""
_AT_ONCE = 200  # documents that are sent or read in one request
_BUSY = 429
_WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # seconds before documents that a busy server refused are sent again
_MOST_SHARDS = 1024
_WAIT_S, _MOST_BYTES, _PIECE = 60.0, 500_000_000, 400_000
_ALIAS = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_FIELDS = {"lexical": "words", "documents": "wholes"}
"""The field of an index whose properties a source searches."""


@dataclass(frozen=True)
class System:
    """What differs between the two: the script of a cosine, the type of a vector's field, settings of an index.

    `multiplies`: its BM25 is k1 + 1 times that of Lucene, as that of OpenSearch before 3.0.
    """

    name: str
    cosine: str
    vector: Mapping[str, Any]
    dimension: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    multiplies: bool = False


OPENSEARCH = System("opensearch", "cosineSimilarity(params.vector, doc['vector'])", {"type": "knn_vector"}, "dimension")
ELASTICSEARCH = System(
    "elasticsearch",
    "cosineSimilarity(params.vector, 'vector')",
    {"type": "dense_vector", "index": False},
    "dims",
    {"mapping.exclude_source_vectors": False},  # a refresh reads them again
    multiplies=True,
)
SYSTEMS: Mapping[str, System] = {system.name: system for system in (OPENSEARCH, ELASTICSEARCH)}
"""By the name of the format that loads them: OpenSearch from 3.2 on, Elasticsearch from 9.2 on (basic licence)."""


def schemes(system: System) -> Mapping[str, str]:
    """The protocol of HTTP by the scheme of an address."""
    return {system.name: "http", f"{system.name}s": "https"}


@dataclass(frozen=True)
class _Hit:
    """What a source found: the chunks of a unit with their score, and the index that it is in."""

    chunks: Sequence[str]
    score: float
    index: str

    @staticmethod
    def of(chunks: Any, score: Any, index: Any) -> _Hit:
        """The hit of an answer. Raises TypeError, ValueError for values that none has."""
        if not isinstance(chunks, list) or not all(isinstance(value, str) for value in [index, *chunks]):
            raise TypeError("its chunks and its index are not texts")
        return _Hit(chunks, number(score), index)


def _count(given: Mapping[str, str], key: str, default: int | None, least: int) -> int | None:
    """An option of an address. Raises ConfigError."""
    if (text := given.get(key)) is None:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text) <= _MOST_SHARDS):
        raise ConfigError(f"{key}={text} must be a number from {least} to {_MOST_SHARDS}: try {key}={max(1, least)}")
    return int(text)


class Cluster:
    """A server of `system` and the alias in an address; `name` is the address without options.

    A load makes an index with `?shards=4` (default 1) and `&replicas=1` (default: that of the server).
    """

    def __init__(self, system: System, address: str) -> None:
        expected = ConfigError(f"the address of a search must be such as {system.name}://localhost:9200/notes")
        try:
            parts = urlsplit(paths.resolved(address))
            base = f"{schemes(system)[parts.scheme]}://{parts.netloc.rpartition('@')[2]}"
            paths.split_address(base)
            given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except (KeyError, ValueError):
            raise expected from None
        self.shards, self.replicas = _count(given, "shards", 1, 1), _count(given, "replicas", None, 0)
        if unknown := set(given) - {"shards", "replicas"}:
            raise ConfigError(f"{sorted(unknown)[0]} is not an option of the address: it takes shards and replicas")
        self.system, self.alias, self._base = system, parts.path.strip("/"), base
        self.name = address.partition("?")[0]
        if not _ALIAS.fullmatch(self.alias):
            raise expected
        self._client = Client(base, _headers(parts), timeout_s=_WAIT_S, max_bytes=_MOST_BYTES)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request. Raises BundleError."""
        try:
            return self._client.send(method, f"{self._base}{path}", body).json()
        except BoundaryError as error:
            detail = getattr(error, "body", "")
            raise BundleError(f"{self.name} does not answer ({error}{f': {detail}' if detail else ''})") from error

    def hits(self, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The hits of an answer. Raises BundleError where it is a part, or an error."""
        if "error" in answer or answer["timed_out"] is not False or answer["_shards"]["failed"] != 0:
            error = json.dumps(answer.get("error", "a part of the answer is missing"))[:200]
            raise BundleError(f"{self.name} does not answer ({error})")
        hits: list[Mapping[str, Any]] = answer["hits"]["hits"]
        return hits

    def scroll(self, index: str, conditions: Sequence[Any], fields: Sequence[str]) -> Iterator[Any]:
        """The fields of all documents of an index that meet the conditions."""
        search_after: list[Any] = []
        while True:
            body = {"size": _AT_ONCE, "query": {"bool": {"filter": list(conditions)}}, "sort": [{"number": "asc"}]}
            body |= {"_source": list(fields), **({"search_after": search_after} if search_after else {})}
            hits = self.hits(self.send("POST", f"/{index}/_search", body))
            yield from (hit["_source"] for hit in hits)
            if len(hits) < _AT_ONCE or hits[-1]["sort"] == search_after:
                return
            search_after = hits[-1]["sort"]

    def bulk(self, index: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write documents into an index."""
        for start in range(0, len(rows), _AT_ONCE):
            self._write(index, list(rows[start : start + _AT_ONCE]))

    def _write(self, index: str, batch: Sequence[Mapping[str, Any]]) -> None:
        """Write documents; those that a busy server refuses are sent again after a growing wait, under the same id."""
        for wait in (*_WAITS, None):
            lines = [line for row in batch for line in ({"index": {"_id": str(row["number"])}}, row)]
            try:
                answer = self.send("POST", f"/{index}/_bulk?refresh=true", _lines(lines))
            except BundleError as error:
                if wait is None or not (isinstance(error.__cause__, HttpError) and error.__cause__.status == _BUSY):
                    raise
                time.sleep(wait)
                continue
            if answer.get("errors") is False and len(answer["items"]) == len(batch):
                return
            states = [item["index"]["status"] for item in answer["items"]]
            if wait is None or len(states) != len(batch) or not set(states) <= {200, 201, _BUSY}:
                wrong = next((item for item in answer["items"] if "error" in item["index"]), answer)
                raise BundleError(f"{self.name} did not take everything ({json.dumps(wrong)[:200]})")
            batch = [row for row, state in zip(batch, states, strict=True) if state == _BUSY]
            time.sleep(wait)

    def current(self) -> str | None:
        """The index that the alias leads to, None where there is none."""
        return next((name for name, aliases in self._aliases().items() if self.alias in aliases), None)

    def require_free(self) -> None:
        """Raise BundleError where nothing answers, ConfigError where the name leads to what no load has made."""
        index = self.current()
        if index is not None and not self._of_load(index):
            raise ConfigError(f"{self.name} leads to {index}, which is not a search of ragbench: choose another name")

    def make(self, plan: SearchPlan, dimension: int) -> str:
        """Make an empty index, after those of loads that were given up are deleted; its name."""
        for index, aliases in self._aliases().items():
            if not aliases:
                self.discard(index)
        name = f"{self.alias}--{secrets.token_hex(6)}"
        definition = _definition(self.system, plan, dimension)
        definition["settings"]["index"]["number_of_shards"] = self.shards
        if self.replicas is not None:
            definition["settings"]["index"]["number_of_replicas"] = self.replicas
        self.send("PUT", f"/{name}", definition)
        return name

    def swap(self, index: str) -> None:
        """Let the alias lead to another index, in one step, and delete the one before."""
        before = self.current()
        actions = [{"remove": {"index": before, "alias": self.alias}}] if before else []
        actions.append({"add": {"index": index, "alias": self.alias}})
        self.send("POST", "/_aliases", {"actions": actions})
        self.discard(before)

    def discard(self, index: str | None) -> None:
        """Delete an index of a load, and nothing else; where that fails, the next load deletes it."""
        if index is not None and self._of_load(index):
            with suppress(BundleError):
                self.send("DELETE", f"/{index}")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _of_load(self, index: str) -> bool:
        """Whether an index is named as those of loads are."""
        return re.fullmatch(rf"{re.escape(self.alias)}--[0-9a-f]{{12}}", index) is not None

    def _aliases(self) -> Mapping[str, Collection[str]]:
        """The aliases of the index that the name leads to, and of the indices of loads."""
        try:
            aliases = self.send("GET", f"/{self.alias},{self.alias}--*/_alias?ignore_unavailable=true")
        except BundleError as error:
            if isinstance(error.__cause__, HttpError) and error.__cause__.status == 404:
                return {}
            raise
        if self.alias in aliases:
            raise ConfigError(f"{self.name} is an index, not a search of ragbench: name another")
        return {str(name): set(entry["aliases"]) for name, entry in aliases.items()}


class OpenSearchEngine:
    """A search behind the alias of a cluster, or in an index that is being loaded."""

    def __init__(self, cluster: Cluster, index: str | None = None) -> None:
        self._cluster, self._index, self._lock = cluster, index or cluster.alias, threading.RLock()
        if index is None and cluster.current() is None:
            system = cluster.system.name
            raise BundleError(f"{self.name} has no search: load one with ragbench export --format {system} --load")
        self._read()

    @staticmethod
    @contextmanager
    def create(
        system: System, address: str, plan: SearchPlan, dimension: int, facts: Mapping[str, Any]
    ) -> Iterator[OpenSearchEngine]:
        """A new index, to which the alias moves when the block ends without an error."""
        with closing(Cluster(system, address)) as cluster:
            cluster.require_free()
            index = cluster.make(plan, dimension)
            try:
                about = {"format": FORMAT, "plan": plan.to_json(), "dimension": dimension, "load": index, "points": 0}
                _write_files(cluster, index, {ABOUT: _as_bytes({**facts, **about}), FORMS: b"{}"})
                yield OpenSearchEngine(cluster, index)
                cluster.swap(index)
            except BaseException:
                cluster.discard(index)
                raise

    @property
    def name(self) -> str:
        """The address as it was given."""
        return self._cluster.name

    @parse_errors
    def version(self) -> str:
        """The index that the alias leads to now."""
        return self._cluster.current() or ""

    def files(self) -> Mapping[str, bytes]:
        """The files of the bundle."""
        return {name: body for name, body in self._files().items() if name not in (ABOUT, FORMS)}

    @parse_errors
    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Found:
        """Send one request with a query for each source, and fuse; after a new load, once again."""
        with self._lock:
            load, hits = self.about["load"], self._hits(text, vector, only)
            if {hit.index for of_source in hits.values() for hit in of_source} != {load}:
                self._read()
                hits = hits if self.about["load"] == load else self._hits(text, vector, only)
        allowed = None if only is None else set(only)
        scores = {
            source: {chunk: hit.score for hit in rows for chunk in hit.chunks if allowed is None or chunk in allowed}
            for source, rows in hits.items()
        }
        return fuse(self.plan, scores)

    @parse_errors
    def damage(self) -> str | None:
        """What is missing, None if nothing is."""
        body = {"query": {"bool": {"must_not": [_is("file")]}}}
        count = int(self._cluster.send("POST", f"/{self._index}/_count", body)["count"])
        written = self.about["points"]
        return None if count == written else f"{count} points are there, {written} were written"

    def close(self) -> None:
        """Close the connection."""
        self._cluster.close()

    @contextmanager
    def transaction(self) -> Iterator[IndexWriter]:
        """What is written inside counts at once, or not at all; searches of this object see it already."""
        with self._lock:
            before = self._index
            writer = IndexWriter(self, self._cluster, None if before == self._cluster.alias else before)
            try:
                yield writer
                if writer.made is not None:
                    self._cluster.swap(writer.made)
            except BaseException:
                if writer.made is not None:
                    self._cluster.discard(writer.made)
                    self.look_into(before)
                raise
            self._index = before

    def look_into(self, index: str) -> None:
        """Search another index from now on."""
        self._index = index
        self._read()

    @parse_errors
    def vectors(self, keys: Collection[str]) -> Mapping[str, Vector]:
        """The vectors that it has of passages by their keys (`content.passage_key`)."""
        rows = self._cluster.scroll(self._index, [_is("chunk")], ["payload.passage", "vector"])
        passages = ((row["payload"]["passage"], row["vector"]) for row in rows)
        return {key: np.array(vector, np.float32) for key, vector in passages if key in keys}

    def _read(self) -> None:
        """Read what it says about itself, and the forms of words."""
        files_read = self._files((ABOUT, FORMS))
        try:
            self.about = read_json(files_read[ABOUT], own=True)
            self.plan = SearchPlan.from_json(self.about["plan"])
            forms = read_json(files_read[FORMS], own=True)
            self._forms = {str(form): str(terms) for form, terms in forms.items()}
            self.about |= {"load": str(self.about["load"]), "points": int(self.about["points"])}
            of_this_version = self.about["format"] == FORMAT
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
            raise BundleError(f"{self.name} is not a search that ragbench exported: load it again") from None
        if not of_this_version:
            raise BundleError(f"{self.name} is of another version of ragbench: load it again with this one")

    @parse_errors
    def _files(self, names: Collection[str] | None = None) -> dict[str, bytes]:
        conditions = [_is("file"), *([] if names is None else [{"terms": {"name": list(names)}}])]
        bodies: dict[str, dict[int, str]] = defaultdict(dict)
        for row in self._cluster.scroll(self._index, conditions, ["payload"]):
            piece = row["payload"]
            bodies[str(piece["name"])][int(piece["part"])] = piece["body"]
        try:
            packed = {name: "".join(parts[part] for part in range(len(parts))) for name, parts in bodies.items()}
            return {name: unzipped(base64.b64decode(body)) for name, body in packed.items()}
        except (KeyError, ValueError, zlib.error):
            raise BundleError(f"{self.name} has a file with a piece missing: load it again") from None

    def _hits(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Mapping[str, Sequence[_Hit]]:
        """What every source of the plan finds, best first."""
        terms = query_terms(text, lambda forms: {form: self._forms[form] for form in forms if form in self._forms})
        asked, lines = " ".join(terms.elements()), []
        for source, depth in self.plan.depths.items():
            within = [_is("document" if source == "documents" else "chunk")]
            within += [] if only is None else [{"terms": {"chunks": list(only)}}]
            query = self._by_vector(vector, within) if source == "dense" else self._by_words(source, asked, within)
            lines += [{"index": self._index}, {"size": depth, "query": query, "_source": ["payload.chunks"]}]
        # Word statistics of all shards, so that scores do not depend on their number.
        path = "/_msearch?search_type=dfs_query_then_fetch"
        answers = self._cluster.send("POST", path, _lines(lines))["responses"]
        return {
            source: [self._hit(source, hit) for hit in self._cluster.hits(answer)]
            for source, answer in zip(self.plan.depths, answers, strict=True)
        }

    def _by_vector(self, vector: Vector | None, within: Sequence[Any]) -> dict[str, Any]:
        """The query for the nearest chunks; 1 is added to their cosines, since no score may be negative."""
        parameters = {"vector": np.asarray(vector, np.float32).tolist()}
        script = {"source": f"1.0 + {self._cluster.system.cosine}", "params": parameters}
        return {"script_score": {"query": {"bool": {"filter": list(within)}}, "script": script}}

    def _by_words(self, source: str, terms: str, within: Sequence[Any]) -> dict[str, Any]:
        query = _words_query(self._scoring(source), _FIELDS[source], terms)
        return {"bool": {"must": [query], "filter": list(within)}}

    def _hit(self, source: str, row: Mapping[str, Any]) -> _Hit:
        hit = _Hit.of(row["_source"]["payload"]["chunks"], row["_score"], row["_index"])
        if source == "dense":
            return _Hit(hit.chunks, hit.score - 1.0, hit.index)
        factor = 1.0 + self._scoring(source).scaled[1] if self._cluster.system.multiplies else 1.0
        return _Hit(hit.chunks, hit.score / factor, hit.index)

    def _scoring(self, source: str) -> Bm25F:
        scoring = self.plan.words if source == "lexical" else self.plan.wholes
        assert scoring is not None  # `SearchPlan` has a source for each
        return scoring


class IndexWriter:
    """Collects documents and writes them into `index`, or into a new one (None), in which `engine` looks from then on.

    A new index takes every document, since what words count changes with one.
    """

    def __init__(self, engine: OpenSearchEngine, cluster: Cluster, index: str | None) -> None:
        self._engine, self._cluster, self._index = engine, cluster, index
        self.made: str | None = None
        """The new index, if there is one."""
        self._units: dict[str, list[dict[str, Any]]] = {}

    def digests(self) -> Mapping[str, str]:
        """Nothing: no document is there yet."""
        return {}

    def vectors(self, keys: Collection[str]) -> Mapping[str, Vector]:
        """The vectors of passages by their keys in the index before."""
        return self._engine.vectors(keys) if "dense" in self._engine.plan.depths else {}

    def put(self, row: DocumentRow, vectors: Sequence[Vector | None], terms: Terms) -> None:
        """Keep a document and its chunks until `finish` writes them."""
        plan, chunks = self._engine.plan, [chunk.chunk_id for chunk in row.chunks]
        facts = {"docno": row.docno, "path": row.path, "title": row.title, "modified": row.modified, **row.metadata}
        unit = _unit({"kind": "document", "digest": row.digest, "chunks": chunks, **facts})
        if plan.wholes:
            unit["wholes"] = _seen(row.fields, terms)
        units = [unit]
        for chunk, vector in zip(row.chunks, vectors, strict=True):
            lines = {"headings": list(chunk.headings), "start_line": chunk.start_line, "end_line": chunk.end_line}
            ids = {"kind": "chunk", "chunk_id": chunk.chunk_id, "chunks": [chunk.chunk_id]}
            unit = _unit({**ids, "text": chunk.text, **lines, **facts, "passage": passage_key(chunk.passage)})
            if plan.words:
                unit["words"] = _seen(chunk.fields, terms)
            if vector is not None:
                unit["vector"] = np.asarray(vector, np.float32).tolist()
            units.append(unit)
        self._units[row.docno] = units

    def drop(self, docno: str) -> None:
        """Forget a document that was kept to be written."""
        self._units.pop(docno, None)

    def finish(
        self, forms: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None, facts: Mapping[str, Any]
    ) -> None:
        """Write what was kept, then forms, files (None: those before), and what the index says about itself."""
        engine, about = self._engine, {**self._engine.about, **facts}
        written = dict(engine.files() if files is None else files)
        if self._units:
            if self._index is None:
                self._index = self.made = self._cluster.make(engine.plan, about["dimension"])
            units = [unit for group in self._units.values() for unit in group]
            self._cluster.bulk(self._index, [{**unit, "number": n} for n, unit in enumerate(units, start=1)])
            about |= {"load": self._index, "points": len(units)}
            written[FORMS] = _as_bytes({form: " ".join(terms) for form, terms in forms.items()})
            self._units = {}
        index = self._index or self._cluster.alias
        _write_files(self._cluster, index, {**written, ABOUT: _as_bytes(about)}, but=[FORMS])
        engine.look_into(index)


def fuse(plan: SearchPlan, hits: Mapping[str, Mapping[str, float]]) -> Found:
    """The fusion of the scores of chunks by source; a chunk that a source did not return has its lowest value there."""
    total = sum(plan.weights[source] for source in hits) or 1.0
    fused: dict[str, float] = defaultdict(float)
    for source, scores in hits.items():
        weight, low, high = plan.weights[source], min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        ranks = {score: rank for rank, score in enumerate(sorted(set(scores.values()), reverse=True), start=1)}
        for chunk, score in scores.items():
            if plan.method == "rrf":
                fused[chunk] += weight / (plan.k + ranks[score])
            else:
                fused[chunk] += weight / total * ((score - low) / (high - low) if high > low else 1.0)
    order = sorted(fused, key=lambda chunk: -fused[chunk])
    return Found.of(hits, ((chunk, fused[chunk], *(scores.get(chunk) for scores in hits.values())) for chunk in order))


def _headers(parts: SplitResult) -> dict[str, str]:
    """The header with the password or key of an address."""
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not password:
        return {}
    if not name:
        return {"Authorization": f"ApiKey {password}"}
    return {"Authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


def _unit(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk or document of an index, with all that is kept of it in `payload`."""
    return {"kind": payload["kind"], "chunks": payload["chunks"], "payload": payload}


def _seen(fields: Mapping[str, str], terms: Terms) -> dict[str, str]:
    """The texts of fields, whose words `terms` has seen."""
    for text in fields.values():
        terms.of(text)
    return dict(fields)


def _write_files(cluster: Cluster, index: str, files: Mapping[str, bytes], but: Collection[str] = ()) -> None:
    """Replace the files in an index, except those named by `but` that are not among `files`."""
    kept = [name for name in but if name not in files]
    condition = {"filter": [_is("file")], "must_not": [{"terms": {"name": kept}}]}
    cluster.send("POST", f"/{index}/_delete_by_query?refresh=true", {"query": {"bool": condition}})
    for name, body in files.items():
        packed = base64.b64encode(zlib.compress(body)).decode()
        for part in range(-(-len(packed) // _PIECE)):
            payload = {"kind": "file", "name": name, "part": part, "body": packed[part * _PIECE :][:_PIECE]}
            cluster.bulk(index, [{"kind": "file", "name": name, "number": _file_number(), "payload": payload}])


def _file_number() -> int:
    """A number above those of chunks and documents, which a JavaScript client can still hold exactly."""
    return 2**52 + secrets.randbelow(2**52)


def _as_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _is(kind: str) -> dict[str, Any]:
    return {"term": {"kind": kind}}


def _lines(rows: Sequence[Any]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def _definition(system: System, plan: SearchPlan, dimension: int) -> dict[str, Any]:
    """What defines an index: its settings and the fields of its documents. Raises ConfigError."""
    scored = [scoring for scoring in (plan.words, plan.wholes) if scoring]
    if len({(scoring.scaled[1], scoring.b) for scoring in scored}) > 1:
        raise ConfigError(
            "an index scores chunks and documents by the same k1 and b, which this arm does not: export a bundle "
            "or another arm"
        )
    analyzer, analysis_settings = analysis(plan.analyzer)
    text = {"type": "text", "analyzer": analyzer, "search_analyzer": "whitespace"}
    properties: dict[str, Any] = {name: {"type": "keyword"} for name in ("kind", "name", "chunks")}
    properties |= {"number": {"type": "long"}, "payload": {"type": "object", "enabled": False}}
    for field_name, scoring in zip(_FIELDS.values(), (plan.words, plan.wholes), strict=True):
        if scoring:
            properties[field_name] = {"properties": {name: text for name, _ in scoring.weights}}
    if "dense" in plan.depths:
        properties["vector"] = {**system.vector, system.dimension: dimension}
    settings: dict[str, Any] = {"max_terms_count": 2**20, **system.settings}
    if scored:
        similarity = {"type": "BM25", "k1": round(scored[0].scaled[1], 9), "b": scored[0].b}
        settings["similarity"] = {"default": similarity}
        if analysis_settings:
            settings["analysis"] = analysis_settings
    mappings = {"dynamic": "strict", "_source": {"excludes": list(_FIELDS.values())}, "properties": properties}
    return {"settings": {"index": settings}, "mappings": mappings}


def _words_query(bm25: Bm25F, prefix: str, text: str) -> dict[str, Any]:
    """The query for a text in the properties of the field `prefix`."""
    weights, _ = bm25.scaled
    if len(weights) == 1:
        return {"match": {f"{prefix}.{weights[0][0]}": {"query": text}}}
    fields = [f"{prefix}.{name}^{weight:g}" for name, weight in weights]
    return {"combined_fields": {"query": text, "fields": fields}}


def analysis(name: str) -> tuple[str, dict[str, Any]]:
    """The name in an index of an analyzer of ragbench, and what the settings of the index must define for it."""
    if name == "english":
        return name, {}
    if name == "standard":
        return "ragbench", {"analyzer": {"ragbench": {"type": "standard", "stopwords": "_english_"}}}
    recipe = analyzers.CUSTOM[name]
    stop_words = f"_{name if name in languages.LANGUAGES else 'english'}_"
    named = {f"ragbench_{n:02}": _filter(token_filter, stop_words) for n, token_filter in enumerate(recipe.filters)}
    return "ragbench", {
        "tokenizer": {"ragbench": {"type": "pattern", "pattern": recipe.tokens, "group": recipe.group}},
        "filter": named,
        "analyzer": {"ragbench": {"type": "custom", "tokenizer": "ragbench", "filter": list(named)}},
    }


_FILTERS = {
    "englishPossessive": {"type": "stemmer", "language": "possessive_english"},
    "greekLowercase": {"type": "lowercase", "language": "greek"},
    "turkishLowercase": {"type": "lowercase", "language": "turkish"},
}


def _filter(token_filter: languages.Filter, stop_words: str) -> dict[str, Any]:
    kind, options = token_filter[0], dict(zip(token_filter[1::2], token_filter[2::2], strict=True))
    if kind == "length":
        return {"type": "length", "min": int(options["min"]), "max": int(options["max"])}
    if kind == "patternCaptureGroup":
        return {"type": "pattern_capture", "preserve_original": True, "patterns": [options["pattern"]]}
    if kind == "keywordMarker":
        return {"type": "keyword_marker", "keywords_pattern": options["pattern"]}
    if kind == "stop":
        return {"type": "stop", "stopwords": stop_words}
    if kind.endswith("Stem") or kind == "snowballPorter":
        return {"type": "stemmer", "language": _stem(kind, options.get("language", ""))}
    return _FILTERS.get(kind) or {"type": re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", kind), **options}


def _stem(kind: str, snowball: str) -> str:
    """The name of a stem there: `germanLightStem` is `light_german`."""
    language = kind.removesuffix("Stem")
    return snowball.lower() or (f"light_{light}" if (light := language.removesuffix("Light")) != language else language)
