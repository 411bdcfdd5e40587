"""An engine behind an alias: everything is loaded into a new collection, which then replaces the earlier one.

A collection holds units (chunks and documents) and pieces of files for ragbench. A request asks every source; fusion
by min-max, which such engines lack or sell, is done here.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
import zlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self
from urllib.parse import SplitResult, urlsplit

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base.errors import BoundaryError, BundleError, ConfigError
from ragbench.boundary.json import read_json
from ragbench.boundary.paths import resolved, split_address
from ragbench.extras.engines.content import DocumentRow, passage_key
from ragbench.extras.engines.plan import Plan
from ragbench.extras.engines.search import Found, Vector, number, parse_errors, unzipped
from ragbench.extras.engines.words import Posting, Terms, impacts, postings, query_terms
from ragbench.extras.remote.http import Client

FORMAT = 2
AT_ONCE = 200
"""Units that are sent or read in one request."""
_WAIT_S, _MOST_BYTES, _PIECE = 60.0, 500_000_000, 400_000
_ABOUT, _FORMS, _TERMS = "about.json", "forms.json", "terms.json"
"""Files of the engine itself, next to those of the bundle."""


@dataclass
class Unit:
    """A chunk or document to write: what is kept of it, the texts of its fields, their words, and its vector."""

    payload: dict[str, Any]
    fields: Mapping[str, str] = field(default_factory=dict)
    words: list[Posting] = field(default_factory=list)
    vector: Vector | None = None


@dataclass(frozen=True)
class Hit:
    """What a source found: the chunks of a unit with their score; `load` is the collection that it is in."""

    chunks: Sequence[str]
    score: float
    load: str

    @staticmethod
    def of(chunks: Any, score: Any, load: Any) -> Hit:
        """The hit of an answer. Raises TypeError, ValueError for values that none has."""
        if not isinstance(chunks, list) or not all(isinstance(value, str) for value in [load, *chunks]):
            raise TypeError("its chunks and its collection are not texts")
        return Hit(chunks, number(score), load)


def term_numbers(units: Sequence[Unit]) -> dict[str, int]:
    """The number of every term of units, in alphabetical order."""
    terms = sorted({word.term for unit in units for word in unit.words})
    return {term: number for number, term in enumerate(terms)}


def with_impacts(units: Sequence[Unit], plan: Plan) -> dict[str, list[tuple[Unit, list[float]]]]:
    """Chunks and documents by kind, each with what BM25F gives for each of its words."""
    by_kind = {}
    for kind, scoring in (("chunk", plan.words), ("document", plan.wholes)):
        of_kind = [unit for unit in units if unit.payload["kind"] == kind]
        values = impacts([unit.words for unit in of_kind], scoring) if scoring else [[] for _ in of_kind]
        by_kind[kind] = list(zip(of_kind, values, strict=True))
    return by_kind


def fuse(plan: Plan, hits: Mapping[str, Mapping[str, float]]) -> Found:
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


class AliasedEngine(ABC):
    """A collection behind an alias; while it is written, another collection that no other client sees."""

    schemes: ClassVar[Mapping[str, str]]
    example: ClassVar[str]
    """An address, for messages."""
    alias_form: ClassVar[re.Pattern[str]]

    def __init__(self, address: str) -> None:
        self._connect(address)
        if self._current() is None:
            scheme = next(iter(self.schemes))
            raise BundleError(f"{self.name} has no search: load one with ragbench export --format {scheme} --load")
        self._draft: str | None = None
        self._read()

    def _connect(self, address: str) -> None:
        expected = ConfigError(f"the address of a search must be such as {self.example}")
        address_value = resolved(address)
        try:
            parts = urlsplit(address_value)
            self._base = f"{self.schemes[parts.scheme]}://{parts.netloc.rpartition('@')[2]}"
            split_address(self._base)
        except (KeyError, ValueError):
            raise expected from None
        self.name, self._alias, self._lock = address, parts.path.strip("/"), threading.RLock()
        if not self.alias_form.fullmatch(self._alias):
            raise expected
        self._client = Client(self._base, self._headers(parts), timeout_s=_WAIT_S, max_bytes=_MOST_BYTES)
        self._units: dict[str, list[Unit]] = {}

    @abstractmethod
    def _headers(self, parts: SplitResult) -> dict[str, str]:
        """The headers with a key; raises ConfigError where the address must not hold one."""

    @abstractmethod
    def _collections(self) -> Mapping[str, bool]:
        """The collections whose names begin as those of loads do, and whether an alias leads to each."""

    @abstractmethod
    def _current(self) -> str | None:
        """The collection that the alias leads to, None where there is none."""

    @abstractmethod
    def _make(self, collection: str, plan: Plan, dimension: int) -> None:
        """Make an empty collection."""

    @abstractmethod
    def _delete(self, collection: str) -> None:
        """Delete a collection."""

    @abstractmethod
    def _rename(self, old_name: str | None, new_name: str) -> None:
        """Let the alias lead to another collection, in one step."""

    @abstractmethod
    def _hits(
        self, terms: Counter[str], vector: Vector | None, only: Sequence[str] | None
    ) -> Mapping[str, Sequence[Hit]]:
        """What every source of the plan finds, best first."""

    @abstractmethod
    def _write(self, units: Sequence[Unit]) -> list[str]:
        """Write units into the collection; returns the terms by number, where the engine knows them by numbers."""

    @abstractmethod
    def _write_piece(self, collection: str, number: int, payload: Mapping[str, Any]) -> None:
        """Write a piece of a file."""

    @abstractmethod
    def _pieces(self, names: Collection[str] | None) -> Iterator[Mapping[str, Any]]:
        """The payloads of the pieces of files (None: of all)."""

    @abstractmethod
    def _drop_files(self, collection: str, names: Collection[str], others: bool = False) -> None:
        """Delete the pieces of the files with these names, or (`others`) of all others."""

    @abstractmethod
    def _passages(self) -> Iterator[tuple[str, ArrayLike]]:
        """The keys of all passages with their vectors."""

    @abstractmethod
    def _count(self) -> int:
        """The number of units."""

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request. Raises BundleError."""
        try:
            return self._client.send(method, f"{self._base}{path}", body).json()
        except BoundaryError as error:
            detail = getattr(error, "body", "")
            raise BundleError(f"{self.name} does not answer ({error}{f': {detail}' if detail else ''})") from error

    @property
    def _collection(self) -> str:
        return self._draft or self._alias

    @classmethod
    @contextmanager
    def create(cls, address: str, plan: Plan, dimension: int, facts: Mapping[str, Any]) -> Iterator[Self]:
        """A new collection, which replaces the earlier one when the block ends without an error."""
        engine = cls.__new__(cls)
        engine._connect(address)
        with closing(engine):
            engine._require_place()
            with engine._alone():
                try:
                    name = engine._draft = engine._new(plan, dimension)
                    record = {
                        "format": FORMAT,
                        "plan": plan.to_json(),
                        "dimension": dimension,
                        "load": name,
                        "points": 0,
                    }
                    engine._write_files({_ABOUT: _bytes({**facts, **record}), _FORMS: b"{}", _TERMS: b"[]"})
                    engine._read()
                    yield engine
                    engine._swap()
                except BaseException:
                    engine._give_up()
                    raise

    @classmethod
    def reach(cls, address: str) -> None:
        """Raise BundleError, ConfigError where an address cannot be loaded."""
        engine = cls.__new__(cls)
        engine._connect(address)
        with closing(engine):
            engine._require_place()

    def _require_place(self) -> None:
        """Raise BundleError where nothing answers, ConfigError where the name leads to what no load has made."""
        collection = self._current()
        if collection is not None and not self._of_load(collection):
            raise ConfigError(
                f"{self.name} leads to {collection}, which is not a search of ragbench: choose another name"
            )

    def _of_load(self, collection: str) -> bool:
        """Whether a collection is named as those of loads are."""
        return re.fullmatch(rf"{re.escape(self._alias)}--[0-9a-f]{{12}}", collection) is not None

    def _alone(self) -> AbstractContextManager[None]:
        """No other load or refresh writes meanwhile, where the engine can say so."""
        return nullcontext()

    def _new(self, plan: Plan, dimension: int) -> str:
        """Make an empty collection, after what was left of others is deleted."""
        for collection, used in self._collections().items():
            if not used:
                self._discard(collection)
        name = f"{self._alias}--{secrets.token_hex(6)}"
        self._make(name, plan, dimension)
        return name

    def _discard(self, collection: str | None) -> None:
        """Delete a collection of a load, and nothing else; where that fails, the next load deletes it."""
        if collection is not None and self._of_load(collection):
            with suppress(BundleError):
                self._delete(collection)

    def _give_up(self) -> None:
        draft, self._draft = getattr(self, "_draft", None), None
        self._discard(draft)

    def _read(self) -> None:
        """Read what it says about itself, and the forms of words."""
        files_read = self._files((_ABOUT, _FORMS, _TERMS))
        try:
            self.about = read_json(files_read[_ABOUT], own=True)
            self.plan = Plan.from_json(self.about["plan"])
            forms, terms = read_json(files_read[_FORMS], own=True), read_json(files_read[_TERMS], own=True)
            self._forms = {str(form): str(terms) for form, terms in forms.items()}
            self._numbers = {str(term): number for number, term in enumerate(terms)}
            load, points, forms_match = (
                str(self.about["load"]),
                int(self.about["points"]),
                self.about["format"] == FORMAT,
            )
            self.about |= {"load": load, "points": points}
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
            raise BundleError(f"{self.name} is not a search that ragbench exported: load it again") from None
        if not forms_match:
            raise BundleError(f"{self.name} is of another version of ragbench: load it again with this one")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @parse_errors
    def version(self) -> str:
        """The collection that the name leads to now."""
        return self._current() or ""

    def files(self) -> Mapping[str, bytes]:
        """The files of the bundle."""
        return {name: body for name, body in self._files().items() if name not in (_ABOUT, _FORMS, _TERMS)}

    @parse_errors
    def _files(self, names: Collection[str] | None = None) -> dict[str, bytes]:
        bodies: dict[str, dict[int, str]] = defaultdict(dict)
        for piece in self._pieces(names):
            bodies[str(piece["name"])][int(piece["part"])] = piece["body"]
        try:
            packed = {name: "".join(parts[part] for part in range(len(parts))) for name, parts in bodies.items()}
            return {name: unzipped(base64.b64decode(body)) for name, body in packed.items()}
        except (KeyError, ValueError, zlib.error):
            raise BundleError(f"{self.name} has a file with a piece missing: load it again") from None

    @parse_errors
    def ask(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Found:
        """Send one request with a query for each source, and fuse; after a new load, once again."""
        with self._lock:
            load, hits = self.about["load"], self._asked(text, vector, only)
            if {hit.load for hits in hits.values() for hit in hits} != {load}:
                self._read()
                hits = hits if self.about["load"] == load else self._asked(text, vector, only)
        allowed = None if only is None else set(only)
        scores = {
            source: {chunk: hit.score for hit in hits for chunk in hit.chunks if allowed is None or chunk in allowed}
            for source, hits in hits.items()
        }
        return fuse(self.plan, scores)

    def _asked(self, text: str, vector: Vector | None, only: Sequence[str] | None) -> Mapping[str, Sequence[Hit]]:
        terms = query_terms(text, lambda forms: {form: self._forms[form] for form in forms if form in self._forms})
        return self._hits(terms, vector, only)

    # writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside counts at once, or not at all; searches of this object see it already."""
        with self._alone(), self._lock:
            outer = self._draft
            try:
                yield
                if outer is None and self._draft is not None:
                    self._swap()
            except BaseException:
                if outer is None and self._draft is not None:
                    self._give_up()
                    self._read()
                raise

    def _swap(self) -> None:
        """Let the alias name the draft, and delete what it named before."""
        assert self._draft is not None
        current = self._current()
        self._rename(current, self._draft)
        self._draft = None
        self._discard(current)

    def digests(self) -> Mapping[str, str]:
        """Nothing: a new collection takes every document, since what words count changes with one."""
        return {}

    @parse_errors
    def vectors(self, keys: Collection[str]) -> Mapping[str, Vector]:
        """The vectors that it has of passages by their keys."""
        if "dense" not in self.plan.depths:
            return {}
        return {key: np.array(vector, np.float32) for key, vector in self._passages() if key in keys}

    def put(self, row: DocumentRow, vectors: Sequence[Vector | None], terms: Terms) -> None:
        """Keep a document and its chunks until `finish` writes them."""
        chunks = [chunk.chunk_id for chunk in row.chunks]
        document_fields = {
            "docno": row.docno,
            "path": row.path,
            "title": row.title,
            "modified": row.modified,
            **row.metadata,
        }
        document_unit = Unit({"kind": "document", "digest": row.digest, "chunks": chunks, **document_fields})
        if self.plan.wholes:
            document_unit.fields, document_unit.words = row.fields, postings(row.fields, self.plan.wholes, terms)
        units = [document_unit]
        for chunk, vector in zip(row.chunks, vectors, strict=True):
            chunk_fields = {
                "headings": list(chunk.headings),
                "start_line": chunk.start_line,
                "end_line": chunk.end_line,
            }
            text_fields = {"kind": "chunk", "chunk_id": chunk.chunk_id, "chunks": [chunk.chunk_id], "text": chunk.text}
            chunk_unit = Unit(
                {**text_fields, **chunk_fields, **document_fields, "passage": passage_key(chunk.passage)}, vector=vector
            )
            if self.plan.words:
                chunk_unit.fields, chunk_unit.words = chunk.fields, postings(chunk.fields, self.plan.words, terms)
            units.append(chunk_unit)
        self._units[row.docno] = units

    def drop(self, docno: str) -> None:
        """Forget a document that was kept to be written."""
        self._units.pop(docno, None)

    def finish(
        self, forms: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None, facts: Mapping[str, Any]
    ) -> None:
        """Write what was kept into a collection of its own, then forms, files and what it says about itself."""
        old = self._files() if self._units else {}
        record = {**self.about, **facts}
        if self._units:
            if self._draft is None:
                self._draft = self._new(self.plan, record["dimension"])
            units = [unit for group in self._units.values() for unit in group]
            record |= {"load": self._draft, "points": len(units)}
            numbered = self._write(units)
            form_terms = {form: " ".join(terms) for form, terms in forms.items()}
            old = {**old, _FORMS: _bytes({**self._forms, **form_terms}), _TERMS: _bytes(numbered)}
            self._units = {}
        written = old if files is None else {**{n: b for n, b in old.items() if n in (_FORMS, _TERMS)}, **files}
        if files is not None:
            self._drop_files(self._collection, [_ABOUT] if old else [_ABOUT, _FORMS, _TERMS], others=True)
        self._write_files({**written, _ABOUT: _bytes(record)})
        self._read()

    def _write_files(self, files: Mapping[str, bytes]) -> None:
        self._drop_files(self._collection, list(files))
        for name, body in files.items():
            packed = base64.b64encode(zlib.compress(body)).decode()
            for part in range(-(-len(packed) // _PIECE)):
                piece = {"kind": "file", "name": name, "part": part}
                piece["body"] = packed[part * _PIECE : (part + 1) * _PIECE]
                self._write_piece(self._collection, int(secrets.token_hex(7), 16) | 2**52, piece)

    @parse_errors
    def damage(self) -> str | None:
        """What is missing, None if nothing is."""
        count, expected = self._count(), self.about["points"]
        return None if count == expected else f"{count} points are there, {expected} were written"


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
