"""Filters of queries, as files have them."""

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.fingerprint import digest
from ragbench.base.types import BenchmarkError
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.load import load_benchmark
from ragbench.benchmark.native import read_topics, write_topics
from ragbench.benchmark.query_filter import read_filter


@pytest.mark.parametrize(
    ("value", "conditions"),
    [
        (None, {}),
        ("", {}),
        ({"version": 3.2, "tags": ["a", "b"]}, {"version": 3.2, "tags": ["a", "b"]}),
        ('{"version": "3.2"}', {"version": "3.2"}),
        ("version=3.2; product = mast", {"version": "3.2", "product": "mast"}),
    ],
)
def test_read_filter_takes_an_object_or_pairs(value: object, conditions: dict) -> None:
    assert read_filter(value, "q.csv:2") == conditions


@pytest.mark.parametrize("value", [7, ["a"], "version", "=3", '{"a": ', {"a": {}}, {"a": []}, {"a": None}, {"": "b"}])
def test_read_filter_refuses_other_values(value: object) -> None:
    with pytest.raises(BenchmarkError, match=r"q\.csv:2: filter must name values by column"):
        read_filter(value, "q.csv:2")


def test_vault_and_native_topics_have_filters(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("---\nversion: '3.2'\n---\nLamp")
    (tmp_path / "q.csv").write_text("qid,text,relevant,filter\nq1,lamp,a.md,version=3.2\nq2,mast,a.md,\n")
    topics = load_benchmark("vault", corpus=tmp_path / "notes", queries=tmp_path / "q.csv").topics
    assert [topic.filter for topic in topics] == [{"version": "3.2"}, {}]
    assert topics[0].query().filter == {"version": "3.2"}
    write_topics(tmp_path / "topics.jsonl", topics)
    assert read_topics(tmp_path / "topics.jsonl") == topics


def test_digest_of_a_benchmark_covers_filters_and_stays_without_them() -> None:
    benchmark = Benchmark.from_frames({"a": "lamp"}, {"q": "lamp"}, {"q": {"a": 1}})
    plain, filtered = (replace(benchmark, topics=(Topic("q", "lamp", filter=f),)) for f in ({}, {"version": "1"}))
    assert plain.digest != filtered.digest
    assert plain.questions == digest((Topic("q", "lamp"),)) != filtered.questions
