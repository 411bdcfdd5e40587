"""A search for better parameters as one call, for notebooks and the command.

import ragbench

tuning = ragbench.tune("exp=phase1", "tune=[fuse]", "tune.trials=50")
tuning.parameters
tuning.results.export("bundle", arm="tuned")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import console
from ragbench.base.errors import ResultsError
from ragbench.base.progress import Report
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.arm_builder import Say
from ragbench.config.overrides import word
from ragbench.config.settings import Settings
from ragbench.extras.fit.tuning import confirm, report, search
from ragbench.extras.fit.tuning.confirm import Confirmation
from ragbench.extras.fit.tuning.outcome import Tuned
from ragbench.extras.fit.tuning.spec import spec_of
from ragbench.workbench import experiment
from ragbench.workbench.results import Results

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Tuning:
    """The outcome of a search on the training topics, and the evaluation of its winner on the test topics.

    `confirmation` is None if nothing was better than the configured values, so that the test topics were not used, and
    if there are too few topics for test topics: then nested folds over all topics give the verdict.
    """

    tuned: Tuned
    confirmation: Confirmation | None
    tracking_run: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the search."""
        return self.tuned.folder

    @property
    def sentences(self) -> list[str]:
        """The outcome in words: the gain in training, its optimism, the winner, the verdict on the test topics."""
        return report.sentences(self.tuned, self.confirmation)

    @property
    def warnings(self) -> list[str]:
        """Sentences to know before the winner is used."""
        return report.warnings(self.tuned, self.confirmation)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables that the command prints, by title."""
        return report.tables(self.tuned)

    @property
    def parameters(self) -> pd.DataFrame:
        """A row per parameter: preset, winner, choices of the folds, their agreement, importance."""
        return report.parameters(self.tuned)

    @property
    def folds(self) -> pd.DataFrame:
        """A row per fold: the winner and the preset on the topics searched with, and on those held out."""
        return report.folds(self.tuned)

    @property
    def trials(self) -> pd.DataFrame:
        """Every trial of every search."""
        return report.trials(self.tuned)

    @property
    def results(self) -> Results:
        """The arms `preset` and `tuned` on the test topics; ResultsError where these were not used."""
        if self.confirmation is None:
            if not self.tuned.held_out_topics:
                raise ResultsError(
                    "no topics were held out, so the winner has no run: run it with the overrides in "
                    f"{self.folder / 'overrides.txt'} on other topics"
                )
            raise ResultsError("the search found nothing better than the configured values, so no arm is tuned")
        return Results.load(self.confirmation.results.folder)

    def summary(self) -> dict[str, Any]:
        """The whole report as plain values."""
        return report.summary(self.tuned, self.confirmation)


def tune(
    *overrides: str,
    starts: Sequence[str] = (),
    benchmark: Benchmark | None = None,
    progress: Report | None = None,
    say: Say = console.say,
) -> Tuning:
    """Search for better parameters on the train split and measure the winner once on the test split.

    The files are written first, then MLflow.

    Args:
        *overrides: As for `ragbench tune`.
        starts: Starting points in addition to `tune.starts`, each some overrides separated by spaces.
        benchmark: A benchmark instead of the one that `data` names.
        progress: Called with the name of a task, the rows done and all rows; by default a bar is shown.
        say: Prints sentences.

    Returns:
        The trials, the winner and its evaluation on the test split.

    Raises:
        ConfigError: The settings cannot be searched.
    """
    with console.progress_to(progress):
        return _tune(overrides, starts, benchmark, say)


def _tune(overrides: Sequence[str], starts: Sequence[str], benchmark: Benchmark | None, say: Say) -> Tuning:
    from ragbench import tracking
    from ragbench.config.benchmark import load, recorder
    from ragbench.extras.fit.tuning.objective import searchable
    from ragbench.report import html

    def compose(overrides: Sequence[str]) -> Settings:
        return record(composition.compose(overrides))

    record = (lambda settings: settings) if benchmark is None else recorder(benchmark)
    base = compose(overrides)
    if starts:
        base = compose([*overrides, word("tune.starts", [*spec_of(base).starts, *starts])])
    search.check(base, compose)
    tracked = bool(base.config["tracking"]["enabled"])
    if tracked:
        tracking.check(tracking.target_of(base))
    whole = benchmark or load(base.config)
    train, held_out = searchable(whole)
    for sentence in experiment.first_lines(base, has_benchmark=benchmark is not None):
        say(sentence)
    if held_out:
        confirm.check(base, whole)
    else:
        say(f"'{whole.name}' has {len(whole.topics)} topics, too few for test topics: nested folds over all judge")
    tuned = search.tune(base, train, compose, held_out_topics=held_out, say=say)
    confirmation = None
    if held_out and not tuned.unchanged:
        plain = compose([f"exp={confirm.PLAIN}", *composition.measurement_overrides(base.overrides)])
        confirmation = confirm.confirm(tuned, whole, plain=plain, say=say)
    report.write(tuned, confirmation)
    if confirmation is not None:
        html.write(confirmation.results.folder, say=say)
    tuning = Tuning(tuned, confirmation)
    if tracked:
        run_id = tracking.log(tracking.target_of(base), tuned.folder, say)
        tuning = dataclasses.replace(tuning, tracking_run=run_id)
    return tuning
