"""One small collection in every form: whatever the loader, the same topics, splits and judgments come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragbench.base.types import BenchmarkError, RagbenchError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.load import load
from tests.naming import naming

TEA = Path(__file__).parents[1] / "data" / "tea"
DOCNOS = ["coffee/grinding", "index", "tea/brewing", "tea/storing"]
TEXTS = {"q1": "how hot for sencha", "q2": "keep leaves dry", "q3": "grind size for a filter"}
SPLITS = {"q1": "train", "q2": "test", "q3": "test"}
GRADES = {"q1": {"tea/brewing": 3}, "q2": {"tea/storing": 2, "tea/brewing": 0}, "q3": {"coffee/grinding": 1}}
QRELS = {"train": str(TEA / "trec/train.qrels"), "test": str(TEA / "trec/test.qrels")}


@pytest.fixture(scope="session")
def catalogue() -> Mapping[str, str]:
    """The collection in the catalogue of ir_datasets, one id for each split, from local files."""
    import ir_datasets

    for split in ("train", "test"):
        trec = TEA / "trec"
        dataset = ir_datasets.create_dataset(
            str(trec / "documents.tsv"), str(trec / "topics.tsv"), str(trec / f"{split}.qrels")
        )
        ir_datasets.registry.register(f"tea/{split}", dataset)
    return {"train": "tea/train", "test": "tea/test"}


def spec_of(form: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    trec = {"loader": "trec", "qrels": QRELS, "name": "tea"}
    return {
        "native": lambda: {"loader": "native", "corpus": str(TEA / "vault"), "qrels": str(TEA / "qrels")},
        "builtin": lambda: {"loader": "builtin", "corpus": str(TEA / "vault"), "qrels": str(TEA / "qrels")},
        "beir": lambda: {"loader": "beir", "folder": str(TEA / "beir"), "qrels": None},
        "trec text": lambda: (
            trec | {"corpus": str(TEA / "trec/documents.trec"), "queries": str(TEA / "trec/topics.txt")}
        ),
        "trec jsonl": lambda: (
            trec | {"corpus": str(TEA / "trec/documents.jsonl"), "queries": str(TEA / "trec/topics.tsv")}
        ),
        "ir_datasets": lambda: {"loader": "ir_datasets", "id": request.getfixturevalue("catalogue")},
        "vault": lambda: {
            "loader": "vault",
            "corpus": str(TEA / "vault"),
            "queries": str(TEA / "vault.csv"),
            "qrels": str(TEA / "qrels"),
        },
    }[form]()


FORMS = ["native", "builtin", "beir", "trec text", "trec jsonl", "ir_datasets", "vault"]


@pytest.mark.parametrize("form", FORMS)
def test_loaders_give_same_benchmark_for_every_form(form: str, request: pytest.FixtureRequest) -> None:
    benchmark = load(spec_of(form, request))
    assert [document.docno for document in benchmark.documents] == DOCNOS
    assert {topic.qid: topic.text for topic in benchmark.topics} == TEXTS
    assert {topic.qid: topic.split for topic in benchmark.topics} == SPLITS
    assert benchmark.document_qrels == GRADES
    assert benchmark.warnings == ()
    assert benchmark.splits == ("test", "train")


@pytest.mark.parametrize("form", FORMS)
def test_loaders_read_documents_without_queries(form: str, request: pytest.FixtureRequest) -> None:
    spec = {key: value for key, value in spec_of(form, request).items() if key not in ("queries", "qrels")}
    if form == "builtin":
        spec["qrels"] = str(TEA / "qrels")
    benchmark = load(spec, topics=False)
    assert [document.docno for document in benchmark.documents] == DOCNOS
    assert benchmark.topics == () and benchmark.document_qrels == {}


@pytest.mark.parametrize("form", FORMS)
def test_sections_tile_the_text_and_digests_tell_texts_apart(form: str, request: pytest.FixtureRequest) -> None:
    documents = load(spec_of(form, request)).documents
    assert len({document.digest for document in documents}) == len(documents)
    for document in documents:
        text = "".join(document.text[section.start : section.end] for section in document.sections)
        assert text.strip() == document.text.strip()


@pytest.mark.parametrize("form", ["native", "vault"])
def test_section_judgments_are_used(form: str, request: pytest.FixtureRequest) -> None:
    qrels = load(spec_of(form, request)).section_qrels
    assert qrels["q1"] == {"tea/brewing#water": 3, "tea/brewing#time": 0}
    assert qrels["q2"] == {"tea/storing#storing-tea": 2, "tea/brewing#": 0}


def beir(folder: Path, **files: str | bytes) -> dict[str, Any]:
    """A small BEIR folder in which some files hold something else."""
    given = {
        "corpus": '{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n',
        "queries": '{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "second"}\n',
        "test": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n",
    } | files
    (folder / "qrels").mkdir(parents=True)
    for name, content in given.items():
        path = folder / ("qrels/test.tsv" if name == "test" else f"{name}.jsonl")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return {"loader": "beir", "folder": str(folder)}


BROKEN: list[tuple[dict[str, str | bytes], str]] = [
    ({"corpus": '{"_id": "d1", "text": "x"}\n\n{"_id": "", "text": "x"}\n'}, "corpus.jsonl:3 has no document id"),
    ({"corpus": '{"_id": "d1"}\n'}, "corpus.jsonl:1: document d1 has no text"),
    ({"corpus": '{"_id": "d1", "text": ["x"]}\n'}, "corpus.jsonl:1: document d1 has no text"),
    ({"corpus": '{"_id": "d1", "text": "x", "title": 7}\n'}, "corpus.jsonl:1: the title of document d1"),
    ({"corpus": '{"_id": "a", "text": "x"}\n'.encode("utf-16")}, "corpus.jsonl:1 is not UTF-8 .*UTF-16"),
    ({"corpus": '{"_id": "a", "text": "x"}\n{"_id": '}, "corpus.jsonl:2 is not JSON"),
    ({"corpus": "[" * 100_000}, "corpus.jsonl:1 is not JSON"),
    ({"corpus": '{"_id": ' + "9" * 5000 + ', "text": "x"}'}, "corpus.jsonl:1 is not JSON"),
    ({"corpus": "[1]\n"}, r"corpus.jsonl:1 must be a JSON object, got \[1\]"),
    ({"corpus": "null\n"}, "corpus.jsonl:1 must be a JSON object, got null"),
    ({"corpus": '{"_id": "a", "text": "x", "metadata": {"n": NaN}}\n'}, "corpus.jsonl:1: its metadata holds NaN"),
    ({"corpus": ""}, "corpus.jsonl holds no documents"),
    (
        {"queries": '{"_id": "q1", "text": "first"}\n{"_id": "q2", "text": "  "}\n'},
        "queries.jsonl:2: query q2 is empty",
    ),
    ({"queries": '{"_id": "q1"}\n'}, "queries.jsonl:1: query q1 is empty"),
    ({"queries": "\n"}, "queries.jsonl holds no queries"),
    ({"test": "query-id\tcorpus-id\tscore\nq1\td1\tgood\n"}, "test.tsv:2: grade 'good' is not a whole number"),
    ({"test": "q1\td1\t1\nq1\td2\t0.5\n"}, "test.tsv:2: grade '0.5' is not a whole number"),
    ({"test": "q1\td1\t1\nq1\td2\t4000000000\n"}, "test.tsv:2: grade '4000000000' is not a whole number between"),
    ({"test": "q1\td1\t1\nq1\td1\t2\n"}, "test.tsv:2 judges d1 for q1 again with another grade"),
    ({"test": "q1\td1\t1\nq1\td1\n"}, "test.tsv:2 must have 3 fields like the first line, got 2"),
    ({"test": "q1 d1\n"}, "test.tsv:1 must have three fields"),
    ({"test": "q1\tgone\t1\n"}, "no topic has both a text and a judgment"),
]


@pytest.mark.parametrize(("files", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_loaders_name_line_of_broken_data(files: dict[str, str | bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=message) as raised:
        load(beir(tmp_path / "b", **files))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels"])
def test_loaders_name_missing_part(missing: str, tmp_path: Path) -> None:
    spec = beir(tmp_path / "b")
    path = tmp_path / "b" / missing
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(BenchmarkError, match=f"{missing}.* (does not exist|holds no judgments)"):
        load(spec)


def test_loaders_count_what_they_leave_out(tmp_path: Path) -> None:
    spec = beir(
        tmp_path / "b",
        corpus='{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": " "}\n',
        queries='{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n{"_id": "q3", "text": "c"}\n',
        test="query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\tgone\t1\nq2\tgone\t2\nq9\td1\t1\nq1\td2\t-1\n",
    )
    benchmark = load(spec | {"unknown_topics": "warn"})
    assert [topic.qid for topic in benchmark.topics] == ["q1"]
    assert benchmark.document_qrels == {"q1": {"d1": 1, "d2": -1}}
    warnings = "\n".join(benchmark.warnings)
    assert "1 document(s) without text and title can never be found: d2" in warnings
    assert "1 topic(s) with judgments but without text are excluded: q9" in warnings
    assert "2 judgment(s) of documents that are not in the collection are excluded: gone" in warnings
    assert "1 topic(s) are skipped because none of their relevant documents is in the collection: q2" in warnings
    assert "1 topic(s) without judgments are excluded: q3" in warnings
    assert "1 negative grades count as not relevant" in warnings


@pytest.mark.parametrize("kind", ["corpus", "queries", "qrels"])
def test_loaders_stream_large_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *arguments: object, **options: object) -> str:
        raise AssertionError(f"{self} was read whole")

    spec = beir(tmp_path / "b")
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert len(load(spec).topics) == 2


def mapping_of(benchmark: Benchmark) -> Callable[[str], Mapping[str, int]]:
    return lambda qid: benchmark.document_qrels[qid]


def test_grades_mapping_reverses_grades(tmp_path: Path) -> None:
    spec = beir(tmp_path / "b", test="q1\td1\t1\nq1\td2\t4\nq2\td1\t-1\nq2\td2\t3\n")
    grades = mapping_of(load(spec | {"grades": {1: 4, 2: 3, 3: 2, 4: 1, -1: None}}))
    assert grades("q1") == {"d1": 4, "d2": 1}
    assert grades("q2") == {"d2": 2}
    assert (
        load(spec | {"grades": {1: 4, 3: 2, 4: 1, -1: 0}}).version == "grades read as -1 as 0, 1 as 4, 3 as 2, 4 as 1"
    )
    with pytest.raises(BenchmarkError, check=naming("grade -1")):
        load(spec | {"grades": {1: 4, 2: 3, 3: 2, 4: 1}})


@pytest.mark.parametrize("grades", [{"best": 1}, {1: "best"}, {1: True}, {}, {1: 5000}, [1, 2]])
def test_grades_mapping_refuses_nonsense(grades: Any, tmp_path: Path) -> None:
    with pytest.raises(RagbenchError, check=naming("grades")):
        load(beir(tmp_path / "b") | {"grades": grades})
