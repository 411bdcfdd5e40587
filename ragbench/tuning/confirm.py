"""What a search found, on the test topics: one evaluation of the winner against the preset, as an ordinary experiment.

`test.json` in the folder of the search says which winners were asked already. The same winner is not asked again;
another one, after more trials, is, and the number of evaluations is said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragbench.benchmark.benchmark import Benchmark
from ragbench.comparison.arms import Arms, Judged
from ragbench.comparison.policy import Policy
from ragbench.comparison.verdict import Verdict
from ragbench.configuration import Settings
from ragbench.errors import ConfigError
from ragbench.evaluation.measures import SILENCE
from ragbench.experiment import results as results_
from ragbench.experiment import store
from ragbench.experiment.results import Results
from ragbench.experiment.run import run
from ragbench.files import write_text
from ragbench.fingerprint import digest
from ragbench.tuning.outcome import Tuned
from ragbench.tuning.space import apply, overrides
from ragbench.workshop import Progress, Say

PRESET, TUNED = "preset", "tuned"
TEST = "test"


@dataclass(frozen=True)
class Confirmation:
    """The evaluation on the test topics; `evaluations` counts the winners of this search that they were asked for."""

    results: Results
    settings: tuple[Settings, Settings]
    judged: Judged
    evaluations: int

    @property
    def verdict(self) -> Verdict:
        """On the winner, against the preset."""
        return self.judged.verdict


def check(base: Settings, benchmark: Benchmark) -> None:
    """Refuse, before the search, what could not be confirmed after it."""
    if base.split != TEST:
        raise ConfigError(
            f"split={base.split} cannot be tuned: the search is on train topics, its check on test topics"
        )
    benchmark.select(TEST)


def confirm(
    tuned: Tuned,
    benchmark: Benchmark,
    *,
    progress: Progress | None = None,
    say: Say = print,
) -> Confirmation:
    """Measure preset and winner on the test topics, unless this winner was measured already, and judge."""
    settings = arms(tuned)
    file = tuned.folder / "test.json"
    asked = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    key = digest([benchmark.digest, [each.pipeline.fingerprint for each in settings], settings[0].measures])
    known = next((each for each in asked if each["key"] == key), None)
    if known is not None and (Path(known["folder"]) / store.RECORD).is_file():
        measured = results_.load(Path(known["folder"]))
        say(f"this winner was measured on the test topics before: {measured.folder}")
    else:
        measured = run(settings, benchmark, command="tune", progress=progress, say=say)
        asked = [*(each for each in asked if each["key"] != key), {"key": key, "folder": str(measured.folder)}]
        write_text(file, json.dumps(asked, indent=1))
    (judged,) = Arms.of(measured).against(PRESET)
    return Confirmation(measured, settings, judged, len(asked))


def arms(tuned: Tuned) -> tuple[Settings, Settings]:
    """Preset and winner as settings, judged by the objective; from what was searched, not composed anew.

    Where `tune.p95_ms` limits a query, what the preset leaves of it is the budget.
    """
    base, said = tuned.base, list[str]()
    if tuned.spec.p95_ms is not None:
        left = round(max(0.0, tuned.spec.p95_ms - (tuned.preset.p95_ms or 0.0)), 3)
        for key in ("budget.p95_ms", "budget.rerank_p95_ms"):
            base, said = base.with_value(key, left), [*said, f"{key}={left}"]
    if tuned.measure not in (*base.measures, SILENCE):
        measures = [*base.measures, tuned.measure]
        base, said = base.with_value("measures", measures), [*said, f"measures={json.dumps(measures)}"]
    if tuned.measure != Policy.of(base.config).measure:
        base, said = base.with_value("primary", tuned.measure), [*said, f'primary="{tuned.measure}"']
    winner = apply(base, tuned.rules.parameters, tuned.changes)
    return (
        _named(base, PRESET, [*base.overrides, *said]),
        _named(winner, TUNED, [*base.overrides, *said, *overrides(tuned.changes)]),
    )


def _named(settings: Settings, name: str, said: Sequence[str]) -> Settings:
    return Settings(name, settings.with_value("name", name).config, (*said, f"name={name}")).check()
