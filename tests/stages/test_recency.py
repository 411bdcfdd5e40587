"""Recency: the tiers of seed 001 and a bias that scales them."""

import numpy as np
import pytest

from ragbench.search.stages.recency import BoostRecent

DAY = 86_400.0
NOW = 1_770_000_000.0


def factors(ages_in_days: list[float], **parameters) -> list[float]:
    return BoostRecent(**parameters).by_time(NOW - DAY * np.array(ages_in_days), NOW).tolist()


def test_recency_tiers_of_the_seed() -> None:
    ages = [0, 5, 7, 7.01, 30, 30.01, 400]
    assert factors(ages) == pytest.approx([1.2, 1.2, 1.2, 1.1, 1.1, 1.0, 1.0])


@pytest.mark.parametrize(("bias", "expected"), [(0.0, [1.0, 1.0, 1.0]), (0.5, [1.2, 1.1, 1.0]), (1.0, [1.4, 1.2, 1.0])])
def test_recency_bias_scales_the_boost(bias: float, expected: list[float]) -> None:
    # 1 + bias * (tier - 1) / 0.5
    assert factors([1, 10, 100], bias=bias) == pytest.approx(expected)


def test_recency_takes_a_future_date_for_today() -> None:
    assert factors([-100]) == pytest.approx([1.2])


def test_recency_tiers_may_stand_in_any_order() -> None:
    assert factors([1, 10], tiers=((30.0, 1.1), (7.0, 1.2))) == pytest.approx([1.2, 1.1])


def test_recency_multiplies_fused_scores_and_sorts_again(state, handmade, page) -> None:
    # seed 001: 0.0159 * 1.2 = 0.0191 for oauth-guide, changed 5 days ago, which overtakes security at 0.0161
    index = handmade([page("security", modified=NOW - 90 * DAY), page("oauth", modified=NOW - 5 * DAY)])
    stage = BoostRecent(now="2026-02-02T02:40:00+00:00")
    (after,) = stage([state(fused=[(0, 0.0161), (1, 0.0159)])], index)
    assert after.fused.chunks.tolist() == [1, 0]
    assert after.fused.scores.tolist() == pytest.approx([0.01908, 0.0161])


def test_recency_without_a_date_reads_the_clock(state, handmade, page, monkeypatch: pytest.MonkeyPatch) -> None:
    index = handmade([page("a", modified=NOW)])
    monkeypatch.setattr("time.time", lambda: NOW + 20 * DAY)
    (after,) = BoostRecent()([state(fused=[(0, 0.5)])], index)
    assert after.fused.scores.tolist() == pytest.approx([0.55])


def test_recency_date_without_a_zone_is_utc(state, handmade, page) -> None:
    index = handmade([page("a", modified=1_767_225_600.0)])  # 2026-01-01T00:00Z
    for now, score in (("2026-01-08", 0.6), ("2026-01-08T00:00:01", 0.55), ("2026-01-08T01:00:00+01:00", 0.6)):
        (after,) = BoostRecent(now=now)([state(fused=[(0, 0.5)])], index)
        assert after.fused.scores.tolist() == pytest.approx([score])
