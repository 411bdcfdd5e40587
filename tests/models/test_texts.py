from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragbench.models.texts import check_texts
from tests.naming import naming


@given(st.lists(st.text()))
def test_whole_strings_stay_as_they_are(texts: list[str]) -> None:
    assert check_texts(texts) == texts


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_texts_half_surrogate_pairs_never_survive(text: str) -> None:
    (mended,) = check_texts([text])
    mended.encode()


def test_halves_that_belong_together_become_one_character() -> None:
    assert check_texts(["\ud83d\ude00", "a\ud83db"]) == ["\U0001f600", "a\ufffdb"]


def test_texts_says_what_is_wrong() -> None:
    with pytest.raises(TypeError, match="got str: put the text in a list"):
        check_texts("one text")
    with pytest.raises(TypeError, check=naming("NoneType", "position 1")):
        check_texts(["a", None])  # type: ignore[list-item]
