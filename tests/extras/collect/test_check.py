from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark, Topic, best_sections
from ragbench.corpus.reader import read_vault
from ragbench.extras.collect.check import Finding, check

TEA = Path(__file__).parents[2] / "data" / "tea"
SECTIONS = {"q1": {"tea/brewing#water": 3}, "q2": {"tea/storing#storing-tea": 2}}
TOPICS = (Topic("q1", "how hot for sencha"), Topic("q2", "keep leaves dry"))


@pytest.fixture(autouse=True)
def few_topics_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragbench.extras.collect.check._TOPICS", 0)
    monkeypatch.setattr("ragbench.extras.collect.check._OF_TYPE", 0)


def findings(
    topics: Sequence[Topic] = TOPICS,
    sections: Mapping[str, Mapping[str, int]] = SECTIONS,
    documents: Mapping[str, Mapping[str, int]] | None = None,
) -> list[Finding]:
    vault = read_vault(TEA / "vault").documents
    qrels = best_sections(sections) if documents is None else documents
    return check(Benchmark("tea", vault, tuple(topics), qrels, sections))


def codes(reported: Sequence[Finding]) -> list[tuple[str, str, str]]:
    return [(f.severity, f.code, f.where) for f in reported if f.code != "never-relevant"]


def test_check_finds_nothing_in_sound_benchmark() -> None:
    reported = findings()
    assert codes(reported) == []
    assert [(f.where, f.message) for f in reported] == [
        ("(root)", "1 of 1 documents are not relevant to any query: index"),
        ("coffee", "1 of 1 documents are not relevant to any query: coffee/grinding"),
    ]


def test_check_finds_judgments_of_missing_targets() -> None:
    sections = {
        "q1": {"tea/brewing#water": 3, "tea/brewing#watr": 0, "tea/brewin#time": 0, "tea/brewing": 0},
        "q2": SECTIONS["q2"],
        "q9": {"index#hot-drinks": 1},
    }
    reported = findings(sections=sections)
    assert [f for f in codes(reported) if f[1].startswith("unknown")] == [
        ("error", "unknown-document", "q1"),
        ("error", "unknown-document", "q1"),
        ("error", "unknown-document", "q1"),
        ("error", "unknown-heading", "q1"),
        ("error", "unknown-topic", "q9"),
    ]
    messages = [f.message for f in reported]
    assert "'tea/brewing' has no section 'watr'; did you mean 'water'?" in messages
    assert "'tea/brewin' is judged but not in the collection; did you mean 'tea/brewing'?" in messages


def test_check_accepts_text_before_first_heading() -> None:
    assert codes(findings(sections=SECTIONS | {"q1": {"tea/brewing#": 1}})) == []
    assert codes(findings(sections=SECTIONS | {"q1": {"index#": 1}})) == [("error", "unknown-heading", "q1")]


def test_check_finds_contradicting_grades() -> None:
    documents = {"q1": {"tea/brewing": 2, "index": 1, "coffee/grinding": 0}, "q2": {"tea/storing": 2}}
    assert codes(findings(documents=documents)) == [
        ("error", "document-grade", "q1"),
        ("warning", "unlocated-grade", "q1"),
    ]
    assert codes(findings(documents={"q1": {}, "q2": {"tea/storing": 2}})) == [("error", "document-grade", "q1")]


def test_check_finds_topics_without_answers() -> None:
    topics = (
        Topic("q1", "how hot", type="no_answer"),
        Topic("q2", "keep dry", type="no_answer"),
        Topic("q3", "unjudged"),
        Topic("q4", "nothing good"),
        Topic("q5", "many", type="multi_document"),
    )
    sections = {
        "q1": SECTIONS["q1"],
        "q2": {"tea/storing#storing-tea": 0},
        "q4": {"index#hot-drinks": 0},
        "q5": {"index#hot-drinks": 1, "tea/brewing#time": 1},
    }
    assert codes(findings(topics, sections)) == [
        ("error", "answered-no-answer", "q1"),
        ("error", "nothing-relevant", "q4"),
        ("error", "unjudged-topic", "q3"),
        ("warning", "few-documents", "q5"),
    ]


def test_check_finds_query_copied_from_answer() -> None:
    topics = (Topic("q1", "Eighty degrees, for the UNOXIDISED kinds!"), Topic("q2", "keep leaves dry"))
    assert codes(findings(topics)) == [("error", "verbatim-query", "q1")]
    # Elsewhere in the document it is no leak where sections were judged; a short query may be an identifier.
    assert codes(findings(topics, SECTIONS | {"q1": {"tea/brewing#time": 3}})) == []
    assert (
        codes(findings((Topic("q1", "two minutes then taste"), TOPICS[1]), SECTIONS | {"q1": {"tea/brewing#time": 1}}))
        == []
    )
    assert codes(findings(topics, {}, {"q1": {"tea/brewing": 1}, "q2": {"tea/storing": 1}})) == [
        ("error", "verbatim-query", "q1")
    ]


def test_check_finds_repeated_topics() -> None:
    def with_topics(*topics: Topic) -> list[tuple[str, str, str]]:
        return codes(findings(topics, {topic.qid: SECTIONS["q1"] for topic in topics}))

    assert with_topics(Topic("a", "How hot?"), Topic("b", "how HOT")) == [("error", "duplicate-topic", "a")]
    assert with_topics(Topic("a", "w x y z"), Topic("b", "w x y z v")) == [("warning", "near-duplicate-topic", "a")]
    assert with_topics(Topic("a", "w x y z", group="g"), Topic("b", "w x y z v", group="g")) == []
    assert with_topics(Topic("a", "w x y z", group="g"), Topic("b", "w x y z v", group="h")) != []
    assert with_topics(Topic("a", "w x y z"), Topic("b", "w x y v")) == []


def test_check_finds_leaks_between_splits() -> None:
    topics = (
        Topic("q1", "how hot for sencha", split="train", group="g"),
        Topic("q2", "keep leaves dry", split="test", group="g"),
    )
    reported = findings(topics)
    assert codes(reported) == [("error", "split-leak", "g")]
    assert reported[0].message == "the group is in test and train: keep it in one split"
    assert codes(findings((Topic("q1", "a", split=""), Topic("q2", "b", split="")))) == [("error", "no-split", "q1")]


def test_check_finds_small_and_unbalanced_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragbench.extras.collect.check._TOPICS", 11)
    monkeypatch.setattr("ragbench.extras.collect.check._OF_TYPE", 2)
    topics = [Topic(f"a{n}", f"a {n}", "code", "train" if n < 9 else "test") for n in range(10)]
    topics += [Topic(f"b{n}", f"b {n}", "factual", "train" if n < 1 else "test") for n in range(10)]
    topics += [Topic("c", "c", "rare", "train")]
    sections = {topic.qid: {"tea/brewing#time": 1} for topic in topics}
    reported = codes(findings(topics, sections))
    assert reported == [
        ("warning", "few-topics", "test"),
        ("warning", "type-balance", "code"),
        ("warning", "type-balance", "code"),
        ("warning", "type-balance", "factual"),
        ("warning", "type-balance", "factual"),
        ("note", "rare-type", "rare"),
    ]


def test_check_finds_copies_and_negative_grades(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# Same\n\ntext\n")
    vault = read_vault(tmp_path).documents
    reported = check(Benchmark("x", vault, (Topic("q", "t"),), {"q": {"a": 1, "b": -1}}))
    assert codes(reported) == [("warning", "duplicate-document", "a"), ("note", "negative-grade", "q")]
