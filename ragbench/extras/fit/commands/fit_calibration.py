"""`ragbench fit calibration`: isotonic calibration on the training queries."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.fingerprint import plain
from ragbench.base.types import ConfigError

if TYPE_CHECKING:
    from ragbench.search.stages.calibrate import CalibrateByCurve

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Fit isotonic calibration on the training queries: fused scores become probabilities of relevance.

Prints, for held-out queries, how well the calibrations work and how many results P10 would drop with each, at the
configured p10.threshold or 0.3."""
EXAMPLES = """examples:
  ragbench fit calibration                         fit and print the overrides that use it
  ragbench fit calibration --max-loss 0.05         also fit the P10 threshold that drops at most 5% of relevant results
  ragbench fit calibration exp=phase1 --write mine   save it as conf/calibration/mine.yaml, for calibration=mine
"""
_STAGE = "calibration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to fit, where to keep it, overrides and output options."""
    parser.add_argument(
        "--max-loss",
        type=float,
        metavar="SHARE",
        help="also fit the P10 threshold that drops at most this share of relevant results",
    )
    parser.add_argument("--write", metavar="NAME", help="save the calibration as an option with this name")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Fit on the train split, compare by cross-validation, print or write."""
    import pandas as pd
    import yaml

    from ragbench.config import composition
    from ragbench.extras.fit import calibrate, training
    from ragbench.search.stages.calibrate import FilterByConfidence

    if arguments.max_loss is not None and not 0 <= arguments.max_loss <= 1:
        raise ConfigError(f"--max-loss must be between 0 and 1, got {arguments.max_loss}")
    training.check(arguments.write)
    settings = composition.compose(arguments.overrides)
    stages = settings.pipeline.stages
    benchmark = settings.benchmark()
    with console.progress(arguments.quiet or arguments.json):
        position = next((number for number, (name, _) in enumerate(stages) if name == _STAGE), None)
        if position is None:
            raise ConfigError("calibration is off, so there is nothing to fit: remove calibration=off")
        arm, stage = training.cut(settings, benchmark, stages[:position]), stages[position][1]
        states = training.answers(arm, training.fitted_on(benchmark))
        sample = calibrate.sample(states, arm.index.chunks, benchmark)
        fitted = calibrate.fit(sample)
        threshold = (settings.pipeline.first(FilterByConfidence) or FilterByConfidence()).threshold
        rows = calibrate.comparison_rows(sample, stage, arm.index, threshold)
        if arguments.max_loss is not None:
            rows.append(calibrate.row_for_loss(arguments.max_loss, sample, stage, arm.index))
    fitted_on = f"{len(sample.states)} training queries"
    values = {key: value for key, value in plain(fitted).items() if key not in ("", "noise")}
    if arguments.write:
        comment = (
            f"Fitted by `ragbench fit calibration` on {fitted_on} of {benchmark.name} ({benchmark.digest[:12]}). "
            f"The pipeline was: {arm.pipeline!r}"
        )
        text = yaml.safe_dump(values, sort_keys=False, width=110, default_flow_style=None)
        _LOG.info(f"written to {training.write(_STAGE, arguments.write, type(fitted), comment, text)}")
    if arguments.json:
        console.print_json({"calibration": values, "queries": len(sample.states), "held_out": rows})
        return 0
    console.print_table(pd.DataFrame(rows), f"{fitted_on}, each judged by a fit without it")
    print(f"use it with: {f'{_STAGE}={arguments.write}' if arguments.write else _overrides(fitted)}")
    if arguments.max_loss is not None:
        print(f"use its threshold with the configured calibration: p10=on p10.threshold={rows[-1]['threshold']:g}")
    return 0


def _overrides(fitted: CalibrateByCurve) -> str:
    """The fit as words for the command line."""

    def points(values: Sequence[float]) -> str:
        return "[" + ",".join(f"{value:g}" for value in values) + "]"

    x, y = points(fitted.x), points(fitted.y)
    return f"{_STAGE}=table {_STAGE}.lists=0 {_STAGE}.x={x} {_STAGE}.y={y}"
