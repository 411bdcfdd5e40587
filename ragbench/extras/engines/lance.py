"""A search in a folder of LanceDB: vectors of the chunks, and what BM25F gives for each word of a chunk or document.

    lancedb:///srv/notes     a link to a folder next to it, notes--...; a load fills a new one, then the link moves

Tables: chunks (with vectors), documents, chunk_words and document_words (term, unit, impact; an index on the term),
files. LanceDB has neither sparse vectors nor BM25 over several fields: it returns the impacts of a query's terms, and
they are added up here.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import SplitResult

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base.errors import BundleError, ConfigError
from ragbench.base.files import why_unreadable
from ragbench.boundary.paths import resolved
from ragbench.extras.engines.aliased import AliasedEngine, Hit, Unit, term_numbers, with_impacts
from ragbench.extras.engines.plan import Plan
from ragbench.extras.engines.search import Vector

_ALL = 2**31 - 1  # rows; without a limit LanceDB returns ten
_AT_ONCE = 1000  # rows with vectors
_FULL = re.compile(r"No space left|Disk quota exceeded|os error (28|122)\b")
_UNITS = {"dense": "chunks", "lexical": "chunks", "documents": "documents"}
_WORDS = {"lexical": "chunk_words", "documents": "document_words"}


Held = Mapping[int, Sequence[str]]
"""The chunks of units by number."""


class LanceEngine(AliasedEngine):
    """A folder of LanceDB behind a link."""

    schemes: ClassVar[Mapping[str, str]] = {"lancedb": "file"}
    example = "lancedb:///srv/notes"
    alias_form = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")

    def _connect(self, address: str) -> None:
        self._link = Path(resolved(address).partition("://")[2])
        if not self._link.is_absolute() or not self.alias_form.fullmatch(self._link.name):
            raise ConfigError(f"the address of a search must be such as {self.example}")
        from filelock import FileLock

        _lancedb()
        self.name, self._alias, self._lock = address, self._link.name, threading.RLock()
        self._writing = FileLock(self._link.with_name(f".{self._alias}.lock"))
        self._units: dict[str, list[Unit]] = {}
        self._open: tuple[str, dict[str, Any], dict[str, Held]] = ("", {}, {})

    def _headers(self, parts: SplitResult) -> dict[str, str]:
        return {}

    def close(self) -> None:
        """Forget the tables."""
        self._open = ("", {}, {})

    def _collections(self) -> Mapping[str, bool]:
        current = self._current()
        folders = self._link.parent.glob(f"{self._alias}--*") if self._link.parent.is_dir() else ()
        return {folder.name: folder.name == current for folder in folders}

    def _current(self) -> str | None:
        with self._translate_errors():
            target = str(self._link.readlink()) if self._link.is_symlink() else None
            nothing = target is None and not self._link.exists()
        if nothing:
            return None
        if target is None or not self._of_load(target):
            raise ConfigError(f"{self._link} exists and is not a search of ragbench: choose another name")
        return target

    def _require_place(self) -> None:
        super()._require_place()
        try:
            folder = next(parent for parent in self._link.parents if parent.exists())
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = why_unreadable(error)
            raise ConfigError(f"cannot write {self._link.parent} ({reason}): name another folder") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._translate_errors():
            self._link.parent.mkdir(parents=True, exist_ok=True)
            self._writing.acquire()
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Errors of the system and of LanceDB in one sentence."""
        try:
            yield
        except Exception as error:
            # A panic of LanceDB's core has a class that cannot be imported.
            if not isinstance(error, (OSError, RuntimeError, ValueError)) and type(error).__name__ != "RustPanic":
                raise
            message = " ".join(str(error).split())[:200]
            if _FULL.search(str(error)):
                raise BundleError(f"the disk of {self._link.parent} is full ({message}): free some of it") from error
            raise BundleError(f"{self.name} does not answer ({message}): load it again") from error

    def _tables(self, collection: str) -> Any:
        return _lancedb().connect(str(self._link.with_name(collection)))

    def _make(self, collection: str, plan: Plan, dimension: int) -> None:
        import pyarrow as pa

        with self._translate_errors():
            self._link.with_name(collection).mkdir(parents=True)
            files = pa.schema([("name", pa.string()), ("part", pa.int32()), ("body", pa.string())])
            self._tables(collection).create_table("files", schema=files)

    def _delete(self, collection: str) -> None:
        with self._translate_errors():
            shutil.rmtree(self._link.with_name(collection))

    def _rename(self, old_name: str | None, new_name: str) -> None:
        link = self._link.with_name(f".{self._alias}.link")
        with self._translate_errors():
            if not self._link.with_name(new_name).is_dir():
                raise FileNotFoundError(f"{new_name} is gone")
            if link.is_symlink():
                link.unlink()  # of a load that was killed
            link.symlink_to(new_name)
            link.replace(self._link)

    def _hits(
        self, terms: Counter[str], vector: Vector | None, only: Sequence[str] | None
    ) -> Mapping[str, Sequence[Hit]]:
        try:
            return self._found(terms, vector, only)
        except BundleError:
            if self._open[0] == self._current_or_draft():
                raise
            return self._found(terms, vector, only)  # a load has taken its place meanwhile

    def _current_or_draft(self) -> str:
        return self._draft or self._current() or ""

    def _found(
        self, terms: Counter[str], vector: Vector | None, only: Sequence[str] | None
    ) -> Mapping[str, Sequence[Hit]]:
        hits: dict[str, Sequence[Hit]] = {}
        with self._translate_errors():
            load = self._current_or_draft()
            if self._open[0] != load:
                self._open = (load, *self._opened(load))
            _, tables, chunks = self._open
            counts = {self._numbers[term]: count for term, count in terms.items() if term in self._numbers}
            for source, depth in self.plan.depths.items():
                if source != "dense" and not counts:
                    hits[source] = ()
                    continue
                chunks_of_unit = chunks[_UNITS[source]]
                units = None if only is None else _units_of(chunks_of_unit, set(only))
                if source == "dense":
                    ids, scores = _nearest(tables["chunks"], vector, depth, units)
                else:
                    ids, scores = _by_words(tables[_WORDS[source]], counts, depth, units)
                scored = zip(ids.tolist(), scores.tolist(), strict=True)
                hits[source] = [
                    Hit.of(chunks_of_unit[unit], score, load) for unit, score in scored if unit in chunks_of_unit
                ]
        return hits

    def _opened(self, load: str) -> tuple[dict[str, Any], dict[str, Held]]:
        """The tables of a load, and the chunks of every unit by its number, which every answer needs."""
        db = self._tables(load)
        tables = {name: db.open_table(name) for name in {*_UNITS.values(), *_WORDS.values()}}
        rows = {name: _rows(tables[name], ["id", "chunks"]).to_pydict() for name in set(_UNITS.values())}
        return tables, {
            name: dict(zip(columns["id"], columns["chunks"], strict=True)) for name, columns in rows.items()
        }

    def _pieces(self, names: Collection[str] | None) -> Iterator[Mapping[str, Any]]:
        with self._translate_errors():
            condition = None if names is None else f"name IN ({_texts(names)})"
            table = self._tables(self._current_or_draft()).open_table("files")
            yield from _rows(table, ["name", "part", "body"], condition).to_pylist()

    def _write_piece(self, collection: str, number: int, payload: Mapping[str, Any]) -> None:
        with self._translate_errors():
            row = {name: payload[name] for name in ("name", "part", "body")}
            self._tables(collection).open_table("files").add([row])

    def _drop_files(self, collection: str, names: Collection[str], others: bool = False) -> None:
        with self._translate_errors():
            self._tables(collection).open_table("files").delete(f"name {'NOT ' * others}IN ({_texts(names)})")

    def _passages(self) -> Iterator[tuple[str, ArrayLike]]:
        with self._translate_errors():
            table = self._tables(self._current_or_draft()).open_table("chunks")
            for batch in table.search().select(["passage", "vector"]).limit(_ALL).to_batches(_AT_ONCE):
                vectors = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)
                yield from zip(batch["passage"].to_pylist(), vectors, strict=True)

    def _count(self) -> int:
        with self._translate_errors():
            db = self._tables(self._current_or_draft())
            return sum(int(db.open_table(name).count_rows()) for name in set(_UNITS.values()))

    def _write(self, units: Sequence[Unit]) -> list[str]:
        numbers = term_numbers(units)
        with self._translate_errors():
            db = self._tables(self._draft or "")
            for kind, units_of_kind in with_impacts(units, self.plan).items():
                db.create_table(f"{kind}s", _units([unit for unit, _ in units_of_kind]))
                word_table = db.create_table(f"{kind}_words", _words(units_of_kind, numbers))
                if word_table.count_rows():
                    word_table.create_index("term", config=_lancedb().index.BTree())
        return list(numbers)


def _units(units: Sequence[Unit]) -> Any:
    """Units as a table of Arrow; `payload`, all that is known of one, is for other readers of the folder."""
    import pyarrow as pa

    columns: dict[str, Any] = {"id": pa.array(range(len(units)), pa.int32())}
    columns["chunks"] = pa.array([unit.payload["chunks"] for unit in units], pa.list_(pa.string()))
    columns["passage"] = pa.array([unit.payload.get("passage", "") for unit in units], pa.string())
    columns["payload"] = pa.array([json.dumps(unit.payload) for unit in units], pa.string())
    if units and units[0].vector is not None:
        flat = np.asarray([unit.vector for unit in units], np.float32)
        columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    return pa.table(columns)


def _words(units: Sequence[tuple[Unit, list[float]]], numbers: Mapping[str, int]) -> Any:
    """The impacts of the words of units as a table of Arrow, by term."""
    import pyarrow as pa

    word_rows = sorted(
        (numbers[word.term], row, value)
        for row, (unit, values) in enumerate(units)
        for word, value in zip(unit.words, values, strict=True)
    )
    terms, rows, values = zip(*word_rows, strict=True) if word_rows else ((), (), ())
    columns = {"term": pa.array(terms, pa.int32()), "unit": pa.array(rows, pa.int32())}
    return pa.table({**columns, "impact": pa.array(values, pa.float32())})


def _lancedb() -> Any:
    try:
        import lancedb
        import lancedb.index
    except ImportError:
        raise ConfigError("LanceDB is missing: pip install 'ragbench[lancedb]'") from None
    return lancedb


def _rows(table: Any, columns: Sequence[str], condition: str | None = None) -> Any:
    """The rows that meet a condition, as a table of Arrow."""
    query = table.search() if condition is None else table.search().where(condition)
    return query.select(list(columns)).limit(_ALL).to_arrow()


def _nearest(table: Any, vector: Vector | None, depth: int, units: Sequence[int] | None) -> tuple[Any, Any]:
    """Numbers and cosines of the nearest chunks; every vector is compared."""
    search = table.search(np.asarray(vector, np.float32), vector_column_name="vector").distance_type("cosine")
    if units is not None:
        search = search.where(f"id IN ({_numbers(units)})", prefilter=True)
    rows = search.bypass_vector_index().select(["id", "_distance"]).limit(depth).to_arrow()
    return rows["id"].to_numpy(), 1.0 - rows["_distance"].to_numpy().astype(np.float64)


def _by_words(table: Any, counts: Mapping[int, int], depth: int, units: Sequence[int] | None) -> tuple[Any, Any]:
    """Numbers and scores of the best units: the sum over terms of the query of count and impact."""
    rows = _rows(table, ["term", "unit", "impact"], f"term IN ({_numbers(counts)})")
    terms = np.array(sorted(counts))
    times = np.array([counts[term] for term in terms.tolist()])[np.searchsorted(terms, rows["term"].to_numpy())]
    ids, places = np.unique(rows["unit"].to_numpy(), return_inverse=True)
    scores = np.bincount(places, times * rows["impact"].to_numpy(), len(ids))
    if units is not None:
        among = np.isin(ids, list(units))
        ids, scores = ids[among], scores[among]
    order = np.lexsort((ids, -scores))[:depth]
    return ids[order], scores[order]


def _units_of(chunks_of_unit: Held, chunks: set[str]) -> list[int]:
    return [number for number, unit_chunks in chunks_of_unit.items() if not chunks.isdisjoint(unit_chunks)]


def _numbers(values: Collection[int]) -> str:
    return ", ".join(map(str, values)) or "-1"


def _texts(values: Collection[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values) or "''"
