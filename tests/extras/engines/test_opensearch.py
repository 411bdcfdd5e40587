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
from ragbench.base.types import BundleError, ConfigError
from ragbench.extras.engines import opened, opensearch
from ragbench.extras.engines.opened import EngineRefresher
from ragbench.extras.engines.opensearch import SYSTEMS, Cluster, OpenSearchEngine
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.export.file_format import write
from ragbench.extras.ship.deployment import verify
from ragbench.index.lexical import Bm25F
from tests.extras.engines.opensearch_server import OpenSearchServer
from tests.extras.engines.scores import (
    assert_filters_restrict,
    assert_live_scores,
    assert_measured_hits,
    assert_refreshes,
    by_chunk,
    scores_alike,
)

WRITES = pytest.mark.parametrize("server", ["opensearch"], indirect=True)
"""Elasticsearch is written to as OpenSearch is."""


@pytest.fixture(scope="module", params=["opensearch", pytest.param("elasticsearch", marks=pytest.mark.slow)])
def server(request) -> Iterator[OpenSearchServer]:
    with closing(OpenSearchServer(request.param, "technical")) as running:
        yield running


@pytest.fixture(scope="module")
def loaded(recommended, server):
    return write(recommended.folder, format=server.system, load=f"{server.address}/notes")


@pytest.fixture
def own(recommended, server) -> str:
    """The address of a search that a test may change."""
    address = f"{server.address}/own"
    write(recommended.folder, format=server.system, load=address)
    return address


def indices_of_loads(server, alias: str) -> list[str]:
    return [name for name in server.indices if name.startswith(f"{alias}--")]


@pytest.mark.slow
def test_index_gives_the_measured_hits(loaded, server, recommended, questions) -> None:
    assert_measured_hits(loaded, f"{server.address}/notes", recommended, questions)
    checks = {check.part: check.outcome for check in verify(f"{server.address}/notes")}
    assert (checks["content"], checks["rankings"]) == ("passes", "passes")


def test_sources_score_as_in_sqlite(loaded, server, recommended, questions, tmp_path: Path) -> None:
    pytest.importorskip("sqlite_vec", reason="install ragbench[engines]")
    file = write(recommended.folder, tmp_path / "notes.sqlite", format="sqlite").out
    scores_alike(file, f"{server.address}/notes", [*questions, "cache cache"], within=1e-6)


def test_filters_restrict_the_search_itself(loaded, server) -> None:
    assert_filters_restrict(f"{server.address}/notes")


def test_live_engine_scores_as_measured(loaded, server, recommended, workplace: Path) -> None:
    assert_live_scores(recommended, workplace, "live=engine", f"live.engine={server.address}/notes")


@pytest.mark.slow
@WRITES
def test_refresh_is_seen_by_open_connections(own: str, handbook_folder: Path, tmp_path: Path) -> None:
    with closing(opened.connect(own)) as asking:
        before = asking.version()
        assert_refreshes(own, handbook_folder, tmp_path)
        assert asking.version() != before  # what a service looks at
        vector = ragbench.load(own).index.encoder.encode_queries(["zyzzyva"])[0]
        assert asking.ask("zyzzyva", vector, None).chunk_ids[0].startswith("pelican#")


@pytest.mark.slow
@WRITES
@pytest.mark.parametrize("moment", ["Cluster.bulk", "IndexWriter.finish", "Cluster.swap"])
def test_killed_load_leaves_the_old_data(own: str, server, recommended, moment: str) -> None:
    before = server.aliases["own"]
    owner, method = moment.split(".")
    program = f"""
        import os, signal
        from pathlib import Path
        from ragbench.extras.export import file_format
        from ragbench.extras.engines.opensearch import {owner}
        real = {owner}.{method}
        def killed(*values, **named):
            if {method!r} != "swap":
                real(*values, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        {owner}.{method} = killed
        file_format.write(Path({str(recommended.folder)!r}), format={server.system!r}, load={own!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert server.aliases["own"] == before
    with ragbench.load(own) as bundle:
        assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
    assert indices_of_loads(server, "own") != [before]
    write(recommended.folder, format=server.system, load=own)  # deletes what was abandoned
    assert indices_of_loads(server, "own") == [server.aliases["own"]] != [before]


@pytest.mark.slow
def test_load_with_a_loss_leaves_the_old_data(own: str, server, recommended) -> None:
    before = server.aliases["own"]
    with pytest.raises(ConfigError) as error:
        write(recommended.folder, format=server.system, load=own, max_loss=-1.0)
    assert "--max-loss -1" in str(error.value)
    assert indices_of_loads(server, "own") == [before] == [server.aliases["own"]]


@pytest.mark.slow
@WRITES
@pytest.mark.parametrize("moment", ["bulk", "swap"])
def test_failed_refresh_leaves_the_old_data(
    own: str, server, handbook_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before = server.aliases["own"]
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "team.md").unlink()
    with closing(EngineRefresher(own, notes)) as refresher:
        with monkeypatch.context() as patched, pytest.raises(BundleError):
            patched.setattr(Cluster, moment, refuse)
            refresher.refresh()
        assert indices_of_loads(server, "own") == [before] == [server.aliases["own"]]
        assert refresher.refresh().deleted == ("team",)
    assert indices_of_loads(server, "own") == [server.aliases["own"]] != [before]


def refuse(*values: object) -> None:
    raise BundleError("the disk refuses")


@pytest.mark.slow
@WRITES
def test_refresh_deletes_indices_of_killed_loads(own: str, server, handbook_folder: Path, tmp_path: Path) -> None:
    with closing(Cluster(SYSTEMS[server.system], own)) as cluster, closing(opened.connect(own)) as engine:
        cluster.make(engine.plan, engine.about["dimension"])
    assert len(indices_of_loads(server, "own")) == 2
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "team.md").unlink()
    with closing(EngineRefresher(own, notes)) as refresher:
        refresher.refresh()
    assert indices_of_loads(server, "own") == [server.aliases["own"]]


@pytest.mark.slow
def test_verify_notices_missing_documents(own: str, server) -> None:
    server.remove_unit("own")
    checks = {check.part: check.message for check in verify(own) if check.outcome == "fails"}
    assert "points are there" in checks["content"]


def test_failing_server_is_one_sentence(loaded, server) -> None:
    with closing(opened.connect(f"{server.address}/notes")) as engine:
        server.dies_at = "_msearch"
        try:
            with pytest.raises(BundleError) as raised:
                engine.ask("cache", None if "dense" not in engine.plan.depths else [0.1] * 384, None)
            assert "does not answer" in str(raised.value)
        finally:
            server.dies_at = None
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("{system}://127.0.0.1:1/notes", "does not answer"),
        ("{server}/nothing_here", "has no search: load one with ragbench export --format {system}"),
        ("{server}/no/such", "must be such as {system}://localhost"),
        ("{system}://[host/notes", "must be such as {system}://localhost"),
        ("{system}://me:secret@host/notes", "put it into an environment variable"),
    ],
)
def test_unusable_addresses_are_one_sentence(server, address: str, reason: str) -> None:
    with pytest.raises((BundleError, ConfigError)) as raised:
        ragbench.load(address.format(server=server.address, system=server.system))
    message = str(raised.value)
    assert reason.format(system=server.system) in message
    assert "\n" not in message and "secret" not in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "sent"), [("me:p%40ss", "Basic bWU6cEBzcw=="), (":a2V5", "ApiKey a2V5")], ids=["password", "key"]
)
def test_secrets_come_from_the_environment(monkeypatch, recommended, user: str, sent: str) -> None:
    with closing(OpenSearchServer("elasticsearch", "technical", authorization=sent)) as running:
        monkeypatch.setenv("NOTES", running.address.replace("://", f"://{user}@") + "/notes")
        written = write(recommended.folder, format="elasticsearch", load="env:NOTES")
        assert written.out == "env:NOTES"
        with ragbench.load("env:NOTES") as bundle:
            assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
        monkeypatch.setenv("NOTES", running.address + "/notes")
        with pytest.raises(BundleError) as error:
            ragbench.load("env:NOTES")
        assert "status 401" in str(error.value)


@pytest.fixture
def small(request, two_chunks) -> Iterator[tuple[OpenSearchServer, OpenSearchEngine]]:
    """A server of the system that a test names, and a search with two chunks in it."""
    plan, rows, terms = two_chunks
    with closing(OpenSearchServer(request.param, "technical")) as running:
        address = f"{running.address}/notes"
        created = OpenSearchEngine.create(SYSTEMS[request.param], address, plan, 2, {})
        with created as engine, engine.transaction() as writer:
            for row, vector in rows:
                writer.put(row, [vector], terms)
            writer.finish(terms.forms(), {}, {})
        with closing(opened.connect(address)) as engine:
            yield running, engine


@pytest.fixture
def empty(two_chunks) -> Iterator[tuple[OpenSearchServer, Cluster, str]]:
    """A server, its cluster, and an empty index of four shards without copies."""
    with closing(OpenSearchServer("opensearch", "technical")) as running:
        address = f"{running.address}/notes?shards=4&replicas=0"
        with closing(Cluster(SYSTEMS["opensearch"], address)) as cluster:
            yield running, cluster, cluster.make(two_chunks[0], 2)


def test_shards_and_replicas_are_options_of_the_address(empty) -> None:
    server, cluster, index = empty
    settings = server.indices[index]["settings"]["index"]
    assert (settings["number_of_shards"], settings["number_of_replicas"]) == (4, 0)
    assert cluster.name == f"{server.address}/notes"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("shards=0", "shards=0 must be a number from 1 to 1024: try shards=1"),
        ("replicas=some", "replicas=some must be a number from 0 to 1024: try replicas=1"),
        ("parts=2", "parts is not an option of the address: it takes shards and replicas"),
    ],
)
def test_unusable_options_of_the_address_are_refused(options: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Cluster(SYSTEMS["opensearch"], f"opensearch://localhost:9200/notes?{options}")
    assert str(error.value) == message


def test_bulk_sends_again_what_a_busy_server_refuses(empty, monkeypatch: pytest.MonkeyPatch) -> None:
    server, cluster, index = empty
    monkeypatch.setattr(opensearch, "_WAITS", (0.0, 0.0, 0.0))
    server.busy = ["items", "request", "items"]
    rows = [{"number": number, "kind": "file", "name": str(number)} for number in range(10)]
    cluster.bulk(index, rows)
    assert sorted(server.indices[index]["documents"].values(), key=lambda row: row["number"]) == rows
    assert server.asked.count(f"POST /{index}/_bulk") == 4


@pytest.mark.parametrize("busy", ["request", "items"])
def test_bulk_gives_up_on_a_server_that_stays_busy(empty, busy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server, cluster, index = empty
    monkeypatch.setattr(opensearch, "_WAITS", (0.0,))
    server.busy = [busy] * 9
    with pytest.raises(BundleError, match=r"data too large|did not take everything .*queue is full"):
        cluster.bulk(index, [{"number": number} for number in range(8)])


@pytest.mark.parametrize("small", ["opensearch"], indirect=True)
@pytest.mark.parametrize("altered", [{"timed_out": True}, {"_shards": {"failed": 1}}, {"error": {"type": "x"}}])
def test_partial_answers_are_refused(small, altered) -> None:
    server, engine = small
    server.altered = altered
    with pytest.raises(BundleError) as error:
        engine.ask("apple", [1.0, 0.0], None)
    assert "does not answer" in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("small", "client"),
    [("opensearch", "opensearchpy"), ("elasticsearch", "elasticsearch.dsl")],
    indirect=["small"],
    ids=["opensearch", "elasticsearch"],
)
def test_official_clients_read_every_query(small, two_chunks, client: str) -> None:
    language = pytest.importorskip(client, reason=f"install {client.partition('.')[0]}")
    server, engine = small
    hits = engine.ask("apple", two_chunks[1][0][1], ["a#0"])
    assert list(hits.chunk_ids) == ["a#0"] and hits.sources["dense"][0] == pytest.approx(1.0)
    assert len(server.queries) > 3
    for query in server.queries:
        assert language.Q(query).to_dict() == query


def test_index_of_others_is_not_replaced(recommended) -> None:
    with closing(OpenSearchServer("opensearch", "technical")) as running:
        running.indices["notes"], running.named["notes"] = {"documents": {}}, set()
        with pytest.raises(ConfigError) as error:
            write(recommended.folder, format="opensearch", load=f"{running.address}/notes")
        assert "is an index" in str(error.value)
        assert list(running.indices) == ["notes"]
        running.indices["mine"], running.named["mine"] = running.indices.pop("notes"), {"notes"}
        del running.named["notes"]
        with pytest.raises(ConfigError) as error:
            write(recommended.folder, format="opensearch", load=f"{running.address}/notes")
        assert "leads to mine" in str(error.value)
        assert list(running.indices) == ["mine"]


def test_fuse_divides_by_ranks_and_by_ranges() -> None:
    scoring = Bm25F((("content", 1.0),), 1.2, 0.75)
    plan = SearchPlan({"lexical": 9, "dense": 9}, {"lexical": 1, "dense": 2}, "rrf", 60, scoring, None, "english")
    hits = by_chunk(opensearch.fuse(plan, {"lexical": {"a": 3.0, "b": 3.0, "c": 1.0}, "dense": {"c": 0.9}}))
    assert [*hits] == ["c", "a", "b"] and hits["c"][1] == {"lexical": 1.0, "dense": 0.9}
    assert [score for score, _ in hits.values()] == pytest.approx([1 / 62 + 2 / 61, 1 / 61, 1 / 61])
    by_range = SearchPlan(**{**vars(plan), "method": "convex"})
    convex = opensearch.fuse(by_range, {"lexical": {"a": 3.0, "b": 1.0}, "dense": {}})
    assert convex.scores.tolist() == pytest.approx([1 / 3, 0.0])
