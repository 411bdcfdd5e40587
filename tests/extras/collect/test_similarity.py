from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from ragbench.extras.collect.similarity import near_duplicates


def test_near_duplicates_by_hand() -> None:
    texts = ["rotate an API key", "How to rotate an api key?", "rotate the key", "", "?!"]
    # {rotate an api key} and {how to rotate an api key}: 4 of 6; with {rotate the key}: 2 of 5; the other pair: 2 of 7.
    assert list(near_duplicates(texts, 0.4)) == [(0, 1, pytest.approx(4 / 6)), (0, 2, pytest.approx(0.4))]


@given(
    texts=st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6).map(" ".join), max_size=12),
    threshold=st.sampled_from([0.2, 0.5, 0.6, 2 / 3, 0.75, 0.8, 1.0]),
)
def test_near_duplicates_equals_comparison_of_all_pairs(texts: list[str], threshold: float) -> None:
    sets = [set(text.split()) for text in texts]
    expected = {
        (i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        for i, j in combinations(range(len(texts)), 2)
        if sets[i] and sets[j] and len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= threshold
    }
    assert {(i, j): likeness for i, j, likeness in near_duplicates(texts, threshold)} == expected
