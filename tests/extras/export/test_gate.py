"""Two runs, and whether the second may replace the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import ConfigError, ResultsError
from ragbench.extras.export.gate import Limits, gate
from ragbench.extras.export.measured_arm import MeasuredArm, find
from tests.naming import naming

VALUES = [0.4, 0.5, 0.6] * 10


@pytest.fixture
def arm(write_results, tmp_path: Path):
    def write(name: str, values: list[float], p95: float | None = None) -> MeasuredArm:
        return find(write_results(tmp_path / name, {name: values}, None if p95 is None else {name: p95}))

    return write


def outcomes(before: MeasuredArm, after: MeasuredArm, limits: Limits | None = None) -> dict[str, str]:
    return {check.part: check.outcome for check in gate(before, after, limits)}


def test_gate_passes_the_same_run(arm) -> None:
    many = [*VALUES, *VALUES, *VALUES, *VALUES]
    checks = outcomes(arm("old", many, 20.0), arm("new", many, 20.0))
    assert checks == {"benchmark": "passes", "quality": "passes", "latency": "passes"}
    # One more query than 30 that loses everything would be -.032: more than the margin.
    assert outcomes(arm("few", VALUES), arm("again", VALUES))["quality"] == "not checked"


def test_gate_fails_losses_and_passes_gains(arm) -> None:
    old, new = arm("old", VALUES), arm("new", [value - 0.1 for value in VALUES])
    assert outcomes(old, new) == {"benchmark": "passes", "quality": "fails", "latency": "not checked"}
    assert outcomes(new, old)["quality"] == "passes"
    assert outcomes(old, new, Limits(margin=0.05))["quality"] == "fails"
    assert outcomes(old, new, Limits(margin=0.15))["quality"] == "passes"
    assert outcomes(old, new, Limits(margin=0))["quality"] == "fails"


def test_gate_passes_a_sure_loss_below_the_margin(arm) -> None:
    checks = gate(arm("old", VALUES), arm("new", [value - 0.1 for value in VALUES]), Limits(margin=0.15))
    assert "documents: a significant loss of 0.100, smaller than the margin of 0.15" in checks[1].message


def test_gate_does_not_check_uncertain_losses(arm) -> None:
    """One of 30 topics loses .1, and one more that loses everything leaves -1.1 / 31 = -.035."""
    old, new = arm("old", VALUES), arm("new", [0.3, *VALUES[1:]])
    checks = gate(old, new)
    assert (checks[1].outcome, checks[1].undecided) == ("not checked", True)
    assert checks[1].message.startswith("inconclusive: documents -0.003 [")
    assert "a loss of 0.01 in documents is not excluded: it may be up to 0.035" in checks[1].message
    # The bound lies .0321 below the effect, and must not lie .00667: 30 * (.0321 / .00667)^2 = 698 topics.
    assert "about 668 more queries of this kind would exclude it" in checks[1].message
    assert outcomes(old, new, Limits(margin=0))["quality"] == "passes"  # no significant loss
    passed = gate(old, new, Limits(margin=0.04))[1]
    assert passed.outcome == "passes" and passed.message.startswith("no loss of 0.04, a gain is inconclusive: ")


@pytest.mark.parametrize(
    ("p95", "tolerance", "outcome"),
    [
        (23.0, 0.2, "passes"),
        (40.0, 0.2, "fails"),
        (40.0, 1.5, "passes"),
        (69.0, None, "passes"),  # the recorded budget is 50 ms
        (80.0, None, "fails"),
    ],
)
def test_gate_compares_latency(arm, p95: float, tolerance: float | None, outcome: str) -> None:
    old, new = arm("old", VALUES, 20.0), arm("new", VALUES, p95)
    assert outcomes(old, new, Limits(latency_tolerance=tolerance))["latency"] == outcome


def test_gate_compares_passages_as_documents(write_results, tmp_path: Path) -> None:
    better = [value + 0.1 for value in VALUES]
    old = find(write_results(tmp_path / "old", {"old": VALUES}, passages={"old": better}))
    new = find(write_results(tmp_path / "new", {"new": better}, passages={"new": VALUES}))
    checks = gate(old, new)
    assert checks[1].outcome == "fails"
    assert "documents +0.100" in checks[1].message
    assert "passages -0.100" in checks[1].message


def test_gate_refuses_other_data_unless_allowed(arm, reseal) -> None:
    old, new = arm("old", VALUES), arm("new", VALUES)
    new.results.record["benchmark"]["digest"] = "e" * 64
    with pytest.raises(ResultsError, check=naming("changed")):
        gate(old, new)
    assert outcomes(old, new, Limits(changed_data=True))["benchmark"] == "not checked"


def test_gate_refuses_other_queries(arm) -> None:
    with pytest.raises(ResultsError, check=naming("q29")):
        gate(arm("old", VALUES), arm("new", VALUES[:-1]))


def test_gate_refuses_missing_measures(arm) -> None:
    with pytest.raises(ConfigError, check=naming("AP")):
        gate(arm("old", VALUES), arm("new", VALUES), Limits("AP"))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"margin": -0.1}, "margin must be at least 0, or null, got -0.1"),
        ({"latency_tolerance": float("nan")}, "latency_tolerance must be finite and at least 0"),
        ({"confidence": 1.0}, "confidence must be above 0.5 and below 1"),
    ],
)
def test_gate_refuses_impossible_limits(limits: dict, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Limits(**limits)
