"""How much of what is relevant the judgments hold."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.base.errors import BenchmarkError
from ragbench.extras.collect.completeness import completeness


def run(*items: str) -> dict[str, list[tuple[str, float]]]:
    return {"q": [(item, 1.0 - place / 100) for place, item in enumerate(items)]}


def test_both_estimates_are_those_worked_by_hand() -> None:
    qrels = {"q": dict.fromkeys("abcdef", 1) | {"x": 0}}
    found = completeness({"one": run("a", "b", "c", "x"), "two": run("c", "d"), "three": run("c", "d", "z")}, qrels)
    assert (found.topics, found.known, found.found, found.once, found.twice) == (1, 6, 4, 2, 1)
    chao, petersen = found.estimates
    assert chao.relevant == pytest.approx(4 + 2 / 3 * 2 * 1 / (2 * 2))
    assert chao.share == 1  # 6 are judged
    assert petersen.systems == ("one", "three")  # one of four in common, as with "two"; the first of equals by name
    assert petersen.relevant == 4 * 3 / 2 - 1
    assert "6 sections or documents are judged relevant" in found.sentences()[0]
    assert "more are already judged, so none seem to be missing" in found.sentences()[1]


def test_independent_systems_are_estimated_well() -> None:
    generator = np.random.default_rng(3)
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {name: {} for name in "abc"}
    qrels: dict[str, dict[str, int]] = {}
    for topic in range(150):
        relevant = [f"d{n}" for n in range(10)]
        caught = {name: [item for item in relevant if generator.random() < 0.5] for name in runs}
        for name, items in caught.items():
            runs[name][f"q{topic}"] = [(item, 1.0) for item in items]
        qrels[f"q{topic}"] = {item: 1 for items in caught.values() for item in items} or {"d0": 1}
    found = completeness(runs, qrels)
    for each in found.estimates:  # 1,500 are relevant, and 7 of 8 were caught
        assert each.relevant == pytest.approx(1500, rel=0.04)
        assert each.low < 7 / 8 < each.high


def test_what_lies_deeper_is_not_found() -> None:
    qrels = {"q": {"a": 1, "b": 2}}
    found = completeness({"one": run("x", "a"), "two": run("a", "b")}, qrels, depth=1)
    assert (found.known, found.found) == (2, 1)


@pytest.mark.parametrize(
    ("runs", "qrels", "message"),
    [
        ({"one": run("a")}, {"q": {"a": 1}}, "one system cannot show"),
        ({"one": run("a"), "two": run("a")}, {"q": {"a": 0}}, "nothing is judged relevant"),
        ({"one": run("a"), "two": run("a")}, {"other": {"a": 1}}, "nothing is judged relevant"),
    ],
)
def test_what_says_nothing_is_refused(runs, qrels, message: str) -> None:
    with pytest.raises(BenchmarkError, match=message):
        completeness(runs, qrels)
