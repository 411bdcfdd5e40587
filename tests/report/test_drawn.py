"""Every figure is also a picture, the same for the same results."""

from __future__ import annotations

import pytest

from ragbench.report import canvas, figures, pareto, picture
from ragbench.results.measurements import Measurements

PNG = bytes([0x89]) + b"PNG"


@pytest.mark.parametrize(
    "plot",
    [pareto.plot_pareto, figures.plot_effects, figures.plot_latency, figures.plot_interactions, figures.plot_losses],
)
def test_a_figure_has_a_picture_beside_it(plot, ablation: Measurements) -> None:
    figure = plot(ablation)
    shown = figure._repr_mimebundle_()["image/png"]
    assert shown.startswith(PNG) and len(shown) > 5000
    assert figure.picture() == shown


def test_an_arm_has_one_colour_in_every_figure(ablation: Measurements) -> None:
    colors = canvas.arm_colors(ablation.arms)
    drawn = {}
    for trace in pareto.plot_pareto(ablation).data[1:]:
        drawn |= dict(zip(trace.text, trace.marker.color, strict=True))
        assert trace.error_y.array is not None
    svg = picture.svg(ablation)
    assert all(f"fill: {color}" in svg for color in drawn.values())
    assert drawn == {label: colors[arm] for arm, label in zip(ablation.arms, canvas.labels(ablation.arms), strict=True)}
