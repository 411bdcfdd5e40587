from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.benchmark.vault import load_vault
from tests.naming import naming
from tests.tables import rows

TEA = Path(__file__).parents[1] / "data" / "tea"


def test_relevant_column_names_documents() -> None:
    benchmark = load_vault(TEA / "vault", TEA / "relevant.csv")
    sencha, filtering, dry = benchmark.topics
    assert benchmark.document_qrels[sencha.qid] == {"tea/brewing": 1}
    assert benchmark.document_qrels[filtering.qid] == {"coffee/grinding": 1, "index": 1}
    assert benchmark.section_qrels == {filtering.qid: {"index#hot-drinks": 1}}
    assert benchmark.document_qrels[dry.qid] == {"tea/storing": 1}
    (warning,) = benchmark.warnings
    assert warning.endswith("1 relevant documents are not in the vault: tea/nowhere.md (line 4)")
    assert {topic.split for topic in benchmark.topics} == {"test"}


def test_vault_names_wrong_paths_and_unread_answers(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("text,relevant\none,content/docs/brewing.md\ntwo,tea/brewin\n")
    warning, unjudged = load_vault(TEA / "vault", path).warnings
    assert (
        "2 relevant documents" in warning
        and "content/docs/brewing.md (line 2; did you mean tea/brewing.md?)" in warning
    )
    assert "2 of 2 queries have no judgments yet" in unjudged
    path.write_text("text,answer\none,tea/brewing.md\ntwo,index\n")
    warning, _ = load_vault(TEA / "vault", path).warnings
    assert warning == f"{path}: column 'answer' names documents but is not read: rename it to 'relevant'"


def test_vault_reads_the_answers_of_golden_files(tmp_path: Path) -> None:
    """The same file serves `gate --golden` and a run."""
    path = tmp_path / "golden.jsonl"
    for column, answers in (
        ("expected", '"tea/brewing.md"'),
        ("expected_ids", '["tea/brewing"]'),
        ("doc_id", '"tea/brewing"'),
    ):
        path.write_text(f'{{"question": "how long", "{column}": {answers}, "path": "tests/tea.py"}}\n')
        benchmark = load_vault(TEA / "vault", path)
        (topic,) = benchmark.topics
        assert benchmark.document_qrels == {topic.qid: {"tea/brewing": 1}} and benchmark.warnings == (), column


def test_vault_says_that_an_answer_is_excluded(tmp_path: Path) -> None:
    notes, queries = tmp_path / "notes", tmp_path / "q.csv"
    notes.mkdir()
    for name, front in (("read", ""), ("draft", "---\ndraft: true\n---\n"), ("old", "")):
        (notes / f"{name}.md").write_text(f"{front}# {name}\n\n<!-- hidden -->\n")
    queries.write_text("text,relevant\none,draft.md\ntwo,old\nthree,reads\n")
    warning, *_ = load_vault(notes, queries, exclude=["old.md"]).warnings
    assert "draft.md (line 2; draft.md is excluded: a draft, or not listed or searched on the site; data.dra" in warning
    assert "old (line 3; old.md is excluded: named in data.exclude)" in warning
    assert "reads (line 4; did you mean read.md?)" in warning


def test_vault_reads_folder_with_one_table(tmp_path: Path) -> None:
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels"
    queries.write_text('{"_id": "a", "text": "one"}\n')
    qrels.mkdir()
    (qrels / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\tindex.md\t2\n")
    assert load_vault(TEA / "vault", queries, qrels).document_qrels == {"a": {"index": 2}}
    (qrels / "dev.tsv").write_text("a\tgone/index.md\t2\n")
    with pytest.raises(BenchmarkError, check=naming("2 files")):
        load_vault(TEA / "vault", queries, qrels)
    left, _ = load_vault(TEA / "vault", queries, qrels / "dev.tsv").warnings
    assert left.endswith("are excluded: gone/index.md ...; did you mean index.md?")


def test_vault_ids_from_text_are_stable(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("text\none\ntwo\n")
    before = load_vault(TEA / "vault", path).topics
    path.write_text("text\nnought\none\ntwo\n")
    after = load_vault(TEA / "vault", path).topics
    assert before == after[1:]
    assert before[0].qid == "q-7692c3ad"  # sha256("one") begins 7692c3ad


def test_vault_loads_without_judgments(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"_id": "a", "Text": "one", "source": 3}\n{"_id": "b", "text": "two", "relevant": ["index"]}\n')
    benchmark = load_vault(TEA / "vault", path)
    assert benchmark.document_qrels == {"b": {"index": 1}}
    assert "1 of 2 queries have no judgments yet" in benchmark.warnings[0]


def test_vault_prefers_judgments_of_file(tmp_path: Path) -> None:
    queries, qrels = tmp_path / "q.tsv", tmp_path / "test.tsv"
    queries.write_text("qid\ttext\trelevant\na\tone\tindex.md; tea/storing\n")
    qrels.write_text(
        "query-id\tcorpus-id\tscore\na\tindex.md\t3\na\ttea/storing#Storing tea\t2\nz\tindex\t1\na\tgone.md\t1\n"
    )
    benchmark = load_vault(TEA / "vault", queries, qrels, unknown_topics="warn")
    assert benchmark.document_qrels == {"a": {"index": 3, "tea/storing": 1}}
    # White space is encoded in judgments, as in every id; a heading is found all the same.
    assert benchmark.section_qrels == {"a": {"tea/storing#storing-tea": 2}}
    assert [w.split(": ", 1)[1] for w in benchmark.warnings] == [
        "1 judged topics are not in the queries: z",
        "1 judgments of unknown documents or sections are excluded: gone.md ...",
    ]


TABLES = {
    "rows of a query": "text,relevant\none,index.md\none,\none,tea/storing.md\n",
    "merged cells": "qid,text,relevant\n,one,index.md\n,,tea/storing.md\n",
    "list of Python": "text,relevant\none,\"['index.md', 'tea/storing.md']\"\n",
    "list of NumPy": "text,relevant\none,\"['index.md'\n 'tea/storing.md']\"\n",
    "list of JSON": 'text,relevant\none,"[""index.md"", ""tea/storing.md""]"\n',
    "quoted paths": 'text,relevant\none,"""index.md"""\none,"""tea/storing.md"""\n',
    "list of a page": 'text,relevant\none,"- index.md\n- tea/storing.md"\n',
    "grades": "query,docid,rating\none,index.md,1\none,tea/brewing.md,0\none,tea/storing.md,1\n",
    "no grade where no answer is": "text,docno,rating\none,index.md; tea/storing.md,1\none,,\n",
    "label that is not a grade": "text,docno,label\none,index.md; tea/storing.md,easy\n",
    "separator of Excel": "sep=;\r\ntext;relevant\r\none;index.md\r\none;tea/storing.md\r\n",
    "lines of an old Mac": "text,relevant\rone,index.md\rone,tea/storing.md\r",
}
CASES = {
    "grades by name": '{"query": "one", "relevant": {"index.md": 1, "tea/storing": 1, "tea/brewing": 0}}',
    "objects": '{"query": "one", "expected": [{"path": "index.md"}, {"docno": "tea/storing", "grade": 1}]}',
    "nested list": '{"q": "one", "expected": [["index.md", "tea/storing"]]}',
    "list of cases": '[{"query": "one",\n"expected": ["index.md", "tea/storing"]}]',
    "list of cases under a key": '{"version": 2, "cases": [{"query": "one", "expected": ["index.md", "tea/storing"]}]}',
    "pages by query": '{"one": ["index.md", "tea/storing"]}',
    "lines": '{"query": "one", "expected": "index.md"}\n{"query": "one", "expected": "tea/storing"}\n',
}


@pytest.mark.parametrize(
    ("name", "content"),
    [*(("q.csv", text) for text in TABLES.values()), *(("q.json", text) for text in CASES.values())],
    ids=[*TABLES, *CASES],
)
def test_vault_reads_answers_as_people_and_tools_write_them(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    benchmark = load_vault(TEA / "vault", path)
    (judged,) = benchmark.document_qrels.values()
    assert [topic.text for topic in benchmark.topics] == ["one"]
    assert {docno for docno, grade in judged.items() if grade > 0} == {"index", "tea/storing"}
    assert judged.get("tea/brewing", 0) == 0


def test_vault_names_cases_and_rows_without_a_query(tmp_path: Path) -> None:
    yaml, table = tmp_path / "q.yaml", tmp_path / "q.csv"
    yaml.write_text("- query: one\n  expected: [12, index.md]\n- {id: 0, query: two, expected: gone.md}\n")
    benchmark = load_vault(TEA / "vault", yaml)
    (warning, *_) = benchmark.warnings
    assert warning.endswith("2 relevant documents are not in the vault: 12 (case 1), gone.md (case 2)")
    assert benchmark.topics[1].qid == "0"
    table.write_text("text,relevant\none,index.md\n,tea/storing.md\n")
    (warning,) = load_vault(TEA / "vault", table).warnings
    assert warning == f"{table}: 1 rows without a query add answers to the query above them"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *rows("benchmark_vault", "vault_names_line_of_broken_queries"),
        ("q.csv", b"qid,text\n1,caf\xe9\n", r"q.csv:2 is not UTF-8"),
        ("q.csv", "text\n" + "x" * 200_000 + "\n", r"q.csv:2 is not CSV: field larger than field limit"),
    ],
)
def test_vault_names_line_of_broken_queries(name: str, content: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BenchmarkError, match=message):
        load_vault(TEA / "vault", path)


def test_vault_refuses_unusable_judgments(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, check=naming("data.queries")):
        load_vault(TEA / "vault")
    with pytest.raises(BenchmarkError, check=naming("holds neither")):
        load_vault(TEA / "vault", TEA / "vault.csv", tmp_path)
    both = tmp_path / "both.tsv"
    both.write_text("q1\tindex\t1\nq1\tindex.md\t2\n")
    with pytest.raises(BenchmarkError, check=naming("twice")):
        load_vault(TEA / "vault", TEA / "vault.csv", both)


def test_vault_reads_file_name_with_hash(tmp_path: Path) -> None:
    (tmp_path / "lang").mkdir()
    (tmp_path / "lang/C#.md").write_text("# About C#\n\nA language.\n")
    queries = tmp_path / "q.csv"
    queries.write_text("qid,text,relevant\n1,one,lang/C#.md\n2,two,C#\n3,three,C##About C#\n")
    benchmark = load_vault(tmp_path, queries)
    assert benchmark.document_qrels == {qid: {"lang/C#": 1} for qid in "123"}
    assert benchmark.section_qrels == {"3": {"lang/C##about-c": 1}}
