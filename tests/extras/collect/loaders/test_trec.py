from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import BenchmarkError
from ragbench.extras.collect.loaders.trec import load_trec, read_trec_topics, read_trectext
from tests.naming import naming

TREC = Path(__file__).parents[3] / "data" / "tea" / "trec"


@pytest.mark.parametrize(
    ("field", "text"), [("title", "how hot for sencha"), ("desc", "The water temperature for green tea.")]
)
def test_trec_reads_classic_topics(field: str, text: str, tmp_path: Path) -> None:
    only_first = tmp_path / "topics.txt"
    only_first.write_text((TREC / "topics.txt").read_text().split("</top>")[0] + "</top>\n")
    (topic,) = read_trec_topics(only_first, field)  # type: ignore[arg-type]
    assert (topic.qid, topic.text, topic.need) == ("q1", text, "The water temperature for green tea.")


def test_trec_matches_topics_numbered_with_zeros(tmp_path: Path) -> None:
    (tmp_path / "topics").write_text("<top>\n<head> Tipster\n<num> Number:  051\n<title> Topic:  Airbus\n</top>\n")
    (tmp_path / "qrels").write_text("51 0 d-1 1\n")
    (tmp_path / "docs").write_text("<DOC>\n<DOCNO>d-1</DOCNO>\n<TEXT>planes</TEXT>\n</DOC>\n")
    benchmark = load_trec(tmp_path / "docs", tmp_path / "topics", str(tmp_path / "qrels"))
    assert [(topic.qid, topic.text, topic.split) for topic in benchmark.topics] == [("51", "Airbus", "test")]


def test_trectext_keeps_paragraphs_and_drops_tags_and_header_fields(tmp_path: Path) -> None:
    path = tmp_path / "ft"
    path.write_text(
        "\n<DOC>\n<DOCNO> FT-1 </DOCNO>\n<DATE>910101\n<HEADLINE>\nFT 01 JAN /\n  A title\n</HEADLINE>\n"
        "<TEXT>\n<P>One <F>two</F>.</P>\n\nThree.\n</TEXT>\n<BYLINE>x</BYLINE></DOC>\n"
        "<doc><docno>b</docno>short</doc>\n"
    )
    first, second = (document for _, document in read_trectext(path))
    assert first.docno == "FT-1"
    assert first.text == "# FT 01 JAN / A title\n\nOne two.\n\nThree.\n\nx"
    assert (second.docno, second.text, second.title) == ("b", "short", "b")


def test_trec_reads_folder_in_other_encoding(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/b.jsonl").write_bytes('{"id": "b", "text": "caf\xe9"}\n'.encode("latin-1"))
    (tmp_path / "docs/a.trec").write_bytes("<DOC><DOCNO>a</DOCNO>\n<TEXT>na\xefve</TEXT></DOC>\n".encode("latin-1"))
    (tmp_path / "docs/.hidden").write_text("no documents here")
    (tmp_path / "topics.tsv").write_bytes("qid\tquery\n1\tth\xe9\n".encode("latin-1"))
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    arguments = (tmp_path / "docs", tmp_path / "topics.tsv", str(tmp_path / "qrels"))
    benchmark = load_trec(*arguments, encoding="latin-1")
    assert [d.text for d in benchmark.documents] == ["na\xefve", "caf\xe9"]
    assert benchmark.topics[0].text == "th\xe9"
    with pytest.raises(BenchmarkError, check=naming("a.trec:2")):
        load_trec(*arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", r"d:1 has a <DOC> without <DOCNO>"),
        ("<DOC>\n<DOCNO>a</DOCNO>\n", r"d:1 has a <DOC> that is never closed"),
        ("<DOC>\n<DOCNO>a</DOCNO>\n<DOC>\n", r"d:1 has a <DOC> that is not closed before line 3"),
        ("<DOC><DOCNO>a</DOCNO></DOC>\nstray\n", r"d:2 stands outside <DOC>"),
        ("<DOC><DOCNO>a</DOCNO></DOC>\n" * 2, r"d:2 repeats document id 'a': the first is at .*d:1"),
        ("", "holds no documents|stands outside"),
    ],
)
def test_trec_names_line_of_broken_documents(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "d").write_text(text)
    (tmp_path / "t").write_text("1\tx\n")
    (tmp_path / "q").write_text("1 0 a 1\n")
    with pytest.raises(BenchmarkError, match=message):
        load_trec(tmp_path / "d", tmp_path / "t", str(tmp_path / "q"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<top>\n<title> x\n</top>\n", "t:1: a topic has no number"),
        ("<top>\n<num> 1\n</top>\n", "t:1: query 1 is empty"),
        ("<top>\n<num> 1\n<title> x\n", "t:1 has a <top> that is never closed"),
        ("<top>\n<num> 1\n<top>\n", "t:1 has a <top> that is not closed before line 3"),
        ("<top>\n<num> 1\n<title> x\n</top>\n" * 2, "t:5 repeats topic '1'"),
        ("1 no tab\n", "t:1 must be a qid and a text with a tab"),
        ("1\t \n", "t:1: query 1 is empty"),
        ("\n\n", "holds no topics"),
    ],
)
def test_broken_topics_name_their_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(BenchmarkError, match=message):
        read_trec_topics(tmp_path / "t")


_SCRAPS = st.lists(
    st.sampled_from(
        ["<DOC>", "</DOC>", "<DOCNO>", "</DOCNO>", "a", "<TEXT>", "</TEXT>", "<TITLE>", "</title>", "\n", "<", " x"]
    )
)


@given(scraps=_SCRAPS)
def test_trec_survives_any_sequence_of_tags(scraps: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("t") / "d"
    path.write_text("".join(scraps))
    try:
        for _, document in read_trectext(path):
            assert document.docno and not any(c.isspace() for c in document.docno)
    except BenchmarkError as error:
        assert str(path) in str(error)
