"""Version 2.1 of the built-in benchmark: linked documents, questions worded from a need, version 2 untouched."""

from __future__ import annotations

import re
from collections import Counter
from statistics import median

import pytest

from ragbench.base import locations
from ragbench.base.types import ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.load import builtin_judgments, load
from ragbench.benchmark.native import listed_documents, read_topics
from ragbench.extras.collect.agreement import agreement
from ragbench.extras.collect.check import check

FOLDER = locations.builtin() / "qrels" / "v21"
_OPENINGS = (
    "See also|Siehe auch|Voir aussi|Véase también|Related|Further reading|Next to this|Elsewhere|More|Compare|関連"
)
_CLOSING = re.compile(rf"(?m)^(?:{_OPENINGS})[: ].*\].*$")


@pytest.fixture(scope="module")
def new() -> Benchmark:
    return load({"loader": "builtin", "version": 2.1})


@pytest.fixture(scope="module")
def old() -> Benchmark:
    return load({"loader": "builtin", "version": 2})


@pytest.fixture(scope="module")
def sheet() -> str:
    return (FOLDER / "DATASHEET.md").read_text(encoding="utf-8")


def test_version_2_stays_as_it_was(old: Benchmark) -> None:
    assert old.digest == "e680ee4ba2d7a4d76e27c1b1c1be1a299a9204b642af005744bceb8d29a63d02"
    assert not {topic.qid for topic in old.topics if "-v21-" in topic.qid}


def test_builtin_refuses_unknown_version() -> None:
    with pytest.raises(ConfigError):
        builtin_judgments(2.2)


def test_version_21_has_listed_documents(new: Benchmark) -> None:
    assert {document.path for document in new.documents} == listed_documents(FOLDER)
    assert new.warnings == ()


def test_version_21_links_documents_like_a_vault(new: Benchmark, old: Benchmark) -> None:
    """At least five targets in the median document, most labels not the title, no dead link that version 2 has not."""
    targets = [{link.target for link in document.links} - {None, document.docno} for document in new.documents]
    assert median(map(len, targets)) >= 5 and min(map(len, targets)) >= 1
    titles = {document.docno: document.title.casefold() for document in new.documents}
    labels = [(link.label, link.target) for document in new.documents for link in document.links if link.target]
    assert sum(label.casefold() not in ("", titles[target]) for label, target in labels) / len(labels) > 0.8
    dead = [
        sum(link.target is None for document in benchmark.documents for link in document.links)
        for benchmark in (new, old)
    ]
    assert dead[0] <= dead[1]


@pytest.mark.slow
def test_version_21_halves_near_copies(new: Benchmark, old: Benchmark, sheet: str) -> None:
    """Word 4-grams of what a reader sees, without the line of further links at the end: Jaccard at least .6."""
    shares = [_near_copies(benchmark) for benchmark in (new, old)]
    assert shares[0] <= shares[1] / 2 + 0.005
    assert f"| {shares[1]:.0%} | {shares[0]:.0%} |" in sheet


def test_version_21_questions_are_as_long_as_human_ones(new: Benchmark) -> None:
    lengths = sorted(len(topic.text.split()) for topic in new.topics if "-v21-" in topic.qid)
    assert len(lengths) >= 200 and median(lengths) >= 9
    assert lengths[0] >= 5 and lengths[-1] <= 30


def test_version_21_keeps_topics_of_version_2(new: Benchmark, old: Benchmark) -> None:
    topics = {topic.qid: topic for topic in new.topics}
    changed = [topic.qid for topic in old.topics if topics[topic.qid].need != topic.need]
    assert changed == ["gate-34", "gate-35", "store-34", "kit-34", "gate-v2-54"]
    assert all(topics[topic.qid].text == topic.text for topic in old.topics)
    moved = [(topic.split, topics[topic.qid].split) for topic in old.topics if topics[topic.qid].split != topic.split]
    assert set(moved) == {("test", "train")}


def test_version_21_keeps_judgments_of_version_2(new: Benchmark, old: Benchmark) -> None:
    docnos = {document.docno for document in new.documents}
    own = read_judgments(FOLDER / "sections.qrels")
    for qid, grades in old.section_qrels.items():
        kept = {target: grade for target, grade in grades.items() if target.partition("#")[0] in docnos}
        assert new.section_qrels[qid] == kept | own.get(qid, {})
    assert new.section_qrels["fleet-27"]["fleet/wiki/guild%20notes%202025#29-january"] == 2
    assert not [x for x in check(new) if x.severity == "error"]


def test_version_21_topics_have_answer_or_type(new: Benchmark) -> None:
    for topic in new.topics:
        if "-v21-" in topic.qid:
            best = max(new.section_qrels[topic.qid].values())
            assert (best < 2) == (topic.type == "no_answer"), topic.qid


def test_version_21_datasheet_counts_topics_and_judgments(sheet: str, new: Benchmark) -> None:
    topics = read_topics(FOLDER / "topics.jsonl")
    counts = Counter((topic.type, topic.split) for topic in topics)
    fresh = Counter((topic.type, topic.split) for topic in topics if "-v21-" in topic.qid)
    for kind in {topic.type for topic in topics}:
        row = f"| {kind} | {counts[kind, 'train']} | {counts[kind, 'test']} "
        assert f"{row}| {fresh[kind, 'train']} | {fresh[kind, 'test']} |" in sheet
    grades = Counter(
        grade for judged in read_judgments(FOLDER / "sections.qrels").values() for grade in judged.values()
    )
    useful = sum(count for grade, count in grades.items() if grade)
    assert f"{sum(grades.values()):,} of its own, of which {useful:,} above 0" in sheet
    assert f"({grades[3]:,} of grade 3, {grades[2]:,} of grade 2, {grades[1]:,} of grade 1)" in sheet
    assert f"{sum(map(len, new.section_qrels.values())):,} with those of version 2" in sheet


def test_version_21_datasheet_states_agreement(sheet: str, new: Benchmark) -> None:
    measured = agreement(new.section_qrels, read_judgments(FOLDER / "second_judge.qrels"))
    assert f"{measured.same:.1%} of {measured.n_pairs} pairs of {measured.n_topics} topics" in sheet
    assert f"quadratically weighted {measured.kappa:.3f}" in sheet


def _near_copies(benchmark: Benchmark) -> float:
    documents = {document.docno: _grams(document.text) for document in benchmark.documents}
    places: dict[tuple[str, ...], list[str]] = {}
    for docno, grams in documents.items():
        for gram in grams:
            places.setdefault(gram, []).append(docno)
    shared: Counter[tuple[str, str]] = Counter()
    for docnos in places.values():
        if len(docnos) < 60:
            shared.update((one, other) for i, one in enumerate(docnos) for other in docnos[:i])
    near = {
        docno
        for pair, count in shared.items()
        if count / len(documents[pair[0]] | documents[pair[1]]) >= 0.6
        for docno in pair
    }
    return len(near) / len(documents)


def _grams(text: str) -> set[tuple[str, ...]]:
    seen = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|\[([^\]]*)\]\([^)]*\)", r"\1\2", _CLOSING.sub("", text))
    tokens = re.findall(r"\w+", seen.casefold())
    return set(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))
