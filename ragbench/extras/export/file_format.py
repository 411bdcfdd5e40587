"""The formats of exports, which entry points `export.NAME` name, and what a translated configuration is worth.

Files for other systems are made here; a bundle (`ragbench`) and engines that hold the documents are of other extras.
The pipeline that another system runs is measured on the run's topics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np

from ragbench.base import registry
from ragbench.base.types import BenchmarkError, ConfigError, CorpusError, ResultsError, counted, interval
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.runs import Run
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evaluation import measures
from ragbench.evidence import cost, statistics
from ragbench.extras.export import measured_arm
from ragbench.extras.export.measured_arm import Evidence, MeasuredArm
from ragbench.results import measurements, store

MAX_LOSS = 0.005
"""The loss of nDCG@10 up to which a translation is written without `--force`."""
_SEED = 13


@dataclass(frozen=True)
class Replay:
    """nDCG@10 of the measured arm and of its translation over the same `topics`; `low` and `high` bound the change.

    `where` says what answered: an arm of ragbench, or the engine itself.
    """

    measured: float
    replayed: float
    low: float
    high: float
    topics: int
    where: str

    @property
    def loss(self) -> float:
        """What the translation loses; below 0 where it gains."""
        return self.measured - self.replayed

    @property
    def sentence(self) -> str:
        """Both scores and the interval of their difference in one line."""
        return (
            f"{measures.PRIMARY} {self.measured:.3f} measured, {self.replayed:.3f} {self.where}: change "
            f"{interval(self.low, self.high)}, 95% CI, on {counted(self.topics, 'query')}"
        )


@dataclass(frozen=True)
class Bench:
    """The topics of a measured arm, and what builds arms to answer them again."""

    measured: MeasuredArm
    builder: ArmBuilder

    @staticmethod
    def of(measured: MeasuredArm) -> Bench:
        """That of a finished run. Raises ResultsError when its documents or topics have changed."""
        return Bench(measured, ArmBuilder.of(measured.settings, measured.benchmark))

    def replay(self, settings: Settings) -> Replay:
        """The score of other settings next to the measured one."""
        (arm,) = self.builder.arms([settings])
        states = arm.pipeline(self.measured.queries, arm.index)
        return self.score(measures.document_run(states, arm.index.chunks), "emulated by ragbench")

    def score(self, run: Run, where: str) -> Replay:
        """A run over documents next to that of the measured arm. Raises ResultsError when no topic can be compared."""
        measured_run, benchmark = self.measured.results.run(self.measured.name), self.measured.benchmark
        values = []
        for answered in ({qid: measured_run.get(qid, ()) for qid in run}, run):
            frame = measures.evaluate(answered, benchmark.document_qrels, [measures.PRIMARY], benchmark.unanswerable)
            values.append(frame[frame["measure"] == measures.PRIMARY].set_index("qid")["value"].sort_index())
        old, new = values
        if not len(old):
            raise ResultsError(
                f"no topic of {self.measured.results.folder} has a relevant document, so a translation cannot be priced"
            )
        comparison = statistics.compare(new.to_numpy(), old.to_numpy(), seed=_SEED)
        low, high = (comparison.difference if np.isnan(end) else end for end in (comparison.ci_low, comparison.ci_high))
        return Replay(comparison.mean_baseline, comparison.mean_candidate, float(low), float(high), comparison.n, where)


_Render = Callable[[Settings, Sequence[str]], tuple[str, list[str]]]
"""Gives the text of the file for an arm and sentences on its origin, and a sentence for all that it cannot express."""


@dataclass(frozen=True)
class Request:
    """How an arm shall be written: in a format, to the path `out` (None: a folder of the run) or the address `load`.

    `max_loss` is the greatest loss of nDCG@10 of a translation (None: any). `self_contained` is for bundles and
    engines.
    """

    format: str
    out: Path | None = None
    load: str | None = None
    max_loss: float | None = None
    self_contained: bool = False

    def output_path(self, arm: MeasuredArm, ending: str) -> Path:
        """`out`, or the path in the run's folder `exports`."""
        return self.out or arm.results.folder / "exports" / f"{store.arm_folder(arm.name)}{ending}"

    def refuse_load(self) -> None:
        """Raise ConfigError for an address to load the search into."""
        if self.load is not None:
            raise ConfigError(f"--load is for servers, not for --format {self.format}: remove it, or specify another")

    def refuse_loss(self, replay: Replay) -> None:
        """Raise ConfigError for a translation that loses more than `max_loss`."""
        if self.max_loss is not None and round(replay.loss, 6) > self.max_loss:
            raise ConfigError(
                f"{replay.sentence}: --format {self.format} loses {replay.loss:.3f}, more than --max-loss "
                f"{self.max_loss:g}; export a bundle or another arm, or add --force (force=True in Python)"
            )


@dataclass(frozen=True)
class Written:
    """An export; `missing` are sentences on what the format cannot express, or what a bundle depends on.

    `replay` is what the translation scores; None for a bundle, whose rankings are those of the run, and for a file
    that `--force` wrote although it cannot be replayed. `verifiable`: `ragbench verify` opens it.
    """

    out: Path | str
    format: str
    arm: str
    evidence: Evidence
    missing: tuple[str, ...]
    replay: Replay | None = None
    verifiable: bool = False


class Format(Protocol):
    """A format of exports."""

    def check(self, request: Request) -> None:
        """Raise ConfigError for what it cannot do, before anything is read."""
        ...

    def write(self, arm: MeasuredArm, request: Request, evidence: Evidence) -> Written:
        """Write the arm. ConfigError for a translation that loses more than `request.max_loss`, and others."""
        ...


@dataclass(frozen=True)
class FileFormat:
    """`ending` of its files; `replayed`: the settings that the other system runs, of those of the arm."""

    ending: str
    render: _Render
    replayed: Callable[[Settings], Settings] | None = None

    def check(self, request: Request) -> None:
        """Raise ConfigError for options of other formats."""
        if request.self_contained:
            raise ConfigError(f"--self-contained is for bundles and engines, got --format {request.format}")
        request.refuse_load()

    def write(self, arm: MeasuredArm, request: Request, evidence: Evidence) -> Written:
        """Replay what the system will run, and write its file."""
        from ragbench.benchmark.lines import write_atomically

        name, path = request.format, request.output_path(arm, self.ending)
        if path.is_dir():
            raise ConfigError(f"--out {path} is a folder: name a file such as {path / f'config{self.ending}'}")
        replay, unreplayed = None, []
        try:
            bench = Bench.of(arm)
            if self.replayed is None:
                raise ConfigError(f"the format {name} does not state what its system runs: add --force")
            replay = bench.replay(self.replayed(arm.settings))
            request.refuse_loss(replay)
        except (ConfigError, ResultsError, BenchmarkError, CorpusError) as error:
            if request.max_loss is not None:
                raise
            unreplayed.append(f"not replayed: {error}")
        said_first = sentences(arm, evidence)
        origin = [*said_first[:1], f"{replay.sentence}." if replay else unreplayed[-1], *said_first[1:]]
        text, missing = self.render(arm.settings, origin)
        write_atomically(path, text)
        return Written(path, name, arm.name, evidence, (*unreplayed, *missing), replay)


def sentences(measured: MeasuredArm, evidence: Evidence) -> list[str]:
    """The sentences, the caution about an unproven gain first."""
    record = measured.results.record
    lines = [
        *([f"CAUTION: {evidence.caution}"] if evidence.caution else []),
        f"Written by ragbench {version('ragbench')} from arm '{measured.name}' of the run "
        f"{measured.results.folder.name}.",
        f"Pipeline: {measured.settings.pipeline!r}",
        f"Measured on {record['benchmark']['name']} ({record['benchmark']['digest'][:12]}), split {record['split']}, "
        f"{record['topics']} topics.",
    ]
    quality = sorted(measured.quality.items(), key=lambda item: item[0] != measures.PRIMARY)
    lines.append(", ".join(f"{name} {value:.4f}" for name, value in quality) + ".")
    latency, net = measured.latency, measured.results.net_p95_ms.get(measured.name)
    busy = "" if net is None else f" (p95 {net:.1f} ms with the {cost.NET}, because the machine was busy)"
    lines.append(
        "Latency was not measured."
        if latency is None
        else "Latency of a query: "
        + ", ".join(f"{name} {latency[name]:.1f} ms" for name in ("p50", "p95", "p99"))
        + f"{busy}."
    )
    return [*lines, evidence.sentence]


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
    evidence = replace(evidence, caution=measured_arm.require_gain(evidence, force, advice))
    return form.write(measured, request, evidence)


def _advice(measured: MeasuredArm, evidence: Evidence) -> measurements.Prediction:
    """Predicted effects of the arm. Raises ConfigError where too few other collections measured it."""
    advised = measurements.predictions_of_run(measured.results, [measured.name], evidence.baseline)
    if not advised:
        raise ConfigError(
            f"too few other collections measured '{measured.name}' against {evidence.baseline} to predict its gain: "
            "add --force to export it without evidence"
        )
    return advised[0]
