"""How long a run will take: passages, pairs and queries, counted once, at the speed of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.arm_builder import ArmBuilder
from ragbench.corpus.reader import read_vault
from ragbench.experiment.plan import plan
from ragbench.extras.collect import forecast
from ragbench.extras.remote.endpoint import EndpointCrossEncoder
from ragbench.models.resolve import EncoderSpec

HANDBOOK = Path(__file__).parents[2] / "data" / "phases"


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
    coming = plan(settings, "run", builder)
    arms = list(coming.arms.values())
    found = forecast.forecast(coming)
    plain, named = found.passes  # the arm `same` embeds nothing of its own
    assert (plain.arm, named.arm) == ("plain", "plain_hybrid")
    assert 0 < plain.missing <= plain.chunks == arms[0].index.chunks.n_retrievable  # copies are embedded once
    assert 0 < named.missing <= named.chunks
    assert "on a quiet machine: 2 embedding passes over" in found.sentence and "plain_hybrid" in found.sentence
    assert {step.task for step in found.steps} == {"embedding", "timing queries"}
    for arm in arms:
        arm.index.prepare(arm.pipeline.needs)
    after = forecast.forecast(replace(coming, queries=[]))
    assert "embedded already" in after.sentence and after.seconds < found.seconds


def test_a_forecast_sends_nothing_to_an_endpoint(
    handbook: Benchmark, settings_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request may cost money, and `--explain-plan` asks before anything is run."""
    asked: list[str] = []
    monkeypatch.setattr(EndpointCrossEncoder, "score", lambda self, query, passages: asked.append(query))
    settings = settings_of(tmp_path, "p6=on", "p6.model=rerank:small@http://127.0.0.1:9/rerank")
    coming = forecast.forecast(plan([settings], "run", ArmBuilder.of(settings, handbook)))
    assert asked == [] and coming.reranking == ()


def test_an_estimate_does_not_depend_on_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time spent waiting for a CPU is not part of it, time spent waiting for anything else is."""
    clock, delay = [0.0], [0.0]
    monkeypatch.setattr(forecast.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(forecast, "waited_ms", lambda: 1000 * delay[0])

    class Model:
        def __init__(self, others: int) -> None:
            self.others = others

        def encode_passages(self, texts: list[str]) -> None:
            work = 1e-4 * sum(map(len, texts)) + 0.001 * len(texts)  # a request to a server, for example
            clock[0] += work * (1 + self.others)
            delay[0] += work * self.others

    texts = ["word " * (10 + 7 * number % 300) for number in range(900)]
    quiet, busy = (forecast._speed(EncoderSpec("x"), Model(others), texts, True) for others in (0, 9))
    assert quiet is not None and busy is not None
    assert (quiet.pace, busy.pace) == (pytest.approx(1), pytest.approx(10))
    assert quiet.each == pytest.approx(busy.each)
    truth = sum(1e-4 * len(text) + 0.001 for text in texts)
    assert 1 / 1.5 < quiet.each * sum(map(len, texts)) / truth < 1.5
    passes = (forecast._Pass("a", 900, 900, 100.0),)
    assert "about 2 min on a quiet machine" in forecast.Forecast(passes, (), 0.0, busy.pace).sentence
    assert forecast.Forecast(passes, (), 0.0, busy.pace).sentence.endswith("; about 18 min at the current load")
    assert "load" not in forecast.Forecast(passes, (), 0.0).sentence


def test_a_burst_while_a_model_is_tried_does_not_last_for_the_run(
    handbook: Benchmark, settings_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, "exp=dense_only", f"paths.cache={tmp_path}", f"paths.index={tmp_path}")
    coming = replace(plan([settings], "run", ArmBuilder.of(settings, handbook)), queries=[])
    monkeypatch.setattr(forecast, "_speed", lambda *_: forecast._Speed(0.001, pace=12.0))
    monkeypatch.setattr(forecast.os, "cpu_count", lambda: 2)
    for load, pace in ((0.5, 1.25), (8.0, 5.0), (40.0, 12.0)):
        monkeypatch.setattr(forecast.os, "getloadavg", lambda load=load: (load, 9.0, 9.0))
        assert forecast.forecast(coming).pace == pytest.approx(pace)
