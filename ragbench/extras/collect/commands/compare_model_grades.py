"""`ragbench compare --model-grades`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import plain


def compare(sources: Sequence[Path], arguments: argparse.Namespace) -> int:
    """Print the effects of one run's arms from grades of a model, corrected by human grades."""
    from ragbench.extras.collect import model_judged
    from ragbench.results import measured_data, measurements

    if not arguments.model_grades or not arguments.sample:
        raise ConfigError("--model-grades and --sample go together: grades of a model count only next to human grades")
    if len(sources) != 1 or not sources[0].is_dir():
        raise ConfigError("--model-grades takes one run: name its folder, or @1")
    measured = measurements.load(sources[0])
    benchmark = measured_data.benchmark_of(measured, judged_since=True)
    measured_effects = model_judged.measure_effects(
        measured, benchmark, Path(arguments.model_grades), Path(arguments.sample)
    )
    if arguments.json:
        agreement = {
            name: value for name, value in plain(measured_effects.agreement).items() if name != "disagreements"
        }
        effects = measured_effects.effects
        console.print_json(
            {"agreement": agreement, "kappa": measured_effects.kappa, "same": measured_effects.same, "effects": effects}
        )
        return 0
    signed = dict.fromkeys(measured_effects.effects.columns, "+.3f") | {"weight": ".2f"}
    console.print_table(
        measured_effects.effects, f"Change from {measured.arms[0]}, judged by a model and annotators", signed
    )
    console.print_text(measured_effects.sentence)
    return 0
