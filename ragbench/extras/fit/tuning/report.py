"""The report of a search: its warnings, tables and files.

trials.csv      every trial of every search: objective, values
folds.csv       the choice of every fold, and its value inside and outside the fold
parameters.csv  preset, winner, choices of the folds
overrides.txt   the winner as overrides
report.json     all of it, sealed, with digests of the other files
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragbench.base import files
from ragbench.base.types import ResultsError, interval
from ragbench.boundary.json import write_checksummed
from ragbench.extras.fit.tuning.search import Confirmation, Tuned, judge_by_folds
from ragbench.extras.fit.tuning.space import overrides, value_of
from ragbench.extras.fit.tuning.study import Trial
from ragbench.extras.fit.tuning.tracking import RECORD
from ragbench.extras.tracking.metrics import metric_name
from ragbench.workbench.results import Results


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
        tuned = self.tuned
        preset, winner = tuned.preset.objective, tuned.winner.objective
        lines = [f"{self._name} on {tuned.topics} training topics: preset {preset:.4f}, winner {winner:.4f}"]
        if tuned.folds:
            gain = tuned.held_out_gain()
            repeats = f", {tuned.repeats} times {len(tuned.folds) // tuned.repeats}" if tuned.repeats > 1 else ""
            lines.append(
                f"nested over {len(tuned.folds)} folds{repeats}: {tuned.inner:.4f} where searched, "
                f"{tuned.held_out:.4f} held out "
                f"(preset {gain.mean_baseline:.4f}); optimism {tuned.optimism:+.4f}"
            )
        if not tuned.unchanged:
            lines.append(f"winner: {' '.join(overrides(tuned.changes))}")
        if not tuned.held_out_topics and not tuned.unchanged:
            verdict = judge_by_folds(tuned).verdict
            lines.append(f"too few topics for test topics, judged by the folds: {verdict.outcome}. {verdict.reason}")
        if self.confirmation is not None:
            lines.append(f"on the test topics: {self.confirmation.verdict.outcome}. {self.confirmation.verdict.reason}")
        return lines

    @property
    def warnings(self) -> list[str]:
        """Sentences to know before the winner is used."""
        tuned = self.tuned
        warned = []
        if tuned.folds:
            gain = tuned.held_out_gain()
            if not tuned.unchanged and gain.ci_low <= 0:
                warned.append(
                    f"on held-out training topics tuning changed the value by {gain.difference:+.4f} "
                    f"{interval(gain.ci_low, gain.ci_high, 4)} ({gain.n} topics): a gain is not shown, "
                    "keep the preset"
                )
        if self.confirmation is None and not tuned.held_out_topics:
            if tuned.unchanged:
                return [*warned, "nothing is better than the configured values"]
            outcome = judge_by_folds(tuned).verdict.outcome
            if outcome not in ("adopt", "confirm"):
                warned.append(f"the verdict of the nested folds is '{outcome}': keep the preset")
            return [*warned, "no topics are held out: a run of the winner on these topics shows too good a value"]
        if self.confirmation is None:
            return [*warned, "nothing is better than the configured values; the test topics were not used"]
        if not self.confirmation.is_adopted:
            warned.append(f"the verdict on the test topics is '{self.confirmation.verdict.outcome}': keep the preset")
        results = self.confirmation.results
        if results.exploratory:
            warned.append(f"the test on the winner is {results.exploratory}")
        return warned

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables that the command prints, by title."""
        sections = {"Parameters": self.parameters}
        if self.tuned.folds:
            sections["Folds"] = self.folds
        return sections

    @property
    def parameters(self) -> pd.DataFrame:
        """A row per parameter: preset, winner, choices of the folds."""
        tuned = self.tuned
        rows = []
        for parameter in tuned.rules.space.parameters:
            chosen = [fold.values for fold in tuned.folds]
            rows.append(
                {
                    "parameter": parameter.key,
                    "preset": _text(value_of(tuned.base, parameter.key)),
                    "winner": _text(tuned.winner.values.get(parameter.key)),
                    "folds": " ".join(_text(values.get(parameter.key)) or "-" for values in chosen),
                }
            )
        return pd.DataFrame(rows)

    @property
    def folds(self) -> pd.DataFrame:
        """A row per fold: the winner and the preset on the topics searched with, and on those held out."""
        tuned = self.tuned
        rows = []
        for fold in tuned.folds:
            outside, preset = ([pair[i] for pair in fold.pairs.values()] for i in (0, 1))
            rows.append(
                {
                    "fold": fold.number,
                    "held out": len(fold.pairs),
                    "train": fold.inner,
                    "train preset": fold.inner_preset,
                    "held-out": _mean(outside),
                    "held-out preset": _mean(preset),
                }
            )
        return pd.DataFrame(rows)

    @property
    def trials(self) -> pd.DataFrame:
        """Every trial of every search."""
        tuned = self.tuned
        frames = [
            {"search": name, **self._row(trial), **trial.values}
            for name, trials_of_search in tuned.trials.items()
            for trial in trials_of_search
        ]
        return pd.DataFrame(frames)

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
        tuned = self.tuned
        folded: dict[str, Any] | None = None
        if tuned.folds:
            folded = {
                "folds": len(tuned.folds),
                "train": tuned.inner,
                "held_out": tuned.held_out,
                "optimism": tuned.optimism,
                "gain": asdict(tuned.held_out_gain()),
                "repeats": tuned.repeats,
            }
            if not tuned.held_out_topics:
                verdict = judge_by_folds(tuned).verdict
                folded |= {"verdict": verdict.outcome, "reason": verdict.reason}
        test: dict[str, Any] | None = None
        if (confirmation := self.confirmation) is not None:
            test = {
                "folder": str(confirmation.results.folder),
                "verdict": confirmation.verdict.outcome,
                "reason": confirmation.verdict.reason,
                "evaluations": confirmation.evaluations,
                **{level: asdict(judged.comparison) for level, judged in confirmation.judged.levels.items()},
            }
        return {
            "folder": str(tuned.folder),
            "measure": tuned.measure,
            "objective": self._name,
            "topics": tuned.topics,
            "trials": {name: len(trials) for name, trials in tuned.trials.items()},
            "preset": self._row(tuned.preset),
            "winner": {**self._row(tuned.winner), "values": dict(tuned.winner.values)},
            "overrides": overrides(tuned.changes),
            "nested": folded,
            "parameters": self.parameters.astype(object).to_dict(orient="records"),
            "test": test,
            "warnings": self.warnings,
        }

    @property
    def _name(self) -> str:
        """The name of the objective in MLflow."""
        return metric_name(self.tuned.measure)

    def _row(self, trial: Trial) -> dict[str, Any]:
        return {"trial": trial.number, self._name: trial.objective}


def write(tuning: Tuning) -> None:
    """Write the files into the folder of the search."""
    tuned = tuning.tuned
    (tuned.folder / RECORD).unlink(missing_ok=True)  # from an earlier search with fewer trials
    frames = {"trials": tuning.trials, "parameters": tuning.parameters}
    if tuned.folds:
        frames["folds"] = tuning.folds
    for name, frame in frames.items():
        files.write_text(tuned.folder / f"{name}.csv", frame.to_csv(index=False))
    files.write_text(tuned.folder / "overrides.txt", f"{' '.join(overrides(tuned.changes))}\n")
    names = [*(f"{name}.csv" for name in frames), "overrides.txt"]
    record = {"name": tuned.base.name, "tune": tuned.base.value("tune"), **tuning.summary()}
    record["files"] = {name: files.digest(tuned.folder / name) for name in names}
    write_checksummed(tuned.folder / RECORD, record)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
