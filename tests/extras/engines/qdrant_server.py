"""A server that speaks Qdrant's REST, over the real core of Qdrant Edge: collections are shards, aliases are names.

Every body is read by the models of Qdrant's own client, which refuse what a server would refuse.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import qdrant_edge as edge
from qdrant_client import models

from tests.loopback import Loopback

METHODS = "GET PUT POST DELETE"


class QdrantServer(Loopback):
    """Serves on a free port; `dies_after` ends the process's answers after so many requests (None: never)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards: dict[str, edge.EdgeShard] = {}
        self.aliases: dict[str, str] = {}
        self.asked: list[str] = []
        self.dies_at: str | None = None
        super().__init__()
        self.address = f"qdrant://127.0.0.1:{self.port}"

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        try:
            return 200, {"result": self.do(method, path, json.loads(body or b"null"))}
        except Exception as error:  # what fails is answered, as a server would
            return 404, {"status": {"error": repr(error)}}

    def close(self) -> None:
        super().close()
        for shard in self.shards.values():
            shard.close()

    @property
    def collections(self) -> list[str]:
        return list(self.shards)

    def remove_unit(self, alias: str) -> None:
        """Lose a chunk."""
        shard = self.shards[self.aliases[alias]]
        shard.update(edge.UpdateOperation.delete_points_by_filter(filter_of({"must": [{"has_id": [1]}]})))

    def do(self, method: str, path: str, body: Any) -> Any:
        self.asked.append(f"{method} {path}")
        if self.dies_at is not None and self.dies_at in path:
            raise ConnectionError("killed")
        parts = path.partition("?")[0].strip("/").split("/")
        match method, parts:
            case "GET", ["aliases"]:
                named = [{"alias_name": name, "collection_name": at} for name, at in self.aliases.items()]
                return {"aliases": named}
            case "GET", ["collections"]:
                return {"collections": [{"name": name} for name in self.shards]}
            case "POST", ["collections", "aliases"]:
                models.ChangeAliasesOperation(**body)
                return self.rename(body["actions"])
            case "PUT", ["collections", name]:
                return self.create(name, models.CreateCollection(**body))
            case "DELETE", ["collections", name]:
                self.shards.pop(name).close()
                shutil.rmtree(self.folder / name)
                return True
            case "PUT", ["collections", _, "index"]:
                return bool(models.CreateFieldIndex(**body))
            case _, ["collections", name, "points", *rest]:
                return self.points(self.shards[self.aliases.get(name, name)], rest, body)
        raise KeyError(path)

    def rename(self, actions: list[dict[str, Any]]) -> bool:
        named = dict(self.aliases)
        for action in actions:
            if "delete_alias" in action:
                del named[action["delete_alias"]["alias_name"]]
            else:
                assert action["create_alias"]["collection_name"] in self.shards
                named[action["create_alias"]["alias_name"]] = action["create_alias"]["collection_name"]
        self.aliases = named
        return True

    def create(self, name: str, made: models.CreateCollection) -> bool:
        dense = {
            key: edge.EdgeVectorParams(size=each.size, distance=edge.Distance.Cosine)
            for key, each in (made.vectors or {}).items()
        }
        sparse = {key: edge.EdgeSparseVectorParams() for key in made.sparse_vectors or {}}
        (self.folder / name).mkdir()
        self.shards[name] = edge.EdgeShard.create(
            str(self.folder / name), edge.EdgeConfig(vectors=dense, sparse_vectors=sparse)
        )
        return True

    def points(self, shard: edge.EdgeShard, rest: list[str], body: Any) -> Any:
        match rest:
            case []:
                models.PointsList(**body)
                rows = [edge.Point(each["id"], vectors_of(each["vector"]), each["payload"]) for each in body["points"]]
                shard.update(edge.UpdateOperation.upsert_points(rows))
                return {"status": "completed"}
            case ["delete"]:
                models.FilterSelector(**body)
                shard.update(edge.UpdateOperation.delete_points_by_filter(filter_of(body["filter"])))
                return {"status": "completed"}
            case ["count"]:
                models.CountRequest(**body)
                return {"count": shard.count(edge.CountRequest(exact=True, filter=filter_of(body.get("filter"))))}
            case ["scroll"]:
                models.ScrollRequest(**body)
                found, following = shard.scroll(
                    edge.ScrollRequest(
                        offset=body["offset"],
                        limit=body["limit"],
                        filter=filter_of(body["filter"]),
                        with_payload=body.get("with_payload", True),
                        with_vector=body.get("with_vector", False),
                    )
                )
                rows = [{"id": each.id, "payload": each.payload, "vector": each.vector} for each in found]
                return {"points": rows, "next_page_offset": following}
            case ["query", "batch"]:
                models.QueryRequestBatch(**body)
                return [{"points": self.query(shard, each)} for each in body["searches"]]
        raise KeyError("/".join(rest))

    def query(self, shard: edge.EdgeShard, asked: dict[str, Any]) -> list[dict[str, Any]]:
        query = asked["query"]
        if isinstance(query, dict):
            query = edge.SparseVector(query["indices"], query["values"])
        found = shard.query(
            edge.QueryRequest(
                limit=asked["limit"],
                query=edge.Query.Nearest(query, using=asked["using"]),
                filter=filter_of(asked.get("filter")),
                with_payload=asked["with_payload"],
                params=edge.SearchParams(exact=asked.get("params", {}).get("exact", False)),
            )
        )
        return [{"id": each.id, "score": each.score, "payload": each.payload} for each in found]


def vectors_of(given: dict[str, Any]) -> dict[str, Any]:
    return {
        name: edge.SparseVector(each["indices"], each["values"]) if isinstance(each, dict) else each
        for name, each in given.items()
    }


def filter_of(given: dict[str, Any] | None) -> edge.Filter | None:
    if not given:
        return None
    return edge.Filter(**{key: [condition(each) for each in found] for key, found in given.items()})


def condition(given: dict[str, Any]) -> Any:
    if "has_id" in given:
        return edge.HasIdCondition(set(given["has_id"]))
    match = given["match"]
    wanted = edge.MatchValue(match["value"]) if "value" in match else edge.MatchAny(match["any"])
    return edge.FieldCondition(given["key"], match=wanted)
