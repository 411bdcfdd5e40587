"""Shared prefixes give what every pipeline gives alone."""

from collections import Counter

import pytest

from ragbench.base import console
from ragbench.search.engine.pipeline import Arm, Pipeline, Session, execute, prefix_keys
from ragbench.search.stages.calibrate import Calibrate
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.retrieve import RetrieveDense, RetrieveLexical


@pytest.fixture
def arms(index) -> list[Arm]:
    retrieve = (("dense", RetrieveDense(depth=20)), ("lexical", RetrieveLexical(depth=20)))
    return [
        Arm("rrf60", Pipeline((*retrieve, ("fuse", Fuse()), ("cut", Cut(10)))), index),
        Arm("rrf20", Pipeline((*retrieve, ("fuse", Fuse(k=20)), ("cut", Cut(10)))), index),
        Arm(
            "calibrated", Pipeline((*retrieve, ("fuse", Fuse()), ("calibration", Calibrate()), ("cut", Cut(10)))), index
        ),
        Arm("uncut", Pipeline((*retrieve, ("fuse", Fuse()))), index),
        Arm("words", Pipeline((retrieve[1], ("fuse", Fuse()))), index),
    ]


def test_executor_equals_each_pipeline_alone(arms: list[Arm], benchmark_small) -> None:
    queries = [topic.query() for topic in benchmark_small.topics]
    outcomes = {outcome.arm: outcome for outcome in execute(arms, queries)}
    assert set(outcomes) == {arm.name for arm in arms}
    for arm in arms:
        alone = arm.pipeline(queries, arm.index)
        assert [s.fused for s in outcomes[arm.name].final] == [s.fused for s in alone]
        assert outcomes[arm.name].stages == tuple(name for name, _ in arm.pipeline)


def test_executor_orders_arms_by_common_prefix(arms: list[Arm], benchmark_small) -> None:
    told: list[tuple[str, int, int]] = []
    order = [arms[number] for number in (4, 0, 2, 1, 3)]
    with console.progress_to(lambda *say: told.append(say)):
        names = [result.arm for result in execute(order, [benchmark_small.topics[0].query()])]
    assert names == ["words", "uncut", "rrf60", "calibrated", "rrf20"]
    assert told == [("running stages", done, 10) for done in range(1, 11)]


def test_session_drops_what_no_later_arm_begins_with(arms: list[Arm], benchmark_small) -> None:
    session = Session([benchmark_small.topics[0].query()])
    session.outcome(arms[0])
    session.forget_all_but(prefix_keys(arms[1]))  # dense, lexical are common to both
    session.outcome(arms[0])
    assert (session.computed, session.reused) == (4 + 2, 2)


def test_executor_asks_retrievers_each_question_once(arms: list[Arm], benchmark_small, monkeypatch) -> None:
    asked: Counter[str] = Counter()
    retrieve = RetrieveLexical.retrieve

    def counting(self, states, index):
        asked.update(state.query.qid for state in states)
        return retrieve(self, states, index)

    monkeypatch.setattr(RetrieveLexical, "retrieve", counting)
    queries = [topic.query() for topic in benchmark_small.topics]
    list(execute(arms, queries))
    assert asked == {query.qid: 1 for query in queries}


@pytest.mark.parametrize("limit_bytes", [512 << 20, 20_000, 0])
def test_session_equals_each_pipeline_alone(limit_bytes: int, arms: list[Arm], benchmark_small) -> None:
    queries = [topic.query() for topic in benchmark_small.topics]
    session = Session(queries, limit_bytes)
    for arm in [*arms, *arms]:
        alone = arm.pipeline(queries, arm.index)
        assert [s.fused for s in session.outcome(arm).final] == [s.fused for s in alone]
    # The ten distinct prefixes are computed once where they are remembered, all 36 stages where nothing is.
    assert session.computed + session.reused == 36
    if limit_bytes != 20_000:
        assert session.computed == (10 if limit_bytes else 36)
