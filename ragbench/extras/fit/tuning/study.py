"""One search by Optuna: its trials are drawn one after another, kept in a journal, and continued after a stop.

Every trial gets a fresh sampler, seeded by the seed and the number of finished trials: its suggestion depends only on
those trials, so a stopped search continues as if it had not been stopped. With several processes the order in which
trials finish is random, and so are the suggestions.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from optuna.pruners import BasePruner
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FixedTrial, FrozenTrial, TrialState

from ragbench.base.errors import ResultsError
from ragbench.base.progress import report
from ragbench.boundary.checksummed_json import SEAL
from ragbench.config.settings import Settings
from ragbench.extras.fit.tuning.objective import P95, THIRD, Cost, Objective, TrainingValues, mean
from ragbench.extras.fit.tuning.space import START, Parameter, Values, configured_values, suggest

POPULATION = 24
"""The population of NSGA-II: 200 trials are eight generations."""
_PROCESS_STRIDE = 1_000_003


@dataclass(frozen=True)
class Trial:
    """A finished trial: its values, the objectives on the queries of its study, the estimated p95 (None: unknown)."""

    number: int
    values: Values
    objectives: tuple[float, ...]
    p95_ms: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Search:
    """A study: its name, the queries it may see (None: all training queries) and how many trials it has."""

    name: str
    qids: frozenset[str] | None
    trials: int


@dataclass(frozen=True)
class Rules:
    """The rules that all searches share; `key` separates configurations whose searches share a journal.

    With more than one of `parts` a trial is judged after each and may be pruned (`Halving`)."""

    parameters: tuple[Parameter, ...]
    objectives: tuple[Objective, ...]
    sampler: str
    seed: int
    p95_ms: float | None = None
    cost: Cost | None = None
    key: str = ""
    parts: int = 1

    def judge(self, values: TrainingValues, tried: Values, qids: frozenset[str] | None) -> tuple[float, ...]:
        """The objectives of a configuration over the queries of `qids` only."""
        per_query = values(tried)
        return tuple(
            (self.cost(tried) if self.cost else 0.0)
            if objective.measure is None
            else mean(per_query[objective.measure], qids)
            for objective in self.objectives
        )

    def better(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials, best first: within the budget, then by the first objective, the second ..., then by age."""

        def key(trial: Trial) -> tuple[Any, ...]:
            over = max(0.0, (trial.p95_ms or 0.0) - self.p95_ms) if self.p95_ms is not None else 0.0
            signed = [
                -objective.sign * value for objective, value in zip(self.objectives, trial.objectives, strict=True)
            ]
            return (over, *signed, trial.number)

        return sorted(trials, key=key)

    def front(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials within the budget that no other beats in one objective without losing in another, best first."""
        front: list[Trial] = []
        for trial in self.better(trials):
            if self.p95_ms is not None and (trial.p95_ms or 0.0) > self.p95_ms:
                continue
            if not any(self._covers(covering, trial) for covering in front):
                front.append(trial)
        return front

    def _covers(self, one: Trial, second: Trial) -> bool:
        pairs = zip(self.objectives, one.objectives, second.objectives, strict=True)
        return all(objective.sign * a >= objective.sign * b for objective, a, b in pairs)


def open_storage(path: Path) -> JournalStorage:
    """The journal, with a lock file, so that several processes may write; a last line that is incomplete is removed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            content = path.read_bytes() if path.is_file() else b""
            complete_bytes = content.rfind(b"\n") + 1
            if complete_bytes < len(content):
                with path.open("r+b") as file:
                    file.truncate(complete_bytes)
    except OSError as error:
        raise ResultsError(f"the journal {path} cannot be written ({error.strerror}): see tune.storage") from None
    try:
        with quiet():
            return JournalStorage(ChecksummedJournal(str(path), lock_obj=_Lock(path)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"the journal {path} is damaged ({error}): move it away to begin again") from None


class _Lock(JournalFileOpenLock):
    """The lock of the journal. The system releases it when a process is killed; Optuna's lock would stay for 30 s."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(f"{path}.lock")

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._lock.acquire(poll_interval=0.005)
        return True

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()


def open_study(storage: Any, search: Search, rules: Rules, base: Settings) -> optuna.Study:
    """The study of a search; a new one begins with the configured values, if they are in the space."""
    with quiet():
        study = optuna.create_study(
            study_name=f"{rules.key} {search.name}".strip(),
            storage=storage,
            directions=["maximize" if objective.sign > 0 else "minimize" for objective in rules.objectives],
            load_if_exists=True,
        )
        if not study.get_trials(deepcopy=False):
            for values in _starts(rules, base):
                study.enqueue_trial(values)
    return study


def _starts(rules: Rules, base: Settings) -> Iterator[dict[str, Any]]:
    """The configured values of the preset and of every other start, if they are in the space."""
    starts = next((p.choices for p in rules.parameters if p.key == START), ("",))
    integers = {p.key for p in rules.parameters if p.is_integer}
    for start in starts:
        values = configured_values(rules.parameters, base, str(start))
        if all(p.contains(values[p.key]) for p in rules.parameters if p.key in values):
            yield {key: int(value) if key in integers else value for key, value in values.items()}


def optimise(
    study: optuna.Study,
    search: Search,
    rules: Rules,
    values: TrainingValues,
    process: int = 0,
    begun: Sequence[FrozenTrial] = (),
) -> None:
    """Run trials until the study has enough; first the trials in `begun`, which a stopped search had begun.

    An interrupted trial stays open: the next search finishes it under its number, with the same suggestions.
    """
    remaining = list(begun)
    study.pruner = _Halving()
    while (completed := len(trials_in(study, "COMPLETE", "PRUNED"))) < search.trials:
        if process == 0:
            report(f"search over {search.name}", completed, search.trials)
        with quiet():
            seed = rules.seed + _PROCESS_STRIDE * process + completed
            study.sampler = _make_sampler(rules.sampler, seed)
            trial = _drawn(study, remaining.pop(0), rules, seed) if remaining else study.ask()
            tried = suggest(rules.parameters, trial)
        if _is_pruned(trial, search, rules, values, tried):
            with quiet():
                study.tell(trial, state=TrialState.PRUNED)
            continue
        outcome = rules.judge(values, tried, search.qids)
        if rules.cost is not None:
            guess = rules.cost(tried)
            trial.set_user_attr(P95, guess)
            if rules.p95_ms is not None:
                trial.set_constraint(P95, guess - rules.p95_ms)
        with quiet():
            study.tell(trial, list(outcome))
    if process == 0:
        report(f"search over {search.name}", search.trials, search.trials)


def _drawn(study: optuna.Study, begun: FrozenTrial, rules: Rules, seed: int) -> optuna.Trial:
    """Return a trial that a stopped search had begun, with all values that it would have drawn.

    A search that was killed between two of them would draw the rest from the beginning of the random numbers.
    """
    if begun.params and "fixed_params" not in begun.system_attrs:
        twin = optuna.create_study(directions=study.directions, sampler=_make_sampler(rules.sampler, seed))
        twin.add_trials(trials_in(study, "COMPLETE", "PRUNED"))
        trial = twin.ask()
        suggest(rules.parameters, trial)
        for name, distribution in trial.distributions.items():
            if name not in begun.params:
                value = distribution.to_internal_repr(trial.params[name])
                study._storage.set_trial_param(begun._trial_id, name, value, distribution)
    return optuna.Trial(study, begun._trial_id)


def _is_pruned(trial: optuna.Trial, search: Search, rules: Rules, values: TrainingValues, tried: Values) -> bool:
    """Whether to stop the trial before it has seen all topics."""
    measure = rules.objectives[0].measure
    if rules.parts == 1 or measure is None:
        return False
    for part in range(1, rules.parts):
        reached = mean(values.on_first_parts(tried, part)[measure], search.qids)
        with quiet():
            trial.report(reached, part)
            if trial.should_prune():
                return True
    return False


class _Halving(BasePruner):
    """Successive halving as trials come (Li et al., ASHA, MLSys 2020), here by thirds.

    A trial continues after a part of the topics when its value there is among the best third of finished trials. Unlike
    Optuna's own pruner it keeps only the values, so an interrupted trial gets the same decision again.
    """

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether the trial ends here."""
        step = trial.last_step
        if step is None or "fixed_params" in trial.system_attrs:  # the configured values see all topics
            return False
        ended = trials_in(study, "COMPLETE", "PRUNED")
        others = [trial.intermediate_values[step] for trial in ended if step in trial.intermediate_values]
        better = sum(value > trial.intermediate_values[step] for value in others)
        return better >= math.ceil((len(others) + 1) / THIRD)


def trials_in(study: optuna.Study, *states: str) -> list[FrozenTrial]:
    """The trials in some states: `RUNNING` (also those of a stopped search), `COMPLETE` (saw all topics), `PRUNED`."""
    return study.get_trials(deepcopy=False, states=[TrialState[state] for state in states])


def trials_of(study: optuna.Study, parameters: Sequence[Parameter]) -> list[Trial]:
    """The finished trials that saw all topics, in the order they began."""
    return [
        Trial(
            trial.number,
            suggest(parameters, FixedTrial(trial.params)),
            tuple(trial.values),
            trial.user_attrs.get(P95),
            0.0 if trial.duration is None else trial.duration.total_seconds(),
        )
        for trial in trials_in(study, "COMPLETE")
    ]


def importances(study: optuna.Study, rules: Rules) -> dict[str, dict[str, float]]:
    """How much each parameter separates good trials from others, as shares by objective, largest first (PED-ANOVA).

    Watanabe, Bansal and Hutter, IJCAI 2023. Empty for an objective that no trial changed.
    """
    by_objective: dict[str, dict[str, float]] = {}
    for number, objective in enumerate(rules.objectives):
        reached = {trial.values[number] for trial in trials_in(study, "COMPLETE")}
        if len(reached) < 2:
            by_objective[objective.name] = {}
            continue
        with quiet():
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            shares = optuna.importance.get_param_importances(
                study, evaluator=evaluator, target=_cost_of(number, objective)
            )
        by_objective[objective.name] = {key: round(float(share), 6) for key, share in shares.items()}
    return by_objective


def _cost_of(number: int, objective: Objective) -> Callable[[FrozenTrial], float]:
    """The target of the evaluator, which minimises it whatever the direction of the study is."""
    return lambda trial: -objective.sign * float(trial.values[number])


def _make_sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """A sampler by its name in `tune.sampler`."""
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True, warn_independent_sampling=False)
    if name == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=POPULATION)
    return optuna.samplers.RandomSampler(seed=seed)


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
            warnings.filterwarnings("ignore", "PedAnova", UserWarning)  # from Python 3.12 on, of the calling module
            yield
    finally:
        logger.setLevel(level)


class ChecksummedJournal(JournalFileBackend):
    """Optuna's journal file. Reading a line that has changed since it was written raises ValueError."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write steps, each with its digest."""
        super().append_logs([{**log, SEAL: _seal(log)} for log in logs])

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """The steps from a number on, without their digests."""
        for number, log in enumerate(super().read_logs(log_number_from), log_number_from + 1):
            if not isinstance(log, dict) or log.pop(SEAL, None) != _seal(log):
                raise ValueError(f"line {number} has changed since it was written")
            yield log


def _seal(log: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(log, sort_keys=True).encode(), digest_size=8).hexdigest()
