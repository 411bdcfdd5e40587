"""Evaluates the winner of a search once on the test topics, as an ordinary experiment.

The winner is compared with the preset and with a plain hybrid: beating a weak preset does not justify a change.

`test.json` in the folder of the search lists the winners that were evaluated. A winner is evaluated once; after more
trials there may be another winner. The number of evaluations is reported.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError, ResultsError
from ragbench.base.files import Damaged
from ragbench.base.fingerprint import digest
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.split import TEST
from ragbench.boundary.checksummed_json import read_checksummed, write_checksummed
from ragbench.config.overrides import word
from ragbench.config.settings import Settings
from ragbench.evaluation.measures import DOCUMENT, PASSAGE, PRIMARY, SILENCE
from ragbench.evidence.arms import Arms, ComparedArm, JudgedContrast
from ragbench.evidence.cost import Times
from ragbench.evidence.policy import Policy
from ragbench.evidence.statistics import Contrast
from ragbench.evidence.verdict import Verdict
from ragbench.experiment.run import run
from ragbench.extras.fit.tuning.search import PRESET, TUNED, Tuned
from ragbench.extras.fit.tuning.space import overrides
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements

_LOG = logging.getLogger(__name__)

PLAIN = "plain_hybrid"


@dataclass(frozen=True)
class Confirmation:
    """The evaluation on the test topics; `evaluations` counts the winners of this search that were evaluated on them.

    `judged` compares the winner with the preset, `plain` with a plain hybrid (None where the preset is one).
    """

    results: Measurements
    settings: tuple[Settings, ...]
    judged: JudgedContrast
    evaluations: int
    plain: JudgedContrast | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict on the winner against the preset."""
        return self.judged.verdict

    @property
    def unbeaten(self) -> str:
        """Which arm the winner is not shown to beat: `preset`, `plain_hybrid`, or `""` for none."""
        if self.verdict.outcome not in ("adopt", "confirm"):
            return PRESET
        return PLAIN if self.plain is not None and self.plain.verdict.quality != "better" else ""


def judge_by_folds(tuned: Tuned) -> JudgedContrast:
    """The verdict without held-out topics: every topic counts with the parameters of the fold that did not see it."""
    levels = {DOCUMENT: tuned.pairs(), PASSAGE: tuned.pairs(passages=True)}
    settings = arms(tuned)
    compared = {
        arm.name: ComparedArm(
            {level: {qid: pair[place] for qid, pair in pairs.items()} for level, pairs in levels.items() if pairs},
            times=None if arm.name not in tuned.samples else Times(tuned.samples[arm.name]),
            config=arm.config,
        )
        for arm, place in zip(settings, (1, 0), strict=True)
    }
    policy = replace(Policy.of(settings[0].config), of_passages=PRIMARY)
    (judged,) = Arms(compared, policy).against(PRESET)
    return judged


def check(base: Settings, benchmark: Benchmark) -> None:
    """Raise ConfigError or BenchmarkError, before the search, where its result could not be confirmed."""
    if base.split != TEST:
        raise ConfigError(
            f"split={base.split} cannot be tuned: the search is on train topics, its check on test topics"
        )
    benchmark.select(TEST)


def confirm(
    tuned: Tuned,
    benchmark: Benchmark,
    *,
    plain: Settings | None = None,
) -> Confirmation:
    """Judge preset, winner and a plain hybrid on the test topics; a winner measured before is not measured again."""
    settings = arms(tuned, plain)
    file = tuned.folder / "test.json"
    evaluations = _evaluated_before(file)
    key = digest(
        [benchmark.digest, [settings_of_arm.pipeline.fingerprint for settings_of_arm in settings], settings[0].measures]
    )
    earlier = next((evaluation for evaluation in evaluations if evaluation["key"] == key), None)
    if earlier is not None and (Path(earlier["folder"]) / store.RECORD).is_file():
        measured = measurements.load(Path(earlier["folder"]))
        _LOG.info(f"this winner was measured on the test topics before: {measured.folder}")
    else:
        measured = run(settings, benchmark, command="tune")
        evaluations = [
            *(evaluation for evaluation in evaluations if evaluation["key"] != key),
            {"key": key, "folder": str(measured.folder)},
        ]
        write_checksummed(file, {"asked": evaluations})
    compared = Arms.of(measured)
    judged = {row.contrast.factors[0]: row for row in compared.against(PRESET)}
    beside = compared.judge([Contrast.of(TUNED, PLAIN)]) if len(settings) > 2 else []
    return Confirmation(measured, settings, judged[TUNED], len(evaluations), beside[0] if beside else None)


def _evaluated_before(file: Path) -> list[dict[str, str]]:
    """The winners that were measured on the test topics before; their number is reported with the verdict."""
    try:
        return list(read_checksummed(file)["asked"]) if file.is_file() else []
    except Damaged as damage:
        raise ResultsError(
            f"{file.parent}: {damage}; it counts the evaluations on test topics: restore it, or move the folder away"
        ) from None


def arms(tuned: Tuned, plain: Settings | None = None) -> tuple[Settings, ...]:
    """Preset, winner and `plain` as settings whose primary measure is the objective, taken from the search.

    If `tune.p95_ms` limits a query, the budget is that limit minus the p95 of the preset.
    """
    base, changes, written = tuned.base, dict[str, Any](), list[str]()
    if tuned.spec.p95_ms is not None:
        slack = round(max(0.0, tuned.spec.p95_ms - (tuned.preset.p95_ms or 0.0)), 3)
        for key in ("budget.p95_ms", "budget.rerank_p95_ms"):
            changes[key], written = slack, [*written, f"{key}={slack}"]
    if tuned.measure not in (*base.measures, SILENCE):
        changes["measures"] = [*base.measures, tuned.measure]
        written.append(f"measures={json.dumps(changes['measures'])}")
    if tuned.measure != Policy.of(base.config).measure:
        changes["primary"] = tuned.measure
        written.append(f'primary="{tuned.measure}"')
    winner = tuned.rules.space.apply(tuned.changes)
    named = {
        PRESET: (base, [*base.overrides, *written]),
        TUNED: (winner, [*base.overrides, *overrides(tuned.changes), *written]),
    }
    if plain is not None and (plain.pipeline, plain.index) != (base.pipeline, base.index):
        named[PLAIN] = (plain, [*plain.overrides, *written])
    return tuple(
        Settings(name, settings.with_values({**changes, "name": name}).config, (*words, word("name", name))).check()
        for name, (settings, words) in named.items()
    )
