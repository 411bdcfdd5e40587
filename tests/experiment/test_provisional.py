"""A first answer and a forecast, before a long run: from a sample, without keeping or counting anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base import progress as shown
from ragbench.base.progress import Progress
from ragbench.base.progress_views import Pipe
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.arm_builder import ArmBuilder
from ragbench.corpus.reader import read_vault
from ragbench.evidence.policy import Policy
from ragbench.experiment import forecast, provisional
from ragbench.experiment.run import plan, run
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


def test_the_sample_is_seeded_stratified_and_small(
    handbook: Benchmark, settings_of, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(provisional, "SHARE", 0.5)
    settings = settings_of(tmp_path)
    (arm,) = ArmBuilder.of(settings, handbook).arms([settings])
    parts = [provisional.sample(handbook, handbook.topics, arm.index, seed) for seed in (1, 1, 2)]
    assert parts[0].topics == parts[1].topics != parts[2].topics
    kinds = [topic.type for topic in parts[0].topics]
    assert abs(kinds.count("factual") - kinds.count("code")) <= 2
    docnos = {document.docno for document in parts[0].documents}
    table = arm.index.chunks
    sizes = [len(range(*table.chunks_of(table.document_number[docno]))) for docno in docnos]
    assert sum(sizes) <= 0.5 * table.n_retrievable
    assert all(set(parts[0].document_qrels[topic.qid]) <= docnos for topic in parts[0].topics)
    targets = {link.target for document in parts[0].documents for link in document.links} - {None}
    assert targets <= docnos


@pytest.mark.slow
def test_a_long_run_shows_a_first_answer_and_measures_the_same(
    handbook: Benchmark, settings_of, tmp_path: Path, monkeypatch
) -> None:
    arms = [settings_of(tmp_path, "name=words", "dense=null"), settings_of(tmp_path, "name=both")]
    arms = [
        replace(each, config={**each.config, "latency": {**each.config["latency"], "enabled": False}}) for each in arms
    ]
    quiet = run(arms, handbook, folder=tmp_path / "quiet", say=lambda sentence: None)
    monkeypatch.setattr(provisional, "WORTH", 0.0)
    monkeypatch.setattr(provisional, "SHARE", 0.9)
    lines: list[str] = []
    with shown.shown(Progress(Pipe(lines.append))) as progress:
        watched = run(arms, handbook, folder=tmp_path / "watched", progress=progress, say=lambda sentence: None)
    said = [line for line in lines if line.startswith("provisional")]
    assert len(said) == 2 and " among " in said[0] and " among " not in said[1]
    assert "words 0." in said[0] and "both 0." in said[0]
    assert watched.per_query.equals(quiet.per_query)
    assert (watched.comparison, quiet.comparison) == (1, 1)  # the same one, and the first answer is none
    for folder in (watched.folder, quiet.folder):
        assert not any("provisional" in path.read_text("utf-8") for path in folder.rglob("*.json"))


def test_without_topics_that_have_an_answer_nothing_is_shown(handbook: Benchmark, settings_of, tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    builder = ArmBuilder.of(settings, handbook)
    (arm,) = builder.arms([settings])
    silent = replace(handbook, document_qrels={})
    assert provisional.show([settings], silent, silent.topics, builder, arm.index) is None


def test_the_sentence_has_the_change_with_its_interval(settings_of, tmp_path: Path) -> None:
    values = {"a": {f"q{n}": 0.5 for n in range(10)}, "b": {f"q{n}": 0.6 + n / 100 for n in range(10)}}
    said = provisional.Answers(values, 3, 9).sentence(Policy.of(settings_of(tmp_path).config))
    assert said.startswith(
        "provisional, nDCG@10 of 10 topics among 3 of 9 documents: a 0.50, b 0.65 (+0.14 [-0.05, +0."
    )


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
