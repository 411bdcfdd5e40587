"""The picture for documents: what is in it, and that it is the same each time."""

import dataclasses
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd
import pytest

from ragbench.base.errors import ResultsError
from ragbench.commands import cli
from ragbench.extras.atlas import picture
from ragbench.report import figures, pareto
from ragbench.results.measurements import Measurements


def test_every_arm_is_named_in_words(ablation: Measurements) -> None:
    text = picture.svg(ablation)
    root = ElementTree.fromstring(text)
    said = {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert set(ablation.arms) <= said
    assert "nDCG@10" in said
    assert "<script" not in text


def test_same_results_same_bytes(ablation: Measurements) -> None:
    assert picture.svg(ablation) == picture.svg(ablation)


def test_without_times_there_is_nothing_to_draw(ablation: Measurements) -> None:
    with pytest.raises(ResultsError, match=r"latency\.enabled=true"):
        picture.svg(dataclasses.replace(ablation, latency=ablation.latency.iloc[:0]))


def test_the_command_writes_it(ablation: Measurements, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep" / "pareto.svg"
    words = ["report", str(ablation.folder), "--out", str(tmp_path / "report.html"), "--picture", str(file), "--json"]
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out)["picture"] == str(file)
    assert file.read_text(encoding="utf-8").startswith("<?xml")


def test_a_name_is_no_formula_and_no_markup() -> None:
    odd = "p6=$x^2$ <b>"
    columns = {"arm": [odd, "b"], "quality": [0.5, 0.4], "p50": [9.0, 19.0], "p95": [10.0, 20.0]}
    frame = pd.DataFrame({**columns, "p95_low": [9.5, 19.0], "p95_high": [11.0, 30.0], "frontier": [True, False]})
    root = ElementTree.fromstring(picture.draw(frame, "nDCG@10", figures.arm_colors(frame["arm"])))
    assert odd in {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}


def test_an_arm_has_one_colour_in_every_figure(ablation: Measurements) -> None:
    colors = figures.arm_colors(ablation.arms)
    drawn = {}
    for trace in pareto.plot_pareto(ablation).data[1:]:
        drawn |= dict(zip(trace.text, trace.marker.color, strict=True))
        assert trace.error_y.array is not None
    svg = picture.svg(ablation)
    assert all(f'fill="{color}"' in svg for color in drawn.values())
    assert drawn == {
        label: colors[arm] for arm, label in zip(ablation.arms, figures.labels(ablation.arms), strict=True)
    }


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.04, 0.31), (0.61, 0.63), (0.5, 0.5), (-3.0, 900.0)])
def test_ticks_are_few_and_inside(low: float, high: float) -> None:
    scale = picture.Scale(low, high, 0.0, 100.0)
    ticks = scale.ticks()
    assert len(ticks) <= 9 and all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert low == high or (len(ticks) >= 3 and 0 <= scale(ticks[0]) < scale(ticks[-1]) <= 100)


def test_logarithmic_ticks_are_1_2_and_5() -> None:
    assert picture.Scale(8.0, 130.0, 0.0, 100.0, log=True).ticks() == [10, 20, 50, 100]
