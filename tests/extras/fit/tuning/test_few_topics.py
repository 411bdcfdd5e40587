"""Too few topics to hold any out: all are searched, and repeated nested folds judge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import ragbench
from ragbench.base.types import BenchmarkError, ConfigError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.fit.tuning.objective import searchable
from tests.naming import naming

QUESTIONS = """text,relevant
how do programs prove their identity,authentication.md
largest file I may send,configuration.md
which compiler do I need,clients.md
how long does the cdn copy live,caching.md
counters,metrics.md
the guide on emptying a queue,queues.md
server says come back later,uploads.md
switch traffic between two running versions,deployment.md
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("few")
    (folder / "questions.csv").write_text(QUESTIONS, encoding="utf-8")
    handbook = Path(__file__).parents[3] / "data" / "phases"
    return [
        *("data=vault", f"data.corpus={handbook}", f"data.queries={folder / 'questions.csv'}"),
        *("p10=on", "p10.threshold=0.5", "tune=[p10]", "tune.trials=6", "tune.folds=2"),
        *(f"paths.results={folder}", "latency.enabled=false", "tracking.enabled=false"),
    ]


@pytest.mark.slow
def test_nested_folds_judge(words: list[str], caplog) -> None:
    tuning = ragbench.tune(*words)
    assert any("has 8 queries, too few for a test split" in sentence for sentence in caplog.messages)
    assert len(tuning.folds) == 6  # two folds, three times
    assert len(tuning.tuned.pairs()) == 8  # every topic was held out, in every repeat
    assert tuning.confirmation is None
    nested = tuning.summary()["nested"]
    assert (nested["gain"]["n"], nested["repeats"]) == (8, 3)
    assert nested["verdict"] in ("inconclusive", "equivalent", "reject")  # its time was not measured
    assert any(f"judged by the folds: {nested['verdict']}. Quality" in sentence for sentence in tuning.sentences)
    assert tuning.warnings[-1] == "no topics are held out: a run of the winner on these topics shows too good a value"
    with pytest.raises(ResultsError, match="no topics were held out"):
        _ = tuning.results


def test_tuning_folds_are_needed(words: list[str]) -> None:
    with pytest.raises(ConfigError, check=naming("tune.folds=0")):
        ragbench.tune(*words, "tune.folds=0")


def test_searchable_hides_test_topics(opposed: Benchmark) -> None:
    seen, held_out = searchable(opposed)
    assert (held_out, {topic.split for topic in seen.topics}, len(seen.topics)) == (True, {"train"}, 12)
    one = replace(opposed, topics=tuple(replace(topic, split="test") for topic in opposed.topics))
    seen, held_out = searchable(one)
    assert (held_out, {topic.split for topic in seen.topics}, len(seen.topics)) == (False, {"train"}, 24)
    many = replace(one, topics=tuple(replace(t, qid=f"{t.qid}-{n}") for n in range(5) for t in one.topics))
    with pytest.raises(BenchmarkError, check=naming("120 topics", "data.resplit=13")):
        searchable(many)
