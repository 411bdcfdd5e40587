"""The page to search with: what it may do, and that it shows texts as texts."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest
import uvicorn

from ragbench.extras.ship.access import Access, Tokens
from ragbench.extras.ship.serving.http import FILES, OPEN, POLICY, _read, create_app
from ragbench.extras.ship.serving.messages import Limits
from ragbench.extras.ship.serving.server import _Announcing

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


def test_a_browser_gets_a_page_and_a_program_what_can_be_asked(service, ask) -> None:
    async def talk(client):
        return await client.get("/", headers=BROWSER), await client.get("/"), await client.get("/static/search.js")

    page, told, script = ask(service, talk)
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["vary"] == told.headers["vary"] == "Accept"
    assert told.json()["ask"]["POST /search"]
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["x-content-type-options"] == "nosniff"


def test_the_page_needs_nothing_from_elsewhere_and_writes_no_html() -> None:
    page, script, style = (_read(name).decode() for name in ("search.html", *sorted(FILES, reverse=True)))
    assert not re.search(r"https?://|//cdn|<style|style=|onclick|<script>", page + style)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)
    assert {f"/{name}" for name in re.findall(r'(?:href|src)="([^"]+)"', page)} <= OPEN


def test_the_page_and_the_probes_are_open_and_nothing_else(service, ask, tmp_path) -> None:
    (tmp_path / "tokens").write_text("s3cret" * 4)

    async def talk(client):
        paths = (*sorted(OPEN), "/health", "/metrics", "/static/", "/static/../health")
        found = {path: (await client.get(path, headers=BROWSER)).status_code for path in paths}
        return found, (await client.post("/", json={})).status_code

    found, posted = ask(service, talk, Access(None, Tokens(tmp_path / "tokens")))
    assert {path for path, status in found.items() if status == 200} == OPEN
    assert posted == 401


def test_a_service_that_leaves_lives_and_is_not_ready(make_service, ask) -> None:
    service = make_service()

    async def talk(client):
        before = await client.get("/readyz")
        service.leaving = True
        return before, await client.get("/readyz"), await client.get("/livez"), await client.get("/health")

    before, after, lives, health = ask(service, talk)
    assert (before.status_code, before.json()) == (200, {"status": "ready"})
    assert (after.status_code, after.json()) == (503, {"status": "leaving"})
    assert lives.status_code == health.status_code == 200


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_are_small(name: str) -> None:
    assert len(_read(name)) < 8_000


def test_a_service_that_is_told_to_end_drains_first() -> None:
    said: list[str] = []
    config = uvicorn.Config(lambda scope: None)
    server = _Announcing(config, lambda: None, lambda: said.append("leaving"), Limits(drain=3600))
    server.handle_exit(signal.SIGTERM, None)
    assert said == ["leaving"]
    assert not asyncio.run(server.on_tick(1))
    server.handle_exit(signal.SIGTERM, None)
    assert server.should_exit
    at_once = _Announcing(config, lambda: None, lambda: None, Limits())
    at_once.handle_exit(signal.SIGTERM, None)
    assert at_once.should_exit


@pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium (a package of Debian)")
def test_a_browser_shows_hits_under_the_policy(service, tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(create_app(service), log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        address = f"http://127.0.0.1:{bound.getsockname()[1]}/#how%20do%20programs%20prove%20their%20identity"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=20000"]
        command = [str(CHROMIUM), *options, f"--user-data-dir={tmp_path}", address]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        server.should_exit = True
        thread.join()
    assert "Search 19 documents" in shown
    assert "authentication.md · lines" in shown
    assert re.search(r"10 of \d+ hits in \d+ ms", shown)
