"""What the report says agrees with the modules that measure and compare."""

import dataclasses
import shutil

import pandas as pd
import pytest

from ragbench.base.errors import ResultsError
from ragbench.evaluation import diagnosis
from ragbench.report import evidence
from ragbench.results.measurements import DIAGNOSIS, Measurements


def test_by_type_splits_the_means(ablation: Measurements) -> None:
    frame = evidence.by_kind(ablation)
    for arm in ablation.arms:
        rows = frame[frame["arm"] == arm]
        overall = float((rows["mean"] * rows["n"]).sum() / rows["n"].sum())
        assert overall == pytest.approx(float(ablation.values(arm).mean()))
    assert frame["few"].all()
    assert (frame.loc[frame["arm"] == ablation.arms[0], "difference"] == 0).all()


def test_an_ablations_effects_are_those_it_wrote(ablation: Measurements) -> None:
    frame = evidence.effects(ablation)
    assert frame["kind"].tolist() == ["main"] * 3 + ["interaction"] * 3
    assert frame["other"].tolist() == ["", "", "", "p8", "p10", "p10"]


def test_a_damaged_configuration_is_one_sentence(alone: Measurements, tmp_path) -> None:
    moved = dataclasses.replace(alone, folder=tmp_path)
    with pytest.raises(ResultsError, match=r"config\.yaml cannot be read"):
        moved.config(alone.arms[0])


@pytest.mark.parametrize(("earlier", "today"), diagnosis.FORMER.items())
def test_an_outcome_of_an_earlier_version_has_its_name_of_today(ablation, tmp_path, earlier: str, today: str) -> None:
    folder = tmp_path / ablation.folder.name
    shutil.copytree(ablation.folder, folder)
    for path in folder.glob(f"arms/*/{DIAGNOSIS}"):
        pd.read_parquet(path).replace({"outcome": {diagnosis.FOUND: earlier}}).to_parquet(path)
    expected = evidence.fates(ablation)["outcome"].replace({diagnosis.FOUND: today})
    assert today in set(expected)
    assert evidence.fates(dataclasses.replace(ablation, folder=folder))["outcome"].tolist() == expected.tolist()
