import os
import subprocess
import sys
from itertools import permutations
from math import factorial

import numpy as np
import pytest

from ragbench.base.types import ConfigError
from ragbench.experiment.ablate import _DESIGNS, _AddOne, _design_named, _Factorial, _LeaveOneOut, _Shapley

P13 = tuple(f"p{i}" for i in range(1, 14))


def run(design, value, n=3, noise=0.0, seed=1):
    """Values of every arm: `value` of the factors that are on, and noise by query."""
    generator = np.random.default_rng(seed)
    return {
        name: value([factor for factor, on in state.items() if on]) + noise * generator.normal(size=n)
        for name, state in design.arms().items()
    }


def synergy(on):
    """a is worth 3, b 1, c -2, and a with b 4 more."""
    return 10.0 + 3 * ("a" in on) + ("b" in on) - 2 * ("c" in on) + 4 * ("a" in on and "b" in on)


def effects_of(design, value, **options):
    return differences(design, run(design, value, **options))


def difference(contrast, means):
    return sum(weight * means[arm] for arm, weight in contrast.weights.items())


def differences(design, values):
    """Every contrast in the means of the arms."""
    means = {arm: float(np.mean(item)) for arm, item in values.items()}
    return {":".join(contrast.factors): difference(contrast, means) for contrast in design.contrasts()}


def test_design_arms_of_leave_one_out_and_add_one():
    assert _LeaveOneOut(("a", "b", "c")).arms() == {
        "all": {"a": True, "b": True, "c": True},
        "all-a": {"a": False, "b": True, "c": True},
        "all-b": {"a": True, "b": False, "c": True},
        "all-c": {"a": True, "b": True, "c": False},
    }
    assert _AddOne(("a", "b", "c")).arms() == {
        "none": {"a": False, "b": False, "c": False},
        "a": {"a": True, "b": False, "c": False},
        "b": {"a": False, "b": True, "c": False},
        "c": {"a": False, "b": False, "c": True},
    }
    assert list(_AddOne(("a",)).arms()) == ["none", "all"]


def test_factors_are_kept_in_natural_order_however_they_are_named():
    given = _LeaveOneOut(("p10", "p2", "p1"))
    assert given.factors == ("p1", "p2", "p10")
    assert given == _LeaveOneOut(("p2", "p1", "p10"))
    assert given.arm(("p10", "p2")) == "all-p1"


@pytest.mark.parametrize("name", _DESIGNS)
def test_design_arm_has_one_name_in_every_design(name):
    factors = ("p1", "p2", "p3", "p4")
    design, everything = _design_named(name, factors), _Factorial(factors).arms()
    assert len(everything) == 16
    assert design.arms().items() <= everything.items()
    used = {arm for contrast in design.contrasts() for arm in (*contrast.plus, *contrast.minus)}
    assert used == set(design.arms())
    assert design.describe().endswith(".")
    assert f"({len(design.arms())} arms)" in design.describe()


def test_one_at_a_time_by_hand():
    assert effects_of(_LeaveOneOut(("a", "b", "c")), synergy) == pytest.approx({"a": 7, "b": 5, "c": -2})
    assert effects_of(_AddOne(("a", "b", "c")), synergy) == pytest.approx({"a": 3, "b": 1, "c": -2})


def test_factorial_by_hand():
    """An effect is the mean over the states of the others: 4 of a and b together is 2 on average for each."""
    expected = {"a": 5, "b": 3, "c": -2, "a:b": 4, "a:c": 0, "b:c": 0}
    assert effects_of(_Factorial(("a", "b", "c")), synergy) == pytest.approx(expected)


def test_factorial_effects_equal_least_squares_of_statsmodels():
    """In levels of -1 and 1 an effect is twice a coefficient, an interaction as defined here four times."""
    import pandas as pd
    import statsmodels.formula.api as smf

    generator, design = np.random.default_rng(3), _Factorial(P13[:5])
    values = {arm: generator.random(7) for arm in design.arms()}
    rows = pd.DataFrame([{f: 2 * on - 1 for f, on in state.items()} for state in design.arms().values()])
    rows["y"] = [values[arm].mean() for arm in design.arms()]
    fitted = smf.ols(f"y ~ ({' + '.join(design.factors)}) ** 2", rows).fit().params
    effects = differences(design, values)
    assert len(effects) == len(design.factors) * (len(design.factors) + 1) / 2
    for factors, effect in effects.items():
        assert effect == pytest.approx(2 ** len(factors.split(":")) * fitted[factors], abs=1e-10)


def brute_force_shapley(factors, value):
    gains = dict.fromkeys(factors, 0.0)
    for order in permutations(factors):
        for folder, factor in enumerate(order):
            gains[factor] += value(order[: folder + 1]) - value(order[:folder])
    return {factor: gain / factorial(len(factors)) for factor, gain in gains.items()}


def game(factors, seed=5):
    """Any worth at all for every coalition."""
    worth = np.random.default_rng(seed).random(2 ** len(factors))
    return lambda on: worth[sum(1 << factors.index(factor) for factor in on)]


def test_shapley_by_hand():
    """a and b share the 4 they make together; the glove game: the one right glove gets 2/3."""
    assert effects_of(_Shapley(("a", "b", "c")), synergy) == pytest.approx({"a": 5, "b": 3, "c": -2})
    gloves = lambda on: float("right" in on and len(on) > 1)  # noqa: E731
    shares = effects_of(_Shapley(("left", "other", "right")), gloves)
    assert shares == pytest.approx({"left": 1 / 6, "other": 1 / 6, "right": 2 / 3})


def test_shapley_is_exact_where_all_coalitions_are_few():
    design = _Shapley(P13[:6])
    assert design.exact
    assert len(design.arms()) == 64
    value = game(design.factors)
    assert effects_of(design, value) == pytest.approx(brute_force_shapley(design.factors, value))
    assert set(design.standard_errors(run(design, value)).values()) == {0.0}


def test_design_sampled_shapley_runs_only_what_its_orders_pass_through():
    design = _Shapley(P13, orders=4)
    orders = design.sampled_orders()
    assert not design.exact
    assert orders[1] == orders[0][::-1]
    assert sorted(orders[0]) == sorted(P13)
    passed = {frozenset(order[:size]) for order in orders for size in range(14)}
    assert {frozenset(f for f, on in state.items() if on) for state in design.arms().values()} == passed
    assert len(design.arms()) <= 2 + 4 * 12
    assert _Shapley(P13, orders=4, seed=14).sampled_orders() != orders


def test_design_sampled_shapley_shares_out_the_whole_gain_of_every_query():
    design = _Shapley(P13[:8], orders=6)
    values = run(design, game(design.factors), n=5, noise=0.3)
    shares = sum(
        sum(weight * values[arm] for arm, weight in contrast.plus.items())
        - sum(weight * values[arm] for arm, weight in contrast.minus.items())
        for contrast in design.contrasts()
    )
    assert shares == pytest.approx(values["all"] - values["none"], abs=1e-12)


def test_design_standard_error_of_shapley_is_the_spread_between_seeds():
    """Over 300 seeds: no bias beyond four of its errors, and the stated error is the spread seen, within 10%."""
    factors = P13[:7]
    value = game(factors)
    truth = brute_force_shapley(factors, value)
    estimates, errors = [], []
    for seed in range(300):
        design = _Shapley(factors, orders=10, seed=seed)
        values = {arm: np.array([value([f for f, on in state.items() if on])]) for arm, state in design.arms().items()}
        means = {arm: float(array[0]) for arm, array in values.items()}
        estimates.append([difference(contrast, means) for contrast in design.contrasts()])
        errors.append(list(design.standard_errors(values).values()))
    spread = np.std(estimates, axis=0, ddof=1)
    assert np.abs(np.mean(estimates, axis=0) - list(truth.values())).max() <= 4 * (spread / np.sqrt(300)).max()
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.sqrt(np.mean(spread**2)), rel=0.1)


def test_shapley_of_factors_that_do_not_interact_needs_no_luck():
    worth = {factor: i / 10 for i, factor in enumerate(P13)}
    design = _Shapley(P13, orders=4)
    values = run(design, lambda on: sum(worth[factor] for factor in on))
    assert differences(design, values) == pytest.approx(worth)
    assert list(design.standard_errors(values).values()) == pytest.approx([0.0] * 13, abs=1e-12)


def test_design_contrast_of_anything_else_an_arm_has():
    p95 = {"all": 120.0, "all-a": 30.0, "all-b": 118.0}
    contrasts = _LeaveOneOut(("a", "b", "c")).contrasts()
    assert [difference(contrast, p95) for contrast in contrasts[:2]] == [90.0, 2.0]


@pytest.mark.parametrize(
    ("name", "factors", "options", "message"),
    [
        ("one_out", ("a",), {}, "'one_out' is unknown; choose one of leave_one_out"),
        ("add_one", ("a", "a"), {}, "factor 'a' is named twice"),
        ("add_one", ("a-b",), {}, "factor 'a-b' must be a word"),
        ("add_one", ("none",), {}, "not 'all' or 'none'"),
        ("add_one", (), {}, "needs 1 or more factors, got 0"),
        ("shapley", ("a",), {}, "needs 2 or more factors, got 1"),
        ("factorial", P13, {}, "needs 8192 arms; use design=shapley"),
        ("shapley", ("a", "b"), {"orders": 5}, "an even number of at least 4, got 5"),
        ("shapley", ("a", "b"), {"resolution": 4}, "has no option 'resolution'; it has orders, seed"),
        ("add_one", ("a", "b"), {"orders": 4}, "has no option 'orders'; it has none"),
    ],
)
def test_design_that_cannot_be_made_says_why(name, factors, options, message):
    with pytest.raises(ConfigError, match=message):
        _design_named(name, factors, **options)


@pytest.mark.slow
def test_design_nothing_depends_on_the_hash_seed():
    code = """
import numpy as np
from ragbench.experiment.ablate import _DESIGNS, _design_named
for name in _DESIGNS:
    design = _design_named(name, ["p3", "p10", "p1", "graph", "p2", "p7", "p12", "p5"])
    values = {arm: np.random.default_rng(i).random(20) for i, arm in enumerate(design.arms())}
    print(design, design.arms(), design.describe(), design.contrasts(), design.standard_errors(values))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 10_000
