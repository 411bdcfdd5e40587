"""P10, with the edge cases of seed 000."""

import numpy as np
import pytest

from ragbench.search.stages.calibrate import FilterByConfidence

HITS = [(4, 0.9), (7, 0.5), (1, 0.3), (2, 0.2999)]


def test_filter_by_confidence_drops_hits_below_the_threshold(state) -> None:
    threshold = float(np.float32(0.3))
    (after,) = FilterByConfidence(threshold)([state(fused=HITS)], None)
    assert after.fused.chunks.tolist() == [4, 7, 1]
    assert after.counts == (("original_count", 4), ("after_threshold", 3))


def test_filter_by_confidence_has_the_default_of_the_seed() -> None:
    assert FilterByConfidence().threshold == 0.3


@pytest.mark.parametrize(("threshold", "left"), [(0.0, [4, 7, 1, 2]), (0.6, [4]), (0.95, [])])
def test_filter_by_confidence_keeps_none_one_or_all(state, threshold: float, left: list[int]) -> None:
    (after,) = FilterByConfidence(threshold)([state(fused=HITS)], None)
    assert after.fused.chunks.tolist() == left


def test_filter_by_confidence_keeps_guaranteed_hits(state) -> None:
    from dataclasses import replace

    (after,) = FilterByConfidence(0.6)(
        [replace(state(fused=HITS), guaranteed={2: "title-match", 99: "title-match"})], None
    )
    assert after.fused.chunks.tolist() == [4, 2]
