"""Which arm is exported, and whether its gain is established."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError, ResultsError
from ragbench.extras.export import measured_arm
from ragbench.extras.export.file_format import sentences
from tests.naming import naming

LOW, HIGH, NEARLY = [0.4, 0.5] * 15, [0.6, 0.7] * 15, [0.4, 0.5] * 14 + [0.4, 0.6]


@pytest.fixture
def run(write_results, tmp_path: Path) -> Path:
    p95 = {"base": 20.0, "better": 22.0, "same": 20.0, "worse": 20.0}
    return write_results(tmp_path / "run", {"base": LOW, "better": HIGH, "same": NEARLY, "worse": [0.1] * 30}, p95)


def test_find_takes_names_and_folders(run: Path) -> None:
    assert measured_arm.find(run, "better").name == "better"
    assert measured_arm.find(run / "arms" / "better").name == "better"
    assert measured_arm.find(run, "better").settings.config["name"] == "better"
    assert measured_arm.find(run, "better").quality == {"nDCG@10": 0.65}
    assert measured_arm.find(run, "better").latency["p95"] == 22.0


@pytest.mark.parametrize(
    ("name", "arm", "reason"),
    [
        ("", None, "has several arms"),
        ("", "best", "has no arm 'best'; arms: base, better"),
        ("arms/best", None, "has no arm 'best'"),
        ("arms/better", "base", "has no arm 'base'"),
        ("nowhere", None, "holds no results"),
    ],
)
def test_find_refuses_unknown_arms_and_runs(run: Path, name: str, arm: str | None, reason: str) -> None:
    with pytest.raises(ResultsError, match=reason):
        measured_arm.find(run / name, arm)


def test_find_refuses_a_changed_configuration(run: Path) -> None:
    (run / "arms" / "better" / "config.yaml").write_text(": [")
    with pytest.raises(ResultsError, check=naming("config")):
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
def test_evidence_names_verdict_and_baseline(run: Path, arm: str, baseline: str | None, gain: str) -> None:
    known = measured_arm.evidence(measured_arm.find(run, arm), baseline)
    assert known.gain == gain
    assert known.needs_force is (gain not in ("adopt", "uncompared"))
    assert measured_arm.require_gain(known, force=False) is None if not known.needs_force else True


def test_evidence_of_one_arm_claims_nothing(write_results, tmp_path: Path) -> None:
    known = measured_arm.evidence(measured_arm.find(write_results(tmp_path / "alone", {"one": LOW})))
    assert (known.gain, known.baseline) == ("uncompared", None)


def test_evidence_uses_the_recorded_latency_budget(write_results, tmp_path: Path) -> None:
    """p95 70.1 ms more than the baseline's, where 50 ms are allowed."""
    slow = write_results(tmp_path / "slow", {"base": LOW, "better": HIGH}, {"base": 20.0, "better": 90.0})
    known = measured_arm.evidence(measured_arm.find(slow, "better"))
    assert known.gain == "reject"
    assert "Quality significantly better" in known.sentence
    assert "over the budget of +50 ms" in known.sentence


def test_evidence_refuses_unknown_baselines(run: Path) -> None:
    with pytest.raises(ConfigError, check=naming("--baseline best")):
        measured_arm.evidence(measured_arm.find(run, "better"), "best")


def test_force_says_that_latency_is_unknown() -> None:
    known = measured_arm.Evidence("inconclusive", "", "base", "p95 +46 ms", latency_unknown=True)
    caution = measured_arm.require_gain(known, force=True)
    assert caution == "Exported with --force: significantly better, latency unknown: p95 +46 ms."


def test_unproven_gain_needs_force(run: Path) -> None:
    arm = measured_arm.find(run, "same")
    known = measured_arm.evidence(arm)
    with pytest.raises(ConfigError) as caught:
        measured_arm.require_gain(known, force=False)
    assert "add --accept-predicted if other collections predict a gain, or --force" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError) as rejected:
        measured_arm.require_gain(measured_arm.evidence(measured_arm.find(run, "worse")), force=False)
    assert "--force" in str(rejected.value) and "--accept-predicted" not in str(rejected.value)
    caution = measured_arm.require_gain(known, force=True)
    assert caution
    assert sentences(arm, replace(known, caution=caution))[0] == f"CAUTION: {caution}"
    better = measured_arm.evidence(measured_arm.find(run, "better"))
    assert measured_arm.require_gain(better, force=True) is None
    assert sentences(measured_arm.find(run, "better"), better)[-1] == better.sentence


def test_sentences_tell_what_was_measured(run: Path, reseal) -> None:
    arm = measured_arm.find(run, "better")
    text = "\n".join(sentences(arm, measured_arm.evidence(arm)))
    assert "from arm 'better' of the run run." in text
    assert "Measured on made (dddddddddddd), split test, 30 topics." in text
    assert "nDCG@10 0.6500." in text
    assert "Latency of a query: p50 11.0 ms, p95 22.0 ms, p99 22.0 ms." in text
    (run / "latency.csv").unlink()
    reseal(run)
    assert "Latency was not measured." in sentences(measured_arm.find(run, "base"), measured_arm.evidence(arm))


def test_gain_of_unknown_latency_needs_force_and_one_by_quality_alone_does_not(write_results, tmp_path: Path) -> None:
    untimed = write_results(tmp_path / "untimed", {"base": LOW, "better": HIGH, "same": NEARLY})
    better, same = (measured_arm.evidence(measured_arm.find(untimed, name)) for name in ("better", "same"))
    with pytest.raises(ConfigError, match=r"latency is unknown .*--remeasure-latency @1"):
        measured_arm.require_gain(better, force=False)
    quality = write_results(tmp_path / "quality", {"base": LOW, "better": HIGH, "same": NEARLY}, latency_enabled=False)
    better, same = (measured_arm.evidence(measured_arm.find(quality, name)) for name in ("better", "same"))
    caution = "Adopted by quality alone: latency was turned off (latency.enabled=false)."
    assert measured_arm.require_gain(better, force=False) == caution
    with pytest.raises(ConfigError, match="inconclusive"):
        measured_arm.require_gain(same, force=False)
