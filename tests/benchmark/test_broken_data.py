"""What is broken is named with file and line, whatever the loader: every kind of damage in every form it can take."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragbench.base.types import RagbenchError
from ragbench.benchmark.lines import MAX_LINE_BYTES
from ragbench.benchmark.load import load

LONG = "x" * (MAX_LINE_BYTES + 1)


def native(root: Path) -> dict[str, Any]:
    write(root, "notes/a.md", "# A\n\nGreen tea.\n")
    write(root, "notes/b.md", "# B\n\nFilter coffee.\n")
    write(root, "qrels/topics.jsonl", '{"qid": "q1", "text": "tea"}\n{"qid": "q2", "text": "coffee"}\n')
    write(root, "qrels/documents.qrels", "q1 0 a 1\nq2 0 b 1\n")
    write(root, "qrels/sections.qrels", "q1 0 a#a 1\nq2 0 b#b 1\n")
    return {"loader": "native", "corpus": str(root / "notes"), "qrels": str(root / "qrels")}


def beir(root: Path) -> dict[str, Any]:
    write(root, "corpus.jsonl", '{"_id": "a", "text": "Green tea."}\n{"_id": "b", "text": "Filter coffee."}\n')
    write(root, "queries.jsonl", '{"_id": "q1", "text": "tea"}\n{"_id": "q2", "text": "coffee"}\n')
    write(root, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\n")
    return {"loader": "beir", "folder": str(root)}


def trec(root: Path) -> dict[str, Any]:
    write(root, "docs", "<DOC><DOCNO>a</DOCNO>Green tea.</DOC>\n<DOC><DOCNO>b</DOCNO>Filter coffee.</DOC>\n")
    write(root, "topics", "q1\ttea\nq2\tcoffee\n")
    write(root, "qrels", "q1 0 a 1\nq2 0 b 1\n")
    return {"loader": "trec"} | {
        key: str(root / name) for key, name in [("corpus", "docs"), ("queries", "topics"), ("qrels", "qrels")]
    }


def vault(root: Path) -> dict[str, Any]:
    write(root, "notes/a.md", "# A\n\nGreen tea.\n")
    write(root, "notes/b.md", "# B\n\nFilter coffee.\n")
    write(root, "queries.csv", "qid,text,relevant\nq1,tea,a.md\nq2,coffee,b.md\n")
    write(root, "judged.qrels", "q1 0 a 1\nq2 0 b 1\n")
    places = {"corpus": "notes", "queries": "queries.csv", "qrels": "judged.qrels"}
    return {"loader": "vault"} | {key: str(root / name) for key, name in places.items()}


def write(root: Path, name: str, content: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


LATIN = "caf\xe9".encode("latin-1")

# What is broken, the loader, the file, what it holds, and the reason of the refusal.
CASES: list[tuple[str, Callable[[Path], dict[str, Any]], str, str | bytes, str]] = [
    # missing ids
    ("document id", beir, "corpus.jsonl", '{"_id": "a", "text": "x"}\n{"text": "x"}\n', ":2 has no document id"),
    ("document id", trec, "docs", "<DOC><DOCNO>a</DOCNO>x</DOC>\n<DOC>x</DOC>\n", ":2 has a <DOC> without <DOCNO>"),
    ("topic id", native, "qrels/topics.jsonl", '{"qid": "q1", "text": "tea"}\n{"text": "x"}\n', ":2 needs a non-empty"),
    ("topic id", beir, "queries.jsonl", '{"_id": "q1", "text": "tea"}\n{"text": "x"}\n', ":2 has no query id"),
    ("topic id", trec, "topics", "q1\ttea\n\tcoffee\n", ":2: a topic has no number"),
    ("judged id", native, "qrels/sections.qrels", "q1 0 a#a 1\nq2 0 1\n", ":2 must have 4 fields"),
    ("judged id", beir, "qrels/test.tsv", "q1\ta\t1\nq2\t\t1\n", ":2 lacks the id"),
    ("judged id", trec, "qrels", "q1 0 a 1\nq2 0 1\n", ":2 must have 4 fields"),
    ("judged id", vault, "judged.qrels", "q1 0 a 1\nq2 0 1\n", ":2 must have 4 fields"),
    # empty queries
    ("query", native, "qrels/topics.jsonl", '{"qid": "q1", "text": "tea"}\n{"qid": "q2", "text": " "}\n', ":2 needs a"),
    ("query", beir, "queries.jsonl", '{"_id": "q1", "text": "tea"}\n{"_id": "q2", "text": ""}\n', ":2: query q2"),
    ("query", trec, "topics", "q1\ttea\nq2\t \n", ":2: query q2"),
    ("query", vault, "queries.csv", "qid,text\nq1,tea\nq2, \n", ":3: the query is empty"),
    # twice the same
    ("again", native, "notes/a.markdown", "# A\n\nOolong.\n", "duplicate-docno"),
    ("again", beir, "corpus.jsonl", '{"_id": "a", "text": "x"}\n' * 2, ":2 repeats document id 'a'"),
    ("again", trec, "docs", "<DOC><DOCNO>a</DOCNO>x</DOC>\n" * 2, ":2 repeats document id 'a'"),
    ("again", vault, "notes/a.markdown", "# A\n\nOolong.\n", "duplicate-docno"),
    ("topic again", native, "qrels/topics.jsonl", '{"qid": "q1", "text": "tea"}\n' * 2, ":2 repeats topic 'q1'"),
    ("topic again", beir, "queries.jsonl", '{"_id": "q1", "text": "tea"}\n' * 2, ":2 repeats query id 'q1'"),
    ("topic again", trec, "topics", "q1\ttea\nq1\tcoffee\n", ":2 repeats topic 'q1'"),
    ("topic again", vault, "queries.csv", "qid,text\nq1,tea\nq1,coffee\n", ":3 has query 'q1' .* again"),
    # judgments of unknown topics
    ("unknown", native, "qrels/sections.qrels", "q1 0 a#a 1\nq9 0 b#b 1\n", "sections.qrels:2 judges topic 'q9'"),
    ("unknown", native, "qrels/documents.qrels", "q1 0 a 1\n\nq9 0 b 1\n", "documents.qrels:3 judges topic 'q9'"),
    ("unknown", beir, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq9\tb\t1\n", ":3 judges topic 'q9'"),
    ("unknown", trec, "qrels", "q1 0 a 1\nq9 0 b 1\n", ":2 judges topic 'q9'"),
    ("unknown", vault, "judged.qrels", "q9 0 a 1\nq2 0 b 1\n", ":1 judges topic 'q9'"),
    # another encoding
    ("encoding", native, "notes/b.md", b"# B\n\n" + LATIN, "b.md: encoding: .*UTF-8"),
    ("encoding", native, "qrels/topics.jsonl", b'{"qid": "q1", "text": "' + LATIN + b'"}\n', ":1 is not UTF-8"),
    ("encoding", native, "qrels/sections.qrels", b"q1 0 a#a 1\nq1 0 " + LATIN + b" 1\n", ":2 is not UTF-8"),
    ("encoding", beir, "corpus.jsonl", b'{"_id": "a", "text": "x"}\n{"_id": "b", "text": "' + LATIN, ":2 is not UTF-8"),
    ("encoding", beir, "queries.jsonl", b'{"_id": "q1", "text": "' + LATIN + b'"}\n', ":1 is not UTF-8"),
    ("encoding", beir, "qrels/test.tsv", b"q1\ta\t1\nq1\t" + LATIN + b"\t1\n", ":2 is not UTF-8"),
    ("encoding", trec, "docs", b"<DOC>\n<DOCNO>a</DOCNO>" + LATIN + b"</DOC>\n", ":2 is not UTF-8"),
    ("encoding", trec, "topics", b"q1\ttea\nq2\t" + LATIN + b"\n", ":2 is not UTF-8"),
    ("encoding", trec, "qrels", b"q1 0 a 1\nq1 0 " + LATIN + b" 1\n", ":2 is not UTF-8"),
    ("encoding", vault, "notes/b.md", b"# B\n\n" + LATIN, "b.md: encoding: .*UTF-8"),
    ("encoding", vault, "queries.csv", b"text\ntea\n" + LATIN + b"\n", ":3 is not UTF-8"),
    ("encoding", vault, "judged.qrels", b"q1 0 a 1\nq1 0 " + LATIN + b" 1\n", ":2 is not UTF-8"),
    # gigantic lines
    ("long line", native, "notes/b.md", LONG, "b.md: too-large"),
    ("long line", native, "qrels/topics.jsonl", f'{{"qid": "q1", "text": "{LONG}"}}\n', ":1 is longer than 10 MB"),
    ("long line", native, "qrels/sections.qrels", f"q1 0 a#a 1\nq1 0 {LONG} 1\n", ":2 is longer than 10 MB"),
    ("long line", beir, "corpus.jsonl", f'{{"_id": "a", "text": "x"}}\n{{"_id": "b", "text": "{LONG}"}}', ":2 is long"),
    ("long line", beir, "queries.jsonl", f'{{"_id": "q1", "text": "{LONG}"}}', ":1 is longer than 10 MB"),
    ("long line", beir, "qrels/test.tsv", f"q1\ta\t1\nq1\t{LONG}\t1\n", ":2 is longer than 10 MB"),
    ("long line", trec, "docs", f"<DOC>\n<DOCNO>a</DOCNO>\n{LONG}\n</DOC>\n", ":3 is longer than 10 MB"),
    ("long line", trec, "topics", f"q1\ttea\nq2\t{LONG}\n", ":2 is longer than 10 MB"),
    ("long line", trec, "qrels", f"q1 0 a 1\nq1 0 {LONG} 1\n", ":2 is longer than 10 MB"),
    ("long line", vault, "notes/b.md", LONG, "b.md: too-large"),
    ("long line", vault, "queries.csv", f"text\ntea\n{LONG}\n", ":3 is longer than 10 MB"),
    ("long line", vault, "judged.qrels", f"q1 0 a 1\nq1 0 {LONG} 1\n", ":2 is longer than 10 MB"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "file", "content", "reason"),
    [case[1:] for case in CASES],
    ids=[f"{what}-{form.__name__}-{file}" for what, form, file, _, _ in CASES],
)
def test_broken_data_is_refused_by_every_loader(
    form: Callable[[Path], dict[str, Any]], file: str, content: str | bytes, reason: str, tmp_path: Path
) -> None:
    spec = form(tmp_path)
    assert {topic.qid for topic in load(spec).topics} == {"q1", "q2"}
    write(tmp_path, file, content)
    if file.startswith("notes/"):  # read or skipped, with a warning
        assert re.search(reason, " ".join(load(spec).warnings))
        return
    with pytest.raises(RagbenchError, match=reason) as raised:
        load(spec)
    message = str(raised.value)
    assert Path(file).name in message and len(message) < 500 and "\n" not in message


def test_query_without_id_gets_one_from_text(tmp_path: Path) -> None:
    spec = vault(tmp_path) | {"qrels": None}
    write(tmp_path, "queries.csv", "qid,text,relevant\nq1,tea,a.md\n,coffee,b.md\n")
    first, second = load(spec).topics
    assert first.qid == "q1" and second.qid.startswith("q-")
