"""P12 and P8's second stage: near-duplicates by their trigrams."""

from dataclasses import replace

import pytest

from ragbench.search.stages.redundancy import DropNearCopies

# 8 trigrams of abcdefghij; without the j 7 of them: Jaccard 7/8. abcxyz shares abc only: 1 of 8 + 4 - 1 = 11.
TEXTS = ("abcdefghij", "ABC def ghi", "abcxyz", "qrstuv")


@pytest.fixture
def index(handmade, page):
    return handmade([page("a", TEXTS)])


def chunks(stage: DropNearCopies, given, index) -> list[int]:
    return stage([given], index)[0].fused.chunks.tolist()


def test_drop_near_copies_of_a_better_hit(state, index) -> None:
    given = state(fused=[(0, 0.9), (2, 0.8), (1, 0.7), (3, 0.6)])
    (after,) = DropNearCopies()([given], index)
    assert after.fused.chunks.tolist() == [0, 2, 3]
    assert after.counts[1:] == (("after_ngram_dedup", 3),)


def test_drop_near_copies_at_the_threshold(state, index) -> None:
    given = state(fused=[(1, 0.9), (0, 0.8)])
    assert chunks(DropNearCopies(threshold=7 / 8), given, index) == [1]
    assert chunks(DropNearCopies(threshold=0.88), given, index) == [1, 0]
    assert chunks(DropNearCopies(threshold=1 / 11), state(fused=[(0, 0.9), (2, 0.8)]), index) == [0]


def test_drop_near_copies_has_the_defaults_of_the_seed() -> None:
    assert (DropNearCopies().threshold, DropNearCopies().unit) == (0.7, "character")


def test_drop_near_copies_compares_with_hits_that_stay(state, handmade, page) -> None:
    # b overlaps with a and with c, which do not overlap enough with each other: dropping b must not cost c its place.
    a, b, c = "abcdefghijkl", "efghijklmnop", "ijklmnopqrst"  # 10 trigrams each, neighbours share 6: 6/14
    index = handmade([page("x", (a, b, c))])
    assert chunks(DropNearCopies(threshold=0.4), state(fused=[(0, 0.9), (1, 0.8), (2, 0.7)]), index) == [0, 2]


def test_drop_near_copies_by_word_trigrams(state, handmade, page) -> None:
    # 4 and 3 trigrams of words, 3 in common: 3/4; as characters they share far more.
    index = handmade([page("a", ("Put it in the file now", "put IT in the file"))])
    given = state(fused=[(0, 0.9), (1, 0.8)])
    assert chunks(DropNearCopies(threshold=0.75, unit="word"), given, index) == [0]
    assert chunks(DropNearCopies(threshold=0.76, unit="word"), given, index) == [0, 1]


def test_drop_near_copies_keeps_texts_too_short_for_a_trigram(state, handmade, page) -> None:
    index = handmade([page("a", ("ab", "ab"))])
    assert chunks(DropNearCopies(), state(fused=[(0, 0.9), (1, 0.8)]), index) == [0, 1]


def test_drop_near_copies_keeps_guaranteed_hits(state, index) -> None:
    given = replace(state(fused=[(0, 0.9), (1, 0.8)]), guaranteed={1: "title-match"})
    assert chunks(DropNearCopies(), given, index) == [0, 1]
