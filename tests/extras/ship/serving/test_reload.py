"""A bundle is exchanged while clients search: none is dropped, and a bad one changes nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragbench.extras.ship.refresh import Refresher
from ragbench.extras.ship.serving.reload import Reloader, signature
from tests.sealing import reseal


@pytest.fixture
def place(small_bundle: Path, tmp_path: Path) -> Path:
    """A link to a bundle, as one would deploy it."""
    shutil.copytree(small_bundle, tmp_path / "first")
    (tmp_path / "live").symlink_to(tmp_path / "first")
    return tmp_path / "live"


def renamed(place: Path, name: str) -> Path:
    """A copy of the bundle under another name."""
    copy = place.parent / name
    shutil.copytree(place.resolve(), copy)
    reseal(copy / "bundle.json", name=name)
    return copy


def put_live(place: Path, folder: Path) -> None:
    link = place.parent / "next"
    link.symlink_to(folder)
    link.replace(place)


class Ear(logging.Handler):
    """Remembers messages, and lets one wait for the next."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self._news = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())
        self._news.release()

    def wait(self) -> str:
        assert self._news.acquire(timeout=30)
        return self.heard[-1]


@pytest.fixture
def ear() -> Iterator[Ear]:
    ear, logger = Ear(), logging.getLogger("ragbench.extras.ship.serving")
    level = logger.level
    logger.addHandler(ear)
    logger.setLevel(logging.INFO)
    yield ear
    logger.removeHandler(ear)
    logger.setLevel(level)


def test_clients_search_on_while_bundles_are_exchanged(make_service, ask, place: Path, ear: Ear) -> None:
    service = make_service(place)
    before = service._current.active
    reloader = Reloader(service, signature(place))
    folders = [renamed(place, name) for name in ("second", "third")]

    async def client_loop(client, stop, answers) -> None:
        while not stop.is_set():
            response = await client.post("/search", json={"query": "rotate a key", "top_n": 3})
            answers.append((response.status_code, response.json().get("bundle")))

    async def talk(client):
        stop, answers = asyncio.Event(), []
        clients = [asyncio.create_task(client_loop(client, stop, answers)) for _ in range(8)]
        for folder in folders:
            put_live(place, folder)
            reloader.ask()
            await asyncio.to_thread(ear.wait)
            await client.post("/search", json={"query": "after the exchange"})
            seen = len(answers)
            while len(answers) < seen + 16:
                await asyncio.sleep(0.01)
        stop.set()
        await asyncio.gather(*clients)
        return answers

    answers = ask(service, talk)
    reloader.stop()
    assert {status for status, _ in answers} == {200}
    assert list(dict.fromkeys(name for _, name in answers)) == ["small", "second", "third"]
    assert answers[-1][1] == "third"
    assert before.users == 0  # neither a search nor the service
    assert service.health().bundle == "third"
    assert b'ragbench_reloads_total{outcome="done"} 2.0' in service.metrics.text()


def test_a_bad_bundle_changes_nothing(make_service, ask, place: Path, ear: Ear) -> None:
    service = make_service(place)
    reloader = Reloader(service, signature(place))
    bad = renamed(place, "bad")
    (bad / "bundle.json").write_text("{")
    put_live(place, bad)
    reloader.ask()
    assert "the bundle was not reloaded, the earlier one still answers" in ear.wait()
    reloader.stop()
    assert ask(service, lambda client: client.post("/search", json={"query": "keys"})).json()["bundle"] == "small"
    assert b'ragbench_reloads_total{outcome="failed"} 1.0' in service.metrics.text()


def test_a_watched_folder_is_loaded_again_when_it_has_changed(make_service, place: Path, ear: Ear) -> None:
    service = make_service(place)
    reloader = Reloader(service, signature(place), poll_seconds=0.05)
    put_live(place, renamed(place, "second"))
    assert "the bundle was reloaded" in ear.wait()
    assert service.health().bundle == "second"
    place.unlink()  # nothing there for a while
    threading.Event().wait(0.2)
    place.symlink_to(place.parent / "first")
    ear.wait()
    assert service.health().bundle == "small"
    threading.Event().wait(0.3)
    reloader.stop()
    assert len(ear.heard) == 2


def test_a_new_generation_answers_at_once(make_service, ask, place: Path, tmp_path: Path, ear: Ear) -> None:
    notes = Path(shutil.copytree(Path(__file__).parents[3] / "data" / "phases", tmp_path / "notes"))
    service = make_service(place)
    before = service._current.active.version
    reloader = Reloader(service, signature(place), poll_seconds=0.05)
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing is painted on the road.\n", encoding="utf-8")
    Refresher(place, notes).refresh()
    assert "the bundle was reloaded" in ear.wait()
    reloader.stop()
    assert len(ear.heard) == 1
    answer = ask(service, lambda client: client.post("/search", json={"query": "zebra crossing", "top_n": 1})).json()
    assert answer["hits"][0]["docno"] == "zebra"
    assert answer["version"] != before
    health = service.health()
    assert (health.generation, health.documents, health.kept_files) == (1, 20, 0)
    assert 0 < health.chunks_changed < 0.1
    assert b"ragbench_generation 1.0" in service.metrics.text()
    assert f"ragbench_golden_agreement {health.golden_agreement}".encode() in service.metrics.text()


def test_searching_a_bundle_leaves_its_signature_alone(make_service, ask, place: Path) -> None:
    before = signature(place)
    service = make_service(place)
    assert ask(service, lambda client: client.post("/search", json={"query": "keys"})).status_code == 200
    service.close()
    assert signature(place) == before


def test_folders_that_go_away_while_they_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle.json").write_text("{}")
    (tmp_path / "index" / ".new.tmp").mkdir(parents=True)
    scandir = os.scandir

    def late(path):
        if str(path).endswith(".tmp"):
            Path(path).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", late)
    assert [each[0] for each in signature(tmp_path)] == ["bundle.json"]
