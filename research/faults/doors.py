"""Bad content through every door: what others send, and the files that come from somewhere else.

The kind `doors` of the campaign. Engines answer from here, in the shapes of their documentation; a run file and an
index of Lucene are files.

A case is a good content with one thing wrong (`tests.boundary.mutations`). Harm is an exception that is not a
RagbenchError (the command line would show a traceback), an answer with status 500, or a value that an independent
reader of the same bytes does not find.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from fastapi.testclient import TestClient

from ragbench.base.types import RagbenchError
from ragbench.benchmark.lines import read_objects
from ragbench.config import project
from ragbench.corpus.reader import _split_frontmatter
from ragbench.extras.engines import postgres, tables
from ragbench.extras.engines.opensearch import FORMAT, SYSTEMS, Cluster, OpenSearchEngine
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.search import Found
from ragbench.extras.engines.tables import TableWriter
from ragbench.extras.remote.chat import EndpointModel
from ragbench.extras.remote.endpoint import EndpointEncoder
from ragbench.extras.remote.live import client, hit_matching
from ragbench.extras.remote.live.client import HitReading, RequestFailed
from ragbench.extras.ship import bundle, generation as generations
from ragbench.extras.ship.loaded_bundle import settings_of
from ragbench.extras.ship.serving.http import create_app as create_service
from ragbench.extras.ship.serving.service import SearchService
from ragbench.extras.studio.app import Studio, create_app as create_studio
from ragbench.extras.studio.guard import cookie_of
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.lexical import Bm25F
from ragbench.models.chat import ChatSpec
from ragbench.models.folder import ModelFolder
from tests.boundary.mutations import json_texts, run_texts, yaml_texts
from tests.extras.engines.scores import by_chunk
from tests.loopback import Loopback

SEED = 29
CHAT = {"choices": [{"message": {"role": "assistant", "content": "It is so."}}], "usage": {"total_tokens": 7}}
HITS = {"hits": [{"path": "a.md", "text": "x", "score": 1.5}, {"path": "b.md", "text": "y", "score": 0.5}]}
VECTORS = {"data": [{"index": 0, "embedding": [0.1, 0.2]}, {"index": 1, "embedding": [0.3, 0.4]}]}
PROJECT = "data: vault\ndata.corpus: notes\np6: on\nbudget.p95_ms: 20\narms:\n  plain: p6=off\n  deep: p6.depth=30\n"
NOTE = "title: A\ntags: [a, b]\ndate: 2026-01-02\naliases:\n  - c\nweight: 3\n"
ROWS = {"qid": "q1", "text": "what", "relevant": ["a.md"], "split": "test", "grade": 2}
SEARCH = {"query": "lamps", "top_n": 3, "filters": {"category": "guide", "tags": ["a"]}, "explain": True}
RUN = "q1 Q0 a.md 1 2.5 them\nq1 Q0 b.md 2 -.5 them\nq2 Q0 a.md 1 1e-3 them\n"
_WORDS = Bm25F((("title", 3.0), ("content", 1.0)), 1.2, 0.75)
PLAN = SearchPlan(
    {"dense": 5, "lexical": 5, "documents": 5}, {"dense": 0.5, "lexical": 0.3, "documents": 0.2}, "convex", 60.0,
    _WORDS, _WORDS, "technical",
)  # fmt: skip
FOUND = {"dense": {"a#0": 0.75, "b#0": 0.5}, "lexical": {"a#0": 3.5}, "documents": {"b#0": 2.25, "b#1": 2.25}}
ABOUT = {"format": FORMAT, "plan": PLAN.to_json(), "load": "notes--0123456789ab", "points": 4, "measured": ["a"]}
ROWS_OF_SQL = {
    "about": [["format", str(tables.FORMAT)], ["plan", PLAN.to_json()], ["digest", "d"]],
    "hits": [["a#0", 0.8, 0.75, 3.5, None], ["b#0", 0.2, 0.5, None, 2.25], ["b#1", 0.2, None, None, 2.25]],
    "documents": [["a", "d1"], ["b", "d2"]],
    "files": [["a.json", "eJyrrgUAAXUA+Q=="]],
}
FORMS = ("left", "right", "q", "run", "depth", "pool", "judge", "note", "act", "qid", "section", "relevant")


@dataclass(frozen=True)
class Door:
    """`enter` takes content; `seen` is what an independent reader finds in it (None: nothing is compared)."""

    texts: Iterator[bytes]
    enter: Callable[[bytes], Any]
    seen: Callable[[bytes], Any] | None = None


class _Content(Loopback):
    """Answers with the content that is tried."""

    parallel = True

    def __init__(self, doors: Doors) -> None:
        super().__init__()
        self.doors = doors

    def respond(self, *asked: object) -> tuple[int, bytes]:
        return 200, self.doors._body


class Doors:
    """Every door, over a bundle and a studio of one folder; `harms` says what went wrong."""

    def __init__(self, folder: Path, bundled: Path, words: tuple[str, ...]) -> None:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.harms: list[str] = []
        self._folder, self._bundle = folder, bundled
        self._body = b""
        self._server = _Content(self)
        self._url = self._server.url
        os.environ["OPENAI_BASE_URL"] = f"{self._url}/v1"
        self._service = SearchService(bundled)
        self._http = TestClient(create_service(self._service), "http://localhost:8000", raise_server_exceptions=False)
        studio = Studio(folder / "results", words)
        self._studio = TestClient(create_studio(studio), "http://127.0.0.1", raise_server_exceptions=False)
        self._studio.headers["origin"] = "http://127.0.0.1"
        self._studio.cookies.set(cookie_of(studio.token), studio.token)
        self._chance = random.Random(SEED)

    def close(self) -> None:
        """End the server and the service."""
        self._service.close()
        self._server.close()

    def doors(self) -> dict[str, Door]:
        """By name."""
        chance, place, served = self._chance, self._folder, self._bundle
        read = HitReading(hits="hits", document="path", text="text", score="score")
        live = client.asking_http("POST", f"{self._url}/s", {"q": "{query}"}, {}, 20)
        record = bundle.read_record(served)
        manifest = next((served / bundle.INDEX).glob("*/*/manifest.json"))
        store = ArtefactStore(served / bundle.INDEX)
        artefacts = [each.fingerprint for each in store.list()]

        def of_file(path: Path, enter: Callable[[], Any]) -> Callable[[bytes], Any]:
            good = path.read_bytes()

            def with_content(content: bytes) -> Any:
                path.write_bytes(content)
                try:
                    return enter()
                finally:
                    path.write_bytes(good)

            return with_content

        def of_answer(enter: Callable[[], Any]) -> Callable[[bytes], Any]:
            def with_body(content: bytes) -> Any:
                self._body = content
                return enter()

            return with_body

        def new(name: str, content: str | bytes) -> Path:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
            return place / name

        def json_of(path: Path) -> Any:
            return json.loads(path.read_text(encoding="utf-8"))

        config = served / bundle.CONFIG
        lines = new("topics.jsonl", json.dumps(ROWS))
        written = new("project/ragbench.yaml", PROJECT)
        printed = new("printed.json", json.dumps(HITS))
        run = new("run.trec", RUN)
        weights = new("model/config.json", json.dumps({"model_type": "bert", "pooling": {"mode": "cls"}}))
        golden_row = json.loads((served / bundle.GOLDEN).read_text().splitlines()[0])
        chat = EndpointModel(ChatSpec(f"{self._url}/v1", "m", timeout_s=20.0))
        encoder = EndpointEncoder("openai:m")

        def in_chat(content: bytes) -> Any:
            return json.loads(content)["choices"][0]["message"]["content"].strip()

        def in_vectors(content: bytes) -> Any:
            return [row["embedding"] for row in sorted(json.loads(content)["data"], key=lambda row: row["index"])]

        def in_hits(content: bytes) -> Any:
            return len(list(json.loads(content)["hits"])[:5])

        def same(value: Any) -> Callable[[bytes], Any]:
            return lambda _: value

        return {
            "chat": Door(json_texts(CHAT, chance), of_answer(lambda: chat.complete("why")), in_chat),
            "embeddings": Door(json_texts(VECTORS, chance), of_answer(lambda: encoder._ask(["a", "b"])), in_vectors),
            "live search": Door(json_texts(HITS, chance), of_answer(lambda: len(read.read(live("q", 5), 5))), in_hits),
            "live program": Door(
                json_texts(HITS, chance),
                of_file(printed, lambda: len(read.read(client.asking_program(["cat", str(printed)], 20)("q", 5), 5))),
            ),
            "project file": Door(
                yaml_texts(PROJECT, chance), of_file(written, lambda: _plain(project.read(written))), _project
            ),
            "frontmatter": Door(yaml_texts(NOTE, chance), lambda text: _split_frontmatter(_note(text)).body >= 0),
            "topics": Door(json_texts(ROWS, chance), of_file(lines, lambda: list(read_objects(lines)))),
            "record of a bundle": Door(
                json_texts(json_of(served / bundle.RECORD), chance),
                of_file(served / bundle.RECORD, lambda: bundle.read_record(served)),
                same(record),
            ),
            "configuration of a bundle": Door(
                yaml_texts(config.read_text(), chance), of_file(config, lambda: settings_of(served, record))
            ),
            "golden queries": Door(
                json_texts(golden_row, chance),
                of_file(served / bundle.GOLDEN, lambda: bundle.read_golden(served) and None),
            ),
            "times of documents": Door(
                json_texts(json_of(served / bundle.MODIFIED), chance),
                of_file(served / bundle.MODIFIED, lambda: generations.at_export(served, record).number),
            ),
            "manifest": Door(
                json_texts(json_of(manifest), chance),
                of_file(manifest, lambda: {each.fingerprint for each in store.list()} <= set(artefacts)),
            ),
            "model folder": Door(
                json_texts(json_of(weights), chance),
                of_file(
                    weights, lambda: ModelFolder(weights.parent, "onnx", ("config.json",)).json("config.json") and None
                ),
            ),
            "PostgreSQL": Door(json_texts(ROWS_OF_SQL, chance), _ask_postgres, _in_rows),
            **{
                f"{system}: {what}": Door(texts, of_answer(self._engine(system, what)), seen)
                for system in SYSTEMS
                for what, texts, seen in (
                    ("hits", json_texts(_hits_of(system), chance), lambda body, it=system: _in_hits(it, body)),
                    ("files", json_texts(_files_of(), chance), same(PLAN)),
                    ("metadata", _packed(json_texts(ABOUT, chance)), None),
                )
            },
            "run file": Door(
                run_texts(RUN, chance), of_file(run, lambda: _plain_run(hit_matching.read_run_file(str(run)))), _in_run
            ),
            "service": Door(json_texts(SEARCH, chance), self._post),
            "studio": Door(json_texts("x", chance), self._form),
        }

    def try_all(self, cases: int) -> None:
        """So many cases, each door in turn."""
        known = self.doors()
        for number, (name, door) in zip(range(cases), itertools.cycle(known.items()), strict=False):
            content = next(door.texts)
            self.counts[name] += 1
            try:
                value = door.enter(content)
            except (RagbenchError, RequestFailed) as error:
                said = str(error)
                if "\n" in said or not said.encode("utf-8", "replace"):
                    self.harms.append(f"{name} {number}: the refusal has several lines: {said[:200]!r}")
                self.refused[name] += 1
                continue
            except Exception as error:
                self.harms.append(f"{name} {number}: {type(error).__name__} {str(error)[:150]} for {content[:80]!r}")
                continue
            if door.seen is not None:
                try:
                    seen = door.seen(content)
                except Exception as error:
                    seen = repr(error)
                if value != seen:
                    self.harms.append(f"{name} {number}: read as {str(value)[:80]}, is {str(seen)[:80]}")

    def _engine(self, system: str, what: str) -> Callable[[], Any]:
        """Asks an engine whose every answer is the case: for hits, or for what it says of itself and then for hits."""
        cluster = Cluster(SYSTEMS[system], f"{system}://127.0.0.1:{self._server.port}/notes")

        def hits() -> Any:
            return _by_source(_Known(cluster, "notes").ask("lamps", [0.1, 0.2], None))

        def record() -> Any:
            return OpenSearchEngine(cluster, "notes").plan

        def record_and_hits() -> None:
            engine = OpenSearchEngine(cluster, "notes")
            self._body = json.dumps(_hits_of(system)).encode()
            engine.ask("lamps", [0.1, 0.2], None)

        return {"hits": hits, "files": record, "metadata": record_and_hits}[what]

    def _post(self, content: bytes) -> None:
        answer = self._http.post("/search", content=content, headers={"content-type": "application/json"})
        assert answer.status_code < 500, f"status {answer.status_code}"

    def _form(self, content: bytes) -> None:
        text = content.decode("utf-8", "replace")[:20_000]
        paths = ("/search", "/search/topic", "/judging/pool", "/judging/begin", "/judging/grade")
        said = dict.fromkeys(self._chance.sample(FORMS, 3), text)
        path = self._chance.choice(paths)
        if path == "/search" and not {"left", "right"} & set(said):
            said["left"] = text  # else it searches, which others try
        answer = self._studio.post(path, data=said)
        assert answer.status_code < 500, f"status {answer.status_code} of {path}"
        answer = self._studio.get(path, params={name: text[:2000] for name in said if name != "q"})
        assert answer.status_code < 500, f"status {answer.status_code} of {path} by address"


def _plain(found: project.Project) -> Any:
    return dict(found.values), sorted(found.arms)


def _project(content: bytes) -> Any:
    values = yaml.load(content.decode("utf-8-sig"), Loader=yaml.CSafeLoader)
    arms = values.pop("arms", None) or {}
    return values, sorted(arms)


class _Known(OpenSearchEngine):
    """An engine that need not be asked what it says about itself."""

    def _read(self) -> None:
        self.plan, self.about, self._forms = PLAN, dict(ABOUT), {"lamps": "lamp"}


class _Rows(postgres.PostgresEngine):
    """PostgreSQL that returns these rows."""

    def __init__(self, rows: dict[str, Any]) -> None:
        self._given, self._schema, self._idle = rows, "notes", []
        self._server = postgres.Server("", "notes", "the schema notes")
        self.read_about()

    def rows(self, sql: str, values: Any = ()) -> Any:
        table = next((name for name in ("about", "files", "documents") if f"FROM {name}" in sql), "hits")
        return [tuple(row) for row in self._given[table]]


def _ask_postgres(content: bytes) -> Any:
    try:
        rows = json.loads(content)
        whole = set(rows) == set(ROWS_OF_SQL)
        whole = whole and all(isinstance(row, list) for table in rows.values() for row in table)
    except (ValueError, TypeError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise RagbenchError("not rows, which is all that PostgreSQL sends")
    for row in rows["files"]:
        with contextlib.suppress(ValueError):
            row[1:] = [base64.b64decode(each) if isinstance(each, str) else each for each in row[1:]]
    engine = _Rows(rows)
    engine.files()
    engine.version()
    return _by_source(engine.ask("lamps", None, None)), dict(TableWriter(engine).digests())


def _in_rows(content: bytes) -> Any:
    rows = json.loads(content)
    plan = json.loads(dict(rows["about"])["plan"])
    hits = {
        row[0]: {
            source: float(score) for source, score in zip(plan["depths"], row[2:], strict=True) if score is not None
        }
        for row in rows["hits"]
    }
    return hits, dict(rows["documents"])


def _by_source(found: Found) -> dict[str, dict[str, float]]:
    return {chunk: sources for chunk, (_, sources) in by_chunk(found).items()}


def _hits_of(system: str) -> Any:
    """What an engine answers that finds `FOUND`."""
    load = ABOUT["load"]
    factor = 1 + _WORDS.scaled[1] if system == "elasticsearch" else 1.0
    answers = []
    for source, hits in FOUND.items():
        sent = {chunk: score + 1 if source == "dense" else score * factor for chunk, score in hits.items()}
        rows = [{"_index": load, "_score": s, "_source": {"payload": {"chunks": [chunk]}}} for chunk, s in sent.items()]
        answers.append({"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": rows}, "status": 200})
    return {"took": 1, "responses": answers}


def _in_hits(system: str, content: bytes) -> Any:
    told, found = json.loads(content.decode("utf-8-sig")), {}
    factor = 1 + _WORDS.scaled[1] if system == "elasticsearch" else 1.0
    for source, answer in zip(FOUND, told["responses"], strict=True):
        for hit in answer["hits"]["hits"]:
            score = hit["_score"] - 1 if source == "dense" else hit["_score"] / factor
            for chunk in hit["_source"]["payload"]["chunks"]:
                found.setdefault(chunk, {})[source] = score
    return found


def _files_of(about: bytes = json.dumps(ABOUT).encode()) -> Any:
    """The files of an engine in its answer."""
    files = {"about.json": about, "forms.json": b'{"lamps": "lamp"}'}
    pieces = [
        {"kind": "file", "name": name, "part": 0, "body": base64.b64encode(zlib.compress(body)).decode()}
        for name, body in files.items()
    ]
    hits = [{"_index": ABOUT["load"], "_source": {"payload": each}, "sort": [1]} for each in pieces]
    return {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}


def _packed(texts: Iterator[bytes]) -> Iterator[bytes]:
    return (json.dumps(_files_of(about)).encode() for about in texts)


def _plain_run(found: Any) -> Any:
    return {qid: dict(hits) for qid, hits in found.items()}


def _in_run(content: bytes) -> Any:
    """As C reads it: fields between ASCII blanks, scores as `strtod` takes all of them; NUL is U+FFFD as everywhere."""
    found: dict[str, dict[str, float]] = {}
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        fields = [each.decode() for each in re.split(rb"[ \t\r\v\f]+", line.strip(b" \t\r\v\f")) if each]
        if fields:
            qid, _, name, _, score, _ = fields
            assert re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", score, re.I)
            found.setdefault(qid.replace("\0", "\ufffd"), {})[name.replace("\0", "\ufffd")] = float(score)
    return found


def _finite(text: str) -> float:
    assert abs(float(text)) < float("inf")
    return float(text)


def _fitting(text: str) -> int:
    assert -(2**63) <= int(text) < 2**64
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def _note(content: bytes) -> str:
    return f"---\n{content.decode('utf-8', 'replace')}\n---\n# A\n"
