"""What tests of experiments share: settings, a handbook with questions on it for searches, one Ray cluster."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench import app
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.configuration import Settings
from ragbench.corpus.reader import read_vault
from ragbench.executor import Arm
from ragbench.workshop import Workshop

HANDBOOK = Path(__file__).parent.parent / "data" / "phases"
# What is trained on prefers words, what is tested on prefers meaning.
QUESTIONS = (
    "how do programs prove their identity",
    "what happens when somebody guesses too many logins",
    "switch traffic between two running versions",
    "largest file I may send",
    "how long does the cdn copy live",
    "the guide on emptying a queue",
    "server says come back later",
    "keeping a second copy of everything safe",
    "who answers at night",
    "looking for viruses in what people send",
    "numbers about how the system feels",
    "why is my request taking so long",
)
ONE_PARAMETER = ("tune=[]", "+tune.space.fuse.weights.lexical={low: 0.02, high: 50.0, log: true}")


def compose(overrides: Sequence[str]) -> Settings:
    """The settings of one configuration."""
    return app.compose(overrides)


@pytest.fixture(scope="session")
def settings_of(workplace: Path) -> Callable[..., Settings]:
    """A function from overrides to settings whose indexes and caches are the session's."""

    def make(results: Path, *overrides: str) -> Settings:
        around = [
            f"paths.results={results}",
            f"paths.index={workplace / 'index'}",
            f"paths.cache={workplace / 'cache'}",
        ]
        small = ["latency.queries=2", "latency.rounds=1", "latency.warmup=0", "latency.cold_start=false"]
        return compose([*around, *small, "tracking.enabled=false", *overrides])

    return make


@pytest.fixture(scope="session")
def opposed(settings_of, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Every question twice: in train the best document by words is relevant, in test the best one by meaning."""
    documents = read_vault(HANDBOOK).documents
    topics = tuple(
        Topic(f"{split}{n}", text, "vocabulary", split, group=f"{split} {n // 2}")
        for split in ("train", "test")
        for n, text in enumerate(QUESTIONS)
    )
    empty = Benchmark("opposed", documents, topics, {})
    results = tmp_path_factory.mktemp("opposed")
    best: dict[str, list[str]] = {}
    for name, other in (("words", "dense=null"), ("meaning", "lexical=null")):
        settings = settings_of(results, other)
        (arm,) = Workshop.of(settings, empty).arms([replace(settings)])
        assert isinstance(arm, Arm)
        arm.index.prepare(arm.pipeline.needs)
        states = arm.pipeline([topic.query() for topic in topics[: len(QUESTIONS)]], arm.index)
        best[name] = [arm.index.chunks.docno(int(state.fused.chunks[0])) for state in states]
    assert sum(a != b for a, b in zip(best["words"], best["meaning"], strict=True)) >= 4
    pairs = zip(topics, [*best["words"], *best["meaning"]], strict=True)
    return replace(empty, document_qrels={topic.qid: {docno: 1} for topic, docno in pairs})


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The override that joins a running Ray cluster of two processors."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'ragbench[ray]'")
    from ragbench.experiment.execution_ray import _own_token

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    _own_token(os.environ)
    from ray.cluster_utils import Cluster

    running = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "object_store_memory": 200 << 20, "include_dashboard": False},
    )
    yield f"execution.address={running.address}"
    running.shutdown()
