"""A real MLflow store is written from finished results, and one that fails never loses a result."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError, TrackingError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.experiment import differences
from ragbench.experiment.run import run
from ragbench.extras import tracking
from ragbench.extras.report import html
from ragbench.extras.tracking import store as tracking_store, write
from ragbench.extras.tracking.metrics import metric_name
from ragbench.extras.tracking.store import Target
from ragbench.results import measurements
from ragbench.results.measurements import Measurements
from ragbench.results.store import RunFolder
from tests.naming import naming

# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def arms(workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Settings]:
    folder = tmp_path_factory.mktemp("tracking")
    return composition.sweep(
        [
            *("+exp=baseline", "p12=off,on", "split=all", "latency.queries=2", "latency.rounds=1"),
            *("latency.warmup=0", "latency.cold_start=false"),
            *(f"paths.results={folder}", f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}"),
        ]
    )


@pytest.fixture(scope="module")
def finished(arms, benchmark_small: Benchmark) -> Measurements:
    results = run(arms, benchmark_small)
    html.write(results)
    return results


@pytest.fixture(scope="module")
def single(arms, benchmark_small: Benchmark) -> Measurements:
    return run(arms[:1], benchmark_small, command="alone")


@pytest.fixture(scope="module")
def client(arms, finished, single):
    """A client of the store, after two arms were logged as an experiment and one alone."""
    import mlflow

    target = tracking.target_of(arms[0])
    parent = tracking.log(target, finished.folder)
    alone = tracking.log(target, single.folder)
    assert parent and alone
    return mlflow.MlflowClient(target.uri), parent, alone


def children(client, parent: str):
    experiment = client.get_run(parent).info.experiment_id
    return client.search_runs([experiment], f"tags.mlflow.parentRunId = '{parent}'")


def test_mlflow_experiment_is_a_parent_with_a_run_for_every_arm(client, arms, finished: Measurements) -> None:
    store, parent, alone = client
    runs = {item.data.tags["ragbench.arm"]: item for item in children(store, parent)}
    assert set(runs) == {item.name for item in arms}
    assert store.get_run(parent).data.tags["ragbench.folder"] == str(finished.folder)
    assert children(store, alone) == []
    for item in arms:
        assert runs[item.name].info.run_name == item.name
    on = next(item for item in runs.values() if item.data.tags["ragbench.arm"].endswith("p12=on")).data
    assert on.params["p12"] == "on" and on.params["exp"] == "baseline"
    assert on.params["p12.threshold"] == "0.7"  # the default, but the other arm has none
    assert not [key for key in on.params if key == "fuse.k" or key.startswith(("tune", "paths"))]
    assert {"effect", "ci_low", "ci_high", "rest/p", "added_p95_ms"} <= set(on.metrics)


def test_mlflow_parent_tells_a_lead_the_outcome(client, arms, finished: Measurements) -> None:
    store, parent, alone = client
    run = store.get_run(parent)
    first, second = (arm.name for arm in arms)
    assert run.info.run_name == f"{first}, {second} on lantern (all)"
    assert store.get_run(alone).info.run_name == f"{first} on lantern (all)"
    assert (run.info.end_time - run.info.start_time) / 1000 == pytest.approx(finished.record["seconds"], abs=0.01)
    assert (
        f"Change from {first}, with " in run.data.tags["mlflow.note.content"]
        and "| verdict |" in run.data.tags["mlflow.note.content"]
    )
    assert run.data.tags["ragbench.digest"] == finished.record["benchmark"]["digest"]
    safe = second.replace("=", "_")
    assert run.data.metrics[f"ndcg_at_10/{safe}"] == pytest.approx(finished.values(second).mean())
    assert f"effect/{safe}" in run.data.metrics and f"effect/{first.replace('=', '_')}" not in run.data.metrics
    assert f"| {second} | " in run.data.tags["mlflow.note.content"]


def test_mlflow_outcome_of_many_arms_is_cut_where_a_tag_ends(finished: Measurements, monkeypatch) -> None:
    shown = write.summarise(finished).note
    reasons = [line for line in shown.splitlines() if line.startswith("- **")]
    assert reasons
    monkeypatch.setattr(write, "_MAX_TAG", len(shown) - 1)
    cut = write.summarise(finished).note
    assert len(cut) < len(shown) and reasons[-1] not in cut
    assert len(reasons) == 1 or cut.endswith("- The others are in the report.")


def test_mlflow_metrics_have_stable_names_and_the_values_of_the_results(client, arms, finished: Measurements) -> None:
    store, parent, _ = client
    for item in children(store, parent):
        arm, logged = item.data.tags["ragbench.arm"], item.data.metrics
        assert logged["ndcg_at_10"] == pytest.approx(finished.values(arm).mean())
        assert logged["rest/section_mrr"] == pytest.approx(finished.values(arm, "RR", level="section").mean())
        first = {"ndcg_at_5", "mrr", "recall_at_10", "recall_at_100", "precision_at_5"}
        first |= {"p50_ms", "p95_ms", "index_bytes"}
        names = {"map", "success_at_1", "judged_at_10", "unjudged_at_10", "silence", "ndcg_at_10.factual"}
        names |= {
            f"passage_{name}_at_2000tokens" for name in ("useful", "duplicate", "folderpollution", "typepollution")
        }
        names |= {"p99_ms", "dense_p95_ms"}
        assert first | {f"rest/{name}" for name in names} <= set(logged)
        assert ("rest/recall_effect" in logged) is ("effect" in logged) is (arm != finished.arms[0])
        assert 8 <= len([name for name in logged if not name.startswith("rest/")]) <= 15
        assert logged == pytest.approx(write.summarise(measurements.load(finished.folder)).arms[arm].metrics)


def test_mlflow_report_and_tables_are_artifacts(client, finished: Measurements) -> None:
    store, parent, alone = client
    names = {item.path for item in store.list_artifacts(parent)}
    assert {"experiment.json", "summary.csv", "latency.csv", "report.html"} <= names
    assert "comparison.json" in names
    report = Path(store.download_artifacts(parent, "report.html")).read_text(encoding="utf-8")
    assert '"type":"scatter"' in report.replace(": ", ":") and "difference in nDCG@10, with its interval" in report
    for item in children(store, parent):
        assert {"arm", "per_query.json"} <= {file.path for file in store.list_artifacts(item.info.run_id)}
        files = {file.path for file in store.list_artifacts(item.info.run_id, "arm")}
        assert {"arm/run.trec", "arm/config.yaml", "arm/per_query.parquet"} <= files
    assert "experiment.json" in {item.path for item in store.list_artifacts(alone)}


def test_mlflow_parameters_are_those_of_the_record(finished: Measurements) -> None:
    arms = write.summarise(finished).arms
    assert {arm: summary.parameters for arm, summary in arms.items()} == finished.record["parameters"]


def test_mlflow_run_leads_back_to_its_folder(client, arms, finished: Measurements) -> None:
    store, parent, _ = client
    assert tracking.folder_of(tracking.target_of(arms[0]), parent) == str(finished.folder)
    child = children(store, parent)[0]
    expected = finished.arm_path(child.data.tags["ragbench.arm"])
    assert tracking.folder_of(tracking.target_of(arms[0]), child.info.run_id) == str(expected)
    with pytest.raises(TrackingError, check=naming("neither a file")):
        tracking.folder_of(tracking.target_of(arms[0]), "0" * 32)


def test_mlflow_peak_memory_is_a_metric_when_it_was_measured(finished: Measurements) -> None:
    arm = finished.arms[0]
    measured = Measurements(
        finished.folder, {**finished.record, "peak_memory_mb": {arm: 300.5}}, finished.per_query, finished.latency
    )
    assert write.summarise(measured).arms[arm].headline["peak_memory_mb"] == 300.5
    assert "peak_memory_mb" not in write.summarise(finished).arms[arm].headline


def test_mlflow_metrics_take_any_name_of_a_stage_or_query_type(client, arms, single: Measurements) -> None:
    store, *_ = client
    latency = single.latency.assign(stage=["live (end to end)", *single.latency["stage"][1:]])
    named = replace(single, latency=latency, per_query=single.per_query.assign(type="why? [new]"))
    metrics = write.summarise(named).arms[single.arms[0]].metrics
    assert {"rest/live__end_to_end__p95_ms", "rest/ndcg_at_10.why_ _new_"} <= set(metrics)
    with tracking_store.open_store(tracking.target_of(arms[0])) as into, into.mlflow.start_run() as run:
        into.mlflow.log_metrics(dict(metrics))
    assert store.get_run(run.info.run_id).data.metrics == pytest.approx(metrics)


def test_mlflow_store_of_somebody_else_is_left_alone(finished, arms, tmp_path: Path, caplog) -> None:
    before = {path: path.read_bytes() for path in finished.folder.rglob("*") if path.is_file()}
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE experiments (x INTEGER)")
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('unknown')")
    named = tracking.target_of(arms[0].with_values({"tracking.uri": f"sqlite:///{foreign}"}))
    assert tracking.log(named, finished.folder) is None
    assert len(caplog.messages) == 1
    assert "MLflow could not be written" in caplog.messages[0] and str(finished.folder) in caplog.messages[0]
    assert {path: path.read_bytes() for path in finished.folder.rglob("*") if path.is_file()} == before
    assert foreign.exists()


def named(uri: str, results: Path = Path("unused")) -> Target:
    return Target(uri, "ragbench", results, is_ours=False)


def test_mlflow_address_of_a_store_with_a_password_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STORE", "postgresql://me:p4ss-w0rd@127.0.0.1:9/x")
    settings = composition.compose(["tracking.uri=env:STORE"])
    assert tracking.target_of(settings).uri == "postgresql://me:p4ss-w0rd@127.0.0.1:9/x"
    assert "p4ss-w0rd" not in str(settings.config)
    monkeypatch.delenv("STORE")
    with pytest.raises(ConfigError, check=naming("STORE")):
        tracking.target_of(settings)


def test_mlflow_store_of_no_known_kind_is_refused() -> None:
    with pytest.raises(TrackingError, check=naming("nonsense://")):
        tracking.check(tracking.target_of(composition.compose(["tracking.uri=nonsense://x"])))


def test_mlflow_stores_of_plug_ins_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        return [metadata.EntryPoint("nonsense", "package:Store", group)] if group == "mlflow.tracking_store" else []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    tracking.check(tracking.target_of(composition.compose(["tracking.uri=nonsense://x"])))


def test_mlflow_store_that_cannot_be_opened_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database, whatever its name says")
    with pytest.raises(TrackingError, check=naming("tracking.enabled=false")):
        tracking.check(named(f"sqlite:///{tmp_path / 'file'}"))
    with pytest.raises(TrackingError, check=naming("cannot be used")):
        tracking.check(named(f"sqlite:///{tmp_path / 'file' / 'below.db'}"))
    tracking.check(named(f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}"))
    assert list((tmp_path / "new").iterdir()) == []
    tracking.check(named("http://example.invalid"))


def copied(run: Measurements, root: Path, name: str) -> Path:
    """The same experiment under another name."""
    folder = Path(shutil.copytree(run.folder, root / "runs" / name))
    RunFolder(folder).finish({**run.record, "name": name})
    return folder


def own_store(root: Path) -> Target:
    return Target(f"sqlite:///{root / 'mlflow.db'}", "ragbench", root, is_ours=True)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all tables and nothing in them: MLflow takes seconds to make one."""
    root = tmp_path_factory.mktemp("empty")
    tracking_store._make(root / "mlflow.db", own_store(root))
    return root / "mlflow.db"


@pytest.fixture
def made(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new store is a copy of an empty one."""
    monkeypatch.setattr(tracking_store, "_make", lambda path, target: shutil.copy(empty, path))


def logged(target: Target) -> dict[str, tuple[dict, dict]]:
    """Metrics and parameters of every run in the store, by its name and that of its folder."""
    import mlflow

    client = mlflow.MlflowClient(target.uri)
    experiment = client.get_experiment_by_name("ragbench")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    return {
        f"{Path(run.data.tags['ragbench.folder']).name} {run.info.run_name}": (run.data.metrics, run.data.params)
        for run in runs
    }


def half_made(path: Path) -> None:
    """What a process leaves that is killed while MLflow makes its tables."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE experiments (x INTEGER)")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50_000])


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("harm", [half_made, truncated])
def test_mlflow_broken_store_is_set_aside_and_made_again_from_the_results(harm, single, tmp_path: Path, caplog) -> None:
    target = own_store(tmp_path)
    folders = [copied(single, tmp_path, name) for name in ("one", "two")]
    if harm is truncated:
        assert tracking.log(target, folders[0])
    harm(target.database)
    assert tracking.log(target, folders[1])
    (sentence,) = caplog.messages
    assert f"the MLflow store {target.database} cannot be used (" in sentence
    (aside,) = tmp_path.glob("mlflow.db.broken-*")
    assert aside.name in sentence
    result = logged(target)
    (arm,) = single.arms
    assert set(result) == {f"{name} {arm} on lantern (all)" for name in ("one", "two")}
    assert result[f"one {arm} on lantern (all)"] == result[f"two {arm} on lantern (all)"]


def test_mlflow_store_of_other_tables_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    write.pages(own_store(tmp_path))
    assert tracking_store._fault(path) is None
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'old'")
    assert tracking_store._fault(path) == "its tables are of version old"
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM alembic_version")
    assert tracking_store._fault(path) == "its tables are of version none"
    path.write_bytes(bytes(path.stat().st_size))
    assert tracking_store._fault(path) == "file is not a database"


@pytest.mark.usefixtures("made")
def test_mlflow_missing_runs_are_logged_once(single, tmp_path: Path, capsys, caplog) -> None:
    target = own_store(tmp_path)
    first, second = (copied(single, tmp_path, name) for name in ("one", "two"))
    assert write.log_missing(target) == [first, second]
    damaged = copied(single, tmp_path, "three")
    (damaged / "summary.csv").write_text("")
    assert write.log_missing(target) == []
    assert len(caplog.messages) == 1 and f"{damaged} was not logged" in caplog.messages[0]
    assert len(logged(target)) == 2
    assert cli.main(["track", "--all", f"paths.results={tmp_path}"]) == 0
    assert capsys.readouterr().out.endswith(f"0 logged to {target.uri}\n")
    full = tmp_path / "full.db"
    write.pages(named(f"sqlite:///{full}", tmp_path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        assert cli.main(["track", "--all", f"paths.results={tmp_path}", f"tracking.uri=sqlite:///{full}"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    printed = capsys.readouterr().err
    assert "ragbench: MLflow could not be written (OperationalError: disk I/O error): check free space" in printed
    assert "Traceback" not in printed
    assert cli.main(["track", f"paths.results={tmp_path}"]) == 2
    assert "--all, or folders" in capsys.readouterr().err


@pytest.mark.usefixtures("made")
def test_mlflow_half_logged_run_is_logged_again(single, tmp_path: Path) -> None:
    import mlflow

    target = own_store(tmp_path)
    folder = copied(single, tmp_path, "one")
    run_id = tracking.log(target, folder)
    whole = logged(target)
    mlflow.MlflowClient(target.uri).delete_tag(run_id, "ragbench.record")
    assert write.log_missing(target) == [folder]
    assert logged(target) == whole


COLD = """
import sys
from dataclasses import replace
from pathlib import Path
from ragbench.extras.tracking import store, write

root = Path(sys.argv[1])
target = store.Target(f"sqlite:///{root / 'mlflow.db'}", "ragbench", root, is_ours=True)
sys.exit(write.log(target, root / "runs" / sys.argv[2]) is None)
"""


@pytest.mark.slow
def test_mlflow_processes_that_meet_at_a_store_that_is_not_there_all_keep_their_record(single, tmp_path: Path) -> None:
    names = ["one", "two"]
    for name in names:
        copied(single, tmp_path, name)
    begun = [subprocess.Popen([sys.executable, "-c", COLD, str(tmp_path), name]) for name in names]
    assert [process.wait(120) for process in begun] == [0, 0]
    assert {key.split()[0] for key in logged(own_store(tmp_path))} == set(names)


def test_mlflow_nested_keys_are_dotted() -> None:
    assert differences.flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "a.c": {}, "d": [1]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nDCG@10", "ndcg_at_10"),
        ("R@100", "recall_at_100"),
        ("P@5", "precision_at_5"),
        ("RR", "mrr"),
        ("rr", "mrr"),
        ("AP", "map"),
        ("nDCG(gains=x)@5", "ndcg_gains_x_at_5"),
    ],
)
def test_measures_names_that_mlflow_takes(name: str, expected: str) -> None:
    assert metric_name(name) == expected
