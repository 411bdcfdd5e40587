"""What a search found, on the test topics: one evaluation of the winner against the preset, as an ordinary experiment.

`test.json` in the folder of the search says which winners were asked already. The same winner is not asked again;
another one, after more trials, is, and the number of evaluations is said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragbench.benchmark.benchmark import Benchmark
from ragbench.comparison.statistics import Comparison, compare
from ragbench.comparison.verdict import LatencyCost, Verdict, judge
from ragbench.configuration import Settings
from ragbench.errors import ConfigError
from ragbench.evaluation.measures import PRIMARY, SILENCE, UNJUDGED
from ragbench.experiment import results as results_
from ragbench.experiment import store
from ragbench.experiment.design import Contrast, Effect, table
from ragbench.experiment.results import Results
from ragbench.experiment.run import run
from ragbench.files import write_text
from ragbench.fingerprint import digest
from ragbench.tuning.outcome import Tuned
from ragbench.tuning.space import apply, overrides
from ragbench.workshop import Progress, Say

if TYPE_CHECKING:
    import pandas as pd

PRESET, TUNED = "preset", "tuned"
TEST = "test"


@dataclass(frozen=True)
class Confirmation:
    """The evaluation on the test topics; `evaluations` counts the winners of this search that they were asked for."""

    results: Results
    settings: tuple[Settings, Settings]
    comparison: Comparison
    verdict: Verdict
    budget_ms: float
    latency: LatencyCost | None
    evaluations: int

    def table(self) -> pd.DataFrame:
        """The effect with its verdict, as ablations write it."""
        effect = Effect(Contrast((TUNED,), {TUNED: 1.0}, {PRESET: 1.0}), self.comparison, self.comparison.p_value)
        return table([effect]).assign(
            latency_ms=np.nan if self.latency is None else self.latency.p95_ms,
            budget_ms=self.budget_ms,
            verdict=self.verdict.outcome,
            reason=self.verdict.reason,
        )


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

        def conclude(found: Results) -> None:
            if tuned.measure == PRIMARY:  # the table of the report is about that
                verdicts = _judged(tuned, settings, found, 0).table()
                write_text(found.folder / "verdicts.csv", verdicts.to_csv(index=False))

        measured = run(settings, benchmark, command="tune", conclude=conclude, progress=progress, say=say)
        asked = [*(each for each in asked if each["key"] != key), {"key": key, "folder": str(measured.folder)}]
        write_text(file, json.dumps(asked, indent=1))
    return _judged(tuned, settings, measured, len(asked))


def _judged(tuned: Tuned, settings: tuple[Settings, Settings], measured: Results, evaluations: int) -> Confirmation:
    statistics = tuned.base.config["statistics"]
    values = [measured.values(each.name, tuned.measure) for each in settings]
    comparison = compare(
        values[1].to_numpy(dtype=np.float64),
        values[0].reindex(values[1].index).to_numpy(dtype=np.float64),
        seed=int(tuned.base.config["seed"]),
        resamples=int(statistics["resamples"]),
        permutations=int(statistics["permutations"]),
        confidence=float(statistics["confidence"]),
    )
    budget = settings[1].config["budget"]["p95_ms"]
    budget_ms = float("inf") if budget is None else float(budget)
    latency = _cost(measured)
    verdict = judge(
        comparison,
        p_holm=comparison.p_value,
        budget_ms=budget_ms,
        latency=latency,
        unjudged_difference=float(measured.values(TUNED, UNJUDGED).mean() - measured.values(PRESET, UNJUDGED).mean()),
        measure=tuned.measure,
    )
    return Confirmation(measured, settings, comparison, verdict, budget_ms, latency, evaluations)


def arms(tuned: Tuned) -> tuple[Settings, Settings]:
    """Preset and winner as settings, measured by the objective too; from what was searched, not composed anew.

    Where `tune.p95_ms` limits a query and `budget.p95_ms` does not say what may be added to it, the rest is.
    """
    base, said = tuned.base, []
    if tuned.spec.p95_ms is not None and base.config["budget"]["p95_ms"] is None:
        left = round(max(0.0, tuned.spec.p95_ms - (tuned.preset.p95_ms or 0.0)), 3)
        base, said = base.with_value("budget.p95_ms", left), [f"budget.p95_ms={left}"]
    if tuned.measure not in (*base.measures, SILENCE):
        measures = [*base.measures, tuned.measure]
        base, said = base.with_value("measures", measures), [*said, f"measures={json.dumps(measures)}"]
    winner = apply(base, tuned.rules.parameters, tuned.changes)
    return (
        _named(base, PRESET, [*base.overrides, *said]),
        _named(winner, TUNED, [*base.overrides, *said, *overrides(tuned.changes)]),
    )


def _named(settings: Settings, name: str, said: Sequence[str]) -> Settings:
    return Settings(name, settings.with_value("name", name).config, (*said, f"name={name}")).check()


def _cost(measured: Results) -> LatencyCost | None:
    """What the winner adds to p95, with the interval that independent arms give; None where time was not measured."""
    total = {row["arm"]: row for row in measured.latency.to_dict(orient="records") if row["stage"] == "total"}
    if not total:
        return None
    point = float(total[TUNED]["p95"] - total[PRESET]["p95"])
    half = math.hypot(*(float(total[name]["p95_high"] - total[name]["p95_low"]) / 2 for name in (TUNED, PRESET)))
    return LatencyCost(point, point - half, point + half)
