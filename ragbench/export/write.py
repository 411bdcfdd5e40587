"""Write an arm of a finished run in one of the formats, if its gain is established."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ragbench.base import registry
from ragbench.base.errors import ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.export import measured_arm
from ragbench.export.file_format import ExportContext, Format, Request, Written
from ragbench.export.measured_arm import Evidence, MeasuredArm
from ragbench.export.replay import MAX_LOSS
from ragbench.results import verdicts
from ragbench.results.verdicts import Prediction


def write(
    run: Path,
    out: Path | None = None,
    *,
    benchmark: Benchmark | None = None,
    arm: str | None = None,
    format: str = "ragbench",
    load: str | None = None,
    baseline: str | None = None,
    force: bool = False,
    on_expectation: bool = False,
    max_loss: float = MAX_LOSS,
    self_contained: bool = False,
) -> Written:
    """Write an arm of the run in the folder `run`, by default into its folder `exports`.

    `benchmark` is the one that the run measured, read again if None. With `load`, the address of a server, the search
    is written there instead of to a file. `self_contained` includes model weights and Lucene, for
    `requirements/serve.txt`. `on_expectation` accepts a predicted gain without `force`.

    Raises ConfigError for an unknown format and, without `force`, for an arm that is not significantly
    better than `baseline` (default: the run's first arm), for unknown latency, or for
    a translation that loses more than `max_loss` of nDCG@10; ResultsError for an unknown arm; BundleError when a
    bundle's folder exists.
    """
    form: Format = registry.load("export", format, "--format")
    request = Request(format, out, load, None if force else max_loss, self_contained)
    form.check(request)
    if load is not None and out is not None:
        raise ConfigError("--load writes to a server or folder, and --out to a file: use one of them")
    measured = replace(measured_arm.find(run, arm), open_benchmark=benchmark)
    if measured.settings.pipeline.live:
        raise ConfigError(f"arm '{measured.name}' is a live search, which runs elsewhere already: export another arm")
    evidence = measured_arm.evidence(measured, baseline)
    advice = _advice(measured, evidence) if on_expectation and evidence.needs_force else None
    caution = measured_arm.require_gain(evidence, force, advice)
    return form.write(measured, request, ExportContext(evidence, caution))


def _advice(measured: MeasuredArm, evidence: Evidence) -> Prediction:
    """Predicted effects of the arm. Raises ConfigError where too few other collections measured it."""
    advised = verdicts.predictions_of_run(measured.results, [measured.name], evidence.baseline)
    if not advised:
        raise ConfigError(
            f"too few other collections measured '{measured.name}' against {evidence.baseline} to predict its gain: "
            "add --force to export it without evidence"
        )
    return advised[0]
