"""Which arm is exported, and whether its gain is established."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.errors import ConfigError, ResultsError
from ragbench.export import measured_arm
from ragbench.export.file_format import sentences

LOW, HIGH, NEARLY = [0.4, 0.5] * 15, [0.6, 0.7] * 15, [0.4, 0.5] * 14 + [0.4, 0.6]


@pytest.fixture
def run(write_results, tmp_path: Path) -> Path:
    p95 = {"base": 20.0, "better": 22.0, "same": 20.0, "worse": 20.0}
    return write_results(tmp_path / "run", {"base": LOW, "better": HIGH, "same": NEARLY, "worse": [0.1] * 30}, p95)


def test_an_arm_is_found_by_name_and_by_folder(run: Path) -> None:
    assert measured_arm.find(run, "better").name == "better"
    assert measured_arm.find(run / "arms" / "better").name == "better"
    assert measured_arm.find(run, "better").settings.config["name"] == "better"
    assert measured_arm.find(run, "better").quality == {"nDCG@10": 0.65}
    assert measured_arm.find(run, "better").latency["p95"] == 22.0


@pytest.mark.parametrize(
    ("place", "arm", "said"),
    [
        ("", None, "has several arms"),
        ("", "best", "has no arm 'best'; arms: base, better"),
        ("arms/best", None, "has no arm 'best'"),
        ("arms/better", "base", "has no arm 'base'"),
        ("nowhere", None, "holds no results"),
    ],
)
def test_what_cannot_be_found(run: Path, place: str, arm: str | None, said: str) -> None:
    with pytest.raises(ResultsError, match=said):
        measured_arm.find(run / place, arm)


def test_a_configuration_that_was_changed(run: Path) -> None:
    (run / "arms" / "better" / "config.yaml").write_text(": [")
    with pytest.raises(ResultsError, match=r"damaged \(config\.yaml has changed since it was written\)"):
        measured_arm.find(run, "better")


@pytest.mark.parametrize(
    ("arm", "baseline", "gain"),
    [
        ("better", None, "adopt"),
        ("same", None, "inconclusive"),
        ("worse", None, "reject"),
        ("base", None, "uncompared"),
        ("same", "worse", "adopt"),
        ("better", "better", "uncompared"),
    ],
)
def test_evidence(run: Path, arm: str, baseline: str | None, gain: str) -> None:
    found = measured_arm.evidence(measured_arm.find(run, arm), baseline)
    assert found.gain == gain
    assert found.needs_force is (gain not in ("adopt", "uncompared"))
    assert measured_arm.require_gain(found, force=False) is None if not found.needs_force else True


def test_one_arm_claims_nothing(write_results, tmp_path: Path) -> None:
    found = measured_arm.evidence(measured_arm.find(write_results(tmp_path / "alone", {"one": LOW})))
    assert (found.gain, found.baseline) == ("uncompared", None)


def test_the_recorded_budget_of_time_counts(write_results, tmp_path: Path) -> None:
    """p95 70.1 ms more than the baseline's, where 50 ms are allowed."""
    slow = write_results(tmp_path / "slow", {"base": LOW, "better": HIGH}, {"base": 20.0, "better": 90.0})
    found = measured_arm.evidence(measured_arm.find(slow, "better"))
    assert found.gain == "reject"
    assert "Quality significantly better" in found.sentence
    assert "over the budget of +50 ms" in found.sentence


def test_an_unknown_baseline(run: Path) -> None:
    with pytest.raises(ConfigError, match="--baseline best is not an arm"):
        measured_arm.evidence(measured_arm.find(run, "better"), "best")


def test_force_on_a_better_arm_of_unknown_latency_says_that() -> None:
    found = measured_arm.Evidence("inconclusive", "", "base", "p95 +46 ms", latency_unknown=True)
    caution = measured_arm.require_gain(found, force=True)
    assert caution == "Exported with --force: significantly better, latency unknown: p95 +46 ms."


def test_an_unproven_gain_needs_force_and_says_so(run: Path) -> None:
    arm = measured_arm.find(run, "same")
    found = measured_arm.evidence(arm)
    said = r"the verdict on this configuration is inconclusive \(not significantly better than base\): add --force"
    with pytest.raises(ConfigError, match=said) as caught:
        measured_arm.require_gain(found, force=False)
    assert "\n" not in str(caught.value)
    caution = measured_arm.require_gain(found, force=True)
    assert caution
    assert sentences(arm, found, caution)[0] == f"CAUTION: {caution}"
    better = measured_arm.evidence(measured_arm.find(run, "better"))
    assert measured_arm.require_gain(better, force=True) is None
    assert sentences(measured_arm.find(run, "better"), better, None)[-1] == better.sentence


def test_the_heading_tells_what_was_measured(run: Path, reseal) -> None:
    arm = measured_arm.find(run, "better")
    told = "\n".join(sentences(arm, measured_arm.evidence(arm), None))
    assert "from arm 'better' of the run run." in told
    assert "Measured on made (dddddddddddd), split test, 30 topics." in told
    assert "nDCG@10 0.6500." in told
    assert "Latency of a query: p50 11.0 ms, p95 22.0 ms, p99 22.0 ms." in told
    (run / "latency.csv").unlink()
    reseal(run)
    assert "Latency was not measured." in sentences(measured_arm.find(run, "base"), measured_arm.evidence(arm), None)


def test_what_is_better_and_not_timed_needs_cost_open_only(write_results, tmp_path: Path) -> None:
    untimed = write_results(tmp_path / "untimed", {"base": LOW, "better": HIGH, "same": NEARLY})
    better, same = (measured_arm.evidence(measured_arm.find(untimed, name)) for name in ("better", "same"))
    with pytest.raises(
        ConfigError, match=r"better than base, but its latency is unknown \(latency was not measured, the budget"
    ):
        measured_arm.require_gain(better, force=False)
    assert "--allow-unknown-latency: significantly better, latency unknown" in str(
        measured_arm.require_gain(better, force=False, allow_unknown_latency=True)
    )
    with pytest.raises(ConfigError, match="the verdict on this configuration is inconclusive"):
        measured_arm.require_gain(same, force=False, allow_unknown_latency=True)
