"""`ragbench serve` as a process: it starts, answers, reloads, and ends when told to."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from ragbench.commands import cli
from tests.sealing import reseal
from tests.tables import rows
from tests.waiting import until


@contextmanager
def serving(bundle: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address."""
    command = [sys.executable, "-m", "ragbench", "serve", str(bundle), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, re.search(r"https?://\S+(?=;)", process.stdout.readline())[0]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_sigterm_ends_after_the_requests_under_way(small_bundle: Path) -> None:
    body = json.dumps({"query": "rotate a key", "top_n": 2})
    with serving(small_bundle) as (process, address):
        host = address.removeprefix("http://")
        clients = [HTTPConnection(host, timeout=30) for _ in range(32)]
        for client in clients:
            client.request("POST", "/search", body, {"content-type": "application/json"})
        last = HTTPConnection(host, timeout=30)
        last.request("GET", "/health")
        assert last.getresponse().status == 200  # so it has read the requests that came before
        process.send_signal(signal.SIGTERM)
        assert [client.getresponse().status for client in clients] == [200] * 32
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
        for client in [*clients, last]:
            client.close()
    with pytest.raises(ConnectionRefusedError):
        HTTPConnection(host).connect()


@pytest.mark.slow
def test_replaced_bundle_is_reloaded_and_ctrl_c_exits_0(small_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(small_bundle, bundle)
    with serving(bundle) as (process, address):
        with httpx.Client(base_url=address, timeout=30) as http:
            assert http.post("/search", json={"query": "rotate a key"}).json()["bundle"] == "small"
            shutil.copytree(bundle, tmp_path / "next")
            reseal(tmp_path / "next" / "bundle.json", name="new")
            bundle.rename(tmp_path / "old")
            (tmp_path / "next").rename(bundle)
            assert "the bundle was reloaded" in process.stderr.readline()
            assert http.post("/search", json={"query": "rotate a key"}).json()["bundle"] == "new"
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert (process.wait(30), err) == (0, "")


@pytest.mark.slow
def test_log_has_one_session_per_connection_and_becomes_topics(small_bundle: Path, tmp_path: Path) -> None:
    log = tmp_path / "searches.jsonl"
    with serving(small_bundle, "--log", str(log)) as (_, address):
        for query in ("rotate a key", "who answers at night"):
            with httpx.Client(base_url=address, timeout=30) as http:
                docno = http.post("/search", json={"query": query}).json()["hits"][0]["docno"]
                http.get(f"/documents/{docno}").raise_for_status()
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [row.get("query") for row in rows] == ["rotate a key", None, "who answers at night", None]
    sessions = [row["session"] for row in rows]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]
    assert cli.main(["topics", "from-log", str(log), "--out", str(tmp_path / "topics.jsonl"), "--json"]) == 0
    assert len((tmp_path / "topics.jsonl").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    rows("ship_commands_serve", "bad_option_is_one_sentence"),
)
def test_bad_option_is_one_sentence(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    port = [] if "--port" in arguments else ["--port", "0"]
    assert cli.main(["serve", *arguments, *port]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert err.count("\n") == 1


def test_port_in_use_is_one_sentence(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["serve", str(small_bundle), "--port", str(port)]) == 2
    err = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1 port {port} (address already in use)" in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_changed_note_is_found_while_refresh_watches(small_bundle: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(small_bundle, tmp_path / "bundle"))
    notes = Path(shutil.copytree(Path(__file__).parents[3] / "data" / "phases", tmp_path / "notes"))
    refresh = [sys.executable, "-m", "ragbench", "refresh", str(bundle), "--corpus", str(notes), "--watch", "--quiet"]
    with serving(bundle) as (process, address), subprocess.Popen(refresh, stdout=subprocess.DEVNULL) as watching:

        def first(query: str) -> str:
            body = {"query": query, "top_n": 1}
            return httpx.post(f"{address}/search", json=body).json()["hits"][0]["docno"]

        assert first("zebra crossing") != "zebra"
        (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing is painted on the road.\n", encoding="utf-8")
        until(lambda: first("zebra crossing") == "zebra")  # perhaps by the refresh at the start
        (notes / "walrus.md").write_text("# Walrus\n\nA walrus moustache is long.\n", encoding="utf-8")
        until(lambda: first("walrus moustache") == "walrus")
        assert httpx.get(f"{address}/health").json()["generation"] >= 2
        watching.terminate()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.slow
def test_other_machines_need_the_token(small_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret" * 4)
    options = ["--host", "0.0.0.0", "--token-file", str(tmp_path / "token")]
    with serving(small_bundle, *options) as (process, address):
        assert address.startswith("http://0.0.0.0:")
        with httpx.Client(base_url=address.replace("0.0.0.0", "127.0.0.1"), timeout=30) as http:
            assert http.get("/health").status_code == 401
            http.headers["authorization"] = "Bearer " + "s3cret" * 4
            assert http.post("/search", json={"query": "rotate a key"}).status_code == 200
        process.terminate()
        assert process.wait(30) == 0
        assert process.stderr.read() == "warning: the token is sent unencrypted: put a proxy with TLS in front\n"
