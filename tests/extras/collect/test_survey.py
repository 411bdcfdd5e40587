"""`ragbench init` opens what it is given: notes and queries are read, and what is odd about them is said."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from ragbench.commands import cli
from ragbench.config import project
from ragbench.corpus.folder import MARKDOWN
from ragbench.corpus.reader import read_vault

HANDBOOK = Path(__file__).parents[2] / "data" / "phases"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(HANDBOOK, tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "notes"


@pytest.fixture
def init(notes: Path, capsys: pytest.CaptureFixture[str]):
    """A function that writes a table of queries and runs init; its exit code, standard output and error."""

    def run(queries: str | bytes = "", *more: str) -> tuple[int, str, str]:
        if queries:
            content = queries if isinstance(queries, bytes) else queries.encode()
            Path("asked.csv").write_bytes(content)
            more = ("--queries", "asked.csv", *more)
        code = cli.main(["init", "notes", "--yes", "--replace", *more])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_init_counts_documents_chunks_and_language(init) -> None:
    code, out, err = init()
    assert (code, err) == (0, "reading 0/19\nchunking 0/19\nestimating the time\n")
    assert out.startswith("notes: 19 documents, ") and "chunks, mostly English\n" in out
    assert "no queries given: ragbench will generate synthetic queries from your notes" in out


def test_init_without_derivable_queries_asks_for_a_file(init, notes: Path) -> None:
    """The next command is one that works."""
    shutil.rmtree(notes)
    notes.mkdir()
    for name in ("one", "two", "three", "four"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nOne two three four.\n")
    code, out, err = init()
    assert code == 0 and "warning" not in err
    assert "no queries can be derived from 'notes'" in out
    assert out.splitlines()[-1] == "next: ragbench init notes --queries FILE --replace"


def test_init_keeps_what_an_earlier_file_excludes(init, notes: Path) -> None:
    init()
    written = Path(project.FILE).read_text()
    Path(project.FILE).write_text(written.replace("arms:", 'data.exclude: ["a*.md"]\narms:'))
    _, out, _ = init()
    left_out = len(list(notes.rglob("a*.md")))
    assert left_out and f"notes: {19 - left_out} documents" in out
    assert f"excluded: excluded (named in data.exclude): {left_out}, such as" in out
    assert project.read(Path(project.FILE)).values["data.exclude"] == ["a*.md"]
    Path(project.FILE).write_text("[")
    assert "notes: 19 documents" in init()[1]


def test_init_names_copies_in_versions_and_languages(init, notes: Path) -> None:
    shutil.rmtree(notes)
    for folder in ("docs", "versioned_docs/version-1.0", "versioned_docs/version-2.0", "i18n/de", "i18n/fr"):
        for name in ("start", "stop"):
            page = notes / folder / f"{name}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f"# {name}\n\nThe text of {folder}.\n")
    _, out, _ = init()
    assert "copies in other versions than versioned_docs/version-2.0: versioned_docs/version-1.0 (2 pages)" in out
    assert "copies in other languages than i18n/fr: i18n/de (2 pages)" in out
    globs = re.findall(r"add data\.exclude: (\[.*?\])", out)
    assert globs == ['["versioned_docs/version-1.0/"]', '["i18n/de/"]']
    excluded = [glob for listed in globs for glob in json.loads(listed)]
    assert len(read_vault(notes, exclude=excluded).documents) == 6


@pytest.mark.parametrize(
    ("names", "said", "globs"),
    [
        (["a.md", "b.md", "c.md", "a.de.md", "a.zh-CN.md"], "than *.md: *.de.md, *.zh-CN.md (2 pages)", 2),
        (["about.md", "a.en.md", "b.en.md", "a.fr.md"], "than *.en.md: *.fr.md (1 page)", 1),
        (["vue.config.md", "node.js.md", "std.io.md"], "", 0),
    ],
)
def test_init_names_translations_by_file_name(init, notes: Path, names: list[str], said: str, globs: int) -> None:
    shutil.rmtree(notes)
    notes.mkdir()
    for name in names:
        (notes / name).write_text(f"# Lamps\n\nThe lamps of {name}.\n")
    _, out, _ = init()
    assert f"copies in other languages {said}" in out if said else "copies" not in out
    excluded = [glob for listed in re.findall(r"add data\.exclude: (\[.*?\])", out) for glob in json.loads(listed)]
    assert len(excluded) == globs and len(read_vault(notes, exclude=excluded).documents) == len(names) - globs


def test_init_names_conflicted_copies_of_synchronised_folder(init, notes: Path) -> None:
    shutil.rmtree(notes)
    notes.mkdir()
    copied = ("lamps (Ada's conflicted copy 2026-01-02)", "lamps.sync-conflict-20260102-120000-ABCDEF7")
    for name in ("lamps", "conflicted", *copied):
        (notes / f"{name}.md").write_text(f"# Lamps\n\nThe lamps of {name}.\n")
    _, out, _ = init()
    assert f"conflicted copies of a synchronised folder: 2 pages, such as {copied[0]}.md" in out
    globs = json.loads(re.findall(r"add data\.exclude: (\[.*?\])", out)[0])
    assert len(read_vault(notes, exclude=globs).documents) == 2


def test_init_names_second_language_and_what_finds_it(notes: Path, init) -> None:
    (notes / "lampe.md").write_text("# Lampe\n\nDer Schlüssel ist nicht in der Lampe, und das Haus ist dunkel.\n")
    keys = "index.lexical.analyzer=technical+german, index.encoder.name stays, because it finds documents in English"
    assert f"English in 19 documents and German in 1 document: {keys} better\n" in init()[1]


def test_init_counts_queries_with_and_without_answers(init) -> None:
    table = "question,relevant\nhow are programs told apart,authentication.md\nwhat is counted,metrics.md\nmoose,\n"
    code, out, _ = init(table)
    assert "asked.csv: 3 queries, 2 with an answer, 1 without\n" in out
    assert "columns read: question (as text), relevant\n" in out and "not read" not in out
    assert code == 0 and "no queries" not in out


def test_init_names_line_of_unknown_answer(init) -> None:
    code, out, err = init("text,relevant\na query,authentication.md\nanother,nowhere.md\n")
    assert "1 relevant documents are not in the vault: nowhere.md (line 3)" in err
    assert "2 queries, 1 with an answer, 1 without" in out and code == 0


def test_init_takes_judgments_beside_queries(init, notes: Path) -> None:
    Path("queries.jsonl").write_text('{"_id": "a", "text": "what is counted"}\n')
    Path("qrels").mkdir()
    Path("qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\na\tmetrics.md\t2\n")
    code, out, _ = init()
    assert code == 0 and "queries.jsonl: 1 query, 1 with an answer\n" in out
    assert project.read(Path(project.FILE)).values["data.qrels"] == "qrels/test.tsv"


@pytest.mark.parametrize(
    ("header", "meant"),
    [("answer_doc", "relevant"), ("relevent", "relevant"), ("hypothesys", "hypothesis"), ("colour", "")],
)
def test_init_names_unread_column(header: str, meant: str, init) -> None:
    """By its values, which name documents, or by a name that is nearly right."""
    value = {"answer_doc": "metrics.md", "relevent": "metrics.md"}.get(header, "a text")
    _, out, _ = init(f"text,{header}\nwhat is counted,{value}\n")
    assert f"column not read: {header}" + (f"; did you mean {meant}?" if meant else "") + "\n" in out


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("foo,bar\na,b\n", "asked.csv:2: column 'text' is missing; the columns are foo, bar"),
        ("text\nwie heißt das\n".encode("latin-1"), "asked.csv:2 is not UTF-8 (byte 8; possibly another encoding)"),
        ("text\n", "asked.csv holds no queries"),
        ("qid,text\n1,a\n1,b\n", "asked.csv:3 has query"),
    ],
)
def test_init_refuses_unusable_queries_before_writing(table, reason: str, init) -> None:
    code, _, err = init(table)
    assert code == 2 and reason in err and err.count("\n") == 1
    assert not Path(project.FILE).exists()


def test_init_reads_text_files_without_markdown(init, notes: Path) -> None:
    (notes / "more.txt").write_text("Lamps are lit at dusk.", encoding="utf-8")
    _, out, _ = init()
    globs = ", ".join(f'"{glob}"' for glob in (*MARKDOWN, "**/*.txt"))
    assert f"files not read: 1 .txt; to read them, add data.include: [{globs}] to ragbench.yaml" in out
    for path in notes.rglob("*.md"):
        path.unlink()
    code, out, _ = init()
    assert code == 0 and out.startswith("notes: 1 document, 1 chunk")
    assert project.read(Path(project.FILE)).values["data.include"] == ["**/*.txt"]


def test_init_names_the_commands_that_collect_missing_answers(init, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that is next works, and the one after it."""
    code, out, _ = init("text\nwhen are lamps lit\n")
    assert code == 0 and "no query has an answer yet" in out
    command = out.rpartition("next: ragbench ")[2].split()
    assert command == ["run", "allow_unjudged=true"]
    assert (
        cli.main([*command, "--arm", "words=exp=lexical_only", "latency.enabled=false", "tracking.enabled=false"]) == 0
    )
    assert cli.main(["data", "pool", "--depth", "3"]) == 0 and Path("pool.csv").is_file()


def test_init_names_file_in_other_encoding(init, notes: Path) -> None:
    (notes / "alt.md").write_bytes("# Über\n\nGrüße aus dem Süden".encode("cp1252"))
    code, _, err = init()
    assert code == 0 and "warning: alt.md: encoding: read as cp1252 because line 1 is not UTF-8" in err


def test_init_opens_beir_collection(init, notes: Path) -> None:
    shutil.rmtree(notes)
    (notes / "qrels").mkdir(parents=True)
    (notes / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "title": "Lamps", "text": "at dusk"}) + "\n")
    (notes / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "when are lamps lit"}) + "\n")
    (notes / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    code, out, _ = init()
    assert code == 0 and "notes: a collection in BEIR format, 1 document, 1 topic" in out
