"""A search in a collection of Qdrant: vectors of the chunks, BM25F of chunks and documents as sparse vectors.

    qdrant://host:6333/notes     over HTTPS: qdrants://; a key is taken from the environment variable QDRANT_API_KEY

A point is a chunk (`dense`, `lexical`), a document (`documents`), or a piece of a file for ragbench. A number of a
sparse vector is what BM25F gives for a term, so that the sum over the terms of a query is the score.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import SplitResult

import numpy as np
from numpy.typing import ArrayLike

from ragbench.base.errors import ConfigError
from ragbench.extras.engines.aliased import AT_ONCE, AliasedEngine, Hit, Unit, term_numbers, with_impacts
from ragbench.extras.engines.plan import Plan
from ragbench.extras.engines.search import Vector

KEY = "QDRANT_API_KEY"
_SOURCES = {"chunk": "lexical", "document": "documents"}


class QdrantEngine(AliasedEngine):
    """A collection of Qdrant behind an alias."""

    schemes: ClassVar[Mapping[str, str]] = {"qdrant": "http", "qdrants": "https"}
    example = "qdrant://localhost:6333/notes"
    alias_form = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")

    def _headers(self, parts: SplitResult) -> dict[str, str]:
        if "@" in parts.netloc:
            raise ConfigError(f"the address of Qdrant holds a key: put the key into the environment variable {KEY}")
        key = os.environ.get(KEY)
        return {"api-key": key} if key else {}

    def _result(self, method: str, path: str, body: Any = None) -> Any:
        return self.send(method, path, body)["result"]

    def _aliases(self) -> dict[str, str]:
        named = self._result("GET", "/aliases")["aliases"]
        return {str(entry["alias_name"]): str(entry["collection_name"]) for entry in named}

    def _collections(self) -> Mapping[str, bool]:
        used = set(self._aliases().values())
        return {
            str(entry["name"]): entry["name"] in used for entry in self._result("GET", "/collections")["collections"]
        }

    def _current(self) -> str | None:
        return self._aliases().get(self._alias)

    def _make(self, collection: str, plan: Plan, dimension: int) -> None:
        # Every vector is compared, so a graph (m > 0) would be built for nothing.
        dense = {"dense": {"size": dimension, "distance": "Cosine", "hnsw_config": {"m": 0}}}
        sparse: dict[str, Any] = {source: {} for source in ("lexical", "documents") if source in plan.depths}
        request = {"vectors": dense if "dense" in plan.depths else {}, "sparse_vectors": sparse}
        self.send("PUT", f"/collections/{collection}", request)
        self.send("PUT", f"/collections/{collection}/index", {"field_name": "kind", "field_schema": "keyword"})

    def _delete(self, collection: str) -> None:
        self.send("DELETE", f"/collections/{collection}")

    def _rename(self, old_name: str | None, new_name: str) -> None:
        actions: list[Any] = [{"delete_alias": {"alias_name": self._alias}}] if old_name else []
        actions.append({"create_alias": {"alias_name": self._alias, "collection_name": new_name}})
        self.send("POST", "/collections/aliases", {"actions": actions})

    def _read(self) -> None:
        self._places: dict[str, list[tuple[int, list[str]]]] = {}
        super()._read()

    def _hits(
        self, terms: Counter[str], vector: Vector | None, only: Sequence[str] | None
    ) -> Mapping[str, Sequence[Hit]]:
        numbers = {self._numbers[term]: count for term, count in terms.items() if term in self._numbers}
        sparse = {"indices": list(numbers), "values": [float(count) for count in numbers.values()]}
        points = None if only is None else self._points_of(set(only))
        searches = []
        for source, depth in self.plan.depths.items():
            query: Any = sparse if vector is None or source != "dense" else np.asarray(vector, np.float32).tolist()
            request = {"query": query, "using": source, "limit": depth, "with_payload": ["chunks", "load"]}
            request |= {"params": {"exact": True}} if source == "dense" else {}
            if points is not None:
                request["filter"] = {"must": [{"has_id": points["document" if source == "documents" else "chunk"]}]}
            searches.append(request)
        answers = self._result("POST", f"/collections/{self._collection}/points/query/batch", {"searches": searches})
        return {
            source: [
                Hit.of(point["payload"]["chunks"], point["score"], point["payload"]["load"])
                for point in answer["points"]
            ]
            for source, answer in zip(self.plan.depths, answers, strict=True)
        }

    def _points_of(self, chunks: set[str]) -> dict[str, list[int]]:
        """The points of chunks, and of the documents that hold them; all are read once of a load."""
        for kind in _SOURCES if not self._places else ():
            points = self._scroll([_is(kind)], with_payload=["chunks"])
            self._places[kind] = [(point["id"], point["payload"]["chunks"]) for point in points]
        return {
            kind: [number for number, unit_chunks in places if not chunks.isdisjoint(unit_chunks)]
            for kind, places in self._places.items()
        }

    def _scroll(self, must: Sequence[Any], **more: Any) -> Iterator[Any]:
        offset = None
        while True:
            body = {"filter": {"must": list(must)}, "limit": AT_ONCE, "offset": offset, **more}
            result = self._result("POST", f"/collections/{self._collection}/points/scroll", body)
            yield from result["points"]
            last, offset = offset, result.get("next_page_offset")
            if offset is None or offset == last:
                return

    def _pieces(self, names: Collection[str] | None) -> Iterator[Mapping[str, Any]]:
        conditions = [_is("file"), *([] if names is None else [{"key": "name", "match": {"any": list(names)}}])]
        return (point["payload"] for point in self._scroll(conditions, with_payload=True))

    def _passages(self) -> Iterator[tuple[str, ArrayLike]]:
        points = self._scroll([_is("chunk")], with_payload=["passage"], with_vector=["dense"])
        return ((point["payload"]["passage"], point["vector"]["dense"]) for point in points)

    def _count(self) -> int:
        body = {"exact": True, "filter": {"must_not": [_is("file")]}}
        return int(self._result("POST", f"/collections/{self._collection}/points/count", body)["count"])

    def _drop_files(self, collection: str, names: Collection[str], others: bool = False) -> None:
        named = {"key": "name", "match": {"any": list(names)}}
        condition = {"must": [_is("file")], "must_not": [named]} if others else {"must": [_is("file"), named]}
        self.send("POST", f"/collections/{collection}/points/delete?wait=true", {"filter": condition})

    def _write_piece(self, collection: str, number: int, payload: Mapping[str, Any]) -> None:
        self._upsert(collection, [{"id": number, "vector": {}, "payload": payload}])

    def _write(self, units: Sequence[Unit]) -> list[str]:
        numbers = term_numbers(units)
        points: list[dict[str, Any]] = []
        for kind, units_of_kind in with_impacts(units, self.plan).items():
            for unit, values in units_of_kind:
                vector: dict[str, Any] = {}
                if unit.vector is not None:
                    vector["dense"] = np.asarray(unit.vector, np.float32).tolist()
                if unit.words:
                    vector[_SOURCES[kind]] = {"indices": [numbers[word.term] for word in unit.words], "values": values}
                payload = {**unit.payload, "load": self._draft}
                points.append({"id": len(points) + 1, "vector": vector, "payload": payload})
        self._upsert(self._collection, points)
        return list(numbers)

    def _upsert(self, collection: str, points: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(points), AT_ONCE):
            batch = {"points": points[start : start + AT_ONCE]}
            self.send("PUT", f"/collections/{collection}/points?wait=true", batch)


def _is(kind: str) -> dict[str, Any]:
    return {"key": "kind", "match": {"value": kind}}
