"""P8, third stage: paraphrases by the cosine of their vectors."""

import math
from dataclasses import replace

import pytest

from ragbench.search.stages.redundancy import DropParaphrases


@pytest.fixture
def index(handmade, page):
    # at 0, 20, 60 and 80 degrees: cosines .940 between neighbours in pairs, .766 between 20 and 60, .5 between 0 and 60
    vectors = [(math.cos(math.radians(a)), math.sin(math.radians(a))) for a in (0, 20, 60, 80)]
    return handmade([page("a", ("w", "x", "y", "z"))], vectors)


HITS = [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.6)]


def test_drop_paraphrases_and_count_them(state, index) -> None:
    (after,) = DropParaphrases()([state(fused=HITS)], index)
    assert after.fused.chunks.tolist() == [0, 2]
    assert after.counts[1:] == (("after_dedup", 2),)
    assert after.clusters_merged == 2


def test_drop_paraphrases_has_the_decided_default() -> None:
    assert DropParaphrases().threshold == 0.85


@pytest.mark.parametrize(("threshold", "left"), [(0.95, [0, 1, 2, 3]), (0.7, [0, 2]), (0.4, [0, 3]), (-1.0, [0])])
def test_drop_paraphrases_by_threshold(state, index, threshold: float, left: list[int]) -> None:
    # at 0.4: 1 (20 degrees) and 2 (60 degrees, cosine .5) fall to 0; 3 (80 degrees, .17) does not
    (after,) = DropParaphrases(threshold)([state(fused=HITS)], index)
    assert after.fused.chunks.tolist() == left
    assert after.clusters_merged == 4 - len(left)


def test_drop_paraphrases_at_the_threshold_itself(state, handmade, page) -> None:
    index = handmade([page("a", ("x", "y"))], [(1.0, 0.0), (0.5, 0.75**0.5)])  # a cosine of 0.5, exactly
    left = [DropParaphrases(t)([state(fused=HITS[:2])], index)[0].fused.chunks.tolist() for t in (0.5, 0.501)]
    assert left == [[0], [0, 1]]


def test_drop_paraphrases_keeps_the_ranking(state, index) -> None:
    (after,) = DropParaphrases()([state(fused=[(3, 0.9), (0, 0.8), (2, 0.7), (1, 0.6)])], index)
    assert after.fused.chunks.tolist() == [3, 0]


def test_drop_paraphrases_keeps_guaranteed_hits(state, index) -> None:
    (after,) = DropParaphrases()([replace(state(fused=HITS), guaranteed={1: "title-match"})], index)
    assert after.fused.chunks.tolist() == [0, 1, 2]
    assert after.clusters_merged == 1
