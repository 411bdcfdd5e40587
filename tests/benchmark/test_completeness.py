from __future__ import annotations

import math

import pytest

from ragbench.benchmark.completeness import completeness
from ragbench.errors import BenchmarkError


def run(*names: str) -> dict[str, list[tuple[str, float]]]:
    return {"q": [(name, 1.0 - place / 100) for place, name in enumerate(names)]}


def test_by_hand() -> None:
    # a by all three; b and c by two; d, e, f, g by one; x is not relevant, y not judged.
    runs = {"1": run("a", "b", "c", "d", "x"), "2": run("a", "b", "e", "y"), "3": run("a", "c", "f", "g")}
    qrels = {"q": dict.fromkeys("abcdefg", 1) | {"x": 0}}
    found = completeness(runs, qrels)
    assert (found.known, found.found, found.once, found.twice, found.unjudged) == (7, 7, 4, 2, 1)
    assert found.missing == pytest.approx(4 * 3 / (2 * 3))  # 2
    assert found.share == pytest.approx(7 / 9)
    variance = 2 + 4 * 49 / 36 + 16 * 2 * 9 / (4 * 81)
    factor = math.exp(1.96 * math.sqrt(math.log(1 + variance / 4)))
    assert (found.low, found.high) == pytest.approx((2 / factor, 2 * factor))
    assert "At least 2 more" in found.text and "1 pairs that the arms return are not judged" in found.text


def test_what_judges_know_from_elsewhere_is_not_missing() -> None:
    runs = {"1": run("a", "b"), "2": run("a", "c"), "3": run("a", "d")}
    qrels = {"q": dict.fromkeys("abcd", 1)}
    assert completeness(runs, qrels).missing == 3
    assert completeness(runs, {"q": dict.fromkeys("abcdef", 1)}).missing == 1
    assert completeness(runs, {"q": dict.fromkeys("abcdefghij", 1)}).missing == 0


def test_arms_that_find_the_same_expect_nothing_more_and_depth_counts() -> None:
    runs = {"1": run("a", "b"), "2": run("a", "c")}
    qrels = {"q": dict.fromkeys("abc", 1)}
    found = completeness(runs, qrels, depth=1)
    assert (found.found, found.once, found.twice, found.missing, found.high) == (1, 0, 1, 0, 0)
    with pytest.raises(BenchmarkError, match="completeness needs two arms or more, got 1"):
        completeness({"1": run("a")}, qrels)
