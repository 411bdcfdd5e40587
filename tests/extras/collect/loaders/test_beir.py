from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.extras.collect.loaders.beir import load_beir, read_documents, read_queries
from tests.naming import naming

TEA = Path(__file__).parents[3] / "data" / "tea" / "beir"


def test_beir_title_opens_text() -> None:
    inside = {d.docno: d for d in load_beir(TEA).documents}
    storing = inside["tea/storing"]
    assert storing.text == "# Storing tea\n\nLight, air and damp are what spoils it."
    assert [(s.level, s.path, s.anchor) for s in storing.sections] == [(1, ("Storing tea",), "storing-tea")]
    assert inside["tea/storing"].title == "Storing tea"
    assert storing.frontmatter == {"author": "Wren"}
    assert inside["coffee/grinding"].title == "coffee/grinding"
    assert not inside["coffee/grinding"].text.startswith("#")


def test_beir_reads_markdown_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    text = "---\\nkind: note\\n---\\n\\n## Half\\n\\n```py\\nx = 1\\n```\\n[[b]] #tag/x"
    (tmp_path / "corpus.jsonl").write_text(f'{{"_id": "a", "text": "{text}"}}\n{{"_id": "b", "text": "# B"}}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "t"}\n')
    (tmp_path / "qrels/test.tsv").write_text("q\ta\t1\n")
    plain, marked = (load_beir(tmp_path, markdown=markdown).documents[0] for markdown in (False, True))
    assert len(plain.sections) == 1 and plain.text.startswith("---") and not plain.code_blocks
    assert [s.path for s in marked.sections] == [("Half",)]
    assert marked.frontmatter == {"kind": "note"} and marked.code_blocks[0].language == "py"
    assert marked.links[0].target == "b" and marked.tags == ("tag/x",)


def test_beir_ids_fit_trec_files(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a b\\u00a0c", "text": "x"}\n{"_id": 7, "text": "y"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q 1", "text": "t"}\n')
    (tmp_path / "qrels/test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq 1\ta b\u00a0c\t1\nq 1\t7\t0\n", encoding="utf-8"
    )
    benchmark = load_beir(tmp_path)
    assert [d.docno for d in benchmark.documents] == ["7", "a%20b%C2%A0c"]
    assert benchmark.document_qrels == {"q%201": {"a%20b%C2%A0c": 1, "7": 0}}


def test_beir_takes_separators_nul_and_surrogates(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('\ufeff{"_id": "a", "text": "x\u2028y \\ud800 \\u0000"}\n', encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "t"}\n')
    (tmp_path / "qrels/test.tsv").write_text("q\ta\t1\n")
    assert load_beir(tmp_path).documents[0].text == "x\u2028y \ufffd \ufffd"


def test_beir_skips_judgments_of_other_topics(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "t"}\n')
    (tmp_path / "qrels/test.tsv").write_text("q\ta\t1\n")
    (tmp_path / "qrels/train.tsv").write_text("other\ta\t1\n")
    benchmark = load_beir(tmp_path)
    assert benchmark.splits == ("test",)
    assert benchmark.warnings == (
        f"{tmp_path / 'qrels/train.tsv'} is excluded: none of its topics is in queries.jsonl",
    )
    with pytest.raises(BenchmarkError, check=naming("other")):
        load_beir(tmp_path, qrels=["train.tsv", "test.tsv"])
    (tmp_path / "corpus.jsonl").unlink()
    (tmp_path / "qrels/test.tsv").unlink()
    with pytest.raises(BenchmarkError, check=naming("other")):  # refused before the documents are read
        load_beir(tmp_path)


def test_beir_reads_packed_files(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv", "qrels/test.tsv"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((TEA / name).read_bytes()))
    packed, plain = load_beir(tmp_path, name="x"), load_beir(TEA, name="x")
    assert (packed.digest, packed.topics) == (plain.digest, plain.topics)
    whole = (tmp_path / "corpus.jsonl.gz").read_bytes()
    (tmp_path / "corpus.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BenchmarkError):
        load_beir(tmp_path)
    (tmp_path / "corpus.jsonl.gz").write_bytes(b"plain text")
    with pytest.raises(BenchmarkError):
        load_beir(tmp_path)


@pytest.mark.parametrize(
    ("option", "splits"),
    [
        (None, {"train": 1, "test": 2}),
        ("test.tsv", {"test": 2}),
        ("test", {"test": 2}),
        (["train.tsv"], {"train": 1}),
        ({"tune": "train.tsv", "final": "test.tsv"}, {"tune": 1, "final": 2}),
        (str(TEA / "qrels/test.tsv"), {"test": 2}),
    ],
)
def test_beir_chooses_files_of_judgments(option: object, splits: dict[str, int]) -> None:
    benchmark = load_beir(TEA, qrels=option)  # type: ignore[arg-type]
    assert {split: len(benchmark.select(split)) for split in benchmark.splits} == splits


def test_beir_names_missing_file_and_others() -> None:
    with pytest.raises(BenchmarkError, check=naming("dev.tsv")):
        load_beir(TEA, qrels="dev.tsv")


def test_beir_refuses_two_files_of_one_split(tmp_path: Path) -> None:
    for path in TEA.rglob("*.*"):
        target = tmp_path / path.relative_to(TEA)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    (tmp_path / "qrels/test.strict.tsv").write_bytes((TEA / "qrels/test.tsv").read_bytes())
    with pytest.raises(BenchmarkError, check=naming("split 'test'")):
        load_beir(tmp_path)
    (tmp_path / "qrels/test.strict.tsv").rename(tmp_path / "qrels/strict.tsv")
    with pytest.raises(BenchmarkError, check=naming("q2")):
        load_beir(tmp_path)
    assert len(load_beir(tmp_path, qrels="strict.tsv").topics) == 2


def test_beir_keeps_annotations_of_queries(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(
        '{"_id": "q", "text": " t ", "type": "code", "group": "g", "need": "n", "hypothesis": "h", "url": 3}\n'
    )
    (topic,) = read_queries(path)
    assert (topic.text, topic.type, topic.group, topic.need, topic.hypothesis) == ("t", "code", "g", "n", "h")


def test_beir_skips_other_metadata(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"docno": "d", "body": "x", "vector": [0.5], "url": "u", "metadata": {"author": "w"}, "nested": {}}\n'
    )
    ((where, document),) = read_documents(path)
    assert where == f"{path}:1"
    assert document.frontmatter == {"url": "u", "author": "w"}
