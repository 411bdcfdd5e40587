"""Tuning: hyperparameter search on the training topics, and estimate how much of the gain is luck of the search.

    <results>/tune/<name>-<digest>/journal.log, test.json   what the next call continues
                                   and the files of `ragbench.extras.fit.tuning.report`

Nested cross-validation: in addition to the search over all training topics there is one search for every outer fold. It
sees only the topics outside the fold, and its choice is then measured on the fold. Groups of topics stay whole. Only
parameters are fitted, so a search uses the mean over its topics instead of inner folds. The search uses no test topics:
`confirm` reads them once, afterwards. If there are too few topics to hold some out, the folds are repeated, and the
verdict uses the value that every topic had while it was held out.

`test.json` lists the winners that were evaluated on the test topics. A winner is evaluated once; after more trials
there may be another winner. The number of evaluations is reported. Latency is measured with the verdict.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout
from optuna import Study

from ragbench.base.fingerprint import digest
from ragbench.base.types import BenchmarkError, ConfigError, Damaged, ResultsError
from ragbench.benchmark.benchmark import TEST, Benchmark
from ragbench.boundary.json import read_checksummed, write_checksummed
from ragbench.config.overrides import word
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evaluation import measures
from ragbench.evidence import cost, statistics
from ragbench.evidence.arms import Arms, ComparedArm, JudgedContrast, Policy
from ragbench.evidence.verdict import Verdict
from ragbench.experiment import execution
from ragbench.experiment.run import run
from ragbench.extras.fit.tuning import study
from ragbench.extras.fit.tuning.objective import TrainingValues, mean, objective, time_samples
from ragbench.extras.fit.tuning.space import TuneSpec, Value, Values, overrides, space, spec_of
from ragbench.extras.fit.tuning.study import Rules, StudySpec, Trial
from ragbench.results import measurements, store
from ragbench.results.store import readable

PRESET, TUNED = "preset", "tuned"
"""The names of the two arms that are compared in the end."""
_JOURNAL = "journal.log"
ALL = "all"
_REPEATS = 3
"""How many times all folds are drawn where they give the verdict."""
UNTRIED = -1
"""The trial number of the configured values if they lie outside the space, so that no trial has them."""


@dataclass(frozen=True)
class Fold:
    """What the search without the topics of this fold chose, and its values on these topics.

    `inner`, `inner_preset`: the means on the other topics. `pairs`: the values of the chosen pipeline and of the preset
    by qid of the fold, by documents; `passages`: by passages as they are returned.
    """

    number: int
    values: Values
    inner: float
    inner_preset: float
    pairs: Mapping[str, tuple[float, float]]
    passages: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search; all values are of `measure`.

    `held_out_topics`: whether there are test topics, which the search has not seen. Without them the folds give the
    verdict, and `samples` has the times of the preset and the winner by `PRESET` and `TUNED`.
    """

    folder: Path
    base: Settings
    spec: TuneSpec
    rules: Rules
    topics: int
    preset: Trial
    winner: Trial
    trials: Mapping[str, Sequence[Trial]]
    folds: Sequence[Fold]
    held_out_topics: bool = True
    repeats: int = 1
    samples: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def measure(self) -> str:
        """The objective, as ir_measures writes it."""
        return self.rules.measure

    @property
    def unchanged(self) -> bool:
        """Whether the search found nothing better than the configured values."""
        return self.winner.number == self.preset.number

    @property
    def changes(self) -> dict[str, Value]:
        """The winner's values that differ from those of its start, and the start unless it is the preset."""
        if self.unchanged:
            return {}
        return self.rules.space.changed(self.winner.values)

    @property
    def inner(self) -> float:
        """The mean over folds of the value that the chosen parameters have on the topics they were chosen on."""
        return sum(fold.inner for fold in self.folds) / len(self.folds)

    @property
    def held_out(self) -> float:
        """The mean over all training topics, each with the parameters chosen without it."""
        pairs = list(self.pairs().values())
        return sum(tuned for tuned, _ in pairs) / len(pairs)

    @property
    def optimism(self) -> float:
        """Inner minus held-out: by how much the search overestimates its gain."""
        return self.inner - self.held_out

    def held_out_gain(self) -> statistics.Comparison:
        """The parameters against the preset, each training topic with the parameters chosen without it."""
        tuned, preset = zip(*self.pairs().values(), strict=True)
        return Policy.of(self.base.config).compare([tuned], [preset])[0]

    def pairs(self, *, passages: bool = False) -> dict[str, tuple[float, float]]:
        """The value of the parameters chosen without a topic and that of the preset, by qid: means over repeats."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for fold in self.folds:
            for qid, pair in sorted((fold.passages if passages else fold.pairs).items()):
                pairs.setdefault(qid, []).append(pair)
        return {
            qid: (
                sum(tuned for tuned, _ in topic_pairs) / len(topic_pairs),
                sum(preset for _, preset in topic_pairs) / len(topic_pairs),
            )
            for qid, topic_pairs in pairs.items()
        }


def tune(
    base: Settings,
    rules: Rules,
    train: Benchmark,
    *,
    held_out_topics: bool = True,
) -> Tuned:
    """Search by the `rules` of the settings. `train` is the benchmark that the search may see.

    Without `held_out_topics` the folds give the verdict: they are repeated, and the winner is timed next to the preset.
    """
    spec = spec_of(base)
    repeats = 1 if held_out_topics else _REPEATS
    if not held_out_topics and not spec.folds:
        raise ConfigError("tune.folds=0 leaves nothing to judge by, since no topics are held out: remove it")
    values = TrainingValues(rules.space, train, ArmBuilder.of(base, train), rules.measure)
    folder = _folder(base, train, spec, rules, values)
    preset = rules.space.configured()
    if not values(preset):
        raise BenchmarkError(f"no training topic has a value for {rules.measure}: name another with tune.objective")
    test_folds = [fold for repeat in range(repeats) for fold in _topics_of_folds(train, spec.folds, spec.seed + repeat)]
    searches = _searches(train, spec, test_folds)
    studies = _search_all(rules, searches, values, folder)
    trials = {name: study.trials_of(opened, rules.space) for name, opened in studies.items()}
    everything = _with_preset(trials[ALL], values, preset, None)
    original = next(trial for trial in everything if values.identity(trial.values) == values.identity(preset))
    winner = study.best(everything)
    folds = [
        _fold(n, search, test, trials[search.name], values, preset)
        for n, (search, test) in enumerate(zip(searches[1:], test_folds, strict=True), start=1)
    ]
    compared = {PRESET: preset, TUNED: winner.values}
    timing = not held_out_topics and base.latency.enabled and winner.number != original.number
    return Tuned(
        folder,
        base,
        spec,
        rules,
        len(train.topics),
        original,
        winner,
        trials,
        folds,
        held_out_topics,
        repeats,
        time_samples(values, compared) if timing else {},
    )


def rules_of(base: Settings, compose: Callable[[Sequence[str]], Settings]) -> Rules:
    """The space and the objective of a search; `compose` turns overrides into settings. No documents are read.

    Raises ConfigError for settings of `tune` that do not go together.
    """
    spec = spec_of(base)
    measure = objective(spec.objective, base.measures)
    return Rules(space(base, compose), measure, spec.seed)


def _searches(train: Benchmark, spec: TuneSpec, test_folds: Sequence[frozenset[str]]) -> list[StudySpec]:
    """One search over all training topics, and one for every fold over the topics outside it."""
    everyone = frozenset(topic.qid for topic in train.topics)
    of_folds = [StudySpec(f"fold {n}", everyone - test, spec.trials) for n, test in enumerate(test_folds, start=1)]
    return [StudySpec(ALL, None, spec.trials), *of_folds]


def _folder(base: Settings, train: Benchmark, spec: TuneSpec, rules: Rules, values: TrainingValues) -> Path:
    """The folder of this search. The same command gets the same folder, also with another number of trials."""
    parts: list[Any] = [[spec.objective, spec.folds, spec.seed], rules.space.parameters, train.digest]
    parts += [[start.pipeline.fingerprint, start.index] for start in rules.space.starts.values()]
    parts += [values.index.fingerprints(base.pipeline.needs), base.pipeline.digests(values.index)]
    return base.results / "tune" / f"{readable(base.name)}-{digest(parts)[:12]}"


def _topics_of_folds(train: Benchmark, folds: int, seed: int) -> list[frozenset[str]]:
    """The topics of every outer fold; topics of one group are in the same fold."""
    if not folds:
        return []
    from sklearn.model_selection import GroupKFold

    groups = [f"group {topic.group}" if topic.group else f"topic {topic.qid}" for topic in train.topics]
    if len(set(groups)) < folds:
        raise ConfigError(f"tune.folds={folds} needs as many groups of training topics; there are {len(set(groups))}")
    splitter = GroupKFold(folds, shuffle=True, random_state=seed)
    qids = [topic.qid for topic in train.topics]
    return [frozenset(qids[i] for i in test) for _, test in splitter.split(qids, groups=groups)]


def _with_preset(
    trials: Sequence[Trial], values: TrainingValues, preset: Values, qids: frozenset[str] | None
) -> list[Trial]:
    """The trials with the preset among them, so that nothing worse than the preset is chosen."""
    if any(values.identity(trial.values) == values.identity(preset) for trial in trials):
        return list(trials)
    return [Trial(UNTRIED, preset, mean(values(preset), qids)), *trials]


def _fold(
    number: int,
    search: StudySpec,
    test: frozenset[str],
    trials: Sequence[Trial],
    values: TrainingValues,
    preset: Values,
) -> Fold:
    """The choice of a search, measured on the topics that it saw and on those held out from it."""
    chosen: Mapping[str, Value] = study.best(_with_preset(trials, values, preset, search.qids)).values
    tuned, original = values(chosen), values(preset)
    pairs = {qid: (value, original[qid]) for qid, value in tuned.items() if qid in test}
    passages, passages_before = values.passages(chosen), values.passages(preset)
    of_passages = {qid: (value, passages_before[qid]) for qid, value in passages.items() if qid in test}
    return Fold(number, chosen, mean(tuned, search.qids), mean(original, search.qids), pairs, of_passages)


def _search_all(rules: Rules, searches: Sequence[StudySpec], values: TrainingValues, folder: Path) -> dict[str, Study]:
    """Run all searches to their end; returns the studies by name. ResultsError where another process runs them."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ResultsError(f"another process runs the search in {folder}: wait until it has ended") from None
    try:
        storage = study.open_storage(folder / _JOURNAL)
        opened = [study.Search(study.open_study(storage, spec, rules), spec, rules) for spec in searches]
        queries = [topic.query() for topic in values.benchmark.topics]
        starts = [values.arm(rules.space.configured(start)) for start in rules.space.starts]
        with execution.workers(rules.space.base.execution, starts, queries) as workers:
            study.optimise(opened, values, workers)
        return {search.spec.name: search.study for search in opened}
    finally:
        lock.release()


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Confirmation:
    """The evaluation on the test topics; `evaluations` counts the winners of this search that were evaluated on them.

    `judged` compares the winner with the preset.
    """

    results: measurements.Measurements
    settings: tuple[Settings, ...]
    judged: JudgedContrast
    evaluations: int

    @property
    def verdict(self) -> Verdict:
        """The verdict on the winner against the preset."""
        return self.judged.verdict

    @property
    def is_adopted(self) -> bool:
        """Whether the winner is shown to beat the preset."""
        return self.verdict.outcome in ("adopt", "confirm")


def judge_by_folds(tuned: Tuned) -> JudgedContrast:
    """The verdict without held-out topics: every topic counts with the parameters of the fold that did not see it."""
    levels = {measures.DOCUMENT: tuned.pairs(), measures.PASSAGE: tuned.pairs(passages=True)}
    settings = arms(tuned)
    compared = {
        arm.name: ComparedArm(
            {level: {qid: pair[place] for qid, pair in pairs.items()} for level, pairs in levels.items() if pairs},
            times=None if arm.name not in tuned.samples else cost.Times(tuned.samples[arm.name]),
            config=arm.config,
        )
        for arm, place in zip(settings, (1, 0), strict=True)
    }
    policy = replace(Policy.of(settings[0].config), of_passages=measures.PRIMARY)
    (judged,) = Arms(compared, policy).against(PRESET)
    return judged


def check(base: Settings, benchmark: Benchmark) -> None:
    """Raise ConfigError or BenchmarkError, before the search, where its result could not be confirmed."""
    if base.split != TEST:
        raise ConfigError(
            f"split={base.split} cannot be tuned: the search is on train topics, its check on test topics"
        )
    benchmark.select(TEST)


def confirm(tuned: Tuned, benchmark: Benchmark) -> Confirmation:
    """Judge preset and winner on the test topics; a winner measured before is not measured again."""
    settings = arms(tuned)
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
    (judged,) = Arms.of(measured).against(PRESET)
    return Confirmation(measured, settings, judged, len(evaluations))


def _evaluated_before(file: Path) -> list[dict[str, str]]:
    """The winners that were measured on the test topics before; their number is reported with the verdict."""
    try:
        return list(read_checksummed(file)["asked"]) if file.is_file() else []
    except Damaged as damage:
        raise ResultsError(
            f"{file.parent}: {damage}; it counts the evaluations on test topics: restore it, or move the folder away"
        ) from None


def arms(tuned: Tuned) -> tuple[Settings, ...]:
    """Preset and winner as settings whose primary measure is the objective, taken from the search."""
    base, changes, written = tuned.base, dict[str, Any](), list[str]()
    if tuned.measure not in (*base.measures, measures.SILENCE):
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
    return tuple(
        Settings(name, settings.with_values({**changes, "name": name}).config, (*words, word("name", name))).check()
        for name, (settings, words) in named.items()
    )
