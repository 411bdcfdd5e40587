"""Numbers as the page writes them."""

import math

import pytest

from ragbench.report.cells import MINUS, direction, interval, join_names, plain, signed


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "+0.012"), (-0.5, f"{MINUS}0.500"), (0.0, "+0.000"), (math.nan, "")]
)
def test_signed(value: float, text: str) -> None:
    assert signed(value) == text


def test_cells_interval_keeps_the_sign_of_what_rounds_to_zero() -> None:
    assert interval(-0.0004, 0.017) == f"[{MINUS}0.000, +0.017]"
    assert interval(math.nan, 1.0) == ""


def test_cells_plain_numbers_and_lists() -> None:
    assert plain(0.6124) == "0.612"
    assert [join_names([]), join_names(["a"]), join_names(["a", "b"]), join_names(["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.1, 0.2, "better"), (-0.2, -0.1, "worse"), (-0.1, 0.1, ""), (0, 0, "")]
)
def test_cells_direction_needs_an_interval_that_leaves_out_zero(low: float, high: float, word: str) -> None:
    assert direction(low, high) == word
