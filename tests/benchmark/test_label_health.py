"""Judgments after documents changed."""

import pytest

from ragbench.benchmark.label_health import LabelHealth


@pytest.mark.parametrize(
    ("health", "sentence"),
    [
        (LabelHealth(stand=3), "label health: all 3 judgments stand"),
        (LabelHealth(84, 3, 2, 1), "label health: 84 of 90 judgments stand, 3 moved, 2 are doubtful, 1 is gone"),
        (LabelHealth(3, 0, 0, 0, 1), "label health: 3 of 4 judgments stand, 1 is rewritten"),
        (LabelHealth(1, 0, 0, 2), "label health: 1 of 3 judgments stand, 2 are gone"),
    ],
)
def test_label_health_in_words(health: LabelHealth, sentence: str) -> None:
    assert health.sentence() == sentence
    assert health.is_sound == (health.stand == health.judgments)
