"""Several arms as one field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ragbench.config import composition
from ragbench.evidence.arms import Arms, ComparedArm, Policy
from ragbench.evidence.best_arm import sentences, table


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy.of(composition.compose(["statistics.draws=2000"]).config)


def arms(policy: Policy, **values: np.ndarray) -> Arms:
    qids = [f"q{n}" for n in range(len(next(iter(values.values()))))]
    return Arms(
        {name: ComparedArm({"document": dict(zip(qids, item, strict=True))}) for name, item in values.items()}, policy
    )


def test_best_arm_of_equal_arms_is_shared(policy: Policy) -> None:
    base = np.tile([0.2, 0.8], 20)
    frame = table(arms(policy, one=base, other=base, worse=base - 0.1)).set_index("arm")
    assert frame["best"].to_dict() == {"one": 0.5, "other": 0.5, "worse": 0.0}
    assert frame["ruled_out_by"].to_dict() == {"one": "", "other": "", "worse": "one"}
    assert frame["more_topics"].isna().all()  # equal ones differ by less than matters


def test_best_arm_counts_missing_topics(policy: Policy) -> None:
    generator = np.random.default_rng(1)
    base = generator.uniform(0.3, 0.7, 40)
    other = base + np.resize([0.28, -0.2], 40)  # +0.04 on average, sd 0.24
    frame = table(arms(policy, base=base, other=other, bad=base - 0.3)).set_index("arm")
    assert 0.7 < frame.loc["other", "best"] < 0.99
    assert frame["best"].sum() == pytest.approx(1)
    assert 100 < frame.loc["base", "more_topics"] < 1000
    message = " ".join(sentences(frame.reset_index()))
    assert "Ruled out: bad (by other)" in message or "Ruled out: bad (by base)" in message
    assert "more queries" in message


def test_best_arm_needs_three_arms(policy: Policy) -> None:
    base = np.linspace(0, 1, 10)
    assert table(arms(policy, one=base, other=base)).empty
    assert sentences(table(arms(policy, one=base, other=base))) == []


def test_best_arm_ignores_the_order_of_arms(policy: Policy) -> None:
    generator = np.random.default_rng(2)
    values = {name: generator.uniform(0, 1, 30) for name in ("a", "b", "c")}
    first = table(arms(policy, **values))
    again = table(arms(policy, **dict(reversed(values.items()))))
    assert first.set_index("arm")["best"].to_dict() == again.set_index("arm")["best"].to_dict()
    assert replace(policy, seed=1) != policy
