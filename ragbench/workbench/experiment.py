"""An experiment as a value: arms over one benchmark, which can be read, planned, searched and run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragbench import app, console
from ragbench.benchmark.benchmark import Benchmark
from ragbench.configuration import Settings
from ragbench.engine.answer import Answer, answer
from ragbench.engine.pipeline import Pipeline
from ragbench.errors import ConfigError
from ragbench.experiment import ablate, verdicts
from ragbench.experiment import results as files
from ragbench.experiment.ablate import Ablation
from ragbench.workbench.own_stage import Own
from ragbench.workbench.results import Results
from ragbench.workshop import Progress, Say, Workshop

_WARNINGS = 10
"""So many warnings of the data are said by a run."""


@dataclass(frozen=True)
class Experiment:
    """Arms over one benchmark, ready to run; `settings[0]` decides what all share. Nothing is computed until `run`."""

    settings: tuple[Settings, ...]
    given: Benchmark | None = None
    ablation: Ablation | None = None

    @classmethod
    def single(cls, *overrides: str, benchmark: Benchmark | None = None) -> Experiment:
        """One configuration: `Experiment.single("+exp=phase1", "p6=on")`."""
        return cls((app.compose(overrides),), benchmark)

    @classmethod
    def sweep(cls, *overrides: str, benchmark: Benchmark | None = None) -> Experiment:
        """Every combination of comma-separated values, as `ragbench run -m`."""
        return cls(tuple(app.sweep(overrides)), benchmark)

    @classmethod
    def arms(cls, arms: Mapping[str, Sequence[str | Own]], benchmark: Benchmark | None = None) -> Experiment:
        """Arms by name, each a list of overrides and stages of your own; the first is compared against."""
        return cls(tuple(_composed([*parts, f"name={name}"]) for name, parts in arms.items()), benchmark)

    @classmethod
    def ablate(cls, *overrides: str, own: Sequence[Own] = (), benchmark: Benchmark | None = None) -> Experiment:
        """A designed ablation, as `ragbench ablate`: `Experiment.ablate("+exp=all", "design=leave_one_out")`.

        Stages in `own` are in the base, and can be named in `factors` as switches are.
        """
        switches = {each.name: each for each in own}

        def composed(parts: Sequence[str]) -> Settings:
            switched_off = {part.removesuffix("=off") for part in parts if part.endswith("=off")} & set(switches)
            rest = [part for part in parts if part.partition("=")[0] not in switches]
            return _composed([*rest, *(each for name, each in switches.items() if name not in switched_off)])

        ablation = ablate.plan(composed(overrides), composed)
        return cls(ablation.settings, benchmark, ablation)

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        """The pipeline of every arm by name; one reads as a sentence."""
        return {each.name: each.pipeline for each in self.settings}

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark that was given, else the one that `data` names, read when first asked for."""
        if self.given is not None:
            return self.given
        from ragbench.topics.load import load

        return load(self.settings[0].config)

    @property
    def command(self) -> str:
        """The command that runs this: an experiment continues only what the same command began."""
        return "ablate" if self.ablation else "run"

    def plan(self) -> str:
        """The tree of shared work, artefacts to build and to reuse, and what is timed; nothing is computed."""
        from ragbench.experiment import plan

        return plan.explain(self.settings, self.benchmark, self.command)

    def run(self, progress: Progress | None = None, say: Say = console.say) -> Results:
        """Measure quality, then time; write the files, the report, then MLflow where tracking is on.

        Without `progress`, bars are shown in notebooks and terminals.
        """
        if progress is None:
            with console.progress() as bars:
                return self.run(bars, say)
        from ragbench import tracking
        from ragbench.experiment.run import run

        shared = self.settings[0]
        tracked = bool(shared.config["tracking"]["enabled"])
        if tracked:
            tracking.check(tracking.target_of(shared))
        warnings = self.benchmark.warnings
        for warning in warnings[:_WARNINGS]:
            say(f"warning: {warning}")
        if len(warnings) > _WARNINGS:
            say(f"warning: {len(warnings) - _WARNINGS} more of the data: ragbench data check shows them all")
        measured = run(
            self.settings,
            self.benchmark,
            command=self.command,
            conclude=self._conclude,
            progress=progress,
            say=say,
        )
        results = Results(**{field.name: getattr(measured, field.name) for field in dataclasses.fields(measured)})
        if len(self.settings) > 1:
            results.report()
        if tracked:
            run_id = tracking.log(tracking.target_of(shared), measured.folder, say)
            results = dataclasses.replace(results, tracking_run=run_id)
        return results

    def _conclude(self, found: files.Results) -> None:
        if self.ablation:
            ablate.conclude(self.ablation, found)
        else:
            verdicts.against_first(found)

    def search(self, query: str, arm: str | None = None, top: int = 10) -> Answer:
        """The hits of one query with what every stage did to them; of the first arm unless another is named."""
        wanted = [each for each in self.settings if arm in (None, each.name)]
        if not wanted:
            raise ConfigError(f"there is no arm '{arm}'; the arms are {', '.join(self.pipelines)}")
        with console.progress() as progress:
            (built,) = Workshop.of(wanted[0], self.benchmark, progress, console.say).arms(wanted[:1])
            built.index.prepare(built.pipeline.needs | {"facets"})
        return answer(query, built.pipeline, built.index, top, explain=True)

    def __repr__(self) -> str:
        return f"Experiment({', '.join(self.pipelines)})"

    def _repr_html_(self) -> str:
        from html import escape

        shown = "".join(
            f"<dt><b>{escape(name)}</b></dt><dd>{p._repr_html_()}</dd>" for name, p in self.pipelines.items()
        )
        return f"<dl class='ragbench-experiment'>{shown}</dl>"


def _composed(parts: Sequence[str | Own]) -> Settings:
    settings = app.compose([part for part in parts if isinstance(part, str)])
    own = [part for part in parts if isinstance(part, Own)]
    for each in own:
        settings = each.into(settings)
    return settings.check() if own else settings
