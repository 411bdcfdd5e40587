"""Figures say what the tables say; frontier, sums and signs worked by hand."""

import numpy as np
import pandas as pd
import pytest

from ragbench.extras.report import figures
from ragbench.results.measurements import Measurements


def total(arm: str, p95: float) -> dict[str, object]:
    columns = ("p50", "p95", "p99", "mean", "p95_low", "p95_high")
    return {"arm": arm, "stage": "total", **dict.fromkeys(columns, p95)}


def results(quality: dict[str, float], latency: pd.DataFrame, folder) -> Measurements:
    rows = [(arm, "document", "test", "code", "q1", "nDCG@10", value) for arm, value in quality.items()]
    columns = ["arm", "level", "split", "type", "qid", "measure", "value"]
    for arm in quality:
        (folder / "arms" / arm).mkdir(parents=True)
        (folder / "arms" / arm / "config.yaml").write_text("measures: ['nDCG@10']\n")
    return Measurements(folder, {"arms": list(quality)}, pd.DataFrame(rows, columns=columns), latency)


def test_frontier_is_what_no_arm_beats_in_both(tmp_path) -> None:
    quality = {"fast": 0.3, "good": 0.6, "slow": 0.5, "twin": 0.6, "middle": 0.5}
    times = {"fast": 10.0, "good": 90.0, "slow": 95.0, "twin": 90.0, "middle": 40.0}
    frame = figures.pareto(results(quality, pd.DataFrame([total(a, t) for a, t in times.items()]), tmp_path))
    assert dict(zip(frame["arm"], frame["frontier"], strict=True)) == {
        "fast": True,
        "good": True,
        "slow": False,
        "twin": True,  # as good and as fast as another is not beaten
        "middle": True,
    }


def test_figures_axis_over_a_wide_range_is_logarithmic(tmp_path) -> None:
    wide = results({"a": 0.3, "b": 0.4}, pd.DataFrame([total("a", 10), total("b", 300)]), tmp_path / "wide")
    near = results({"a": 0.3, "b": 0.4}, pd.DataFrame([total("a", 10), total("b", 30)]), tmp_path / "near")
    assert figures.plot_pareto(wide).layout.xaxis.type == "log"
    assert list(figures.plot_pareto(wide).layout.xaxis.tickvals) == [10, 20, 50, 100, 200]
    assert figures.plot_pareto(near).layout.xaxis.type is None


def test_figures_names_of_neighbours_are_apart(tmp_path) -> None:
    times = [total("a", 10), total("b", 11), total("c", 30)]
    figure = figures.plot_pareto(results({"a": 0.3, "b": 0.3, "c": 0.2}, pd.DataFrame(times), tmp_path))
    places = {
        name: place for trace in figure.data[1:] for name, place in zip(trace.text, trace.textposition, strict=True)
    }
    assert places == {"a": "top right", "b": "bottom right", "c": "top left"}


def test_figures_stages_add_up_and_small_ones_are_summed(tmp_path) -> None:
    stages = [("dense", 5.0), ("p6", 94.0), ("fuse", 0.4), ("cut", 0.6), ("total", 100.0)]
    latency = pd.DataFrame([{"arm": "a", "stage": name, "mean": mean} for name, mean in stages])
    latency.loc[len(latency)] = {"arm": "a", "stage": "cold ready", "mean": np.nan}
    frame = figures._stage_means(results({"a": 1.0}, latency, tmp_path))
    assert dict(zip(frame["stage"], frame["mean"], strict=True)) == {
        "dense": 5.0,
        "p6": 94.0,
        "all other stages": pytest.approx(1.0),
    }


def test_figures_measured_stages_add_up_to_the_whole(ablation: Measurements) -> None:
    parts = figures._stage_means(ablation).groupby("arm")["mean"].sum()
    whole = ablation.latency[ablation.latency["stage"] == "total"].set_index("arm")["mean"]
    np.testing.assert_allclose(parts[ablation.arms], whole[ablation.arms], rtol=0.03)


def test_figures_effects_are_drawn_best_first_with_their_intervals(ablation: Measurements) -> None:
    frame = figures.main_effects(ablation)
    assert frame["effect"].is_monotonic_decreasing
    figure = figures.plot_effects(ablation)
    drawn = {
        y: (x, x - low, x + high)
        for trace in figure.data
        for x, y, low, high in zip(trace.x, trace.y, trace.error_x.arrayminus, trace.error_x.array, strict=True)
    }
    for row in frame.to_dict(orient="records"):
        assert drawn[row["factor"]] == pytest.approx((row["effect"], row["ci_low"], row["ci_high"]))
    assert list(figure.layout.yaxis.categoryarray) == frame["factor"].tolist()[::-1]


def test_figures_heat_map_is_symmetric_with_an_empty_diagonal(ablation: Measurements) -> None:
    (heat,) = figures.plot_interactions(ablation).data
    assert list(heat.x) == list(heat.y) == ["p4", "p8", "p10"]
    cells = [[None if value is None else float(value) for value in line] for line in heat.z]
    assert [cells[i][i] for i in range(3)] == [None] * 3
    assert cells == [list(column) for column in zip(*cells, strict=True)]


def test_figures_losses_add_up_to_all_relevant_sections(ablation: Measurements) -> None:
    shares: dict[str, float] = dict.fromkeys(ablation.arms, 0.0)
    for trace in figures.plot_losses(ablation).data:
        for arm, share in zip(trace.y, trace.x, strict=True):
            shares[arm] += share
    assert list(shares.values()) == pytest.approx([1.0] * len(ablation.arms))


@pytest.mark.parametrize("color", [*figures.PALETTE, figures.GREY])
@pytest.mark.parametrize("ground", ["#ffffff", "#191e25"])
def test_figures_colours_stand_out_from_white_and_from_dark(color: str, ground: str) -> None:
    """Contrast as WCAG 2.2 defines it, at least 3 for graphics."""

    def luminance(code: str) -> float:
        parts = np.array([int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    darker, lighter = sorted((luminance(color), luminance(ground)))
    assert (lighter + 0.05) / (darker + 0.05) >= 3


def test_figures_names_lose_no_letter_to_formatting() -> None:
    assert figures.labels(["p4", "<b>a&b</b>"]) == ["p4", "&lt;b&gt;a&amp;b&lt;/b&gt;"]
