"""Benchmarks that a script hands over: measured with the default timing, as those that words name are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import ragbench
from ragbench import Benchmark, Experiment, Results, load_benchmark
from ragbench.base import registry
from ragbench.base.options import option
from ragbench.base.rankings import QueryState
from ragbench.base.types import BenchmarkError
from ragbench.commands import cli
from ragbench.index.index import Index
from ragbench.search.stages.stage import Stage
from tests.naming import naming

DATA = Path(__file__).parents[1] / "data"
COLD = {"cold ready", "cold first answer"}


def _cold(results: Results, arm: str) -> set[str]:
    frame = results.latency[results.latency["arm"] == arm]
    return set(frame["stage"][frame["stage"].str.startswith("cold ")])


@option("here", before="cut")
@dataclass(frozen=True)
class OnlyHere(Stage):
    """A stage that fails in other processes."""

    process: int

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        if os.getpid() != self.process:
            raise ZeroDivisionError("not here")
        return list(states)

    def describe(self) -> str:
        return "do nothing"


@pytest.fixture
def around(tmp_path: Path) -> list[str]:
    return ["exp=lexical_only", f"paths.results={tmp_path}", "tracking.enabled=false"]


@pytest.fixture
def loaded(request: pytest.FixtureRequest) -> Benchmark:
    if request.param == "beir":
        return load_benchmark("beir", folder=DATA / "tea" / "beir")
    small: Benchmark = request.getfixturevalue("benchmark_small")
    return small


@pytest.mark.parametrize("loaded", [pytest.param("beir", marks=pytest.mark.slow), "memory"], indirect=True)
def test_given_benchmark_is_measured_with_default_timing(loaded: Benchmark, around: list[str]) -> None:
    results = Experiment.sweep(*around, "p10=on", benchmark=loaded).run()
    (arm,) = results.arms
    assert _cold(results, arm) == COLD
    assert results.peak_memory_mb[arm] > 50
    assert results.record["benchmark"]["digest"] == loaded.digest


@pytest.mark.slow
def test_given_benchmark_cold_start_that_fails_costs_the_cold_start_only(
    benchmark_small: Benchmark, around: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    arms = {"plain": around, "here": [*around, "here=on", f"here.process={os.getpid()}"]}
    results = Experiment.arms(arms, benchmark_small).run()
    assert _cold(results, "plain") == COLD
    assert _cold(results, "here") == set()
    assert set(results.latency["arm"][results.latency["stage"] == "total"]) == {"plain", "here"}
    assert len(results.verdicts) == 1
    assert (
        "warning: the cold start of 'here' was not measured (ZeroDivisionError: not here); "
        "all other results are complete" in " ".join(capfd.readouterr().err.split())
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow and the libraries below it warn of each other
def test_given_benchmark_proposals_alone_with_the_defaults_end_with_a_table_a_report_and_a_tracked_run(
    benchmark_small: Benchmark, workplace: Path, tmp_path: Path
) -> None:
    import mlflow

    proposals = ["p8", "p10"]
    experiment = Experiment.ablate(
        exp="plain_hybrid",
        design="add_one",
        factors=proposals,
        paths={"results": str(tmp_path), "index": str(workplace / "index"), "cache": str(workplace / "cache")},
        benchmark=benchmark_small,
    )
    results = experiment.run()
    changed = [f"{name}_with_calibration" if name == "p10" else name for name in proposals]
    assert sorted(results.arms) == sorted(["none", *changed])
    assert set(results.verdicts["factor"]) == set(changed)
    summary = results.summary(by=())
    assert (summary[["p50_ms", "p95_ms", "nDCG@10"]] > 0).all(axis=None) and list(summary["arm"]) == results.arms
    assert "p95_ms" in results._repr_html_()
    assert all(_cold(results, arm) == COLD for arm in results.arms)
    assert (results.folder / "report.html").stat().st_size > 100_000
    tracked = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}").get_run(str(results.tracking_run))
    assert tracked.info.status == "FINISHED"


def _measured(benchmark: Benchmark, around: list[str]) -> Results:
    quick = ["latency.queries=2", "latency.rounds=1", "latency.warmup=1", "latency.cold_start=false"]
    arms = {"plain": [*around, *quick], "recent": [*around, *quick, "p10=on"]}
    return Experiment.arms(arms, benchmark).run()


def test_given_benchmark_commands_read_a_given_benchmark_as_the_script_did(
    around: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queries.csv").write_text(
        "qid,text,relevant\nq1,mein Vorderrad eiert,laufrad/speiche.md\nq2,die Gänge rutschen,antrieb/schaltung.md\n"
    )
    corpus = DATA / "german" / "vault"
    loaded = load_benchmark("vault", corpus=corpus, queries=tmp_path / "queries.csv", resplit=5)
    run = _measured(loaded, around)
    data = ["data=vault", f"data.corpus={corpus}", f"data.queries={tmp_path / 'queries.csv'}", "data.resplit=5"]
    assert [item for item in run.record["overrides"]["recent"] if item.startswith(("data", "topics"))] == data
    results = f"paths.results={tmp_path}"
    pool = ["data", "pool", str(run.folder), "--out", str(tmp_path / "pool.csv"), results]
    export = ["export", f"{run.folder}/arms/plain", "--out", str(tmp_path / "bundle"), results]
    for command in (export, pool, ["advise", str(run.folder), results]):
        assert cli.main(command) == 0, command
    assert f"data.corpus={corpus} data.queries=" in " ".join(capsys.readouterr().out.split())
    timed = ["run", "--remeasure-latency", str(run.folder), results]
    assert cli.main(timed) == 0


def test_given_benchmark_benchmark_built_in_memory_is_exported_by_the_script_only(
    around: list[str], benchmark_small: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _measured(benchmark_small, around)
    results, bundle = f"paths.results={tmp_path}", tmp_path / "bundle"
    for command in (
        ["export", f"{run.folder}/arms/plain", "--out", str(bundle), results],
        ["data", "pool", str(run.folder), "--out", str(tmp_path / "pool.csv"), results],
        ["run", "--remeasure-latency", str(run.folder), results],
    ):
        assert cli.main(command) == 2
        sentence = (
            "'lantern' was built in memory by a script and cannot be read again: measure what "
            "ragbench.save_benchmark(benchmark, FOLDER) returns, or export with the Results of the script"
        )
        assert sentence in capsys.readouterr().err
    assert cli.main(["advise", str(run.folder), results]) == 0
    out = capsys.readouterr().out
    assert "'lantern' was built in memory: call ragbench.save_benchmark(benchmark, 'FOLDER')" in " ".join(out.split())
    assert "data=native data.corpus=FOLDER/corpus" in out
    assert run.export(bundle, arm="plain").out == bundle
    assert ragbench.load(bundle).search("lamps")


def test_given_benchmark_part_replaced_since_it_was_read_is_not_what_its_source_gives() -> None:
    read = load_benchmark("beir", folder=DATA / "tea" / "beir")
    assert read.source == {"data": {"loader": "beir", "folder": DATA / "tea" / "beir"}}
    fewer = replace(read, topics=read.topics[:1])
    assert fewer.source is None and fewer.documents_source == read.source
    assert replace(read, documents=read.documents[:1]).documents_source is None
    assert replace(read, name="other").source == read.source


def test_given_benchmark_saved_benchmark_is_read_as_it_was(benchmark_small: Benchmark, tmp_path: Path) -> None:
    saved = ragbench.save_benchmark(benchmark_small, tmp_path / "lantern")
    assert saved.source is not None and saved.source["data"]["loader"] == "native"
    assert saved.topics == benchmark_small.topics
    assert saved.section_qrels == benchmark_small.section_qrels
    assert saved.document_qrels == benchmark_small.document_qrels
    kept = ("docno", "title", "text", "sections", "links", "tags")
    for now, then in zip(saved.documents, benchmark_small.documents, strict=True):
        assert [getattr(now, name) for name in kept] == [getattr(then, name) for name in kept]
    with pytest.raises(BenchmarkError, check=naming("new folder")):
        ragbench.save_benchmark(benchmark_small, tmp_path / "lantern")
    beside = replace(benchmark_small, documents=[replace(benchmark_small.documents[0], docno="../out")])
    with pytest.raises(BenchmarkError, check=naming("'../out'")):
        ragbench.save_benchmark(beside, tmp_path / "other")


def test_given_benchmark_next_is_the_faster_arm_that_scores_no_less(write_results, tmp_path: Path) -> None:
    values = [0.8, 0.6, 0.7, 0.9] * 8
    near = [*values[:-1], 1.0]
    run = Results.load(write_results(tmp_path / "run", {"slow": values, "fast": near}, {"slow": 1405.0, "fast": 35.0}))
    assert run.next_command == "export @1/fast --out bundle --force"
    assert run.next_reason == (
        "fast scores no less than slow (0.753 against 0.750) and is much faster (35 against 1405 ms); "
        "no gain is established"
    )
    run = Results.load(write_results(tmp_path / "even", {"base": values, "other": near}, {"base": 35.0, "other": 36.0}))
    assert run.next_command == "data power"
    assert run.next_reason.startswith("undecided: add queries, decide by another measure (primary=)")
    assert run.next_reason.endswith("to keep base: ragbench export @1/base --out bundle")


def test_given_benchmark_latency_is_measured_again_once(write_results, tmp_path: Path) -> None:
    values = {"base": [0.2, 0.4] * 40, "good": [0.5, 0.6] * 40}
    untimed = Results.load(write_results(tmp_path / "runs" / "run-2-arms", values))
    assert untimed.next_command == "run --remeasure-latency @1"
    again = Results.load(write_results(tmp_path / "runs" / "run-2-arms-timed-again", values))
    assert again.next_command == "export @1/good --out bundle --force"
    quality = Results.load(write_results(tmp_path / "runs" / "run-quality", values, latency_enabled=False))
    assert quality.next_command == "export @1/good --out bundle"


@pytest.mark.parametrize(
    ("installed", "command"),
    [({"diagnose": {}, "report": {}}, "diagnose"), ({"report": {}}, "report"), ({}, "run")],
)
def test_given_benchmark_next_after_one_arm_is_a_command_that_is_there(
    installed: dict, command: str, write_results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "entries", lambda kind: installed)
    assert Results.load(write_results(tmp_path / "run", {"base": [0.2, 0.4]})).next_command == command
