from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import ConfigError
from ragbench.benchmark.benchmark import Benchmark, Topic, resplit, split
from ragbench.benchmark.documents import make_document

_TOPICS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["gate", "kit"]), st.sampled_from(["", "", "", "g", "h"])),
    min_size=1,
)


def build(rows: list[tuple[str, str, str]]) -> tuple[list[Topic], dict[str, dict[str, int]]]:
    topics = [Topic(f"q{n}", f"text {n}", type=kind, group=group) for n, (kind, _, group) in enumerate(rows)]
    return topics, {f"q{n}": {f"{area}/d": 2, "other/d": 1} for n, (_, area, _) in enumerate(rows)}


@given(rows=_TOPICS, seed=st.integers(0, 99))
def test_split_keeps_groups_whole(rows: list[tuple[str, str, str]], seed: int) -> None:
    topics, qrels = build(rows)
    sides = split(topics, qrels, seed)
    assert set(sides) == {topic.qid for topic in topics} and set(sides.values()) <= {"train", "test"}
    for group in "gh":
        assert len({sides[topic.qid] for topic in topics if topic.group == group}) <= 1
    assert split(list(reversed(topics)), qrels, seed) == sides


@given(rows=st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["gate", "kit"]), st.just("")), min_size=1))
def test_split_halves_every_type(rows: list[tuple[str, str, str]]) -> None:
    topics, qrels = build(rows)
    sides = split(topics, qrels)
    for kind in "xyz":
        counts = Counter(sides[topic.qid] for topic in topics if topic.type == kind)
        assert abs(counts["train"] - counts["test"]) <= 1


def test_split_balances_types_areas_and_totals() -> None:
    counts = {
        "factual": 7,
        "navigational": 5,
        "exploratory": 6,
        "vocabulary": 6,
        "code": 5,
        "multi_document": 4,
        "no_answer": 3,
    }
    rows = [
        (kind, area, "")
        for area in ("gate", "stream", "store", "fleet", "kit")
        for kind, n in counts.items()
        for _ in range(n)
    ]
    topics, qrels = build(rows)
    for seed in range(5):
        sides = split(topics, qrels, seed)
        assert Counter(sides.values()) == {"train": 90, "test": 90}
        for position, tolerance in ((0, 1), (1, 2)):
            by_side: Counter[tuple[str, str]] = Counter()
            for row, topic in zip(rows, topics, strict=True):
                by_side[row[position], sides[topic.qid]] += 1
            for name in {row[position] for row in rows}:
                assert abs(by_side[name, "train"] - by_side[name, "test"]) <= tolerance


def test_split_follows_seed_and_share() -> None:
    topics, qrels = build([("x", "gate", "")] * 40)
    assert len({tuple(sorted(split(topics, qrels, seed).items())) for seed in range(5)}) == 5
    assert Counter(split(topics, qrels, share=0.25).values()) == {"train": 10, "test": 30}
    with pytest.raises(ConfigError):
        split(topics, qrels, share=1)


def test_split_ignores_hash_seed() -> None:
    code = (
        "from ragbench.benchmark.benchmark import split\n"
        "from ragbench.benchmark.benchmark import Topic\n"
        "topics = [Topic(f'q{n}', 't', type='abc'[n % 3], group='g' if n % 7 == 0 else '') for n in range(50)]\n"
        "print(sorted(split(topics, {t.qid: {f'a{n % 4}/d': 1} for n, t in enumerate(topics)}).items()))\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "12"
    }
    assert len(printed) == 1


def test_resplit_keeps_benchmark() -> None:
    topics, qrels = build([("x", "gate", "")] * 4)
    benchmark = Benchmark("b", (make_document("gate/d", "", "x", {}),), tuple(topics), qrels)
    halves = resplit(benchmark, seed=1)
    assert [topic.text for topic in halves.topics] == [topic.text for topic in topics]
    assert (len(halves.select("train")), len(halves.select("test"))) == (2, 2)
