"""A real MLflow store is written from finished results, and one that fails never loses a result."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ragbench import app, tracking
from ragbench.benchmark.benchmark import Benchmark
from ragbench.configuration import Settings
from ragbench.errors import TrackingError
from ragbench.experiment import results
from ragbench.experiment.results import Results
from ragbench.experiment.run import run
from ragbench.report import html

# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def arms(workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Settings]:
    folder = tmp_path_factory.mktemp("tracking")
    return app.sweep(
        [
            *("+exp=baseline", "p12=off,on", "split=all", "latency.queries=2", "latency.rounds=1"),
            *("latency.warmup=0", "latency.cold_start=false", "latency.arrival_qps=[50]", "latency.arrivals=3"),
            *(f"paths.results={folder}", f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}"),
        ]
    )


@pytest.fixture(scope="module")
def finished(arms, benchmark_small: Benchmark) -> Results:
    found = run(arms, benchmark_small, say=lambda sentence: None)
    html.write(found.folder)
    return found


@pytest.fixture(scope="module")
def client(arms, finished, benchmark_small: Benchmark):
    """A client of the store, after two arms were logged as an experiment and one alone."""
    import mlflow

    parent = tracking.log(finished, arms, benchmark_small, print)
    single = run(arms[:1], benchmark_small, command="alone", say=lambda sentence: None)
    alone = tracking.log(single, arms[:1], benchmark_small, print)
    assert parent and alone
    return mlflow.MlflowClient(tracking.store_uri(arms[0])), parent, alone


def children(client, parent: str):
    experiment = client.get_run(parent).info.experiment_id
    return client.search_runs([experiment], f"tags.mlflow.parentRunId = '{parent}'")


def test_an_experiment_is_a_parent_with_a_run_for_every_arm(client, arms, finished: Results) -> None:
    store, parent, alone = client
    runs = {each.data.tags["ragbench.arm"]: each for each in children(store, parent)}
    assert set(runs) == {each.name for each in arms}
    assert store.get_run(parent).data.tags["ragbench.folder"] == str(finished.folder)
    assert children(store, alone) == []
    for each in arms:
        assert runs[each.name].data.params["fuse.k"] == "60.0"
        assert runs[each.name].info.run_name == each.name


def test_metrics_have_stable_names_and_the_values_of_the_results(client, arms, finished: Results) -> None:
    store, parent, _ = client
    for each in children(store, parent):
        arm, logged = each.data.tags["ragbench.arm"], each.data.metrics
        assert logged["ndcg_at_10"] == pytest.approx(finished.values(arm).mean())
        assert logged["section_rr"] == pytest.approx(finished.values(arm, "RR", level="section").mean())
        names = {"ndcg_at_5", "r_at_100", "ap", "success_at_1", "judged_at_10", "unjudged_at_10", "silence"}
        names |= {"ndcg_at_10.factual", "p50_ms", "p95_ms", "p99_ms", "dense_p95_ms", "index_bytes"}
        names |= {"response_p95_ms_at_50_qps", "saturation_qps"}
        assert names <= set(logged)
        assert logged == pytest.approx(tracking.metrics(results.load(finished.folder), arm))


def test_report_and_tables_are_artifacts(client, finished: Results) -> None:
    store, parent, alone = client
    names = {each.path for each in store.list_artifacts(parent)}
    assert {"experiment.json", "summary.csv", "latency.csv", "open_loop.csv", "report.html"} <= names
    for each in children(store, parent):
        assert {"arm", "per_query.json"} <= {file.path for file in store.list_artifacts(each.info.run_id)}
        files = {file.path for file in store.list_artifacts(each.info.run_id, "arm")}
        assert {"arm/run.trec", "arm/config.yaml", "arm/per_query.parquet"} <= files
    assert "experiment.json" in {each.path for each in store.list_artifacts(alone)}


def test_a_run_leads_back_to_its_folder(client, arms, finished: Results) -> None:
    store, parent, _ = client
    assert tracking.folder_of(arms[0], parent) == str(finished.folder)
    child = children(store, parent)[0]
    expected = finished.arm_path(child.data.tags["ragbench.arm"])
    assert tracking.folder_of(arms[0], child.info.run_id) == str(expected)
    with pytest.raises(TrackingError, match="neither a file nor a run"):
        tracking.folder_of(arms[0], "0" * 32)


def test_peak_memory_is_a_metric_when_it_was_measured(finished: Results) -> None:
    arm = finished.arms[0]
    measured = Results(
        finished.folder, {**finished.record, "peak_memory_mb": {arm: 300.5}}, finished.per_query, finished.latency
    )
    assert tracking.metrics(measured, arm)["peak_memory_mb"] == 300.5
    assert "peak_memory_mb" not in tracking.metrics(finished, arm)


def test_a_store_that_fails_is_said_and_loses_nothing(finished, arms, benchmark_small, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in finished.folder.rglob("*") if path.is_file()}
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE experiments (x INTEGER)")
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('unknown')")
    broken = [each.with_value("tracking.uri", f"sqlite:///{foreign}") for each in arms]
    said: list[str] = []
    assert tracking.log(finished, broken, benchmark_small, said.append) is None
    assert len(said) == 1
    assert "MLflow could not be written" in said[0] and str(finished.folder) in said[0]
    assert {path: path.read_bytes() for path in finished.folder.rglob("*") if path.is_file()} == before


def test_a_store_that_cannot_be_opened_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database, whatever its name says")
    with pytest.raises(TrackingError, match=r"tracking.enabled=false"):
        tracking.check_store(f"sqlite:///{tmp_path / 'file'}")
    with pytest.raises(TrackingError, match="cannot be used"):
        tracking.check_store(f"sqlite:///{tmp_path / 'file' / 'below.db'}")
    tracking.check_store(f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}")
    tracking.check_store("http://example.invalid")


def test_nested_keys_are_dotted() -> None:
    assert tracking.flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "a.c": {}, "d": [1]}
