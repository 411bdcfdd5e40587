"""A search from end to end on a handbook: it never sees the test topics, survives a kill, confirms its winner once."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from filelock import FileLock

from ragbench.base.types import BenchmarkError, ConfigError, ResultsError
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config import composition
from ragbench.extras.fit.tuning import report
from ragbench.extras.fit.tuning.objective import train_only
from ragbench.extras.fit.tuning.report import Tuning
from ragbench.extras.fit.tuning.search import Tuned, check, confirm, rules_of, tune
from tests.conftest import ONE_PARAMETER, compose
from tests.naming import naming
from tests.waiting import until

WEIGHT = "fuse.weights.lexical"


def search(settings_of, benchmark: Benchmark, results: Path, *overrides: str) -> Tuned:
    base = settings_of(results, *ONE_PARAMETER, *overrides)
    return tune(base, rules_of(base, compose), train_only(benchmark))


@pytest.fixture(scope="module")
def tuned(settings_of, opposed, tmp_path_factory) -> Tuned:
    return search(settings_of, opposed, tmp_path_factory.mktemp("tuned"), "tune.trials=15", "tune.folds=3")


def swapped(benchmark: Benchmark) -> Benchmark:
    other = {"train": "test", "test": "train"}
    return replace(benchmark, topics=tuple(replace(topic, split=other[topic.split]) for topic in benchmark.topics))


def test_search_decides_by_training_topics_only(settings_of, opposed, tuned, tmp_path: Path) -> None:
    """Train prefers words and test meaning: a search that saw test would choose as the one with swapped splits does."""
    assert tuned.winner.values[WEIGHT] > 1
    assert tuned.winner.objective > tuned.preset.objective
    other = search(settings_of, swapped(opposed), tmp_path, "tune.trials=15", "tune.folds=0")
    assert other.winner.values[WEIGHT] < 1


@dataclass(frozen=True)
class Sealed(Topic):
    """A topic whose text may not be read yet."""

    opened: ClassVar[bool] = False

    def __getattribute__(self, name: str):
        if name in ("text", "need", "hypothesis", "type", "query") and not Sealed.opened:
            raise AssertionError(f"{name} of a test topic was read during the search")
        return super().__getattribute__(name)


class SealedQrels(dict):
    """Judgments of which only those of train may be read yet."""

    def __getitem__(self, qid: str):
        assert Sealed.opened or not qid.startswith("test"), "judgments of a test topic were read during the search"
        return super().__getitem__(qid)

    def _all(self, name: str):
        assert Sealed.opened, "all judgments were read during the search"
        return getattr(super(), name)()

    def items(self):
        return self._all("items")

    def values(self):
        return self._all("values")

    def get(self, qid, default=None):
        return self[qid] if qid in set(self) else default


@pytest.mark.slow
def test_test_topics_are_first_read_by_the_confirmation(settings_of, opposed, tuned, tmp_path: Path) -> None:
    sealed = replace(
        opposed,
        topics=tuple(
            Sealed(t.qid, t.text, t.type, t.split, t.need, None, t.group) if t.split == "test" else t
            for t in opposed.topics
        ),
        document_qrels=SealedQrels(opposed.document_qrels),
    )
    base = settings_of(tmp_path, *ONE_PARAMETER, "tune.trials=15", "tune.folds=3")
    with pytest.raises(AssertionError, match="during the search"):
        _ = sealed.digest
    check(base, sealed)
    result = tune(base, rules_of(base, compose), train_only(sealed))
    assert result.winner.values == tuned.winner.values
    assert result.held_out == tuned.held_out
    Sealed.opened = True
    try:
        confirmation = confirm(result, sealed)
    finally:
        Sealed.opened = False
    comparison = confirmation.judged.levels["document"].comparison
    assert comparison.n == len(opposed.select("test"))
    assert comparison.difference < 0  # what test prefers was never asked


def test_search_every_topic_is_held_out_once_and_groups_stay_whole(tuned, opposed) -> None:
    held = [set(fold.pairs) for fold in tuned.folds]
    assert len(held) == 3
    assert set.union(*held) == {topic.qid for topic in opposed.select("train")}
    assert sum(map(len, held)) == len(set.union(*held))
    for group in {topic.group for topic in opposed.select("train")}:
        members = {topic.qid for topic in opposed.topics if topic.group == group}
        assert sum(bool(members & fold) for fold in held) == 1
    assert tuned.optimism == pytest.approx(tuned.inner - tuned.held_out)
    assert tuned.held_out_gain().mean_candidate == pytest.approx(tuned.held_out)


@pytest.mark.slow
def test_search_winner_is_confirmed_once_as_an_ordinary_experiment(tuned, opposed, caplog) -> None:
    from ragbench.extras.export import measured_arm
    from ragbench.extras.report import html
    from ragbench.results import compare, measurements

    first = confirm(tuned, opposed)
    again = confirm(tuned, opposed)
    assert again.results.folder == first.results.folder and again.verdict == first.verdict
    assert sum("measured on the test topics before" in message for message in caplog.messages) == 1
    assert first.evaluations == again.evaluations == 1
    folder = first.results.folder
    assert measurements.load(folder).arms == ["preset", "tuned"]
    preset, winner = first.settings
    assert preset.pipeline == tuned.base.pipeline
    assert compose(winner.overrides).pipeline == winner.pipeline != preset.pipeline
    (compared,) = compare.gather([folder]).arms.against("preset")
    assert compared.verdict == first.verdict
    assert measured_arm.evidence(measured_arm.find(folder, "tuned")).gain == first.verdict.outcome
    assert "tuned" in html.write(first.results).read_text()
    assert first.verdict.outcome in ("inconclusive", "reject")
    assert any("keep the preset" in sentence for sentence in Tuning(tuned, first).warnings)


@pytest.mark.slow
def test_search_another_winner_is_another_evaluation_and_it_is_said(settings_of, opposed, tmp_path: Path) -> None:
    tuned = search(settings_of, opposed, tmp_path, "tune.trials=4", "tune.folds=0")  # the others count theirs
    confirm(tuned, opposed)
    other = replace(tuned, winner=replace(tuned.winner, number=-2, values={WEIGHT: 0.02}))
    second = confirm(other, opposed)
    assert second.evaluations == 2
    assert second.results.comparison > 1
    assert any("exploratory: " in reason for reason in Tuning(other, second).warnings)


def test_search_files_say_everything(tuned) -> None:
    import pandas as pd

    report.write(Tuning(tuned, None))
    names = {"trials.csv", "folds.csv", "parameters.csv", "overrides.txt", "report.json", "journal.log"}
    assert {path.name for path in tuned.folder.iterdir()} >= names
    assert len(pd.read_csv(tuned.folder / "trials.csv")) == 4 * 15
    folds = pd.read_csv(tuned.folder / "folds.csv")
    assert folds["held out"].sum() == tuned.topics
    assert (tuned.folder / "overrides.txt").read_text() == f"{WEIGHT}={tuned.winner.values[WEIGHT]}\n"
    record = json.loads((tuned.folder / "report.json").read_text())
    assert record["nested"]["optimism"] == tuned.optimism
    assert record["parameters"][0]["winner"] == str(tuned.winner.values[WEIGHT])


def test_search_same_search_again_tries_nothing_and_more_trials_go_on(settings_of, opposed, tuned) -> None:
    again = search(settings_of, opposed, tuned.base.results, "tune.trials=15", "tune.folds=3")
    assert again.folder == tuned.folder
    assert again.trials == tuned.trials
    more = search(settings_of, opposed, tuned.base.results, "tune.trials=18", "tune.folds=3")
    assert {len(trials) for trials in more.trials.values()} == {18}
    assert {name: trials[:15] for name, trials in more.trials.items()} == tuned.trials


@pytest.mark.parametrize(
    ("overrides", "error", "reason"),
    [
        (["tune.trials=0"], ConfigError, "tune.trials must be at least 1, got 0"),
        (["tune.folds=1"], ConfigError, "tune.folds must be 0 or at least 2"),
        (["tune.folds=7"], ConfigError, "tune.folds=7 needs as many groups of training topics; there are 6"),
        (["tune.objective=[silence]"], ConfigError, "tune.objective must be a text"),
        (["tune.objective=silence"], BenchmarkError, "no training topic has a value for Silence"),
    ],
)
def test_search_refuses_wrong_settings(settings_of, opposed, tmp_path, overrides, error, reason) -> None:
    with pytest.raises(error, match=reason):
        search(settings_of, opposed, tmp_path, *overrides)


def test_search_is_confirmed_on_test_only(settings_of, opposed, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=naming("split=all")):
        check(settings_of(tmp_path, "split=all"), opposed)
    with pytest.raises(BenchmarkError, check=naming("split 'test'")):
        check(settings_of(tmp_path), train_only(opposed))


@pytest.mark.slow
def test_killed_search_goes_on_where_it_stopped(settings_of, opposed, tmp_path: Path) -> None:
    base = settings_of(tmp_path, *ONE_PARAMETER, "tune.folds=0", "tune.trials=100000")
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=tune, args=(base, rules_of(base, composition.compose), train_only(opposed)))
    process.start()
    until(lambda: ended_trials(tmp_path) >= 8, 180)
    process.kill()
    process.join()
    kept = ended_trials(tmp_path)
    resumed = search(settings_of, opposed, tmp_path, "tune.folds=0", f"tune.trials={kept + 6}")
    assert len(resumed.trials["all"]) == kept + 6
    assert len(list(tmp_path.glob("tune/*"))) == 1


def ended_trials(results: Path) -> int:
    """The number of trials that came to an end in the only journal."""
    return sum(path.read_text(encoding="utf-8").count('"state":1') for path in results.glob("tune/*/journal.log"))


def test_search_refuses_a_folder_that_another_process_uses(settings_of, opposed, tuned) -> None:
    with FileLock(tuned.folder / ".lock"), pytest.raises(ResultsError, match="another process"):
        search(settings_of, opposed, tuned.base.results, "tune.trials=15", "tune.folds=3")


@pytest.mark.slow
def test_search_by_two_workers_has_the_trials_of_one_process(
    settings_of, opposed, tuned, tmp_path: Path, caplog
) -> None:
    caplog.set_level("INFO", "ragbench")

    def rows(searched: Tuned) -> dict[str, list[tuple[object, ...]]]:
        by_search = searched.trials.items()
        return {name: [(t.number, t.values, t.objective) for t in trials] for name, trials in by_search}

    by_workers = search(settings_of, opposed, tmp_path, "tune.trials=15", "tune.folds=3", "execution=dask")
    assert rows(by_workers) == rows(tuned)
    assert any(message.startswith("dashboard of the cluster: http://127.0.0.1:") for message in caplog.messages)
    assert any("computing with 2 Dask workers" in message for message in caplog.messages)
    assert not any("computed here" in message for message in caplog.messages)
    assert [fold.pairs for fold in by_workers.folds] == [fold.pairs for fold in tuned.folds]
    assert by_workers.folder.name == tuned.folder.name  # either continues what the other began
