"""The estimate before a run: the chunks in no cache, times the measured time of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragbench.base import console
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.corpus.reader import read_vault
from ragbench.experiment import estimate as module, run
from ragbench.experiment.estimate import Estimate, embed, estimate, missing_passages
from ragbench.experiment.run import Plan, plan
from ragbench.models import onnx

HANDBOOK = Path(__file__).parents[1] / "data" / "phases"


@pytest.fixture
def planned(settings_of, tmp_path: Path) -> Callable[..., Plan]:
    """A function that plans arms over the handbook, whose caches are empty at first."""
    documents = read_vault(HANDBOOK).documents
    topics = tuple(Topic(document.docno, document.title, "factual", "test") for document in documents)
    benchmark = Benchmark("handbook", documents, topics, {topic.qid: {topic.qid: 1} for topic in topics})
    own = [f"paths.cache={tmp_path / 'cache'}", f"paths.index={tmp_path / 'index'}", "split=all"]

    def of(*arms: tuple[str, ...]) -> Plan:
        settings: list[Settings] = [settings_of(tmp_path, *own, *arm) for arm in arms]
        return plan(settings, "run", ArmBuilder.of(settings[0], benchmark))

    return of


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a model embeds, each in two seconds."""
    embedded: list[str] = []

    def pooled_vector(encoder: object, text: str) -> np.ndarray:
        embedded.append(text)
        return np.ones(8)

    monkeypatch.setattr(onnx.OnnxEncoder, "pooled_vector", pooled_vector)
    monkeypatch.setattr(onnx.OnnxEncoder, "dim", 8)
    monkeypatch.setattr(module.time, "perf_counter", lambda: 2.0 * len(embedded))
    return embedded


def test_estimate_counts_chunks_of_arms_once(planned, texts: list[str]) -> None:
    one = estimate(missing_passages(planned(("name=plain",))))
    assert one.chunks > 17 == len(texts)
    assert one.seconds == pytest.approx(2.0 * one.chunks)
    same = estimate(missing_passages(planned(("name=plain",), ("name=same", "fuse.k=20"))))
    assert same.chunks == one.chunks - 17  # the sample is in the cache now


def test_estimate_is_zero_when_index_is_built(planned, texts: list[str]) -> None:
    coming = planned(("exp=dense_only",))
    (arm,) = coming.arms.values()
    arm.index.prepare(arm.pipeline.needs)
    assert estimate(missing_passages(coming)) == Estimate(0, 0.0)


def test_estimate_sends_nothing_to_an_endpoint(planned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert estimate(missing_passages(planned(("exp=dense_only", "index.encoder.name=openai:small")))) == Estimate(
        0, 0.0
    )


def test_estimate_sentence() -> None:
    assert Estimate(2044, 235.0).sentence == "2,044 chunks to embed, about 4 min"


def test_embed_counts_passages_of_all_arms_once(planned, texts: list[str]) -> None:
    headings = ("name=headings", "p2=on")
    coming = planned(("name=plain",), ("name=same", "fuse.k=20"), headings, ("name=deep", "p2=on", "dense.depth=50"))
    missing, told = missing_passages(coming), list[tuple[str, int, int]]()
    with console.progress_to(lambda *rows: told.append(rows)):
        embed(missing)
        assert missing_passages(coming) == []
        embed([])
    total = sum(len(each.texts) for each in missing)
    assert len(texts) == total == len({text for each in missing for text in each.texts})
    assert [rows for rows in told if rows[0] == "embedding"] == [("embedding", n, total) for n in range(total + 1)]


@pytest.mark.parametrize(("execution", "count"), [("local", 1), ("dask", 0)])
def test_run_names_the_page_about_several_machines_for_many_chunks(
    execution: str, count: int, planned, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    caplog.set_level("INFO", "ragbench")
    coming = planned(("exp=lexical_only", f"execution={execution}"))
    run._look_ahead(coming)
    assert not caplog.messages
    monkeypatch.setattr(run, "_MANY", 2)
    run._look_ahead(coming)
    assert [message.partition(": ")[2].partition(" shows")[0] for message in caplog.messages] == [
        "docs/cluster.md"
    ] * count
