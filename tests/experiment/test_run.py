"""What a run writes: files that agree with each other, each arm's own memory and index, and progress on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from ragbench.base import console
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.load import load
from ragbench.benchmark.runs import read_run
from ragbench.config.settings import Settings
from ragbench.evaluation import measures
from ragbench.experiment.run import run
from ragbench.extras.collect.commands import data_pool as pool_command
from ragbench.extras.collect.pool import read_pool
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements

VAULT = Path(__file__).parents[1] / "data" / "vault"


@pytest.fixture(scope="module")
def arms(settings_of, tmp_path_factory: pytest.TempPathFactory) -> list[Settings]:
    """A baseline and an arm with another index artefact, timed in both loops, the cold start too."""
    folder = tmp_path_factory.mktemp("run")
    shared = ("split=all", "latency.cold_start=true")
    return [settings_of(folder, *shared, "name=plain"), settings_of(folder, *shared, "p12=on", "name=with p12")]


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def finished(arms, told, benchmark_small: Benchmark) -> Measurements:
    def conclude(result: Measurements) -> None:
        measurements.against_first(result)
        assert not (result.folder / store.RECORD).exists()
        told.append(("concluded", len(result.latency), len(result.latency)))

    with console.progress_to(lambda *step: told.append(step)):
        return run(arms, benchmark_small, conclude=conclude)


@pytest.mark.slow
def test_run_verdicts_come_before_the_cold_start_and_the_record(finished: Measurements, told) -> None:
    tasks = [task for task, *_ in told]
    assert tasks.index("timing queries") < tasks.index("concluded") < tasks.index("timing cold starts")
    cold = finished.latency["stage"].str.startswith("cold ")
    assert told[tasks.index("concluded")][1] == len(finished.latency) - cold.sum()
    assert cold.sum() == 4  # of two arms: ready, first answer


def test_run_results_read_back_are_those_returned(finished: Measurements) -> None:
    loaded = measurements.load(finished.folder)
    assert loaded.record == json.loads(json.dumps(finished.record))
    pd.testing.assert_frame_equal(loaded.per_query, finished.per_query)
    pd.testing.assert_frame_equal(loaded.latency, finished.latency)
    assert loaded.arms == ["plain", "with p12"]


def test_run_measures_are_those_of_the_run_files(finished: Measurements, benchmark_small: Benchmark) -> None:
    levels = {"document": ("run.trec", benchmark_small.document_qrels)}
    levels["section"] = ("sections.trec", benchmark_small.section_qrels)
    for arm in finished.arms:
        for level, (name, qrels) in levels.items():
            results = read_run(finished.arm_path(arm) / name)
            frame = measures.evaluate(results, qrels, unanswerable=benchmark_small.unanswerable)
            expected = frame.set_index(["qid", "measure"])["value"]
            frame = finished.per_query[(finished.per_query["arm"] == arm) & (finished.per_query["level"] == level)]
            assert frame.set_index(["qid", "measure"])["value"].to_dict() == expected.to_dict()


def test_run_every_arm_has_all_its_files(finished: Measurements, arms) -> None:
    for arm in arms:
        actual = finished.arm_path(arm.name)
        files = {path.name for path in actual.iterdir()}
        assert files >= {"run.trec", "sections.trec", "per_query.parquet", "top.parquet", "diagnosis.parquet"}
        assert files >= {"latency.parquet", "config.yaml", "pipeline.txt", "metadata.yaml", "done.json"}
        assert not [name for name in files if name.startswith(".")]
        assert yaml.safe_load((actual / "config.yaml").read_text())["split"] == "all"
        assert (actual / "pipeline.txt").read_text().strip() == repr(arm.pipeline)


def test_run_arm_has_the_bytes_of_the_artefacts_it_reads_and_no_others(finished: Measurements) -> None:
    """Both share one index object, in which the trigrams of p12 are open."""
    sizes = finished.record["index_bytes"]
    assert sizes["with p12"] > sizes["plain"] > 0
    read = {arm: yaml.safe_load((finished.arm_path(arm) / "metadata.yaml").read_text()) for arm in finished.arms}
    kinds = {arm: set(item["resources"]["artefacts"]) for arm, item in read.items()}
    assert kinds == {
        "plain": {"chunks", "dense", "lexical", "noise"},
        "with p12": {"chunks", "dense", "lexical", "noise", "trigrams"},
    }


def test_run_peak_memory_is_that_of_each_arms_own_process(finished: Measurements) -> None:
    assert set(finished.peak_memory_mb) == {"plain", "with p12"}
    assert all(50 < mb < 3000 for mb in finished.peak_memory_mb.values())
    cold = finished.latency[finished.latency["stage"].str.startswith("cold")]
    assert set(cold["stage"]) == {"cold ready", "cold first answer"}
    assert (cold["p50"] > 100).all()


def test_run_machine_is_observed_while_time_is_measured(finished: Measurements) -> None:
    observed = finished.record["machine"]
    assert set(observed) == {"before", "timing", "busy"}
    assert {"load", "others", "steal", "switches", "processors"} <= set(observed["timing"])


def test_run_busy_machine_is_told_once(settings_of, benchmark_small, tmp_path: Path, monkeypatch, caplog) -> None:
    monkeypatch.setattr("ragbench.evaluation.machine._MOST_OTHERS", -1.0)
    settings = settings_of(tmp_path, "p6=off", "split=test")
    results = run([settings], benchmark_small)
    reason = results.record["machine"]["busy"]
    assert reason.startswith("other programs kept ")
    assert caplog.messages == [f"{reason}: latency CIs are wider to allow for it"]


def test_run_progress_counts_to_its_total_task_by_task(finished: Measurements, told) -> None:
    tasks: dict[str, list[tuple[int, int]]] = {}
    for task, done, total in told:
        tasks.setdefault(task, []).append((done, total))
    assert set(tasks) >= {"running stages", "timing queries", "timing cold starts"}
    for steps in tasks.values():
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1][0] == steps[-1][1]


def test_run_quality_alone_measures_no_time(settings_of, benchmark_small: Benchmark, tmp_path: Path) -> None:
    quick = settings_of(tmp_path, "latency.enabled=false", "split=test")
    results = run([quick], benchmark_small)
    assert len(results.latency) == 0
    assert results.peak_memory_mb == {}
    assert set(results.per_query["split"]) == {"test"}


def test_run_concludes_before_its_record(settings_of, benchmark_small, tmp_path: Path, caplog) -> None:
    quick = settings_of(tmp_path, "latency.enabled=false")

    def fail(result: Measurements) -> None:
        assert not (result.folder / store.RECORD).exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([quick], benchmark_small, conclude=fail)
    again = run([quick], benchmark_small)
    assert caplog.messages == [f"continuing the stopped experiment in {again.folder}"]


def test_run_vault_without_judgments_can_be_pooled_by_section(settings_of, tmp_path: Path, capsys) -> None:
    import argparse

    queries = tmp_path / "queries.csv"
    queries.write_text("qid,text\nq1,LNT-301\nq2,how do lamps know when the sun sets\n")
    words = ("data=vault", f"data.corpus={VAULT}", f"data.queries={queries}", "latency.enabled=false")
    settings = settings_of(tmp_path / "results", *words, "allow_unjudged=true")
    vault = load(settings.config["data"])
    assert not vault.section_qrels and not vault.document_qrels
    results = run([settings], vault)
    assert len(read_run(results.arm_path(settings.name) / "sections.trec")["q2"]) > 3
    out = tmp_path / "pool.csv"
    arguments = argparse.Namespace(
        words=[str(results.folder), *words[:3]], depth=3, out=str(out), replace=False, by_topic=False
    )
    assert pool_command.main(arguments) == 0
    rows = read_pool(out).rows
    assert [row["qid"] for row in rows].count("q1") == [row["qid"] for row in rows].count("q2") == 3
    assert all("#" in row["section"] and row["grade"] == "" for row in rows)
    assert "6 unjudged pairs" in capsys.readouterr().out
