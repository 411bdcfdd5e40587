"""P8, third stage: paraphrases by the cosine of their vectors."""

import math
from dataclasses import replace

import pytest

from ragbench.base.errors import ConfigError
from ragbench.search.stages.redundancy import DropParaphrases


@pytest.fixture
def index(handmade, page):
    # at 0, 20, 60 and 80 degrees: cosines .940 between neighbours in pairs, .766 between 20 and 60, .5 between 0 and 60
    vectors = [(math.cos(math.radians(a)), math.sin(math.radians(a))) for a in (0, 20, 60, 80)]
    return handmade([page("a", ("w", "x", "y", "z"))], vectors)


HITS = [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.6)]


def test_drops_what_says_the_same_and_counts_it(state, index) -> None:
    (after,) = DropParaphrases()([state(fused=HITS)], index)
    assert after.fused.chunks.tolist() == [0, 2]
    assert after.counts[1:] == (("after_dedup", 2),)
    assert after.clusters_merged == 2


def test_the_default_is_that_of_the_decision() -> None:
    assert DropParaphrases().threshold == 0.85


@pytest.mark.parametrize(("threshold", "left"), [(0.95, [0, 1, 2, 3]), (0.7, [0, 2]), (0.4, [0, 3]), (-1.0, [0])])
def test_thresholds(state, index, threshold: float, left: list[int]) -> None:
    # at 0.4: 1 (20 degrees) and 2 (60 degrees, cosine .5) fall to 0; 3 (80 degrees, .17) does not
    (after,) = DropParaphrases(threshold)([state(fused=HITS)], index)
    assert after.fused.chunks.tolist() == left
    assert after.clusters_merged == 4 - len(left)


def test_ranking_is_preserved(state, index) -> None:
    (after,) = DropParaphrases()([state(fused=[(3, 0.9), (0, 0.8), (2, 0.7), (1, 0.6)])], index)
    assert after.fused.chunks.tolist() == [3, 0]


def test_guaranteed_hits_stay(state, index) -> None:
    (after,) = DropParaphrases()([replace(state(fused=HITS), guaranteed={1: "title-match"})], index)
    assert after.fused.chunks.tolist() == [0, 1, 2]
    assert after.clusters_merged == 1


def test_nothing_stays_nothing(state, index) -> None:
    (after,) = DropParaphrases()([state(fused=[])], index)
    assert (len(after.fused), after.clusters_merged) == (0, 0)


@pytest.mark.parametrize("threshold", [-1.1, 1.1, float("nan")])
def test_bad_thresholds_are_named(threshold: float) -> None:
    with pytest.raises(ConfigError, match=r"threshold must be between -1 and 1, got"):
        DropParaphrases(threshold)
