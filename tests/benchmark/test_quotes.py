from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.load import load_benchmark
from ragbench.benchmark.quotes import Quote, entries, locate, sections_of, split_target
from ragbench.corpus.reader import parse_document
from ragbench.extras.collect.check import check

SAFE = "# Safe\n\nThe *spare* keys lie\nin the safe.\n\n## Door\n\nIt has ten bolts. Nobody counts them.\n"


def document(docno: str, text: str):
    return parse_document(docno, f"{docno}.md", text.encode(), 0.0)[0]


def located(text: str, cited: str = "safe", **others: str) -> Quote:
    documents = {"safe": document("safe", SAFE), **{name: document(name, body) for name, body in others.items()}}
    return locate("q", cited, text, documents)


def test_entries_split_outside_quotations() -> None:
    assert entries('a.md "one; two"; b.md#c ;; c.md \u201cthree;\u201d') == [
        'a.md "one; two"',
        "b.md#c",
        "c.md \u201cthree;\u201d",
    ]
    assert split_target('a b.md "one; two"') == ("a b.md", "one; two")
    assert split_target("a.md#b") == ("a.md#b", "")
    assert split_target('"one"') == ("", "one")
    assert entries("a.md 'one; it''s'; what's.md; b's.md \u2018two\u2019") == [
        "a.md 'one; it''s'",
        "what's.md",
        "b's.md \u2018two\u2019",
    ]
    assert split_target("a.md 'one; two'") == ("a.md", "one; two")
    assert split_target("b's.md \u2018it\u2019s two\u2019") == ("b's.md", "it\u2019s two")
    assert split_target("'one'") == ("", "one") and split_target("the dogs' 'x") == ("the dogs' 'x", "")


def test_quote_matches_across_markup_and_paragraphs() -> None:
    quote = located("The spare keys lie in the safe")
    assert SAFE[quote.start : quote.end] == "The *spare* keys lie\nin the safe"
    assert (quote.state, quote.docno) == ("kept", "safe")
    assert located("in the safe. Door It has").state == "kept"


def test_quote_moves_to_document_that_holds_it() -> None:
    passage = "nobody may ever open the window"
    quote = located(passage, other=f"So {passage}.")
    assert (quote.state, quote.docno, quote.start, quote.cited) == ("moved", "other", 3, "safe")
    assert located(passage, other=f"So {passage}.", more=passage).state == "lost"
    assert located(passage, cited="gone", other=f"So {passage}.").docno == "other"


def test_quote_edited_matches_most_words() -> None:
    # Of its ten words "the spare keys lie in the safe" keeps seven in a stretch of ten.
    quote = located("today the spare keys lie quietly in the large safe")
    assert (quote.state, quote.docno, quote.likeness) == ("edited", "safe", 0.7)
    assert "spare* keys lie\nin the" in SAFE[quote.start : quote.end]
    assert located("ten boats and a sea that nobody sailed").state == "lost"


def test_quote_is_covered_from_half_on() -> None:
    quote = Quote("q", "", "d", 100, 120)
    assert quote.covered_by(110, 200) and quote.covered_by(0, 110) and quote.covered_by(105, 115)
    assert not quote.covered_by(111, 200) and not quote.covered_by(0, 100)


def test_quote_lies_in_sections_with_half_of_it() -> None:
    text = document("safe", SAFE)
    assert sections_of(located("ten bolts"), text) == ["safe#safe/door"]
    assert sections_of(located("lie in the safe Door It"), text) == ["safe#safe"]


@pytest.fixture
def quoting(tmp_path: Path) -> Benchmark:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "safe.md").write_text(SAFE, encoding="utf-8")
    (tmp_path / "notes" / "other.md").write_text("Nobody may ever open the window.\n", encoding="utf-8")
    rows = [
        "text,relevant",
        'where are keys,"safe.md ""The spare keys lie""; safe.md ""ten bolts"""',
        'may I air the room,"safe.md ""nobody may ever open the window"""',
        'who sails,"safe.md ""a sea that nobody ever sailed"""',
    ]
    (tmp_path / "queries.csv").write_text("\n".join(rows), encoding="utf-8")
    return load_benchmark("vault", corpus=str(tmp_path / "notes"), queries=str(tmp_path / "queries.csv"))


def test_vault_queries_take_quotes(quoting: Benchmark) -> None:
    first, second, third = (topic.qid for topic in quoting.topics)
    assert quoting.document_qrels == {first: {"safe": 1}, second: {"other": 1}}
    assert quoting.section_qrels == {first: {"safe#safe": 1, "safe#safe/door": 1}, second: {"other#": 1}}
    assert [quote.id for quote in quoting.quotes_by_topic[first]] == ["safe#8-28", "safe#59-68"]
    assert third not in quoting.quotes_by_topic
    moved, lost = quoting.warnings[:2]
    assert 'moved from safe: cite other "Nobody may ever open the window"' in moved
    assert 'the quote "a sea that nobody ever sailed" is no longer in safe nor anywhere else' in lost


def test_check_reports_moved_and_edited_quotes(quoting: Benchmark) -> None:
    codes = {finding.code: finding.severity for finding in check(quoting) if finding.code.endswith("-quote")}
    assert codes == {"moved-quote": "warning", "lost-quote": "error"}


def test_masking_moves_quotes_along(quoting: Benchmark) -> None:
    from dataclasses import replace

    from ragbench.extras.collect.masked import without_sources

    first, *others = quoting.topics
    masked = without_sources(replace(quoting, topics=(replace(first, masked="keys lie in the safe"), *others)))
    assert [quote.state for quote in masked.quotes] == ["lost", "kept", "moved", "lost"]
    (quote,) = masked.quotes_by_topic[first.qid]
    text = next(page.text for page in masked.documents if page.docno == "safe")
    assert text[quote.start : quote.end] == "ten bolts" and quote.start != 59
