"""A verdict on a part of the collection: which documents it has, how it is labelled, and that it is never exported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError, ResultsError
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.corpus.reader import read_vault
from ragbench.experiment import preliminary
from ragbench.experiment.estimate import Estimate
from ragbench.experiment.run import Plan, plan
from ragbench.report import screen
from ragbench.results import measurements
from ragbench.workbench import Experiment, Results

HANDBOOK = Path(__file__).parents[1] / "data" / "phases"


@pytest.fixture(scope="module")
def handbook() -> Benchmark:
    documents = read_vault(HANDBOOK).documents
    topics = tuple(Topic(f"q{n}", document.title, "factual", "test") for n, document in enumerate(documents[:4]))
    grades = {topic.qid: {documents[n].docno: 1} for n, topic in enumerate(topics)}
    return Benchmark("handbook", documents, topics, grades)


@pytest.fixture
def planned(settings_of, tmp_path: Path, handbook: Benchmark) -> Callable[..., Plan]:
    def of(*arms: tuple[str, ...]) -> Plan:
        settings: list[Settings] = [settings_of(tmp_path, "split=all", *arm) for arm in arms]
        return plan(settings, "run", ArmBuilder.of(settings[0], handbook))

    return of


def docnos(benchmark: Benchmark | None) -> list[str]:
    assert benchmark is not None
    return [document.docno for document in benchmark.documents]


def test_draw_takes_judged_then_ranked_then_random_documents(planned, handbook: Benchmark) -> None:
    judged = [document.docno for document in handbook.documents[:4]]
    arms = planned(("exp=dense_only",))
    assert docnos(preliminary.draw(arms, 1, 0)) == judged
    first, second = (docnos(preliminary.draw(arms, 10, seed)) for seed in (1, 2))
    assert len(first) == len(second) == 10 and first == docnos(preliminary.draw(arms, 10, 1)) != second
    assert set(judged) < set(first) and set(first) & set(second) > set(judged)
    by_rank = [next(docno for docno in ranking if docno not in judged) for ranking in preliminary._rankings(arms)]
    assert by_rank[0] in first and by_rank[0] in second
    assert [docno for docno in docnos(handbook) if docno in first] == first


def test_draw_removes_links_to_other_documents(planned, handbook: Benchmark) -> None:
    part = preliminary.draw(planned(("exp=lexical_only",)), 6, 1)
    targets = {link.target for document in part.documents for link in document.links}
    assert targets <= {None, *docnos(part)}
    assert part.drawn_from == len(handbook.documents) and handbook.drawn_from is None


def test_draw_off_and_quick_collections_have_no_part(planned, handbook: Benchmark, monkeypatch) -> None:
    arms = planned(("exp=lexical_only",), ("exp=dense_only",))
    assert preliminary.draw(arms, "off", 1) is preliminary.draw(arms, "auto", 1) is None
    assert preliminary.draw(arms, len(handbook.documents), 1) is None
    monkeypatch.setattr(preliminary, "_SMALL", 3)
    assert preliminary.draw(arms, "auto", 1) is None  # its vectors come soon
    monkeypatch.setattr(preliminary, "estimate", lambda missing: Estimate(9, 1000.0))
    assert len(docnos(preliminary.draw(arms, "auto", 1))) == 8  # twice the judged ones
    monkeypatch.setattr(preliminary, "_SECONDS", 490.0)
    table = next(iter(arms.arms.values())).index.chunks
    of_part = [table.docnos[row] in docnos(preliminary.draw(arms, "auto", 1)) for row in table.document]
    assert 0.3 < sum(of_part) / len(of_part) <= 0.49
    monkeypatch.setattr(preliminary, "_SECONDS", 501.0)
    assert preliminary.draw(arms, "auto", 1) is None  # saves less than half


def test_draw_refuses_a_number_for_a_live_search(planned, tmp_path: Path) -> None:
    run = tmp_path / "mine.trec"
    run.write_text("q0 Q0 caching 1 1.0 x\n")
    arms = planned(("exp=lexical_only",), ("name=live", "live=trec", f"live.path={run}"))
    assert preliminary.draw(arms, "auto", 1) is None
    with pytest.raises(
        ConfigError, match=r"^data\.sample=5 cannot limit what arm 'live' searches: set data.sample=off"
    ):
        preliminary.draw(arms, 5, 1)


@pytest.fixture
def experiment(settings_of, tmp_path: Path, handbook: Benchmark) -> Experiment:
    around = ("split=all", "latency.enabled=false", "data.sample=8")
    arms = [settings_of(tmp_path, *around, "exp=lexical_only"), settings_of(tmp_path, *around, "exp=dense_only")]
    return Experiment(tuple(arms), handbook)


def test_whole_is_measured_with_the_indexes_that_the_draw_opened(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []
    made = ArmBuilder.of

    def of(settings: Settings, benchmark: Benchmark) -> ArmBuilder:
        built.append(len(benchmark.documents))
        return made(settings, benchmark)

    monkeypatch.setattr(ArmBuilder, "of", of)
    shown: list[Results] = []
    experiment.measure(show=shown.append)
    assert built == [len(experiment.benchmark.documents), 8]  # and not the whole for a second time
    assert shown[1].record["started"] >= shown[0].record["started"] + shown[0].record["seconds"]


def test_preliminary_is_shown_before_the_whole(experiment: Experiment, capsys, caplog) -> None:
    caplog.set_level("INFO", "ragbench")
    shown: list[Results] = []
    whole = experiment.measure(show=shown.append)
    assert [results.preliminary for results in shown] == [
        f"preliminary, on 8 of {shown[0].record['benchmark']['drawn_from']} pages",
        "",
    ]
    assert "Ctrl-C stops" in caplog.text
    assert whole.record["comparison"] == shown[0].record["comparison"] == 1  # the same comparison, not a second one
    screen.show(shown[0])
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "pages" in printed
        and "verdict preliminary " in printed
        and "all values are higher than on the whole" in printed
    )
    screen.show(whole)
    assert "preliminary" not in capsys.readouterr().out


def test_preliminary_off_shows_only_the_whole(experiment: Experiment) -> None:
    shown: list[Results] = []
    off = tuple(arm.with_values({"data.sample": "off"}) for arm in experiment.settings)
    dataclasses.replace(experiment, settings=off).measure(show=shown.append)
    assert [results.preliminary for results in shown] == [""]


def test_preliminary_is_left_when_the_whole_is_stopped(experiment: Experiment, tmp_path: Path) -> None:
    shown: list[Results] = []

    def stop(results: Results) -> None:
        if shown:
            raise KeyboardInterrupt
        shown.append(results)

    with pytest.raises(KeyboardInterrupt):
        experiment.measure(show=stop)
    assert shown[0].folder.is_relative_to(tmp_path / "preliminary" / "runs")
    assert Results.load(shown[0].folder).preliminary.startswith("preliminary, on 8 of")


def test_preliminary_cannot_be_exported(experiment: Experiment, tmp_path: Path) -> None:
    first = experiment.preliminary()
    assert first is not None
    with pytest.raises(ResultsError, match=r"is preliminary, on 8 of \d+ pages: measure the whole"):
        first.export(tmp_path / "bundle", arm="dense_only", force=True)
    assert not (tmp_path / "bundle").exists()


def test_sample_does_not_make_data_others(experiment: Experiment) -> None:
    results = experiment.measure()
    config = {**results.shared_config, "data": {**results.shared_config["data"], "sample": 5}}
    measurements.refuse_other_data(results, config, ["data.sample=5"])
