"""Librarian's re-ranking by keywords (seed 004, feature 1)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from ragbench.extras.systems.stages.librarian import RerankByKeywords
from tests.tables import rows


@pytest.mark.parametrize(("query", "text", "score"), rows("systems_stages_keywords", "keywords_keyword_score"))
def test_keywords_keyword_score(query: str, text: str, score: float) -> None:
    assert RerankByKeywords().score(query, text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("query", "text", "score"),
    [
        ("a api", "a api", 0.1),  # a word of one character counts in the divisor alone
        ("caching?", "caching", 0.0),  # with the punctuation around words
        ("authentication API", "The API: authentication, api.", 0.3),
    ],
)
def test_words_as_the_seed_takes_them(query: str, text: str, score: float) -> None:
    assert RerankByKeywords(as_typed=True).score(query, text) == pytest.approx(score)


@given(query=st.text(max_size=30), text=st.text(max_size=60))
@settings(max_examples=60)
def test_keywords_keyword_score_lies_between_0_and_1(query: str, text: str) -> None:
    assert 0 <= RerankByKeywords().score(query, text) <= 1


@pytest.fixture
def index(handmade, page):
    return handmade(
        [page("a", ("api authentication api", "none")), page("b", ("authentication " * 9,)), page("c", ("q",))]
    )


def test_keywords_70_percent_meaning_and_30_percent_words(state, index) -> None:
    # 0: (1 + 2)/10, 0.7*0.8 + 0.3*0.3 = 0.65;  2: 5/10, 0.7*0.75 + 0.3*0.5 = 0.675;  1 and 3 hold no word
    given_ = state("authentication api", fused=[(1, 0.9), (0, 0.8), (2, 0.75), (3, 0.7)])
    (after,) = RerankByKeywords()([given_], index)
    assert after.fused.chunks.tolist() == [2, 0]
    assert after.fused.scores.tolist() == pytest.approx([0.675, 0.65])
    assert after.counts == (("original_count", 4), ("after_keywords", 2))


def test_keywords_threshold_itself_stays(state, handmade, page) -> None:
    # ten words: five occurrences are 5/50 = 0.1, four are 0.08
    index = handmade([page("a", ("w0 w1 w2 w3 w4",)), page("b", ("w0 w1 w2 w3",))])
    given_ = state(" ".join(f"w{n}" for n in range(10)), fused=[(1, 0.9), (0, 0.8)])
    assert RerankByKeywords()([given_], index)[0].fused.chunks.tolist() == [0]


def test_keywords_only_the_candidates_are_read_and_guaranteed_hits_stay(state, index) -> None:
    given_ = state("authentication", fused=[(1, 0.9), (0, 0.8), (2, 0.7), (3, 0.6)])
    assert RerankByKeywords(depth=2)([given_], index)[0].fused.chunks.tolist() == [0]
    given_ = replace(given_, guaranteed={1: "title-match", 3: "title-match"})
    assert sorted(RerankByKeywords(depth=1)([given_], index)[0].fused.chunks.tolist()) == [1, 3]


def test_neighbours_that_are_returned_are_read(state, index) -> None:
    given_ = replace(state("authentication", fused=[(1, 0.9)]), contexts={1: (0, 1)})
    assert RerankByKeywords()([given_], index)[0].fused.chunks.tolist() == [1]


def test_keywords_defaults_are_those_of_the_seed() -> None:
    stage = RerankByKeywords()
    assert (stage.depth, stage.weight, stage.threshold, stage.cap, stage.min_length) == (50, 0.3, 0.1, 5, 2)
