"""Write an arm of a finished run in one of the formats, if its gain is established."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ragbench.base import parts
from ragbench.base.errors import BenchmarkError, ConfigError, CorpusError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.arm_builder import Progress, Say
from ragbench.export import measured_arm
from ragbench.export.file_format import BUNDLE, ENGINES, FileFormat, formats
from ragbench.export.measured_arm import Evidence, MeasuredArm
from ragbench.export.replay import MAX_LOSS, Bench, Replay
from ragbench.extras.atlas import expected
from ragbench.extras.atlas.expected import Advice
from ragbench.extras.engines import hybrid
from ragbench.results.store import arm_folder

_ALIASES = {"bundle": BUNDLE}


@dataclass(frozen=True)
class Written:
    """An export; `missing` are sentences on what the format cannot express, or what a bundle depends on.

    `replay` is what the translation scores; None for a bundle, whose rankings are those of the run, and for a file
    that `--force` wrote although it cannot be replayed.
    """

    out: Path | str
    format: str
    arm: str
    evidence: Evidence
    caution: str | None
    missing: tuple[str, ...]
    replay: Replay | None = None


def write(
    run: Path,
    out: Path | None = None,
    *,
    benchmark: Benchmark | None = None,
    arm: str | None = None,
    format: str = "ragbench",
    load: str | None = None,
    version: str | None = None,
    baseline: str | None = None,
    force: bool = False,
    on_expectation: bool = False,
    max_loss: float = MAX_LOSS,
    cost_open: bool = False,
    include_index: bool = True,
    self_contained: bool = False,
    progress: Progress | None = None,
    say: Say = print,
) -> Written:
    """Write an arm of the run in the folder `run`; into its folder `exports` where `out` is not given.

    `benchmark` is the one that the run measured, read again if None.

    With `load`, the address of a server (`ragbench.extras.engines.address`), the search is put there, not into a file.

    `self_contained` puts weights and Lucene into what is written, for `requirements-serve.txt`. `on_expectation` takes
    the place of `force` where the gain is open and the atlas expects it.

    `version` is the version of the system that will read the file, if its keys depend on it (None: the newest). Raises
    ConfigError for an unknown format or version and, without `force`, for a gain over `baseline` (default: the run's
    first arm) that is not established (`cost_open` is enough where only the time is not known), or a translation that
    loses more than `max_loss` of nDCG@10; ResultsError for an unknown arm; BundleError when a bundle's folder exists.
    """
    format = _ALIASES.get(format, format)
    if format not in formats():
        raise ConfigError(f"--format must be one of {', '.join(formats())}, got {format}")
    file = None if format in (BUNDLE, *ENGINES) else _format(format)
    if version is not None and not (file and file.versioned):
        raise ConfigError(f"--version is for --format ragdocs only, got --format {format}")
    if self_contained and file is not None:
        raise ConfigError(f"--self-contained is for bundles and engines, got --format {format}")
    if load is None and ENGINES.get(format) == "":
        instead = "" if out is None else " in place of --out"
        raise ConfigError(f"--format {format} fills a folder: use --load {format}:///FOLDER/NAME{instead}")
    if load is not None and out is not None:
        raise ConfigError("--load puts the search into a server or folder and --out into a file: leave one of them out")
    measured = replace(measured_arm.find(run, arm), given=benchmark)
    if measured.settings.pipeline.live:
        raise ConfigError(f"arm '{measured.name}' is a live search, which runs elsewhere already: export another arm")
    evidence = measured_arm.evidence(measured, baseline)
    advice = _advice(measured, evidence) if on_expectation and evidence.needs_force else None
    caution = measured_arm.require_gain(evidence, force, cost_open, advice)
    ending = file.ending if file else ENGINES.get(format, ".bundle")
    place = out or measured.results.folder / "exports" / f"{arm_folder(measured.name)}{ending}"
    if format in ENGINES or load is not None:
        from ragbench.extras.engines import shipping

        most = None if force else max_loss
        where = None if load is not None else place
        name, said, priced = shipping.ship(
            measured, format, where, load, evidence, caution, most, self_contained, progress, say
        )
        return Written(place if load is None else name, format, measured.name, evidence, caution, tuple(said), priced)
    if file is None:
        missing = _bundle(measured, place, evidence, caution, include_index, self_contained, progress, say)
    else:
        limit = None if force else max_loss
        missing, replay = _file(file, format, version, measured, place, evidence, caution, limit, progress, say)
        return Written(place, format, measured.name, evidence, caution, tuple(missing), replay)
    return Written(place, format, measured.name, evidence, caution, tuple(missing))


def _advice(found: MeasuredArm, evidence: Evidence) -> Advice:
    """What to expect of the arm. Raises ConfigError where the atlas does not know it."""
    advised = expected.of_run(found.results, [found.name], evidence.baseline)
    if not advised:
        raise ConfigError(
            f"too little is known elsewhere of {found.name} beside {evidence.baseline} to export it on expectation: "
            "ragbench atlas shows what is known; --force exports it anyway"
        )
    return advised[0]


def _bundle(
    arm: MeasuredArm,
    out: Path,
    evidence: Evidence,
    caution: str | None,
    include_index: bool,
    self_contained: bool,
    progress: Progress | None,
    say: Say,
) -> list[str]:
    from ragbench.extras.ship import bundle

    bundle.write(
        arm,
        arm.benchmark,
        out,
        evidence=evidence,
        caution=caution,
        include_index=include_index,
        self_contained=self_contained,
        progress=progress,
        say=say,
    )
    return [str(sentence) for sentence in bundle.read_record(out)["cautions"] if sentence != caution]


def _format(name: str) -> FileFormat:
    found: FileFormat = parts.load("ragbench.exports", name, "--format")
    return found


def _file(
    form: FileFormat,
    name: str,
    version: str | None,
    arm: MeasuredArm,
    out: Path,
    evidence: Evidence,
    caution: str | None,
    max_loss: float | None,
    progress: Progress | None,
    say: Say,
) -> tuple[list[str], Replay | None]:
    """Replay what the system will run, and write its file; `max_loss` is None where any loss is accepted."""
    from ragbench.benchmark.lines import write_atomically
    from ragbench.export import provenance

    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder: name a file such as {out / f'config{form.ending}'}")
    settings, refitted, replay = arm.settings, [], None
    if form.fusions:
        hybrid.require_source(settings, name)
    try:
        bench = Bench.of(arm, progress, say)
        if form.fusions and not hybrid.expresses(settings, form.fusions):
            settings, said = bench.nearest(hybrid.retrieval(settings), form.nearest, even=form.even)
            refitted = [f"fuse: {name} lacks {hybrid.fusion_of(arm.settings)}; nearest that it has: {said}"]
        if form.replayed is None:
            raise ConfigError(f"the format {name} does not say what its system runs: add --force")
        replay = bench.replay(form.replayed(settings, version))
        if max_loss is not None:
            replay.require(max_loss, name)
    except (ConfigError, ResultsError, BenchmarkError, CorpusError) as error:
        if max_loss is not None:
            raise
        refitted.append(f"not replayed: {error}")
    said_first = provenance.sentences(arm, evidence, caution)
    origin = [*said_first[:1], f"{replay.sentence}." if replay else refitted[-1], *said_first[1:]]
    text, missing = form.render(settings, origin, version)
    write_atomically(out, text)
    return [*refitted, *missing], replay
