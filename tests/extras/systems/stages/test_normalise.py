"""Min-max normalisation of seed 002."""

import pytest

from ragbench.base.rankings import Ranking
from ragbench.extras.systems.stages.adjust import NormaliseScores


@pytest.mark.parametrize(
    ("scores", "scaled"),
    [
        ([4, 3, 2], [0.98, 0.5, 0.02]),
        ([10, 9.95, 5.05, 5], [0.98, 0.98, 0.02, 0.02]),  # 0.99 and 0.01 are clipped, the order stays
        ([7], [0.98]),
        ([3, 3], [0.98, 0.98]),
        ([1, 0, -1], [0.98, 0.5, 0.02]),
        ([], []),
    ],
)
def test_normalise_scaled_between_the_extremes_and_clipped(state, scores: list[float], scaled: list[float]) -> None:
    ranking = Ranking.ordered(range(10, 10 + len(scores)), scores)
    (after,) = NormaliseScores()([state().with_ranking("lexical", ranking)], None)
    assert after.rankings["lexical"].scores.tolist() == pytest.approx(scaled)
    assert after.rankings["lexical"].chunks.tolist() == ranking.chunks.tolist()


def test_normalise_fused_ranking_after_fusion_and_no_other_source(state) -> None:
    given = state(fused=[(1, 3.0), (2, 1.0)], lexical=[1, 2])
    (after,) = NormaliseScores()([given], None)
    assert after.fused.scores.tolist() == pytest.approx([0.98, 0.02])
    assert after.rankings == given.rankings
