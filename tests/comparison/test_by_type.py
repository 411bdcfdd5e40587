"""Every query type is compared apart, and few queries of a type are warned of."""

import numpy as np
import pytest

from ragbench.comparison.by_type import FEW, compare_by_type, types, warning
from ragbench.comparison.statistics import compare, holm
from ragbench.errors import BenchmarkError


def like_ndcg(generator, shape, ties=0.4):
    """Differences as nDCG has them: symmetric round 0, many of them ties."""
    size = generator.beta(0.7, 3.0, shape)
    return size * generator.choice([-1.0, 1.0], shape) * (generator.random(shape) >= ties)


def test_every_type_is_compared_apart_and_few_are_warned_of():
    generator = np.random.default_rng(14)
    baseline = generator.random(43)
    candidate = baseline + like_ndcg(generator, 43)
    kinds = ["lookup"] * 30 + ["how-to"] * 12 + [None]
    frame = compare_by_type(candidate, baseline, kinds, seed=2).set_index("kind")
    assert list(frame.index) == ["(none)", "how-to", "lookup"]
    assert list(frame["n"]) == [1, 12, 30]
    alone = compare(candidate[:30], baseline[:30], seed=2, family=3)
    assert frame.loc["lookup", ["difference", "ci_low", "p_value", "mde"]].tolist() == [
        alone.difference,
        alone.ci_low,
        alone.p_value,
        alone.mde,
    ]
    assert frame["p_holm"].tolist() == holm(frame["p_value"].to_numpy()).tolist()
    assert frame.loc["lookup", "warning"] == ""
    assert frame.loc["how-to", "warning"].startswith("only 12 queries of type 'how-to'")
    assert frame.loc["(none)", "warning"].startswith("only 1 query of")


def test_values_without_types_are_refused():
    with pytest.raises(BenchmarkError, match="2 and 2 values and 1 query types"):
        compare_by_type([1.0, 2.0], [1.0, 2.0], ["lookup"], seed=1)
    with pytest.raises(BenchmarkError, match="no query to compare"):
        compare_by_type([], [], [], seed=1)


def test_types_are_masks_in_alphabetical_order() -> None:
    masks = types(["b", "a", None, "b"])
    assert {kind: mask.tolist() for kind, mask in masks.items()} == {
        "(none)": [False, False, True, False],
        "a": [False, True, False, False],
        "b": [True, False, False, True],
    }


def test_the_warning_ends_where_conclusions_are_stable() -> None:
    assert warning("x", FEW) == ""
    assert warning("x", FEW - 1) == "only 24 queries of type 'x': at least 25 make a conclusion stable"
