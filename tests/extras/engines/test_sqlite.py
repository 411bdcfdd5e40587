"""A search in one SQLite file, asked for real."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

import ragbench
from ragbench.base.types import BundleError
from ragbench.benchmark.load import load as load_benchmark
from ragbench.commands import cli
from ragbench.extras.engines import content, opened, sqlite, words
from ragbench.extras.engines.opened import EngineDeployment, EngineRefresher
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.export import measured_arm
from ragbench.extras.export.file_format import write
from ragbench.extras.ship.deployment import verify
from ragbench.index.lexical import Bm25F
from ragbench.models.resolve import folder_of
from tests.extras.engines.scores import (
    assert_filters_restrict,
    assert_live_scores,
    assert_measured_hits,
    assert_refreshes,
)
from tests.naming import naming

pytest.importorskip("sqlite_vec", reason="install ragbench[engines]")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def written(recommended, tmp_path_factory: pytest.TempPathFactory):
    return write(recommended.folder, tmp_path_factory.mktemp("sqlite") / "notes.sqlite", format="sqlite")


@pytest.fixture
def file(written, tmp_path: Path) -> Path:
    return Path(shutil.copy(written.out, tmp_path / "notes.sqlite"))


def test_file_gives_the_measured_hits(written, recommended, questions) -> None:
    assert_measured_hits(written, written.out, recommended, questions)


def test_engine_alone_has_no_learned_order(written) -> None:
    with EngineDeployment(written.out).open(order=False) as alone:
        assert [name for name, _ in alone.pipeline] == ["engine", "cut"]
        assert alone.search("nightly archive", 1)[0].docno == "archive-nightly"


def test_sources_score_as_in_the_index(written, recommended) -> None:
    """BM25F in SQL gives Lucene's scores, sqlite-vec the cosines."""
    arm = measured_arm.find(recommended.folder)
    from ragbench.config.settings import ArmBuilder

    (ours,) = ArmBuilder.of(arm.settings, load_benchmark(arm.settings.config["data"])).arms([arm.settings])
    ours.index.prepare(ours.pipeline.needs)
    from ragbench.base.types import Query

    query = Query("q", "how do programs prove their identity with tokens")
    (state,) = ours.pipeline([query], ours.index)
    with ragbench.load(written.out) as bundle:
        (theirs,) = bundle.pipeline([query], bundle.index)
    for source in ("dense", "lexical", "documents"):
        scores, expected = (
            dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))
            for ranking in (theirs.rankings[source], state.rankings[source])
        )
        assert scores == pytest.approx(expected, rel=1e-4)


def test_filters_restrict_the_search_itself(written) -> None:
    assert_filters_restrict(written.out)


def test_verify_fails_for_changed_content(file: Path) -> None:
    assert {check.part: check.outcome for check in verify(file)}["rankings"] == "passes"
    with closing(sqlite.connect(file)) as db:
        db.execute("UPDATE chunks SET text = 'x' WHERE id = 1")
    outcomes = {check.part: check.outcome for check in verify(file)}
    assert outcomes["content"] == "fails"


def test_refresh_takes_in_changed_notes(file: Path, handbook_folder: Path, tmp_path: Path) -> None:
    before = digests(file)
    assert_refreshes(file, handbook_folder, tmp_path)
    with ragbench.load(file) as bundle:
        assert bundle.serves.number == 1
    after = digests(file)
    kept = set(before) - {"team"} - _linked(tmp_path / "notes")
    assert {name for name in before if after.get(name) == before[name]} >= kept


def digests(file: Path) -> dict[str, str]:
    """The digest of every document in a file, by docno."""
    with closing(opened.connect(file)) as engine:
        return dict(engine.rows("SELECT docno, digest FROM documents"))


def _linked(notes: Path) -> set[str]:
    """Documents whose anchors may differ after `team` is gone."""
    return (
        {path.stem for path in notes.rglob("*.md")}
        if "](team" in "".join(map(Path.read_text, notes.rglob("*.md")))
        else set()
    )


def test_refresh_counts_words_of_all_documents(file: Path, handbook_folder: Path, tmp_path: Path) -> None:
    """Statistics of words are those of all documents, not only of the new ones."""
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    extra = notes / "extra.md"
    extra.write_text("# Extra\n\nA cache of tokens and archives.\n", encoding="utf-8")
    refresher = EngineRefresher(file, notes)
    refresher.refresh()
    extra.unlink()
    refresher.refresh()
    refresher.close()
    with closing(sqlite.connect(file)) as db:
        pairs = db.execute("SELECT term, idf, mean FROM chunk_terms ORDER BY term").fetchall()
        (kept,) = db.execute("SELECT count(*) FROM documents").fetchone()
    assert kept == len(list(notes.rglob("*.md")))
    assert not [term for term, *_ in pairs if term == "extra"]


@pytest.mark.slow
def test_killed_refresh_leaves_the_old_data(file: Path, handbook_folder: Path, tmp_path: Path) -> None:
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "pelican.md").write_text("# Pelicans\n\nThe zyzzyva of a pelican.\n", encoding="utf-8")
    program = f"""
        import os, signal
        from pathlib import Path
        from ragbench.extras.engines import opened
        from ragbench.extras.engines.tables import TableWriter
        finish = TableWriter.finish
        def killed(*values):
            finish(*values)
            os.kill(os.getpid(), signal.SIGKILL)
        TableWriter.finish = killed
        opened.EngineRefresher(Path({str(file)!r}), Path({str(notes)!r})).refresh()
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    with ragbench.load(file) as bundle:
        assert bundle.document("pelican") is None
        assert bundle.search("nightly archive", 1)[0].docno == "archive-nightly"
    assert all(check.outcome != "fails" for check in verify(file))


@pytest.mark.slow
def test_file_overwritten_in_place_is_one_sentence(file: Path, tmp_path: Path) -> None:
    """Mapped into memory, the end of a file that is gone kills the process (SIGBUS)."""
    program = f"""
        import os
        from ragbench.base.types import BundleError
        from ragbench import load
        with load({str(file)!r}) as loaded:
            loaded.search("nightly archive", 1)
            os.truncate({str(file)!r}, 8192)
            try:
                loaded.search("identity of programs", 1)
            except BundleError as error:
                print(error)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "database disk image is malformed" in ended.stdout


def test_live_sqlite_scores_as_measured(written, recommended, workplace: Path) -> None:
    assert_live_scores(recommended, workplace, "live=engine", f"live.engine={written.out}")


@pytest.mark.slow
def test_example_program_finds_what_the_engine_finds(written, questions) -> None:
    """The program of the documentation finds what the engine alone finds."""
    spec = importlib.util.spec_from_file_location("ask_sqlite", ROOT / "docs" / "examples" / "ask_sqlite.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert len(Path(spec.origin).read_text().splitlines()) <= 78
    folder = folder_of("bge-small-en-v1.5", "encoder").graph.parent
    with (
        closing(sqlite.connect(written.out, read_only=True)) as db,
        EngineDeployment(written.out).open(order=False) as ours,
    ):
        for text in questions:
            theirs = example.search(db, text, folder).fetchmany(10)
            hits = ours.search(text, 10)
            assert [row[0] for row in theirs] == [hit.chunk_id for hit in hits]
            assert [row[1] for row in theirs] == pytest.approx([hit.score for hit in hits], abs=1e-3)


def test_service_applies_the_learned_order(written) -> None:
    import asyncio

    from ragbench.extras.ship.serving.messages import SearchRequest
    from ragbench.extras.ship.serving.service import SearchService

    service = SearchService(written.out)
    try:
        answer = asyncio.run(service.search(SearchRequest(query="nightly archive", top_n=2)))
        assert answer.hits[0].docno == "archive-nightly"
        assert list(answer.stage_ms) == ["engine", "ranker", "cut"]
    finally:
        service.close()


def changed(file: Path, statement: str) -> Path:
    """Change a file as its owner can."""
    with closing(sqlite3.connect(file)) as db:
        db.executescript(statement)
    return file


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE about SET value = 'VACUUM INTO ''OUT''' WHERE key = 'search'", "another search"),
        ("UPDATE about SET value = 'ATTACH ''OUT'' AS x' WHERE key = 'search'", "another search"),
        ("UPDATE about SET value = json_set(value, '$.depths.dense', '1; x') WHERE key = 'plan'", "its plan"),
        ("UPDATE about SET value = json_set(value, '$.method', 'x') WHERE key = 'plan'", "its plan"),
        ("CREATE VIEW v AS SELECT load_extension('x')", r"\(v\)"),
        ("CREATE TRIGGER t AFTER DELETE ON about BEGIN SELECT load_extension('x'); END", r"\(t\)"),
        ("CREATE TABLE x (a, b AS (hex(a)))", r"\(x\)"),
        ("DROP TABLE forms; CREATE VIRTUAL TABLE forms USING fts5(form, terms)", r"\(forms\)"),
    ],
)
def test_foreign_file_runs_nothing_of_its_own(file: Path, tmp_path: Path, statement: str, reason: str) -> None:
    changed(file, statement.replace("OUT", str(tmp_path / "written")))
    for writable in (False, True):
        with pytest.raises(BundleError, match=reason):
            opened.connect(file, writable=writable)
    assert not (tmp_path / "written").exists()


def test_connection_only_reads(file: Path, tmp_path: Path) -> None:
    engine, out = opened.connect(file), tmp_path / "out"
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"
    for sql in (
        f"ATTACH '{out}' AS x",
        f"VACUUM INTO '{out}'",
        "DELETE FROM about",
        "PRAGMA user_version = 1",
        endless,
    ):
        with pytest.raises(BundleError, match=r"not authorized|prohibited|denied"):
            engine.rows(sql)
    assert not out.exists()
    engine.close()


def test_endless_search_is_ended(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_STEPS", 1)
    engine = opened.connect(file)
    monkeypatch.setattr(sqlite, "_SECONDS", -1)
    with pytest.raises(BundleError, check=naming("within")):
        engine.version()
    engine.close()


def test_small_file_does_not_fill_the_memory(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE files SET content = ?", (zlib.compress(bytes(2**28)),))
    with pytest.raises(BundleError):
        ragbench.load(file)


@pytest.mark.parametrize("size", [0, 100, 4096, 100_000, 300_000])
def test_truncated_file_is_one_sentence(file: Path, capsys: pytest.CaptureFixture[str], size: int) -> None:
    assert size < file.stat().st_size
    os.truncate(file, size)
    for command in (["verify"], ["refresh", "--corpus", str(file.parent)]):
        assert cli.main([command[0], str(file), *command[1:]]) in (1, 2)
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        assert str(file) in output.err + output.out


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunk_terms SET idf = idf * 3",
        "UPDATE document_terms SET mean = mean + 1",
        "INSERT INTO about VALUES ('more', '1')",
        "DELETE FROM forms WHERE form IN (SELECT form FROM forms LIMIT 1)",
    ],
)
def test_content_digest_covers_every_table(file: Path, statement: str) -> None:
    assert {check.part: check.outcome for check in verify(changed(file, statement))}["content"] == "fails"


def test_next_reader_undoes_a_killed_commit(file: Path) -> None:
    before = opened.connect(file)
    version = before.version()
    program = f"""
        import os, signal, sqlite3
        db = sqlite3.connect({str(file)!r}, isolation_level=None)
        db.executescript("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE")
        db.execute("UPDATE documents SET title = title || hex(randomblob(9000))")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    journal = file.with_name(f"{file.name}-journal")
    assert journal.stat().st_size
    assert before.version() == version  # a connection that was open
    assert not journal.exists()
    before.close()
    assert {check.part: check.outcome for check in verify(file)}["content"] == "passes"


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file of this process may become larger."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_full_disk_is_one_sentence_and_loses_nothing(
    file: Path, recommended, handbook_folder: Path, tmp_path: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "notes"))
    (notes / "pelican.md").write_text("# Pelicans\n\nThe zyzzyva of a pelican.\n", encoding="utf-8")
    before = digests(file)
    size, out = file.stat().st_size, tmp_path / "out" / "new.sqlite"
    out.parent.mkdir()
    for typed in (
        ["refresh", str(file), "--corpus", str(notes)],
        ["export", str(recommended.folder), "--force", "--format", "sqlite", "--out", str(out)],
    ):
        with full_disk(int(share * size)):
            assert cli.main([*typed, "--quiet"]) == 2
        message = capsys.readouterr().err
        assert message.startswith("ragbench: ") and message.count("\n") == 1
        assert "a file cannot be used" not in message  # which
        assert ".new.sqlite" not in message  # the path of the draft
    assert list(out.parent.iterdir()) == []
    assert digests(file) == before
    assert {check.part: check.outcome for check in verify(file)}["content"] == "passes"
    assert not file.with_name(f"{file.name}-journal").exists()


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("modified.json", b"[]", "modified.json"),
        ("modified.json", b'{"team": "x"}', "modified.json"),
        ("config.yaml/x", b"", "is a file and a folder at once"),
        ("../outside", b"", "outside"),
    ],
)
def test_changed_inner_files_are_one_sentence(file: Path, name: str, body: bytes, reason: str) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", (name, zlib.compress(body)))
    with pytest.raises(BundleError, match=reason) as caught:
        ragbench.load(file)
    assert "\n" not in str(caught.value)
    assert name.startswith("modified") or str(caught.value).startswith(f"{file}: ")


def test_journal_that_names_another_file_is_refused(file: Path) -> None:
    file.with_name(f"{file.name}-journal").write_bytes(bytes(512) + sqlite._SUPER_JOURNAL)
    with pytest.raises(BundleError, check=naming("delete it")):
        opened.connect(file)


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (a)")
    with pytest.raises(BundleError, check=naming("not a search")):
        ragbench.load(other)
    with pytest.raises(BundleError):
        opened.connect(tmp_path / "none.sqlite")


def test_length_in_a_byte_is_lucenes() -> None:
    from ragbench.index.jvm import java

    small = java("org.apache.lucene.util.SmallFloat")
    for length in [*range(0, 300), 1000, 4096, 65535, 10**6]:
        assert words._in_a_byte(length) == small.byte4ToInt(small.intToByte4(length))


@pytest.mark.parametrize("analyzer", ["technical", "english", "standard", "code"])
def test_terms_by_runs_are_those_of_the_whole_text(analyzer: str) -> None:
    from ragbench.index.analyzers import analyze, analyzer as named

    text = "C++ agents' getUserById(of) Node.js v3.1.2, \u00abna\u00efve\u00bb --max-lag std::vector<int>\nfoo/bar.txt"
    terms = words.Terms(analyzer)
    assert terms.of(text) == analyze(named(analyzer), text)
    forms = {form: " ".join(known) for form, known in terms.forms().items()}
    asked = words.query_terms("Node.js getUserById", lambda wanted: {w: forms[w] for w in wanted if w in forms})
    assert list(asked.elements()) and set(asked) == set(analyze(named(analyzer), "Node.js getUserById"))


def test_query_terms_know_other_endings_and_skip_unknown_words() -> None:
    terms = words.Terms("technical")
    terms.of("rotate the keys")
    forms = {form: " ".join(known) for form, known in terms.forms().items()}
    asked = words.query_terms("rotating keys of xylophones", lambda wanted: {w: forms[w] for w in wanted if w in forms})
    assert dict(asked) == {"rotat": 1, "kei": 1}


def test_rows_and_queries_are_normalised_alike(handmade, page) -> None:
    scoring = Bm25F((("content", 1.0),), 1.2, 0.75)
    plan, terms = (
        SearchPlan({"lexical": 2}, {"lexical": 1.0}, "rrf", 60, scoring, None, "technical"),
        words.Terms("technical"),
    )
    (row,) = content.rows(handmade([page("a", ["Fa\u0308hre im har\u00adbour"])]), plan)
    content_terms = terms.of(row.chunks[0].fields["content"])
    forms = {form: " ".join(known) for form, known in terms.forms().items()}
    for text in ("F\u00e4hre harbour", "Fa\u0308hre har\u200bbour"):
        asked = words.query_terms(text, lambda wanted: {w: forms[w] for w in wanted if w in forms})
        assert len(asked) == 2 and set(asked) <= set(content_terms)


def test_statement_scores_two_chunks_by_hand(tmp_path: Path, two_chunks) -> None:
    """Two chunks: the sources' scores from 0 to 1, weighed .5, .3 and .2."""
    plan, rows, terms = two_chunks
    assert SearchPlan.from_json(plan.to_json()) == plan
    with sqlite.SqliteEngine.create(tmp_path / "x.sqlite", plan, 2, {}) as engine, engine.transaction() as writer:
        for row, vector in rows:
            writer.put(row, [vector], terms)
        writer.finish(terms.forms(), {}, {})
    engine = sqlite.SqliteEngine(tmp_path / "x.sqlite")
    hits = engine.ask("apple", np.array([1.0, 0.0], np.float32), None)
    assert list(hits.chunk_ids) == ["a#0", "b#0"]
    assert hits.scores.tolist() == pytest.approx([0.5, 0.5])
    assert hits.sources["dense"].tolist() == pytest.approx([1.0, 0.6])
    idf = np.log1p(0.5 / 2.5)
    assert hits.sources["lexical"].tolist() == pytest.approx([idf * 1 / (1 + 1.2), idf * 2 / (2 + 1.2)])
    assert list(engine.ask("apple", np.array([1.0, 0.0], np.float32), ["b#0"]).chunk_ids) == ["b#0"]
    engine.close()
    assert json.loads(engine.about["plan"])["method"] == "convex"


def test_whole_weights_are_divided_as_decimals() -> None:
    """1 / 61 is 0 where SQL divides integers: every hit of a fusion by ranks had the score 0."""
    scoring = Bm25F((("content", 1.0),), 1.2, 0.75)
    plan = SearchPlan({"lexical": 10}, {"lexical": 1}, "rrf", 60, scoring, None, "english")
    db = sqlite3.connect(":memory:")
    db.executescript(sqlite.schema(plan, 0))
    db.execute("INSERT INTO chunks VALUES (1, 1, 'a#0', '[]', 0, 1, 1, '', '')")
    db.execute("INSERT INTO chunk_words VALUES ('key', 1, 1.0, 3, 1)")
    db.execute("INSERT INTO chunk_terms VALUES ('key', 1.0, 3.0)")
    rows = db.execute(sqlite.statement(plan), {"terms": '{"key": 1}', "only": None}).fetchall()
    assert [row[:2] for row in rows] == [("a#0", pytest.approx(1 / 61))]
