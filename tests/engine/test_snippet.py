"""Snippets and stems by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragbench.search.engine.snippet import _LENGTH as LENGTH, highlights, snippet, stems


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
    matches = highlights("policies .* (x86").finditer("Policy, policies; metropolice. X86 .*")
    assert [hit[0] for hit in matches] == ["Policy", "policies", "X86"]
    assert not highlights("").search("anything")


def test_snippet_keeps_a_short_text_with_single_spaces() -> None:
    assert snippet("# A\n\n  b\tc", highlights("b")) == "# A b c"


def test_snippet_is_cut_to_where_the_words_are() -> None:
    text = "filler " * 100 + "the lamp reads the dusk sensor " + "filler " * 100
    cut = snippet(text, highlights("lamp dusk"))
    assert "lamp reads the dusk" in cut
    assert cut.startswith("…") and cut.endswith("…")
    assert snippet(text, highlights("nothing")).startswith("filler")


@given(st.text(), st.text(), st.integers(1, 400))
def test_snippet_never_exceeds_its_length(text: str, query: str, times: int) -> None:
    assert len(snippet(text * times, highlights(query))) <= LENGTH == 200  # seed 004
