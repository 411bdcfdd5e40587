"""Snippets and stems by hand; top hits agree with rankings and judgments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench.engine.pipeline import Pipeline
from ragbench.experiment.top_hits import COLUMNS, SNIPPET, highlights, snippet, stems, top_hits
from ragbench.stages.cut import Cut
from ragbench.stages.fuse import Fuse
from ragbench.stages.lexical import RetrieveLexical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("how do I rotate the API keys", ["rotat", "api", "keys"]),
        ("policies", ["polic"]),
        ("STR-2031 offset", ["str", "2031", "offset"]),
        ("getAuthToken", ["getauthtoken", "auth", "token"]),
        ("HTTPResponse limits", ["httprespons", "http", "respons", "limit"]),
        ("is it on", []),
        ("", []),
        ("Überlauf überläufe", ["überlauf", "überläuf"]),
    ],
)
def test_stems(text: str, expected: list[str]) -> None:
    assert stems(text) == expected


def test_highlights_match_words_that_begin_alike_and_no_pattern_of_the_query() -> None:
    matches = highlights(["polic", "c++", ".*"])
    assert [hit[0] for hit in matches.finditer("Policy, policies; metropolice. C++ .*")] == [
        "Policy",
        "policies",
        "C++",
        ".*",
    ]
    assert not highlights([]).search("anything")


def test_a_short_text_is_kept_whole_with_single_spaces() -> None:
    assert snippet("# A\n\n  b\tc", highlights(["b"])) == "# A b c"


def test_a_long_text_is_cut_to_where_the_words_are() -> None:
    text = "filler " * 100 + "the lamp reads the dusk sensor " + "filler " * 100
    cut = snippet(text, highlights(stems("lamp dusk")))
    assert "lamp reads the dusk" in cut
    assert cut.startswith("…") and cut.endswith("…")
    assert snippet(text, highlights(["nothing"])).startswith("filler")


@given(st.text(), st.text(), st.integers(1, 400))
def test_a_snippet_never_exceeds_its_length(text: str, query: str, times: int) -> None:
    assert len(snippet(text * times, highlights(stems(query)))) <= SNIPPET


def test_top_hits_follow_the_ranking_and_the_judgments(index, benchmark_small) -> None:
    pipeline = Pipeline((("lexical", RetrieveLexical(depth=20)), ("fuse", Fuse()), ("cut", Cut(20))))
    final = pipeline([topic.query() for topic in benchmark_small.topics], index)
    frame = top_hits(final, index.chunks, benchmark_small, depth=3)
    assert list(frame.columns) == list(COLUMNS)
    for state in final:
        rows = frame[frame["qid"] == state.query.qid]
        expected = [index.chunks.chunk_ids[chunk] for chunk in state.fused.chunks[:3]]
        assert rows["chunk_id"].tolist() == expected
        assert rows["rank"].tolist() == list(range(1, len(expected) + 1))
    first = frame[(frame["qid"] == "t1") & (frame["docno"] == "reference/errors")].iloc[0]
    assert first["document_grade"] == first["section_grade"] == 3
    assert "LNT-301" in first["snippet"]
    assert frame["section_grade"].isna().any()


def test_no_queries_give_an_empty_table_with_all_columns(index, benchmark_small) -> None:
    assert list(top_hits([], index.chunks, benchmark_small).columns) == list(COLUMNS)
