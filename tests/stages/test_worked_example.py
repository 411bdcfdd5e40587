"""The end-to-end example of seed 001, "Example End-to-End Fusion": query "API authentication" over five documents.

The seed gives oauth-guide, changed 5 days ago, the multiplier 1.1; by its own table it is 1.2 up to 7 days, as here. It
rounds 0.407 and 0.400 up to 0.42 and 0.41, and 0.0676 to 0.09.
"""

import pytest

from ragbench.base.rankings import Ranking
from ragbench.search.stages.calibrate import Calibrate, FilterByConfidence
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.recency import BoostRecent

NAMES = ("authentication", "security", "api-reference", "oauth-guide", "deployment")
NOW, DAY = 1_770_000_000.0, 86_400.0


def test_pipeline_by_hand_from_rankings_to_confidences(state, handmade, page) -> None:
    ages = (90, 90, 180, 5, 90)
    index = handmade([page(name, modified=NOW - age * DAY) for name, age in zip(NAMES, ages, strict=True)])
    given = (
        state("API authentication")
        .with_ranking("dense", Ranking.ordered([0, 1, 2], [0.92, 0.85, 0.78]))
        .with_ranking("lexical", Ranking.ordered([2, 0, 3], [15.3, 12.7, 8.4]))
        .with_ranking("graph", Ranking.ordered([4], [1.0]))
        .with_weight("graph", 0.5)
    )

    states = Fuse()([given], index)
    fused = [1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62, 1 / 63, 0.5 / 61]
    assert states[0].fused.chunks.tolist() == [0, 2, 1, 3, 4]
    assert states[0].fused.scores.tolist() == pytest.approx(fused, rel=1e-6)
    assert [round(score, 4) for score in fused] == [0.0325, 0.0323, 0.0161, 0.0159, 0.0082]

    states = BoostRecent(now="2026-02-02T02:40:00+00:00")(states, index)
    assert states[0].fused.chunks.tolist() == [0, 2, 3, 1, 4]
    assert states[0].fused.scores.tolist() == pytest.approx(
        [fused[0], fused[1], 1.2 / 63, fused[2], fused[4]], rel=1e-6
    )

    states = Calibrate()(states, index)
    assert states[0].fused.scores.tolist() == pytest.approx([0.408, 0.399, 0.0837, 0.0557, 0.0176], abs=5e-4, rel=2e-3)

    (state_after,) = FilterByConfidence()(states, index)
    assert [NAMES[chunk] for chunk in state_after.fused.chunks] == ["authentication", "api-reference"]
