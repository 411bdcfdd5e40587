"""What the report says agrees with the modules that measure and compare."""

import numpy as np
import pytest

from ragbench.errors import ResultsError
from ragbench.experiment import compare
from ragbench.experiment.results import Results
from ragbench.report import evidence


def test_arms_are_compared_as_the_command_compares_them(ablation: Results) -> None:
    documents = ablation.per_query[ablation.per_query["level"] == "document"]
    frames = {
        arm: documents[documents["arm"] == arm].pivot(index="qid", columns="measure", values="value")
        for arm in ablation.arms
    }
    expected = compare.compare(frames, ablation.arms[0], "nDCG@10", seed=13).set_index("arm")
    found = evidence.against_first(ablation).set_index("arm")
    for column in ("mean", "baseline", "difference", "ci_low", "ci_high", "p", "p_holm", "wins", "ties", "losses", "n"):
        np.testing.assert_allclose(found[column], expected[column], err_msg=column)


def test_latency_costs_add_half_widths_in_quadrature(ablation: Results) -> None:
    first, second = ablation.arms[:2]
    total = ablation.latency[ablation.latency["stage"] == "total"].set_index("arm")
    cost = evidence.latency_cost(ablation, second, first)
    assert cost is not None and cost.low_ms is not None
    assert cost.p95_ms == pytest.approx(total["p95"][second] - total["p95"][first])
    halves = (total["p95_high"] - total["p95_low"]) / 2
    assert cost.p95_ms - cost.low_ms == pytest.approx((halves[first] ** 2 + halves[second] ** 2) ** 0.5)


def test_arms_judged_too_differently_are_named(ablation: Results) -> None:
    first = ablation.arms[0]
    value = {arm: float(ablation.values(arm).mean()) for arm in ablation.arms}
    unjudged = {arm: float(ablation.values(arm, "Unjudged@10").mean()) for arm in ablation.arms}
    far = [
        arm
        for arm in ablation.arms[1:]
        if (unjudged[arm] - unjudged[first]) * np.sign(value[first] - value[arm]) > 0.05 + 1e-9
    ]
    assert [note.split("'")[1] for note in evidence.judged_notes(ablation)] == far


def test_by_type_splits_the_means(ablation: Results) -> None:
    frame = evidence.by_type(ablation)
    for arm in ablation.arms:
        rows = frame[frame["arm"] == arm]
        overall = float((rows["mean"] * rows["n"]).sum() / rows["n"].sum())
        assert overall == pytest.approx(float(ablation.values(arm).mean()))
    assert frame["warning"].str.startswith("only ").all()
    assert (frame[frame["arm"] == ablation.arms[0]][["difference", "low", "high"]] == 0).all(axis=None)


def test_an_ablations_effects_are_those_it_wrote(ablation: Results) -> None:
    frame = evidence.effects(ablation)
    assert frame["kind"].tolist() == ["main"] * 3 + ["interaction"] * 3
    assert frame["other"].tolist() == ["", "", "", "p8", "p10", "p10"]


def test_a_damaged_configuration_is_one_sentence(alone: Results, tmp_path) -> None:
    import dataclasses

    moved = dataclasses.replace(alone, folder=tmp_path)
    with pytest.raises(ResultsError, match=r"config\.yaml cannot be read"):
        evidence.config(moved, alone.arms[0])
