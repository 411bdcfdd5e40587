"""How long a run will take: passages, pairs and queries, counted once, at the speed of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.arm_builder import ArmBuilder
from ragbench.corpus.reader import read_vault
from ragbench.experiment import forecast
from ragbench.experiment.plan import plan
from ragbench.extras.remote.rerank_endpoint import EndpointCrossEncoder

HANDBOOK = Path(__file__).parent.parent / "data" / "phases"


@pytest.fixture(scope="module")
def handbook() -> Benchmark:
    """Two topics for every document, of two types, half of them in test."""
    documents = read_vault(HANDBOOK).documents
    topics = [
        Topic(f"{kind}-{each.docno}", f"{each.title} {kind}", kind, ("train", "test")[number % 2])
        for number, each in enumerate(documents)
        for kind in ("factual", "code")
    ]
    qrels = {f"{kind}-{each.docno}": {each.docno: 1} for each in documents for kind in ("factual", "code")}
    return Benchmark("handbook", documents, tuple(topics), qrels)


@pytest.mark.slow
def test_the_forecast_counts_passages_once(handbook: Benchmark, settings_of, tmp_path: Path) -> None:
    own = [f"paths.cache={tmp_path / 'cache'}", f"paths.index={tmp_path / 'index'}"]
    settings = [
        settings_of(tmp_path, *own, "name=plain"),
        settings_of(tmp_path, *own, "name=same", "fuse.k=20"),
        settings_of(tmp_path, *own, "exp=plain_hybrid"),
    ]
    builder = ArmBuilder.of(settings[0], handbook)
    arms = [arm for _, arm in plan(settings, "run", builder).arms.values()]
    found = forecast.forecast(arms, [topic.query() for topic in handbook.topics], settings[0].latency)
    plain, same, named = found.passes
    assert 0 < plain.missing <= plain.chunks == arms[0].index.chunks.n_retrievable  # copies are embedded once
    assert same.missing == 0 < named.missing <= named.chunks
    assert "2 passes over" in found.sentence and "plain_hybrid" in found.sentence
    assert {step.task for step in found.steps} == {"embedding", "timing queries"}
    for arm in arms:
        arm.index.prepare(arm.pipeline.needs)
    after = forecast.forecast(arms, [], settings[0].latency)
    assert "embedded already" in after.sentence and after.seconds < found.seconds


def test_a_forecast_sends_nothing_to_an_endpoint(
    handbook: Benchmark, settings_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request may cost money, and `--explain-plan` asks before anything is run."""
    asked: list[str] = []
    monkeypatch.setattr(EndpointCrossEncoder, "score", lambda self, query, passages: asked.append(query))
    settings = settings_of(tmp_path, "p6=on", "p6.model=rerank:small@http://127.0.0.1:9/rerank")
    arms = ArmBuilder.of(settings, handbook).arms([settings])
    queries = [topic.query() for topic in handbook.topics]
    coming = forecast.forecast(arms, queries, settings.latency)
    assert asked == [] and coming.reranking == ()
