"""P10, with the edge cases of seed 000."""

import numpy as np
import pytest

from ragbench.base.errors import ConfigError
from ragbench.search.stages.calibrate import FilterByConfidence

HITS = [(4, 0.9), (7, 0.5), (1, 0.3), (2, 0.2999)]


def test_what_is_below_the_threshold_goes_and_what_is_at_it_stays(state) -> None:
    threshold = float(np.float32(0.3))
    (after,) = FilterByConfidence(threshold)([state(fused=HITS)], None)
    assert after.fused.chunks.tolist() == [4, 7, 1]
    assert after.counts == (("original_count", 4), ("after_threshold", 3))


def test_the_default_is_that_of_the_seed() -> None:
    assert FilterByConfidence().threshold == 0.3


@pytest.mark.parametrize(("threshold", "left"), [(0.0, [4, 7, 1, 2]), (0.6, [4]), (0.95, [])])
def test_none_one_or_all_may_stay(state, threshold: float, left: list[int]) -> None:
    (after,) = FilterByConfidence(threshold)([state(fused=HITS)], None)
    assert after.fused.chunks.tolist() == left


def test_guaranteed_hits_stay(state) -> None:
    from dataclasses import replace

    (after,) = FilterByConfidence(0.6)(
        [replace(state(fused=HITS), guaranteed={2: "title-match", 99: "title-match"})], None
    )
    assert after.fused.chunks.tolist() == [4, 2]


@pytest.mark.parametrize("threshold", [-1.0, 1.1, float("nan")])
def test_bad_thresholds_are_named(threshold: float) -> None:
    with pytest.raises(ConfigError, match=r"threshold must be between 0 and 1, got"):
        FilterByConfidence(threshold)
