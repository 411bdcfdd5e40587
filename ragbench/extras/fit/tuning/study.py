"""One search by Optuna: its trials are drawn one after another, kept in a journal, and continued after a stop.

Every trial gets a fresh sampler, seeded by the seed and the number of finished trials: its suggestion depends only on
those trials, so a stopped search continues as if it had not been stopped.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FixedTrial, FrozenTrial, TrialState

from ragbench.base import progress
from ragbench.base.types import ResultsError
from ragbench.experiment import execution
from ragbench.extras.fit.tuning.objective import TrainingValues, mean
from ragbench.extras.fit.tuning.space import Space, Values


@dataclass(frozen=True)
class Trial:
    """A finished trial: its values and the objective on the queries of its study."""

    number: int
    values: Values
    objective: float


@dataclass(frozen=True)
class StudySpec:
    """A study: its name, the queries it may see (None: all training queries) and how many trials it has."""

    name: str
    qids: frozenset[str] | None
    trials: int


@dataclass(frozen=True)
class Rules:
    """What all searches share: the space, the measure that is maximised, and the seed."""

    space: Space
    measure: str
    seed: int


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest objective, the first of equals."""
    return min(trials, key=lambda trial: (-trial.objective, trial.number))


def open_storage(path: Path) -> JournalStorage:
    """The journal, of which no other process may have the lock: what a kill left behind is removed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{path}.lock").unlink(missing_ok=True)
        content = path.read_bytes() if path.is_file() else b""
        with path.open("ab") as file:
            file.truncate(content.rfind(b"\n") + 1)  # a line that was not written to its end
    except OSError as error:
        raise ResultsError(f"{path} cannot be written ({error.strerror}): make its folder writable") from None
    try:
        with quiet():
            return JournalStorage(JournalFileBackend(str(path)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"the journal {path} is damaged ({error}): move it away to begin again") from None


def open_study(storage: Any, search: StudySpec, rules: Rules) -> optuna.Study:
    """The study of a search; a new one begins with the configured values of every start that are in the space.

    A trial that was stopped before its end counts as failed; the configured values of a start are tried again.
    """
    with quiet():
        study = optuna.create_study(
            study_name=search.name,
            storage=storage,
            direction="maximize",
            load_if_exists=True,
        )
        if not study.get_trials(deepcopy=False):
            for values in _starts(rules.space):
                study.enqueue_trial(values)
        for trial in study.get_trials(states=[TrialState.RUNNING]):
            study.tell(trial.number, state=TrialState.FAIL)
            if configured := trial.system_attrs.get("fixed_params"):
                study.enqueue_trial(configured)
    return study


def _starts(space: Space) -> Iterator[dict[str, Any]]:
    """The configured values of the preset and of every other start, if they are in the space."""
    integers = {p.key for p in space.parameters if p.is_integer}
    for start in space.starts:
        values = space.configured(start)
        if all(p.contains(values[p.key]) for p in space.parameters if p.key in values):
            yield {key: int(value) if key in integers else value for key, value in values.items()}


@dataclass(frozen=True)
class Search:
    """A search over its study: a trial is drawn after the one before has ended."""

    study: optuna.Study
    spec: StudySpec
    rules: Rules

    def ask(self) -> tuple[optuna.Trial, Values] | None:
        """The next trial and its values; None when the study has enough."""
        completed = len(_finished(self.study))
        progress.report(f"search over {self.spec.name}", completed, self.spec.trials)
        if completed >= self.spec.trials:
            return None
        with quiet():
            self.study.sampler = optuna.samplers.TPESampler(
                seed=self.rules.seed + completed, multivariate=True, group=True, warn_independent_sampling=False
            )
            trial = self.study.ask()
            return trial, self.rules.space.suggest(trial)

    def tell(self, trial: optuna.Trial, tried: Values, values: TrainingValues) -> None:
        """Finish a trial; values that are not known are computed here."""
        with quiet():
            self.study.tell(trial, mean(values(tried), self.spec.qids))


def optimise(searches: Sequence[Search], values: TrainingValues, workers: execution.Workers | None = None) -> None:
    """Run trials until every study has enough: those of a study one after another, of several at once on `workers`.

    Which trials a study has does not depend on others, nor on where they are computed.
    """
    waiting: dict[str, list[tuple[Search, optuna.Trial, Values]]] = {}

    def advance(search: Search) -> None:
        while (asked := search.ask()) is not None:
            trial, tried = asked
            if workers is None or values.knows(tried):
                search.tell(trial, tried, values)
                continue
            key = values.identity(tried)
            if key not in waiting:
                workers.submit([values.arm(tried, key)])
            waiting.setdefault(key, []).append((search, trial, tried))
            return

    for search in searches:
        advance(search)
    for (arm,), results in workers or ():
        trials = waiting.pop(arm.name)
        if isinstance(result := results.get(arm.name), BaseException):
            raise result
        if result is not None:
            values.keep(trials[0][2], result)
        for search, trial, tried in trials:
            search.tell(trial, tried, values)
            advance(search)


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])


def trials_of(study: optuna.Study, space: Space) -> list[Trial]:
    """The finished trials, in the order they began."""
    return [Trial(trial.number, space.suggest(FixedTrial(trial.params)), trial.values[0]) for trial in _finished(study)]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Optuna's messages about studies, trials and new features."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", category=UserWarning, module="optuna")
            yield
    finally:
        logger.setLevel(level)
