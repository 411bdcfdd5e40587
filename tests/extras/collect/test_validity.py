"""Whether two sets of topics lead to the same conclusions, with numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.base.errors import ResultsError
from ragbench.config import composition
from ragbench.evidence.arms import Arm, Arms
from ragbench.evidence.policy import Policy
from ragbench.extras.collect.query_set_agreement import validate


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy.of(composition.compose(["statistics.draws=1000"]).config)


def arms(policy: Policy, seed: int, n: int = 60, **means: float) -> Arms:
    """Arms with these means exactly; their differences have a standard deviation of 0.1."""
    generator = np.random.default_rng(seed)
    base = generator.uniform(0.2, 0.6, n)
    values = {}
    for name, mean in means.items():
        noise = generator.normal(0, 0.1, n)
        values[name] = base - base.mean() + noise - noise.mean() + mean
    found = {name: Arm({"document": {f"q{i}": float(v) for i, v in enumerate(each)}}) for name, each in values.items()}
    return Arms(found, policy)


def test_one_swapped_pair_of_six(policy: Policy) -> None:
    human = arms(policy, 1, a=0.5, b=0.6, c=0.3, d=0.2, only_here=0.1)
    other = arms(policy, 2, n=40, a=0.6, b=0.8, c=0.2, d=0.3)
    found = validate(human, other)
    assert found.topics == (60, 40) and found.base == "a"
    assert found.tau.value == pytest.approx(4 / 6)  # 5 pairs in one order, 1 in the other
    assert found.same_sign.value == pytest.approx(5 / 6)
    assert (found.sure_same, found.sure_other, found.sure_one, found.sure_none) == (5, 1, 0, 0)
    assert found.ceiling.value > 0.95
    # Effects against a: +.1 -.2 -.3 and +.2 -.4 -.3.
    assert found.correlation.value == pytest.approx(np.corrcoef([0.1, -0.2, -0.3], [0.2, -0.4, -0.3])[0, 1])
    assert found.bias.value == pytest.approx(-0.1 / 3)
    assert found.bias.low < found.bias.value < found.bias.high
    table = found.effects.set_index("arm")
    assert table.index.tolist() == ["b", "c", "d"]
    assert table["difference"].tolist() == pytest.approx([0.1, -0.2, 0.0])
    assert table.loc["d", "difference_low"] < 0 < table.loc["d", "difference_high"]
    assert table["quality"].tolist() == table["other_quality"].tolist() == ["better", "worse", "worse"]
    assert "contradict each other in 1 of these" in found.sentences[1]


def test_the_same_set_agrees_with_itself_as_far_as_its_size_allows(policy: Policy) -> None:
    human = arms(policy, 1, a=0.5, b=0.51, c=0.52)
    found = validate(human, human)
    assert found.tau.value == found.same_sign.value == 1
    assert found.ceiling.value < 0.9 and found.tau.low < 1
    assert found.sure_other == 0 and found.bias.value == 0
    again = validate(human, human)
    assert (again.tau, again.ceiling, again.bias) == (found.tau, found.ceiling, found.bias)


def test_two_arms_are_too_few(policy: Policy) -> None:
    with pytest.raises(ResultsError, match="the two runs share 2 arms by name, and 3 are needed"):
        validate(arms(policy, 1, a=0.5, b=0.6, c=0.7), arms(policy, 2, a=0.5, b=0.6))
