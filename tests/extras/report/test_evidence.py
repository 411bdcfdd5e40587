"""What the report says agrees with the modules that measure and compare."""

import dataclasses

import pytest

from ragbench.base.types import ResultsError
from ragbench.results.measurements import VERDICTS, Measurements
from tests.naming import naming


def test_evidence_by_type_splits_the_means(ablation: Measurements) -> None:
    frame = ablation.by_kind()
    for arm in ablation.arms:
        rows = frame[frame["arm"] == arm]
        overall = float((rows["mean"] * rows["n"]).sum() / rows["n"].sum())
        assert overall == pytest.approx(float(ablation.values(arm).mean()))
    assert frame["few"].all()
    assert (frame.loc[frame["arm"] == ablation.arms[0], "difference"] == 0).all()


def test_evidence_ablations_effects_are_those_it_wrote(ablation: Measurements) -> None:
    frame = ablation.verdicts
    assert frame["kind"].tolist() == ["main"] * 3 + ["interaction"] * 3
    assert frame["other"].tolist() == ["", "", "", "p8", "p10", "p10"]


def test_evidence_damaged_configuration_is_one_sentence(alone: Measurements, tmp_path) -> None:
    moved = dataclasses.replace(alone, folder=tmp_path)
    with pytest.raises(ResultsError, check=naming("config.yaml")):
        moved.config(alone.arms[0])


def test_evidence_judgments_are_lacking_by_the_field_of_a_verdict(ablation: Measurements, tmp_path) -> None:
    frame = ablation.verdicts.copy()
    assert frame["needs_judgments"].tolist()[:3] == [0, 0, 0] and not ablation.lacks_judgments
    frame.loc[0, "needs_judgments"] = 1
    frame.to_csv(tmp_path / VERDICTS, index=False)
    assert dataclasses.replace(ablation, folder=tmp_path).lacks_judgments
