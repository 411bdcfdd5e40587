"""Time is measured where it is spent, and of queries that are new."""

import numpy as np
import pytest

from ragbench.base.types import ConfigError
from ragbench.evaluation.latency import LatencySpec, measure, repeat_sentences
from ragbench.extras.remote.chat import EndpointModel
from ragbench.extras.systems.stages.expand_queries import ExpandQueries
from ragbench.models.bundled_vectors import ShippedVectors
from ragbench.models.resolve import Models
from ragbench.models.store import Store
from ragbench.search.engine.pipeline import Arm, Pipeline
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.retrieve import RetrieveDense, RetrieveLexical
from tests.naming import naming

SPEC = LatencySpec(queries=4, rounds=3, warmup=2, cold_start=False)
DENSE = (("dense", RetrieveDense(depth=5)), ("fuse", Fuse()))


@pytest.fixture
def queries(benchmark_small):
    return [topic.query() for topic in benchmark_small.topics]


@pytest.fixture
def timings(index, queries, takes):
    arms = [
        Arm("plain", Pipeline((*DENSE, ("cut", Cut(5)))), index),
        Arm("slow", Pipeline((*DENSE, ("slow", takes(0.02)), ("slower", takes(0.03)), ("cut", Cut(5)))), index),
    ]
    return measure(arms, queries, SPEC)


def test_latency_time_stands_in_the_row_of_the_stage_that_took_it(timings) -> None:
    assert timings["slow"].columns == ("dense", "fuse", "slow", "slower", "cut", "total")
    assert np.allclose(timings["slow"].samples_ms, [0, 0, 20, 30, 0, 50])
    assert np.allclose(timings["slow"].again_ms, [0, 0, 20, 30, 0, 50])
    assert not timings["plain"].samples_ms.any()


def test_latency_every_arm_answers_every_sampled_query_in_every_round_and_once_more(timings) -> None:
    for timing in timings.values():
        assert len(timing.samples_ms) == 12
        assert len(timing.again_ms) == 4
        assert timing.qids == timing.qids[:4] * 3
        assert len(set(timing.qids)) == 4
    assert timings["slow"].frame()[["arm", "qid", "total"]].iloc[0].tolist() == ["slow", timings["slow"].qids[0], 50.0]


def test_latency_table_has_a_row_for_every_stage_and_the_whole(timings) -> None:
    rows = {row["stage"]: row for row in timings["slow"].table()}
    assert list(rows) == ["dense", "fuse", "slow", "slower", "cut", "total"]
    names = ("p50", "p50_low", "p95", "p99", "again_p95", "known_p50", "new_p50")
    assert [rows["total"][name] for name in names] == pytest.approx([50] * 7)
    assert np.isnan(rows["total"]["p95_high"])  # of four queries


def test_latency_no_cache_on_disk_is_read_and_nothing_that_was_shipped(index, queries, monkeypatch, tmp_path) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("time was measured through a cache")

    monkeypatch.setattr(Store, "read", refuse)
    monkeypatch.setattr(ShippedVectors, "get_many", refuse)
    eager = index.with_models(Models(cache=tmp_path, shipped=True))
    with pytest.raises(AssertionError, check=naming("cache")):
        eager.encoder.encode_queries(["lamps"])
    measure([Arm("plain", Pipeline(DENSE), eager)], queries, SPEC)


def test_latency_answer_that_is_kept_counts_in_the_second_ask_alone(index, queries, clock, monkeypatch) -> None:
    """An endpoint that takes 300 ms: 300 for a new query, in every round; 0 when it is asked again at once."""
    import pandas as pd

    asked: list[str] = []

    def complete(self: EndpointModel, prompt: str) -> str:
        asked.append(prompt)
        clock.sleep(0.3)
        return "no elements"

    monkeypatch.setattr(EndpointModel, "complete", complete)
    expand = ExpandQueries(endpoint="http://127.0.0.1:9/v1", model="m")
    stages = (("expansion", expand), ("lexical", RetrieveLexical(depth=5)), ("fuse", Fuse()))
    timing = measure([Arm("asks", Pipeline(stages), index)], queries, SPEC)["asks"]
    assert timing.samples("expansion").ms.tolist() == pytest.approx([300] * 12)
    assert timing.again_ms[:, 0].tolist() == [0] * 4
    # To warm up, once for each new query, and for those of the last round once more, when the memory was cleared.
    assert len(asked) == 2 + 12 + 4
    assert len(set(asked)) == 2 + 12  # nobody had asked one of the twelve
    assert repeat_sentences(pd.DataFrame(timing.table())) == [
        "asks: p50 300.0 ms and p95 300.0 ms for a new query, 0.0 and 0.0 ms when it is asked again"
    ]


def test_latency_plug_in_that_hides_a_cache_is_timed_without_it(index, queries, clock, idle: type) -> None:
    """120 ms for a new query and a dictionary, which the pass that measures quality has filled with all topics."""
    import pandas as pd

    kept = {query.text for query in queries}  # a file, or an endpoint's cache, would be as full after a new start

    class Remembers(idle):  # type: ignore[misc]
        def __call__(self, states, index):
            for state in states:
                if state.query.text not in kept:
                    kept.add(state.query.text)
                    clock.sleep(0.12)
            return list(states)

    pipelines = {"base": Pipeline(DENSE), "hides": Pipeline((*DENSE, ("own", Remembers())))}
    timings = measure([Arm(name, item, index) for name, item in pipelines.items()], queries, SPEC)
    assert timings["hides"].samples().ms.min() >= 115
    assert timings["base"].samples().ms.max() == 0
    rows = [row for item in timings.values() for row in item.table()]
    again, sentence = repeat_sentences(pd.DataFrame(rows))
    assert again.startswith("hides: p50 120.0 ms and p95 120.0 ms for a new query, 0.0 and 0.0 ms when it is asked ag")
    assert sentence == (
        "hides: something remembers queries: p50 120.0 ms for a novel query, 0.0 ms for the same "
        "one known. Novel ones count; a plug-in caches with ragbench.remember"
    )


def test_latency_plug_in_that_remembers_openly_is_cleared(index, queries, clock, idle: type) -> None:
    import pandas as pd

    import ragbench

    @ragbench.remember(500)
    def slow(text: str) -> int:
        clock.sleep(0.12)
        return len(text)

    class Remembers(idle):  # type: ignore[misc]
        def __call__(self, states, index):
            assert all(slow(state.query.text) for state in states)
            return list(states)

    timing = measure([Arm("open", Pipeline((*DENSE, ("own", Remembers()))), index)], queries, SPEC)["open"]
    assert timing.samples().ms.tolist() == pytest.approx([120] * 12)
    assert (timing.known_ms[:, -1].tolist(), timing.again_ms[:, -1].tolist()) == ([120] * 4, [0] * 4)
    (message,) = repeat_sentences(pd.DataFrame(timing.table()))
    assert "when it is asked again" in message


def test_latency_second_asks_are_told_where_they_differ_by_a_tenth() -> None:
    import pandas as pd

    columns = ["arm", "stage", "p50", "p95", "again_p50", "again_p95"]
    rows = [
        ("same", "total", 10.0, 20.0, 9.1, 21.9),
        ("other", "total", 10.0, 20.0, 9.5, 17.9),
        ("other", "x", 9, 9, 0, 0),
    ]
    assert [message[:6] for message in repeat_sentences(pd.DataFrame(rows, columns=columns))] == ["other:"]
    assert repeat_sentences(pd.DataFrame(rows, columns=columns).drop(columns="again_p50")) == []


def test_latency_second_ask_can_be_left_out(index, queries) -> None:
    timing = measure([Arm("plain", Pipeline(DENSE), index)], queries, SPEC, again=False)["plain"]
    assert timing.again_ms.shape == (0, 3)
    assert "again_p50" not in timing.table()[0]


@pytest.mark.parametrize("parameters", [{"queries": 0}, {"rounds": 0}, {"threads": 0}, {"warmup": -1}])
def test_latency_bad_parameters_are_named(parameters: dict) -> None:
    with pytest.raises(ConfigError, check=naming("LatencySpec", *parameters)):
        LatencySpec(**parameters)
