"""A search behind an alias: stand-ins for OpenSearch and Elasticsearch, by the same tests."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import ragbench
from ragbench.base.errors import BundleError, ConfigError
from ragbench.benchmark.load import load as load_benchmark
from ragbench.config import composition
from ragbench.experiment.run import run
from ragbench.export import measured_arm
from ragbench.export.write import write
from ragbench.extras.engines import aliased, opened
from ragbench.extras.engines.opened import EngineRefresher
from ragbench.extras.engines.plan import Plan
from ragbench.extras.ship.verify import verify
from ragbench.index.lexical import Bm25F
from tests.export.scores import by_chunk, scores_alike

SYSTEMS = ("opensearch", pytest.param("elasticsearch", marks=pytest.mark.slow))
WRITES = pytest.mark.parametrize("server", ["opensearch"], indirect=True)
"""Elasticsearch is written to as OpenSearch is."""


def start(system: str, **more: str):
    from tests.extras.engines.opensearch_server import OpenSearchServer

    return OpenSearchServer(system, "technical", **more)


@pytest.fixture(
    scope="module",
    params=SYSTEMS,
)
def server(request) -> Iterator:
    running = start(request.param)
    running.system = request.param
    yield running
    running.close()


@pytest.fixture(scope="module")
def loaded(recommended, server):
    return write(recommended.folder, format=server.system, load=f"{server.address}/notes")


@pytest.fixture
def own(recommended, server) -> str:
    """A collection that a test may change."""
    place = f"{server.address}/own"
    write(recommended.folder, format=server.system, load=place)
    return place


def of_load(server, alias: str) -> list[str]:
    return [name for name in server.collections if name.startswith(f"{alias}--")]


@pytest.mark.slow
def test_the_collection_gives_the_measured_hits(loaded, server, recommended, questions) -> None:
    assert loaded.replay.loss == pytest.approx(0, abs=0.005)
    assert "in the backend, with the ranker" in loaded.replay.sentence
    assert any("learned order, which ragbench serve --engine puts on top, adds" in each for each in loaded.missing)
    measured = measured_arm.find(recommended.folder)
    first = {qid: hits[0][0] for qid, hits in measured.results.run(measured.name).items()}
    topics = {topic.text: topic.qid for topic in load_benchmark(recommended.config(recommended.arms[0])["data"]).topics}
    with ragbench.load(f"{server.address}/notes") as bundle:
        for text in questions:
            hits = bundle.search(text, 3)
            assert (hits[0].docno if hits else None) == first.get(topics[text])
    checks = {check.part: check.outcome for check in verify(f"{server.address}/notes")}
    assert (checks["content"], checks["rankings"]) == ("passes", "passes")


def test_every_source_scores_as_sqlite(loaded, server, recommended, questions, tmp_path: Path) -> None:
    pytest.importorskip("sqlite_vec", reason="install ragbench[engines]")
    file = write(recommended.folder, tmp_path / "notes.sqlite", format="sqlite").out
    scores_alike(file, f"{server.address}/notes", [*questions, "cache cache"], within=1e-6)


def test_filters_restrict_the_search_itself(loaded, server) -> None:
    with ragbench.load(f"{server.address}/notes") as bundle:
        hits = bundle.search("identity", 5, filters={"category": "reference"})
        assert len(hits) == 5
        assert {bundle.document(hit.docno).frontmatter["category"] for hit in hits} == {"reference"}
        assert bundle.search("identity", 5, filters={"author": "nobody"}) == []


def test_it_is_measured_where_it_is_deployed(loaded, server, recommended, workplace: Path) -> None:
    data = recommended.config(recommended.arms[0])["data"]
    around = ["data=vault", f"data.corpus={data['corpus']}", f"data.queries={data['queries']}"]
    around += [f"paths.results={workplace}", "latency.enabled=false", "tracking.enabled=false", "name=deployed"]
    settings = composition.compose(["live=engine", f"live.engine={server.address}/notes", *around])
    found = run([settings], load_benchmark(settings.config["data"]))
    there, here = (measured_arm.find(each.folder).quality["nDCG@10"] for each in (found, recommended))
    assert there == pytest.approx(here, abs=0.005)


@pytest.mark.slow
@WRITES
def test_one_changed_note_is_taken_in_and_seen_by_who_asks_already(own: str, handbook_folder: Path, tmp_path) -> None:
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "pelican.md").write_text("# Pelicans\n\nThe zyzzyva of a pelican is kept in its bill.\n", encoding="utf-8")
    (notes / "team.md").unlink()
    with closing(opened.connect(own)) as asking:
        before = asking.version()
        refresher = EngineRefresher(own, notes)
        found = refresher.refresh()
        assert (found.added, found.changed, found.deleted) == (("pelican",), (), ("team",))
        assert refresher.refresh().anything is False
        refresher.close()
        assert asking.version() != before  # what serve --watch looks at
        vector = ragbench.load(own).index.encoder.encode_queries(["zyzzyva"])[0]
        assert asking.ask("zyzzyva", vector, None).chunk_ids[0].startswith("pelican#")
    with ragbench.load(own) as bundle:
        assert bundle.search("zyzzyva pelican", 1)[0].docno == "pelican"
        assert bundle.document("team") is None
    assert [check for check in verify(own) if check.outcome == "fails"] == []


@pytest.mark.slow
@WRITES
@pytest.mark.parametrize("moment", ["_write", "finish", "_rename"])
def test_a_killed_load_leaves_the_old_data(own: str, server, recommended, moment: str) -> None:
    before = server.aliases["own"]
    program = f"""
        import os, signal
        from pathlib import Path
        from ragbench.export import write
        from ragbench.extras.engines.opened import ALIASED
        kind = ALIASED[{server.system!r}]
        real = kind.{moment}
        def killed(*values):
            if {moment!r} != "_rename":
                real(*values)
            os.kill(os.getpid(), signal.SIGKILL)
        kind.{moment} = killed
        write.write(Path({str(recommended.folder)!r}), format={server.system!r}, load={own!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert server.aliases["own"] == before
    with ragbench.load(own) as bundle:
        assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
    assert of_load(server, "own") != [before]
    write(recommended.folder, format=server.system, load=own)  # deletes what was abandoned
    assert of_load(server, "own") == [server.aliases["own"]] != [before]


@pytest.mark.slow
def test_a_loss_leaves_the_old_data_and_nothing_else(own: str, server, recommended) -> None:
    before = server.aliases["own"]
    with pytest.raises(ConfigError, match="more than --max-loss -1"):
        write(recommended.folder, format=server.system, load=own, max_loss=-1.0)
    assert of_load(server, "own") == [before] == [server.aliases["own"]]


@pytest.mark.slow
@WRITES
def test_what_cannot_be_deleted_is_deleted_by_the_next_load(own: str, server, recommended, monkeypatch) -> None:
    before = server.aliases["own"]
    with monkeypatch.context() as patched:
        patched.setattr(opened.ALIASED[server.system], "_delete", refuse)
        write(recommended.folder, format=server.system, load=own)
    assert sorted(of_load(server, "own")) == sorted([before, server.aliases["own"]])
    write(recommended.folder, format=server.system, load=own)
    assert of_load(server, "own") == [server.aliases["own"]]


def refuse(*values: object) -> None:
    raise BundleError("the disk refuses")


@pytest.mark.slow
@WRITES
def test_a_refresh_deletes_what_was_left(own: str, server, handbook_folder: Path, tmp_path: Path) -> None:
    with closing(opened.connect(own)) as killed:
        killed._new(killed.plan, killed.about["dimension"])
    assert len(of_load(server, "own")) == 2
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "team.md").unlink()
    refresher = EngineRefresher(own, notes)
    refresher.refresh()
    refresher.close()
    assert of_load(server, "own") == [server.aliases["own"]]


@pytest.mark.slow
def test_points_that_are_missing_are_noticed(own: str, server) -> None:
    server.remove_unit("own")
    checks = {check.part: check.message for check in verify(own) if check.outcome == "fails"}
    assert "points are there" in checks["content"]


def test_a_server_that_fails_is_one_sentence(loaded, server) -> None:
    with closing(opened.connect(f"{server.address}/notes")) as engine:
        server.dies_at = "_msearch"
        try:
            with pytest.raises(BundleError, match="does not answer") as raised:
                engine.ask("cache", None if "dense" not in engine.plan.depths else [0.1] * 384, None)
        finally:
            server.dies_at = None
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{system}://127.0.0.1:1/notes", "does not answer"),
        ("{server}/nothing_here", "has no search: load one with ragbench export --format {system}"),
        ("{server}/no/such", "must be such as {system}://localhost"),
        ("{system}://[host/notes", "must be such as {system}://localhost"),
        ("{system}://me:secret@host/notes", "put it into an environment variable or a file"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(server, place: str, said: str) -> None:
    with pytest.raises((BundleError, ConfigError), match=said.format(system=server.system)) as raised:
        ragbench.load(place.format(server=server.address, system=server.system))
    assert "\n" not in str(raised.value) and "secret" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "sent"), [("me:p%40ss", "Basic bWU6cEBzcw=="), (":a2V5", "ApiKey a2V5")], ids=["password", "key"]
)
def test_a_key_comes_from_the_environment(monkeypatch, recommended, tmp_path, who: str, sent: str) -> None:
    running = start("elasticsearch", authorization=sent)
    try:
        monkeypatch.setenv("NOTES", running.address.replace("://", f"://{who}@") + "/notes")
        made = write(recommended.folder, format="elasticsearch", load="env:NOTES")
        assert made.out == "env:NOTES"
        with ragbench.load("env:NOTES") as bundle:
            assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
        monkeypatch.setenv("NOTES", running.address + "/notes")
        with pytest.raises(BundleError, match="status 401"):
            ragbench.load("env:NOTES")
    finally:
        running.close()


@pytest.mark.slow
@pytest.mark.parametrize("altered", [{"timed_out": True}, {"_shards": {"failed": 1}}, {"error": {"type": "x"}}])
def test_a_part_of_an_answer_is_no_answer(recommended, tmp_path, altered) -> None:
    running = start("opensearch")
    try:
        place = f"{running.address}/notes"
        write(recommended.folder, format="opensearch", load=place)
        with closing(opened.connect(place)) as engine:
            running.altered = altered
            with pytest.raises(BundleError, match="does not answer"):
                engine.ask("cache", [0.1] * 384, None)
    finally:
        running.close()


@pytest.mark.parametrize(("system", "client"), [("opensearch", "opensearchpy"), ("elasticsearch", "elasticsearch.dsl")])
def test_its_own_client_reads_every_query(two_chunks, tmp_path, system: str, client: str) -> None:
    language = pytest.importorskip(client, reason=f"install {client.partition('.')[0]}")
    plan, rows, terms = two_chunks
    running = start(system)
    try:
        place = f"{running.address}/notes"
        with opened.ALIASED[system].create(place, plan, 2, {}) as made, made.transaction():
            for row, vector in rows:
                made.put(row, [vector], terms)
            made.finish(terms.forms(), {}, {})
        with closing(opened.connect(place)) as engine:
            found = engine.ask("apple", rows[0][1], ["a#0"])
        assert list(found.chunk_ids) == ["a#0"] and found.sources["dense"][0] == pytest.approx(1.0)
    finally:
        running.close()
    assert len(running.queries) > 3
    for query in running.queries:
        assert language.Q(query).to_dict() == query


def test_an_index_of_somebody_is_not_replaced(recommended, tmp_path) -> None:
    running = start("opensearch")
    try:
        running.indices["notes"], running.named["notes"] = {"documents": {}}, set()
        with pytest.raises(ConfigError, match="is an index, not a search of ragbench: name another"):
            write(recommended.folder, format="opensearch", load=f"{running.address}/notes")
        assert running.collections == ["notes"]
        running.indices["mine"], running.named["mine"] = running.indices.pop("notes"), {"notes"}
        del running.named["notes"]
        with pytest.raises(ConfigError, match="leads to mine, which is not a search of ragbench: choose another name"):
            write(recommended.folder, format="opensearch", load=f"{running.address}/notes")
        assert running.collections == ["mine"]
    finally:
        running.close()


def test_a_fusion_by_ranks_divides_by_ranks() -> None:
    plan = Plan(
        {"lexical": 9, "dense": 9},
        {"lexical": 1, "dense": 2},
        "rrf",
        60,
        Bm25F((("content", 1.0),), 1.2, 0.75),
        None,
        "english",
    )
    found = by_chunk(aliased.fuse(plan, {"lexical": {"a": 3.0, "b": 3.0, "c": 1.0}, "dense": {"c": 0.9}}))
    assert [*found] == ["c", "a", "b"] and found["c"][1] == {"lexical": 1.0, "dense": 0.9}
    assert [score for score, _ in found.values()] == pytest.approx([1 / 62 + 2 / 61, 1 / 61, 1 / 61])
    convex = aliased.fuse(Plan(**{**vars(plan), "method": "convex"}), {"lexical": {"a": 3.0, "b": 1.0}, "dense": {}})
    assert convex.scores.tolist() == pytest.approx([1 / 3, 0.0])
