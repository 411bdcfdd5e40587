"""What a search sees: training topics and nothing else; what a configuration is worth."""

from dataclasses import replace

import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.benchmark import Topic
from ragbench.config.settings import ArmBuilder
from ragbench.evaluation.measures import MEASURES, document_run, evaluate
from ragbench.extras.fit.tuning.objective import TrainingValues, mean, objective, train_only
from ragbench.extras.fit.tuning.space import space
from ragbench.search.engine.pipeline import start
from tests.conftest import ONE_PARAMETER, compose
from tests.naming import naming


def test_test_topics_and_their_judgments_are_gone(opposed) -> None:
    train = train_only(opposed)
    assert {topic.split for topic in train.topics} == {"train"}
    assert set(train.document_qrels) == {topic.qid for topic in train.topics}
    assert train.collection == opposed.collection


def test_objective_group_in_both_splits_is_refused(opposed) -> None:
    leaking = replace(opposed, topics=(*opposed.topics, Topic("x", "again", split="test", group="train 0")))
    with pytest.raises(BenchmarkError, check=naming("'train 0'", "train and test")):
        train_only(leaking)


def test_objective_that_is_no_measure_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tune\.objective names 'p95_ms'; known are"):
        objective("p95_ms", MEASURES)


def test_objective_by_any_of_its_names() -> None:
    assert objective("nDCG@10", MEASURES) == objective("ndcg_at_10", MEASURES) == "nDCG@10"
    assert objective("silence", ("RR",)) == "Silence"


def test_objective_means_by_hand() -> None:
    values = {"a": 0.5, "b": 1.0, "c": 0.0}
    assert (mean(values), mean(values, frozenset("ab")), mean(values, frozenset("x"))) == (0.5, 0.75, 0.0)


@pytest.fixture(scope="module")
def searched(opposed, settings_of, tmp_path_factory):
    base = settings_of(tmp_path_factory.mktemp("values"), *ONE_PARAMETER, "+tune.space.dense.depth={low: 5, high: 50}")
    train = train_only(opposed)
    return TrainingValues(space(base, compose), train, ArmBuilder.of(base, train), "nDCG@10"), train


def test_objective_values_equal_those_of_each_pipeline_alone(searched) -> None:
    values, train = searched
    for tried in ({"fuse.weights.lexical": 0.1}, {"fuse.weights.lexical": 9.0}, {"fuse.weights.lexical": 0.1}):
        states = start([topic.query() for topic in train.topics])
        for _, stage in values.arm(tried).pipeline:
            states = stage(states, values.index)
        alone = evaluate(document_run(states, values.index.chunks), train.document_qrels, ["nDCG@10"])
        rows = alone[alone["measure"] == "nDCG@10"]
        assert values(tried) == pytest.approx(dict(zip(rows["qid"], rows["value"], strict=True)))
    assert values._session.reused > 0


def test_objective_every_start_is_searched_over_an_index_of_its_own(settings_of, opposed, tmp_path) -> None:
    words = "index.lexical.analyzer=standard"
    base, train = settings_of(tmp_path, *ONE_PARAMETER, f"tune.starts=['{words}']"), train_only(opposed)
    values = TrainingValues(space(base, compose), train, ArmBuilder.of(base, train), "nDCG@10")
    here, there = ({"start": start, "fuse.weights.lexical": 1.0} for start in ("", words))
    assert values.arm(here).pipeline == values.arm(there).pipeline
    assert values.arm(there).index.spec.lexical.analyzer == "standard"
    assert values.identity(here) != values.identity(there)
    assert set(values(here)) == set(values(there))


def test_objective_values_of_test_topics_are_refused(searched, opposed) -> None:
    values, _ = searched
    with pytest.raises(BenchmarkError, check=naming("'test0'")):
        TrainingValues(values.space, opposed, ArmBuilder.of(values.space.base, opposed), "nDCG@10")
