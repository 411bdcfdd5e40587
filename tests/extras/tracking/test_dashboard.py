"""MLflow as people meet it: nothing that makes an arm is lost, and its own page compares two arms in a browser."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.boundary.yaml import read_yaml_file
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.experiment.run import run
from ragbench.extras import tracking
from ragbench.extras.tracking.store import Target
from ragbench.results import measurements
from ragbench.results.measurements import Measurements
from tests.browser import BROWSER, DRIVER, MISSING, chromium
from tests.ports import free_port

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow and the libraries below it warn of each other
APART = {"name", "paths", "tune", "tracking", "execution"}
"""Sections of a configuration that are no part of what is measured."""


@pytest.fixture(scope="module")
def compared(workplace: Path, tmp_path_factory: pytest.TempPathFactory, benchmark_small: Benchmark) -> Measurements:
    """Three presets that differ in choices, in values, in mappings and in the order of stages; logged."""
    folder = tmp_path_factory.mktemp("dashboard")
    arms = composition.sweep(
        [
            *("+exp=baseline,recommended,lexical_v3", "split=all", "latency.enabled=false"),
            *(f"paths.results={folder}", f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}"),
        ]
    )
    frame = run(arms, benchmark_small, conclude=measurements.against_first)
    assert tracking.log(tracking.target_of(arms[0]), frame.folder)
    return frame


def store(measured: Measurements) -> Target:
    return tracking.target_of(composition.compose([f"paths.results={measured.folder.parents[1]}"]))


def logged(measured: Measurements) -> Mapping[str, Any]:
    import mlflow

    client = mlflow.MlflowClient(store(measured).uri)
    (experiment,) = [
        search_experiment for search_experiment in client.search_experiments() if search_experiment.name == "ragbench"
    ]
    runs = client.search_runs([experiment.experiment_id], "tags.`ragbench.kind` = 'arm'")
    return {run.data.tags["ragbench.arm"]: run.data for run in runs}


def leaves(node: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


@pytest.mark.slow
def test_dashboard_no_parameter_in_which_two_arms_differ_is_lost(compared: Measurements) -> None:
    params = {arm: data.params for arm, data in logged(compared).items()}
    configs = {
        arm: {
            key: value
            for key, value in leaves(read_yaml_file(compared.arm_path(arm) / "config.yaml", aliases=True))
            if key.split(".")[0] not in APART
        }
        for arm in compared.arms
    }
    lost, kept = [], 0
    for one in compared.arms:
        for other in compared.arms:
            for key, value in configs[one].items():
                if value == configs[other].get(key, "not there"):
                    continue
                group = key.split(".")[0]
                chosen = params[one].get(group) != params[other].get(group)  # ranker=questions against ranker=off
                if key in params[one] and params[one][key] == str(value)[:6000]:
                    kept += 1
                elif not (chosen and (value == {} or key.endswith("_target_"))):
                    lost.append((one, other, key, value))
    assert lost == []
    assert kept > 60
    assert {"lexical.fields.title", "fuse.weights.documents", "calibration", "ranker", "documents"} <= set(
        params["recommended"]
    )
    assert params["recommended"]["calibration"] == "off" and params["baseline"]["calibration"] == "on"


@pytest.fixture
def served(compared: Measurements) -> Iterator[str]:
    """The page that `ragbench track ui` names, while its server runs."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "ragbench",
        "track",
        "ui",
        "--port",
        str(port),
        f"paths.results={compared.folder.parents[1]}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            page = ""
            for line in process.stdout:
                if result := re.search(r"newest comparison: (http://\S+)", line):  # the server accepts connections
                    page = result[1]
                    break
            yield page
        finally:
            process.terminate()


SERVER = """#!{python}
import os, socket, sys, time
time.sleep(0.5)
open("{heard}", "w").write(os.environ["PYTHONWARNINGS"])
port = next(word for word in sys.argv if word.startswith("--port=")).split("=")[1]
with socket.create_server(("127.0.0.1", int(port))) as server:
    server.accept()
sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("server", "code"), [(SERVER, 3), ("#!/bin/sh\nexit 0", 2), ("#!/bin/sh\nkill -9 $$", 137)])
def test_dashboard_addresses_are_printed_once_they_answer_and_the_servers_end_is_ours(
    compared: Measurements,
    server: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    standin, port = tmp_path / "python", free_port()
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    standin.write_text(server.replace("{python}", sys.executable).replace("{heard}", str(tmp_path / "heard")))
    standin.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(standin))
    assert cli.main(["track", "ui", "--port", str(port), f"paths.results={compared.folder.parents[1]}"]) == code
    out = capsys.readouterr().out
    pages = [f"http://127.0.0.1:{port}/#/experiments/1/runs", f"http://127.0.0.1:{port}/#/compare-runs?"]
    assert [page in out for page in pages] == [code == 3] * 2
    assert code != 3 or (tmp_path / "heard").read_text() == "ignore"  # no deprecations of other packages


def test_dashboard_port_in_use_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["track", "ui", "--port", str(port), f"paths.results={tmp_path}"]) == 2
    shown = capsys.readouterr()
    assert shown.err == (
        f"ragbench: cannot listen on 127.0.0.1 port {port} (address already in use): choose another with --port\n"
    )
    assert shown.out == "" and not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)
def test_dashboard_page_of_mlflow_compares_the_arms(compared: Measurements, served: str, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    with chromium(tmp_path, 1400, 1000) as chrome:
        chrome.get(served)

        def text(driver: Any) -> str:
            return str(driver.find_element(By.TAG_NAME, "body").text)

        WebDriverWait(chrome, 600).until(lambda driver: "ndcg_at_10" in text(driver) and "fuse.method" in text(driver))
        message = text(chrome)
    assert "Comparing 3 Runs from 1 Experiment" in message
    for arm in compared.arms:
        assert arm in message
    assert re.search(r"^fuse\.method .*\bconvex\b", message, flags=re.M)
    assert re.search(r"^ranker .*\bquestions\b", message, flags=re.M)
    names = re.findall(r"^(?:rest/)?[a-z_]+(?:_at_\d+)?(?=$| [\d.])", message[message.rindex("Metrics") :], flags=re.M)
    assert {"ndcg_at_10", "mrr"} <= set(names)  # the table holds only the rows that are seen
    assert not [name for name in names[: names.index("ndcg_at_10")] if name.startswith("rest/")]


@pytest.mark.slow
def test_dashboard_sweep_says_how_to_open_the_page(
    tmp_path: Path, workplace: Path, vault_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = ["data=vault", f"data.corpus={vault_folder.parent / 'phases'}", "topics=derived", "latency.enabled=false"]
    places = [f"paths.results={tmp_path}", f"paths.cache={workplace / 'cache'}"]
    assert cli.main(["run", "-m", "exp=lexical_only", "lexical.k1=0.9,1.2", *notes, *places]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "next: ragbench data power"  # two values of k1 on few queries: the verdict is open
    assert out[-1] == f"next: ragbench track ui paths.results={tmp_path}"
    assert cli.main(["ablate", "exp=lexical_only", "design=add_one", "factors=[p4]", *notes, *places]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"next: ragbench track ui paths.results={tmp_path}"
    assert (
        cli.main(["run", "-m", "lexical.k1=0.9,1.2", "exp=lexical_only", *notes, *places, "tracking.enabled=false"])
        == 0
    )
    assert "ragbench track ui" not in capsys.readouterr().out
