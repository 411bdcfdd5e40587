"""What a search saves by sharing stages between trials: the same trials, each run alone, on the built-in benchmark.

python -m pytest research/bench/test_tuning_speed.py --benchmark-only -s

Eight parameters of fusion, threshold, deduplication, MMR and re-ranking depth. Alone, a trial runs every stage again;
models are the same in both, with their caches on disk filled before, so that what is compared is neither the encoder
nor the cross-encoder.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ragbench.benchmark.load import load
from ragbench.config import composition
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evaluation.measures import document_run, evaluate
from ragbench.extras.fit.tuning import study
from ragbench.extras.fit.tuning.objective import TrainingValues, mean, train_only
from ragbench.extras.fit.tuning.space import Space, space
from ragbench.extras.fit.tuning.study import Rules, StudySpec

TRIALS = 25
KEYS = (
    *("fuse.k", "fuse.weights.lexical", "fuse.weights.graph", "p10.threshold"),
    *("p12.threshold", "p11.lambda_", "p8.limit.max_per_doc", "p6.depth"),
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[Rules, TrainingValues]]:
    """A function that makes rules and a fresh session; indexes and caches are the project's."""
    folder = tmp_path_factory.mktemp("tuning")
    base = composition.compose(["+exp=all", f"paths.results={folder}", *_shared()])
    train = train_only(load(base.config["data"]))
    whole = space(base, composition.compose)
    parameters = tuple(parameter for parameter in whole.parameters if parameter.key in KEYS)
    assert len(parameters) == len(KEYS)
    rules = Rules(Space(parameters, {"": base}, {"": frozenset(KEYS)}), "nDCG@10", 13)
    return lambda: (rules, TrainingValues(rules.space, train, ArmBuilder.of(base, train), "nDCG@10"))


def _shared() -> list[str]:
    usual = composition.compose([])
    place: Settings = usual
    return [f"paths.index={place.index_folder}", f"paths.cache={place.cache_folder}"]


def test_trials_that_share_stages_against_trials_alone(benchmark, prepared, tmp_path: Path) -> None:
    rules, values = prepared()

    def search(name: str, seen: TrainingValues) -> list[study.Trial]:
        wanted = StudySpec(name, None, TRIALS)
        opened = study.open_study(study.open_storage(tmp_path / name), wanted, rules)
        study.optimise([study.Search(opened, wanted, rules)], seen)
        return study.trials_of(opened, rules.space)

    tried = search("warm", values)  # fills the caches of models
    _, alone = prepared()
    alone(rules.space.configured())  # opens index and models
    queries = [topic.query() for topic in alone.benchmark.topics]
    started = time.perf_counter()
    reached = []
    for trial in tried:
        states = alone.arm(trial.values).pipeline(queries, alone.index)
        frame = evaluate(document_run(states, alone.index.chunks), alone.benchmark.document_qrels, ["nDCG@10"])
        rows = frame[frame["measure"] == "nDCG@10"]
        reached.append(mean(dict(zip(rows["qid"], rows["value"].astype(float), strict=True))))
    seconds_alone = time.perf_counter() - started
    _, shared = prepared()
    shared(rules.space.configured())
    found = benchmark.pedantic(search, args=("shared", shared), rounds=1)
    seconds = benchmark.stats.stats.mean
    assert [trial.objective for trial in found] == pytest.approx(reached)
    print(
        f"\n{TRIALS} trials over {len(KEYS)} parameters, {len(queries)} queries: {seconds:.1f} s with shared stages, "
        f"the drawing of trials included; {seconds_alone:.1f} s one by one; {shared._session.reused} stages found, "
        f"{shared._session.computed} computed; 200 trials would take {200 * seconds / TRIALS:.0f} s"
    )
    benchmark.extra_info.update(alone=seconds_alone, shared=seconds)
    assert seconds < seconds_alone
