from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ragbench.base import locations
from ragbench.base.fingerprint import digest
from ragbench.base.types import BenchmarkError, CorpusError
from ragbench.benchmark.benchmark import Topic, best_sections
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.native import load_native, read_topics, write_qrels, write_topics
from tests.naming import naming

TEA = Path(__file__).parents[1] / "data" / "tea"

_TEXT = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip).map(lambda t: t.replace("\0", "?"))
)
# A byte order mark opens a file and is not part of its first id.
_ID = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters=["\ufeff"]), min_size=1).filter(
    lambda t: not any(map(str.isspace, t))
)


@given(qids=st.sets(_ID, min_size=1), texts=st.lists(_TEXT, min_size=1), hypothesis=st.none() | _TEXT)
def test_topics_are_read_as_written(
    qids: set[str], texts: list[str], hypothesis: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("t") / "topics.jsonl"
    topics = tuple(
        Topic(qid, texts[n % len(texts)], need="n\u2028\x85", hypothesis=hypothesis)
        for n, qid in enumerate(sorted(qids))
    )
    write_topics(path, topics)
    assert read_topics(path) == topics


@given(qrels=st.dictionaries(_ID, st.dictionaries(_ID, st.integers(-2, 3), min_size=1)))
def test_judgments_are_read_as_written(
    qrels: dict[str, dict[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.qrels"
    write_qrels(path, qrels)
    assert read_judgments(path) == qrels
    before = path.read_bytes()
    write_qrels(path, {qid: dict(reversed(grades.items())) for qid, grades in reversed(qrels.items())})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"qid": "a", "text": "x", "kind": "y"}, "topics.jsonl:2 has an unknown field 'kind'"),
        ({"qid": "a"}, "topics.jsonl:2 needs a non-empty text in field 'text'"),
        ({"qid": "a", "text": " "}, "topics.jsonl:2 needs a non-empty text in field 'text'"),
        ({"qid": 1, "text": "x"}, "topics.jsonl:2 needs a non-empty text in field 'qid'"),
        ({"qid": "a b", "text": "x"}, "topics.jsonl:2: qid 'a b' must not contain white space"),
        ({"qid": "a", "text": "x", "type": None}, "topics.jsonl:2: field 'type' must be a text, got null"),
        ({"qid": "a", "text": "x", "hypothesis": ["h"]}, "topics.jsonl:2: field 'hypothesis' must be a text"),
        ({"qid": "first", "text": "x"}, "topics.jsonl:2 repeats topic 'first'"),
    ],
)
def test_broken_topics_name_their_line(row: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl"
    path.write_text(json.dumps({"qid": "first", "text": "t", "hypothesis": None}) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(BenchmarkError, match=message):
        read_topics(path)


def test_best_section_grades_document() -> None:
    qrels = {"q": {"lang/c##types": 1, "lang/c##": 2, "a#x/y": 0, "a#": -1}}
    assert best_sections(qrels) == {"q": {"lang/c#": 2, "a": 0}}


def test_native_loads_without_judgments(tmp_path: Path) -> None:
    (tmp_path / "topics.jsonl").write_bytes((TEA / "qrels/topics.jsonl").read_bytes())
    benchmark = load_native(TEA / "vault", tmp_path)
    assert benchmark.document_qrels == {} and "holds no judgments" in benchmark.warnings[0]
    (tmp_path / "sections.qrels").write_bytes((TEA / "qrels/sections.qrels").read_bytes())
    benchmark = load_native(TEA / "vault", tmp_path)
    assert benchmark.document_qrels["q1"] == {"tea/brewing": 3} and benchmark.warnings == ()


def test_native_counts_judgments_of_missing_documents(tmp_path: Path) -> None:
    (tmp_path / "topics.jsonl").write_bytes((TEA / "qrels/topics.jsonl").read_bytes())
    (tmp_path / "sections.qrels").write_text("q1 0 tea/brewing#watr 1\nq1 0 gone# 1\nq9 0 index#hot-drinks 1\n")
    warnings = "\n".join(load_native(TEA / "vault", tmp_path, unknown_topics="warn").warnings)
    assert "sections.qrels: 2 judgment(s) of unknown sections: tea/brewing#watr, gone#" in warnings
    assert "documents.qrels: 1 judgment(s) of unknown documents: gone" in warnings
    assert "1 topic(s) with judgments have no text: q9" in warnings


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q 0 d", "a.qrels:1: grade 'd' is not a whole number"),
        ("q 0 d x", "a.qrels:1: grade 'x' is not a whole number"),
        ("q 0 d 1\nq 0 d 2", "a.qrels:2 judges d for q again with another grade"),
    ],
)
def test_broken_judgments_name_their_line(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    path.write_text(line)
    with pytest.raises(BenchmarkError, match=message):
        read_judgments(path)


def test_list_of_documents_bounds_collection(tmp_path: Path) -> None:
    for name in ("a.md", "b/c.md", "b/d e.md"):
        (tmp_path / "corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / name).write_text("# A title\n\nSee [[c]].\n", encoding="utf-8")
    qrels = tmp_path / "qrels"
    qrels.mkdir()
    write_topics(qrels / "topics.jsonl", [Topic("t1", "a question")])
    (qrels / "documents.txt").write_text("a.md\nb/d e.md\n", encoding="utf-8")
    benchmark = load_native(tmp_path / "corpus", qrels)
    assert [document.docno for document in benchmark.documents] == ["a", "b/d%20e"]
    # A link to a document outside the list leads nowhere.
    assert not any(link.target for document in benchmark.documents for link in document.links)
    (qrels / "documents.txt").write_text("a.md\ngone.md\n", encoding="utf-8")
    with pytest.raises(CorpusError, check=naming("gone.md")):
        load_native(tmp_path / "corpus", qrels)


def test_salient_terms_reach_the_query_and_change_no_digest(tmp_path: Path) -> None:
    topics = [Topic("q", "how do I rotate the API key", salient_terms="rotate; API key"), Topic("other", "why")]
    write_topics(tmp_path / "topics.jsonl", topics)
    read = read_topics(tmp_path / "topics.jsonl")
    assert read == tuple(topics)
    assert [topic.query().salient_terms for topic in read] == [("rotate", "API key"), ()]
    assert [topic.query().phrasings for topic in read] == [(), None]  # a model is asked for the second only
    assert digest(read[0]) == digest(Topic("q", "how do I rotate the API key"))


def test_builtin_salient_terms_are_words_of_queries() -> None:
    topics = read_topics(locations.builtin() / "qrels" / "v2" / "topics.jsonl")
    with_terms = [topic for topic in topics if topic.salient_terms]
    assert len(topics) - len(with_terms) == 5
    for topic in with_terms:
        assert all(term.lower() in topic.text.lower() for term in topic.query().salient_terms), topic.qid
