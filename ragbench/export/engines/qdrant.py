"""A search in a collection of Qdrant: vectors of the chunks, BM25F of chunks and documents as sparse vectors.

    qdrant://host:6333/notes     over HTTPS: qdrants://; a key is taken from the environment variable QDRANT_API_KEY

A point is a chunk (`dense`, `lexical`), a document (`documents`), or a piece of a file for ragbench. A number of a
sparse vector is what BM25F gives for a term, so that the sum over the terms of a query is the score. One request asks
the three; Qdrant has no fusion of scores by min-max, so `fuse` puts them together here.

The name is an alias: everything is loaded into a new collection, which then takes the place of the earlier one.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import threading
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ragbench.base.errors import BoundaryError, BundleError, ConfigError
from ragbench.boundary.http import Client
from ragbench.boundary.json import read_json
from ragbench.export.engines import bm25f
from ragbench.export.engines.address import resolved
from ragbench.export.engines.bm25f import Posting, postings
from ragbench.export.engines.content import passage_key
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.search import Found, Vector
from ragbench.export.engines.words import query_terms

if TYPE_CHECKING:
    from ragbench.export.engines.content import DocumentRow
    from ragbench.export.engines.words import Terms

SCHEMES = {"qdrant": "http", "qdrants": "https"}
KEY = "QDRANT_API_KEY"
FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_SOURCES = {"chunk": "lexical", "document": "documents"}
_WAIT_S, _AT_ONCE, _PIECE = 60.0, 200, 400_000
_ABOUT, _FORMS, _TERMS = "about.json", "forms.json", "terms.json"
"""Files of the engine itself, beside those of the bundle."""


@dataclass
class _Unit:
    """A chunk or document to write: the number of its point, its payload, vector and words."""

    number: int
    payload: dict[str, Any]
    words: list[Posting] = field(default_factory=list)
    vector: Vector | None = None


class Server:
    """Sends requests to a server of Qdrant. Raises ConfigError for another address, BundleError without an answer."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(resolved(address))
        self.name, self.alias = address, parts.path.strip("/")
        if parts.scheme not in SCHEMES or not parts.hostname or not _NAME.fullmatch(self.alias):
            raise ConfigError("the address of a collection must be such as qdrant://localhost:6333/notes")
        if "@" in parts.netloc:
            raise ConfigError(f"the address of Qdrant holds a key: put the key into the environment variable {KEY}")
        self._base = f"{SCHEMES[parts.scheme]}://{parts.netloc}"
        key = os.environ.get(KEY)
        self._client = Client(self._base, {"api-key": key} if key else None, timeout_s=_WAIT_S, max_bytes=500_000_000)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The result of a request."""
        try:
            return self._client.send(method, f"{self._base}{path}", body).json()["result"]
        except (BoundaryError, KeyError, TypeError) as error:
            said = getattr(error, "body", "")
            raise BundleError(f"{self.name} does not answer ({error}{f': {said}' if said else ''})") from None

    def collection(self) -> str | None:
        """The collection that the alias names, None where there is none."""
        found = {each["alias_name"]: each["collection_name"] for each in self.send("GET", "/aliases")["aliases"]}
        return found.get(self.alias)

    def abandoned(self) -> list[str]:
        """Collections of loads that were killed."""
        used = {each["collection_name"] for each in self.send("GET", "/aliases")["aliases"]}
        names = {each["name"] for each in self.send("GET", "/collections")["collections"]}
        return sorted(name for name in names - used if re.fullmatch(rf"{re.escape(self.alias)}--[0-9a-f]{{12}}", name))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def settings(plan: Plan, dimension: int) -> dict[str, Any]:
    """What creates a collection: exact vectors, sparse vectors as they are."""
    dense = {"dense": {"size": dimension, "distance": "Cosine", "hnsw_config": {"m": 32, "ef_construct": 200}}}
    sparse: dict[str, Any] = {source: {} for source in ("lexical", "documents") if source in plan.depths}
    return {"vectors": dense if "dense" in plan.depths else {}, "sparse_vectors": sparse}


def queries(
    plan: Plan, terms: Mapping[int, int], vector: Vector | None, only: Mapping[str, Sequence[int]] | None
) -> list[dict[str, Any]]:
    """The requests of a search, one for each source; `only` has the points that each may find (None: all)."""
    found = []
    for source, depth in plan.depths.items():
        sparse = {"indices": list(terms), "values": [float(count) for count in terms.values()]}
        asked: Any = sparse if vector is None or source != "dense" else np.asarray(vector, np.float32).tolist()
        request = {"query": asked, "using": source, "limit": depth, "with_payload": ["chunk_id", "chunks", "load"]}
        request |= {"params": {"exact": True}} if source == "dense" else {}
        if only is not None:
            request["filter"] = {"must": [{"has_id": list(only[source])}]}
        found.append(request)
    return found


def fuse(plan: Plan, hits: Mapping[str, Mapping[str, float]]) -> list[Found]:
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
    by_chunk = {chunk: {source: scores[chunk] for source, scores in hits.items() if chunk in scores} for chunk in order}
    return [Found(chunk, fused[chunk], by_chunk[chunk]) for chunk in order]


class QdrantEngine:
    """A collection behind an alias; while it is written, another collection that nobody else sees."""

    def __init__(self, address: str, draft: str | None = None) -> None:
        self._server, self._lock = Server(address), threading.RLock()
        if draft is None and self._server.collection() is None:
            raise BundleError(f"{self.name} has no search: load one with ragbench export --format qdrant --load")
        self._draft = draft
        self._units: dict[str, list[_Unit]] = {}
        self._held: dict[str, list[tuple[int, list[str]]]] = {}
        self._read()

    @property
    def _collection(self) -> str:
        return self._draft or self._server.alias

    @classmethod
    @contextmanager
    def create(cls, address: str, plan: Plan, dimension: int, about: Mapping[str, Any]) -> Iterator[QdrantEngine]:
        """A new collection, which takes the place of the earlier one when the block ends without an error."""
        server = Server(address)
        for name in server.abandoned():
            server.send("DELETE", f"/collections/{name}")
        name = cls._new_collection(server, plan, dimension)
        try:
            said = {
                **about,
                "format": FORMAT,
                "plan": plan.to_json(),
                "dimension": dimension,
                "load": name,
                "points": 0,
            }
            _write_files(server, name, {_ABOUT: _bytes(said), _FORMS: b"{}", _TERMS: b"[]"})
            made = cls(address, name)
            yield made
            made._swap()
        except BaseException:
            with suppress(BundleError):
                server.send("DELETE", f"/collections/{name}")
            raise
        finally:
            server.close()

    @staticmethod
    def _new_collection(server: Server, plan: Plan, dimension: int) -> str:
        name = f"{server.alias}--{secrets.token_hex(6)}"
        server.send("PUT", f"/collections/{name}", settings(plan, dimension))
        server.send("PUT", f"/collections/{name}/index", {"field_name": "kind", "field_schema": "keyword"})
        return name

    def _read(self) -> None:
        """Read what it says about itself, and the forms of words."""
        self._held = {}
        found = self._files((_ABOUT, _FORMS, _TERMS))
        try:
            self.about = read_json(found[_ABOUT], own=True)
            self.plan = Plan.from_json(self.about["plan"])
            self._forms, terms = read_json(found[_FORMS], own=True), read_json(found[_TERMS], own=True)
            same = self.about["format"] == FORMAT
        except (KeyError, ValueError, TypeError):
            raise BundleError(f"{self.name} is not a search that ragbench exported: load it again") from None
        if not same:
            raise BundleError(f"{self.name} is of another version of ragbench: load it again with this one")
        self._numbers = {term: number for number, term in enumerate(terms)}

    @property
    def name(self) -> str:
        """The address."""
        return self._server.name

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def version(self) -> str:
        """The collection that the name leads to now."""
        return self._server.collection() or ""

    def files(self) -> Mapping[str, bytes]:
        """The files of the bundle."""
        return {name: body for name, body in self._files().items() if name not in (_ABOUT, _FORMS, _TERMS)}

    def _files(self, names: Collection[str] | None = None) -> dict[str, bytes]:
        wanted: list[Any] = [_is("file")]
        wanted += [{"key": "name", "match": {"any": list(names)}}] if names is not None else []
        pieces = [point["payload"] for point in self._scroll(wanted, with_payload=True)]
        bodies: dict[str, dict[int, str]] = defaultdict(dict)
        for piece in pieces:
            bodies[piece["name"]][piece["part"]] = piece["body"]
        try:
            packed = {name: "".join(parts[part] for part in range(len(parts))) for name, parts in bodies.items()}
            return {name: zlib.decompress(base64.b64decode(body)) for name, body in packed.items()}
        except (KeyError, ValueError, zlib.error):
            raise BundleError(f"{self.name} has a file with a piece missing: load it again") from None

    def _scroll(self, must: Sequence[Any], **more: Any) -> Iterator[Any]:
        offset = None
        while True:
            body = {"filter": {"must": list(must)}, "limit": _AT_ONCE, "offset": offset, **more}
            found = self._server.send("POST", f"/collections/{self._collection}/points/scroll", body)
            yield from found["points"]
            offset = found.get("next_page_offset")
            if offset is None:
                return

    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Sequence[Found]:
        """Send one request with a query for each source, and fuse; after a new load, once again."""
        with self._lock:
            load, answers = self.about["load"], self._answers(text, vector, only)
            loads = {point["payload"]["load"] for answer in answers for point in answer["points"]}
            if loads != {load}:
                self._read()
                answers = answers if self.about["load"] == load else self._answers(text, vector, only)
        allowed, hits = None if only is None else set(only), {}
        for source, answer in zip(self.plan.depths, answers, strict=True):
            rows = [
                (chunk, float(point["score"]))
                for point in answer["points"]
                for chunk in point["payload"].get("chunks") or [point["payload"]["chunk_id"]]
            ]
            hits[source] = {chunk: score for chunk, score in rows if allowed is None or chunk in allowed}
        return fuse(self.plan, hits)

    def _answers(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Any:
        words = query_terms(text, lambda forms: {form: self._forms[form] for form in forms if form in self._forms})
        terms = {self._numbers[term]: count for term, count in words.items() if term in self._numbers}
        points = None if only is None else self._points_of(set(only))
        sent = queries(self.plan, terms, vector, points)
        path = f"/collections/{self._collection}/points/query/batch"
        return self._server.send("POST", path, {"searches": sent})

    def _points_of(self, chunks: set[str]) -> dict[str, list[int]]:
        """The points of chunks, and of the documents that hold them, by source."""
        held = {
            kind: [number for number, value in places if not chunks.isdisjoint(value)]
            for kind, places in self._places().items()
        }
        return {"dense": held["chunk"], "lexical": held["chunk"], "documents": held["document"]}

    def _places(self) -> Mapping[str, list[tuple[int, list[str]]]]:
        """The points of chunks and documents with the ids of their chunks, read once of a load."""
        if not self._held:
            for kind, key in (("chunk", "chunk_id"), ("document", "chunks")):
                points = self._scroll([_is(kind)], with_payload=[key])
                found = ((point["id"], point["payload"][key]) for point in points)
                self._held[kind] = [(number, [value] if kind == "chunk" else value) for number, value in found]
        return self._held

    # writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside counts at once, or not at all; searches of this object see it already."""
        with self._lock:
            outer = self._draft
            try:
                yield
                if outer is None and self._draft is not None:
                    self._swap()
            except BaseException:
                if outer is None and self._draft is not None:
                    with suppress(BundleError):
                        self._server.send("DELETE", f"/collections/{self._draft}")
                    self._draft = None
                    self._read()
                raise

    def _swap(self) -> None:
        """Let the alias name the draft, in one step, and delete what it named before."""
        before, alias = self._server.collection(), self._server.alias
        actions: list[Any] = [{"delete_alias": {"alias_name": alias}}] if before else []
        actions.append({"create_alias": {"alias_name": alias, "collection_name": self._draft}})
        self._server.send("POST", "/collections/aliases", {"actions": actions})
        self._draft = None
        if before:
            self._server.send("DELETE", f"/collections/{before}")

    def digests(self) -> Mapping[str, str]:
        """Nothing: a new collection takes every document, since the numbers of all change with one."""
        return {}

    def vectors(self, keys: Collection[str]) -> Mapping[str, Vector]:
        """The vectors that it has of passages by their keys."""
        if "dense" not in self.plan.depths:
            return {}
        points = self._scroll([_is("chunk")], with_payload=["passage"], with_vector=["dense"])
        found = ((point["payload"]["passage"], point["vector"]["dense"]) for point in points)
        return {key: np.asarray(vector, np.float32) for key, vector in found if key in keys}

    def put(self, row: DocumentRow, vectors: Sequence[Vector | None], terms: Terms) -> None:
        """Keep a document and its chunks until `finish` writes them."""
        chunks = [chunk.chunk_id for chunk in row.chunks]
        about = {"docno": row.docno, "path": row.path, "title": row.title, "modified": row.modified, **row.metadata}
        whole = _Unit(0, {"kind": "document", "digest": row.digest, "chunks": chunks, **about})
        if self.plan.wholes:
            whole.words = postings(row.fields, self.plan.wholes, terms)
        units = [whole]
        for chunk, vector in zip(row.chunks, vectors, strict=True):
            place = {"headings": list(chunk.headings), "start_line": chunk.start_line, "end_line": chunk.end_line}
            said = {"kind": "chunk", "chunk_id": chunk.chunk_id, "text": chunk.text, **place, **about}
            made = _Unit(0, {**said, "passage": passage_key(chunk.passage)}, vector=vector)
            if self.plan.words:
                made.words = postings(chunk.fields, self.plan.words, terms)
            units.append(made)
        self._units[row.docno] = units

    def drop(self, docno: str) -> None:
        """Forget a document that was kept to be written."""
        self._units.pop(docno, None)

    def finish(
        self, forms: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None, about: Mapping[str, Any]
    ) -> None:
        """Write what was kept into a collection of its own, then forms, files and what it says about itself."""
        old = self._files() if self._units else {}
        own = {**self.about, **about}
        if self._units:
            if self._draft is None:
                self._draft = self._new_collection(self._server, self.plan, own["dimension"])
            own |= {"load": self._draft, "points": sum(map(len, self._units.values()))}
            numbers = self._write_units()
            kept = {form: " ".join(found) for form, found in forms.items()}
            old = {**old, _FORMS: _bytes({**self._forms, **kept}), _TERMS: _bytes(list(numbers))}
            self._units = {}
        written = old if files is None else {**{n: b for n, b in old.items() if n in (_FORMS, _TERMS)}, **files}
        if files is not None:
            own_files = [_ABOUT] if old else [_ABOUT, _FORMS, _TERMS]
            gone = {"must": [_is("file")]}
            gone |= {"must_not": [{"key": "name", "match": {"any": own_files}}]}
            self._server.send("POST", f"/collections/{self._collection}/points/delete?wait=true", {"filter": gone})
        _write_files(self._server, self._collection, {**written, _ABOUT: _bytes(own)})
        self._read()

    def _write_units(self) -> dict[str, int]:
        """Write chunks and documents with what BM25F gives for each term; returns the numbers of the terms."""
        units = [unit for found in self._units.values() for unit in found]
        of_kind = {kind: [unit for unit in units if unit.payload["kind"] == kind] for kind in _SOURCES}
        numbers = {term: n for n, term in enumerate(sorted({word.term for unit in units for word in unit.words}))}
        points: list[dict[str, Any]] = []
        for kind, scoring in (("chunk", self.plan.words), ("document", self.plan.wholes)):
            impacts = bm25f.impacts([unit.words for unit in of_kind[kind]], scoring) if scoring else repeat([])
            for unit, values in zip(of_kind[kind], impacts, strict=False):
                vector: dict[str, Any] = {}
                if unit.vector is not None:
                    vector["dense"] = np.asarray(unit.vector, np.float32).tolist()
                if unit.words and scoring:
                    indices = [numbers[word.term] for word in unit.words]
                    vector[_SOURCES[kind]] = {"indices": indices, "values": values}
                points.append(
                    {"id": len(points) + 1, "vector": vector, "payload": {**unit.payload, "load": self._draft}}
                )
        _upsert(self._server, self._collection, points)
        return numbers

    def damage(self) -> str | None:
        """What is missing, None if nothing is."""
        body, expected = {"exact": True, "filter": {"must_not": [_is("file")]}}, self.about["points"]
        found = self._server.send("POST", f"/collections/{self._collection}/points/count", body)["count"]
        return None if found == expected else f"{found} points are there, {expected} were written"


def _is(kind: str) -> dict[str, Any]:
    return {"key": "kind", "match": {"value": kind}}


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _write_files(server: Server, collection: str, files: Mapping[str, bytes]) -> None:
    points: list[dict[str, Any]] = []
    for name, body in files.items():
        packed = base64.b64encode(zlib.compress(body)).decode()
        for part in range(-(-len(packed) // _PIECE)):
            piece = {"kind": "file", "name": name, "part": part, "body": packed[part * _PIECE : (part + 1) * _PIECE]}
            number = int(secrets.token_hex(7), 16) | 2**52
            points.append({"id": number, "vector": {}, "payload": piece})
    gone = {"must": [_is("file"), {"key": "name", "match": {"any": list(files)}}]}
    server.send("POST", f"/collections/{collection}/points/delete?wait=true", {"filter": gone})
    for point in points:
        _upsert(server, collection, [point])


def _upsert(server: Server, collection: str, points: Iterable[Mapping[str, Any]]) -> None:
    rows = list(points)
    for start in range(0, len(rows), _AT_ONCE):
        server.send("PUT", f"/collections/{collection}/points?wait=true", {"points": rows[start : start + _AT_ONCE]})
