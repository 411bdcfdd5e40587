"""`ragbench fit calibration`: isotonic calibration on the training queries."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import plain

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.extras.fit.stages.calibrate_evidence import CalibrateByEvidence
    from ragbench.search.engine.pipeline import Arm
    from ragbench.search.stages.calibrate import CalibrateByCurve
    from ragbench.search.stages.stage import Stage

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Fit isotonic calibration on the training queries: fused scores become probabilities of relevance.

Prints, for held-out queries, how well the calibrations work and how many results P10 would drop with each."""
EXAMPLES = """examples:
  ragbench fit calibration                         fit and print the overrides that use it
  ragbench fit calibration --max-loss 0.05         also fit the P10 threshold that drops at most 5% of relevant results
  ragbench fit calibration exp=recommended calibration=evidence   fit answer evidence, on unanswerable queries
  ragbench fit calibration exp=phase1 --write mine   save it as conf/calibration/mine.yaml, for calibration=mine
"""
_STAGE = "calibration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to fit, where to keep it, overrides and output options."""
    parser.add_argument(
        "--threshold", metavar="X", type=float, default=0.3, help="the P10 threshold to report on (default 0.3)"
    )
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
    from ragbench.extras.fit import training
    from ragbench.extras.fit.stages.calibrate_evidence import CalibrateByEvidence

    for option, share in {"--threshold": arguments.threshold, "--max-loss": arguments.max_loss}.items():
        if share is not None and not 0 <= share <= 1:
            raise ConfigError(f"{option} must be between 0 and 1, got {share}")
    training.check(arguments.write)
    settings = composition.compose(arguments.overrides)
    stages = settings.pipeline.stages
    benchmark = settings.benchmark()
    with console.progress(arguments.quiet or arguments.json):
        position = next((number for number, (name, _) in enumerate(stages) if name == _STAGE), None)
        if position is None:
            raise ConfigError("calibration is off, so there is nothing to fit: remove calibration=off")
        arm, stage = training.cut(settings, benchmark, stages[:position]), stages[position][1]
        if isinstance(stage, CalibrateByEvidence):
            fitted = _fit_evidence(arguments, arm, stage, benchmark)
        else:
            fitted = _fit_curve(arguments, arm, stage, benchmark)
    values = {key: value for key, value in plain(fitted.stage).items() if key not in ("", "noise")}
    if arguments.write:
        comment = (
            f"Fitted by `ragbench fit calibration` on {fitted.sample} of {benchmark.name} ({benchmark.digest[:12]}). "
            f"The pipeline was: {arm.pipeline!r}"
        )
        text = yaml.safe_dump(values, sort_keys=False, width=110, default_flow_style=None)
        _LOG.info(f"written to {training.write(_STAGE, arguments.write, type(fitted.stage), comment, text)}")
    if arguments.json:
        console.print_json({"calibration": values, **fitted.counted, "held_out": fitted.rows})
        return 0
    console.print_table(pd.DataFrame(fitted.rows), f"{fitted.sample}, each judged by a fit without it")
    print(f"use it with: {f'{_STAGE}={arguments.write}' if arguments.write else fitted.overrides}")
    if arguments.max_loss is not None and not isinstance(stage, CalibrateByEvidence):
        print(
            f"use its threshold with the configured calibration: p10=on p10.threshold={fitted.rows[-1]['threshold']:g}"
        )
    return 0


@dataclass(frozen=True)
class _Fitted:
    """A calibration, the rows that compare it with the configured one, and the `sample` it was fitted on, in words.

    `counted`: the size of the sample for `--json`, by name. `overrides` use the calibration without a file.
    """

    stage: CalibrateByCurve | CalibrateByEvidence
    rows: Sequence[Mapping[str, Any]]
    sample: str
    counted: Mapping[str, int]
    overrides: str


def _fit_curve(arguments: argparse.Namespace, arm: Arm, stage: Stage, benchmark: Benchmark) -> _Fitted:
    """Fit isotonic calibration, and see how well it and the configured calibration work on held-out queries."""
    from ragbench.extras.fit import calibrate, training

    states = training.answers(arm, training.fitted_on(benchmark))
    sample = calibrate.sample(states, arm.index.chunks, benchmark)
    fitted = calibrate.fit(sample)
    rows = calibrate.comparison_rows(sample, stage, arm.index, arguments.threshold)
    if arguments.max_loss is not None:
        rows.append(calibrate.row_for_loss(arguments.max_loss, sample, stage, arm.index))
    queries = len(sample.states)
    return _Fitted(fitted, rows, f"{queries} training queries", {"queries": queries}, _overrides(fitted))


def _fit_evidence(arguments: argparse.Namespace, arm: Arm, stage: CalibrateByEvidence, benchmark: Benchmark) -> _Fitted:
    """Fit the evidence for an answer on queries and their near misses, and see how often it silences the search."""
    from ragbench.extras.fit import calibrate, training

    qids = {topic.qid for topic in training.fitted_on(benchmark)}
    gathered = calibrate.gather(arm.pipeline, stage, arm.index, benchmark, qids)
    fitted = calibrate.fit_evidence(gathered)
    judged = {
        "as configured": calibrate.probabilities(stage, gathered),
        "fitted, held out": calibrate.held_out_probabilities(gathered),
    }
    threshold = arguments.threshold
    rows = [
        {"calibration": name, "threshold": threshold, **calibrate.silences(scores, gathered, threshold)}
        for name, scores in judged.items()
    ]
    overrides = [f"{_STAGE}=evidence", f"{_STAGE}.bias={fitted.bias:g}"]
    for key, values in (("weights", fitted.weights), ("typical", fitted.typical)):
        overrides += [f"{_STAGE}.{key}.{name}={value:g}" for name, value in values.items()]
    judged_on = f"{len(qids)} training queries and their near misses"
    return _Fitted(fitted, rows, judged_on, {"searches": len(gathered.kind)}, " ".join(overrides))


def _overrides(fitted: CalibrateByCurve) -> str:
    """The fit as words for the command line."""

    def points(values: Sequence[float]) -> str:
        return "[" + ",".join(f"{value:g}" for value in values) + "]"

    x, y = points(fitted.x), points(fitted.y)
    return f"{_STAGE}=table {_STAGE}.lists=0 {_STAGE}.x={x} {_STAGE}.y={y}"
