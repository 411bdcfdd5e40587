"""A search in Qdrant, asked for real: the core of Qdrant Edge behind the requests that a server takes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import ragbench
from ragbench.base.errors import BundleError, ConfigError
from ragbench.benchmark.load import load as load_benchmark
from ragbench.config import composition
from ragbench.experiment.run import run
from ragbench.export import measured_arm
from ragbench.export.engines import opened, qdrant
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.refreshing import EngineRefresher
from ragbench.export.verify import verify
from ragbench.export.write import write

pytest.importorskip("qdrant_edge", reason="install qdrant-edge-py: a core of Qdrant to test with")
pytest.importorskip("qdrant_client", reason="install qdrant-client: its models check every request")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    from tests.export.qdrant_server import QdrantServer

    running = QdrantServer(tmp_path_factory.mktemp("qdrant"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def loaded(recommended, server):
    return write(recommended.folder, format="qdrant", load=f"{server.address}/notes", say=lambda _: None)


@pytest.fixture
def own(recommended, server) -> str:
    """A collection that a test may change."""
    place = f"{server.address}/own"
    write(recommended.folder, format="qdrant", load=place, say=lambda _: None)
    return place


def test_the_collection_gives_the_measured_hits(loaded, server, recommended, questions) -> None:
    assert loaded.replay.loss == pytest.approx(0, abs=0.005)
    assert "by the engine" in loaded.replay.sentence and "learned order" in loaded.replay.sentence
    assert any("learned order, which ragbench serve --engine puts on top, adds" in each for each in loaded.missing)
    runs = (measured_arm.find(recommended.folder).folder / "run.trec").read_text().splitlines()
    first = {row.split()[0]: row.split()[2] for row in reversed(runs)}
    topics = {topic.text: topic.qid for topic in load_benchmark(recommended.config(recommended.arms[0])["data"]).topics}
    with ragbench.load(f"{server.address}/notes") as bundle:
        for text in questions:
            hits = bundle.search(text, 3)
            assert (hits[0].docno if hits else None) == first.get(topics[text])
    checks = {check.part: check.outcome for check in verify(f"{server.address}/notes")}
    assert (checks["content"], checks["rankings"]) == ("passes", "passes")


def test_the_built_in_topics_lose_nothing(server, workplace: Path) -> None:
    """All 257 test topics over all documents, whose vectors come with ragbench."""
    around = ["split=test", f"paths.results={workplace}", "latency.enabled=false", "tracking.enabled=false"]
    settings = composition.compose(["+exp=recommended", *around])
    found = run([settings], load_benchmark(settings.config["data"]), say=lambda sentence: None)
    written = write(found.folder, format="qdrant", load=f"{server.address}/builtin", say=lambda _: None)
    assert written.replay.topics > 200
    assert written.replay.loss <= 0.005


def test_every_source_scores_as_sqlite(loaded, server, recommended, questions, tmp_path: Path) -> None:
    pytest.importorskip("sqlite_vec", reason="install ragbench[engines]")
    file = write(recommended.folder, tmp_path / "notes.sqlite", format="sqlite", say=lambda _: None).out
    with opened.load(file) as one, opened.load(f"{server.address}/notes") as other:
        for text in questions:
            vector = one.index.encoder.encode_queries([text])[0]
            for only in (None, ["api-reference#0", "caching#0"]):
                these, those = (each.engine.ask(text, vector, only) for each in (one, other))
                assert {hit.chunk_id for hit in these} == {hit.chunk_id for hit in those}
                scores = {hit.chunk_id: hit for hit in those}
                for hit in these:
                    assert scores[hit.chunk_id].score == pytest.approx(hit.score, abs=1e-5)
                    assert scores[hit.chunk_id].sources == pytest.approx(hit.sources, rel=1e-5, abs=1e-6)


def test_filters_restrict_the_search_itself(loaded, server) -> None:
    with ragbench.load(f"{server.address}/notes") as bundle:
        hits = bundle.search("identity", 5, filters={"category": "reference"})
        assert len(hits) == 5
        assert {bundle.document(hit.docno).frontmatter["category"] for hit in hits} == {"reference"}
        assert bundle.search("identity", 5, filters={"author": "nobody"}) == []


def test_one_changed_note_is_taken_in_and_seen_by_who_asks_already(own: str, handbook_folder: Path, tmp_path) -> None:
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "pelican.md").write_text("# Pelicans\n\nThe zyzzyva of a pelican is kept in its bill.\n", encoding="utf-8")
    (notes / "team.md").unlink()
    with closing(qdrant.QdrantEngine(own)) as asking:
        before = asking.version()
        refresher = EngineRefresher(own, notes, say=lambda sentence: None)
        found = refresher.refresh()
        assert (found.added, found.changed, found.deleted) == (("pelican",), (), ("team",))
        assert refresher.refresh().anything is False
        refresher.close()
        assert asking.version() != before  # what serve --watch looks at
        vector = ragbench.load(own).index.encoder.encode_queries(["zyzzyva"])[0]
        assert asking.ask("zyzzyva", vector, None)[0].chunk_id.startswith("pelican#")
    with ragbench.load(own) as bundle:
        assert bundle.search("zyzzyva pelican", 1)[0].docno == "pelican"
        assert bundle.document("team") is None
    assert [check for check in verify(own) if check.outcome == "fails"] == []


@pytest.mark.parametrize("moment", ["_write_units", "finish", "_swap"])
def test_a_killed_load_leaves_the_old_data(own: str, server, recommended, moment: str) -> None:
    before = server.aliases["own"]
    program = f"""
        import os, signal
        from pathlib import Path
        from ragbench.export import write
        from ragbench.export.engines.qdrant import QdrantEngine
        real = QdrantEngine.{moment}
        def killed(*values):
            if {moment!r} != "_swap":
                real(*values)
            os.kill(os.getpid(), signal.SIGKILL)
        QdrantEngine.{moment} = killed
        write.write(Path({str(recommended.folder)!r}), format="qdrant", load={own!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert server.aliases["own"] == before
    with ragbench.load(own) as bundle:
        assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
    assert [name for name in server.shards if name.startswith("own--")] != [before]
    write(recommended.folder, format="qdrant", load=own, say=lambda _: None)  # deletes what was abandoned
    assert [name for name in server.shards if name.startswith("own--")] == [server.aliases["own"]] != [before]


def test_a_loss_leaves_the_old_data_and_nothing_else(own: str, server, recommended) -> None:
    before = server.aliases["own"]
    with pytest.raises(ConfigError, match="more than --max-loss -1"):
        write(recommended.folder, format="qdrant", load=own, max_loss=-1.0, say=lambda _: None)
    assert [name for name in server.shards if name.startswith("own--")] == [before] == [server.aliases["own"]]


def test_points_that_are_missing_are_noticed(own: str) -> None:
    place = own.replace("qdrant", "http", 1).replace("/own", "/collections/own/points/delete")
    httpx.post(place, json={"filter": {"must": [{"has_id": [1]}]}}).raise_for_status()
    checks = {check.part: check.said for check in verify(own) if check.outcome == "fails"}
    assert "points are there" in checks["content"]


def test_a_fusion_by_ranks_divides_by_ranks() -> None:
    plan = Plan({"lexical": 9, "dense": 9}, {"lexical": 1, "dense": 2}, "rrf", 60, None, None, "english")
    found = qdrant.fuse(plan, {"lexical": {"a": 3.0, "b": 3.0, "c": 1.0}, "dense": {"c": 0.9}})
    assert {hit.chunk_id: hit.score for hit in found} == pytest.approx({"a": 1 / 61, "b": 1 / 61, "c": 1 / 62 + 2 / 61})
    assert found[0].chunk_id == "c" and found[0].sources == {"lexical": 1.0, "dense": 0.9}
    convex = qdrant.fuse(Plan(**{**vars(plan), "method": "convex"}), {"lexical": {"a": 3.0, "b": 1.0}, "dense": {}})
    assert [hit.score for hit in convex] == pytest.approx([1 / 3, 0.0])


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("qdrant://127.0.0.1:1/notes", "does not answer"),
        ("{server}/nothing_here", "has no search: load one with"),
        ("{server}/no/such", "must be such as qdrant://localhost:6333/notes"),
        ("qdrant://me@host/notes", "put the key into the environment variable QDRANT_API_KEY"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(server, place: str, said: str) -> None:
    with pytest.raises((BundleError, ConfigError), match=said) as raised:
        ragbench.load(place.format(server=server.address))
    assert "\n" not in str(raised.value)
