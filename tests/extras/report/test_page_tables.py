"""Numbers that only the page has."""

import math

import pytest

from ragbench.extras.report.page_tables import p_value


@pytest.mark.parametrize(
    ("p", "text"), [(0.00009, "< 0.001"), (0.0271, "0.027"), (0.26, "0.26"), (1.0, "1.00"), (math.nan, "")]
)
def test_p_values_are_never_nothing(p: float, text: str) -> None:
    assert p_value(p) == text
