"""Every query type is compared apart, and few queries of a type are warned of."""

import numpy as np
import pytest

from ragbench.base.minimums import PER_TYPE as FEW
from ragbench.base.types import BenchmarkError
from ragbench.config import composition
from ragbench.evidence.arms import Policy, by_type
from ragbench.evidence.statistics import compare_all
from tests.naming import naming

POLICY = Policy.of(composition.compose(["statistics.draws=500", "seed=2"]).config)


def test_by_type_every_type_is_compared_apart_and_few_are_warned_of():
    generator = np.random.default_rng(14)
    baseline = generator.random(43)
    values = {"base": baseline, "other": baseline + generator.normal(0, 0.1, 43)}
    kinds = ["lookup"] * 30 + ["how-to"] * 12 + [None]
    frame = by_type(values, "base", kinds, POLICY)
    assert list(dict.fromkeys(frame["kind"])) == ["(none)", "how-to", "lookup"]
    lookup = frame[(frame["kind"] == "lookup") & (frame["arm"] == "other")].iloc[0]
    here = np.stack([values["base"][:30], values["other"][:30]])
    alone = compare_all(here, np.stack([here[0], here[0]]), seed=2, draws=500)[1]
    assert (lookup["n"], lookup["difference"], lookup["low"]) == (30, alone.difference, alone.ci_low)
    few = dict(zip(frame["kind"], frame["few"], strict=True))
    assert few == {"lookup": False, "how-to": True, "(none)": True}
    assert frame["n"].tolist() == [1, 1, 12, 12, 30, 30]


def test_by_type_values_without_types_are_refused():
    with pytest.raises(BenchmarkError, check=naming("query types")):
        by_type({"a": [1.0, 2.0]}, "a", ["lookup"], POLICY)


def test_by_type_types_are_in_alphabetical_order_wherever_their_queries_stand() -> None:
    frame = by_type({"a": [0.1, 0.2, 0.3, 0.5]}, "a", ["b", "a", None, "b"], POLICY)
    assert frame["kind"].tolist() == ["(none)", "a", "b"]
    assert frame["mean"].tolist() == pytest.approx([0.3, 0.2, 0.3])


def test_by_type_warning_ends_where_conclusions_are_stable() -> None:
    values = np.random.default_rng(1).random(2 * FEW - 1)
    frame = by_type({"a": values}, "a", ["x"] * FEW + ["y"] * (FEW - 1), POLICY)
    assert frame["few"].tolist() == [False, True]
