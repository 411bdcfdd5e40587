"""Many clients, no room, no time, bundles that are replaced, and errors that stay in the log."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError, IndexError_
from ragbench.extras.ship.refresh import Refresher
from ragbench.extras.ship.serving import service as serving
from ragbench.extras.ship.serving.messages import SearchRequest
from ragbench.extras.ship.serving.service import WAITING, SearchService
from ragbench.search.engine.pipeline import Pipeline
from tests.naming import naming
from tests.sealing import reseal

QUERY = {"query": "how do programs prove their identity", "top_n": 3}


def bundle_of(service: SearchService):
    return service._opened.bundle


@pytest.fixture
def gate():
    """An event that searches wait for; set at the end in any case, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, gate):
    """Make the searches of a service wait for the gate; returns an event that is set when the first one begins."""

    def hold(service: SearchService) -> threading.Event:
        begun, answer = threading.Event(), bundle_of(service).answer

        def waiting(*given, **options):
            begun.set()
            gate.wait()
            return answer(*given, **options)

        monkeypatch.setattr(bundle_of(service), "answer", waiting)
        return begun

    return hold


def test_searches_run_one_at_a_time_in_their_order(make_service, ask, monkeypatch) -> None:
    service = make_service()
    answer, active, queries = bundle_of(service).answer, [], []

    def recorded(query, *given, **options):
        active.append(query)
        assert len(active) == 1
        queries.append(active.pop())
        return answer(query, *given, **options)

    monkeypatch.setattr(bundle_of(service), "answer", recorded)
    expected = [f"query {number}" for number in range(20)]

    async def talk(client):
        await asyncio.gather(*(client.post("/search", json={"query": query}) for query in expected))

    ask(service, talk)
    assert queries == expected


def test_search_beyond_the_waiting_ones_is_503(make_service, ask, held, gate) -> None:
    service = make_service()
    begun = held(service)

    async def talk(client):
        first = asyncio.create_task(client.post("/search", json=QUERY))
        await asyncio.to_thread(begun.wait)
        others = [asyncio.create_task(client.post("/search", json=QUERY)) for _ in range(WAITING + 6)]
        refused, waiting = set(), set(others)
        while len(refused) < 6:
            done, waiting = await asyncio.wait(waiting, timeout=30, return_when=asyncio.FIRST_COMPLETED)
            refused |= done
        gate.set()
        return [task.result() for task in refused], await asyncio.gather(first, *waiting)

    refused, answered = ask(service, talk)
    assert [response.status_code for response in refused] == [503] * 6
    assert {response.headers["retry-after"] for response in refused} == {"1"}
    assert "too many requests wait already" in refused[0].json()["error"]
    assert [response.status_code for response in answered] == [200] * (WAITING + 1)


def test_search_beyond_its_time_is_504_and_the_next_one_is_answered(make_service, ask, held, gate) -> None:
    service = make_service(time_limit=0.3)
    held(service)

    async def talk(client):
        late = await asyncio.gather(*(client.post("/search", json=QUERY) for _ in range(3)))
        running = service._requests
        gate.set()
        while service._requests:
            await asyncio.sleep(0.01)
        return late, running, await client.post("/search", json=QUERY)

    late, running, answered = ask(service, talk)
    assert [response.status_code for response in late] == [504] * 3
    assert "took longer than 0.3 s" in late[0].json()["error"]
    assert running == 3  # late requests keep their place, so that a second thread cannot search
    assert answered.status_code == 200


def test_late_searches_that_never_end_are_bounded(make_service, ask, held) -> None:
    service = make_service(time_limit=0.05)
    held(service)

    async def talk(client):
        threads = threading.active_count()
        single = [(await client.post("/search", json=QUERY)).status_code for _ in range(3)]
        many = await asyncio.gather(*(client.post("/search", json=QUERY) for _ in range(2 * WAITING)))
        return single, [response.status_code for response in many], threading.active_count() - threads

    single, many, threads = ask(service, talk)
    assert single == [504] * 3
    assert many.count(504) == WAITING + 1 - 3 and many.count(503) == len(many) - many.count(504)
    assert threads <= 1


def test_time_limit_reaches_the_pipeline(make_service, ask, monkeypatch, idle) -> None:
    """A stage that would begin too late does not begin: the thread is free again."""
    service = make_service(time_limit=0.2)
    begun = []

    class Slow(idle):
        def __call__(self, states, index):
            begun.append(threading.Event().wait(0.4))
            return list(states)

    bundle = bundle_of(service)
    slow = Pipeline((*bundle.pipeline.stages, ("slow", Slow()), ("later", Slow())))
    monkeypatch.setattr(bundle, "pipeline", slow)

    async def talk(client):
        response = await client.post("/search", json=QUERY)
        while service._requests:
            await asyncio.sleep(0.01)
        return response

    assert ask(service, talk).status_code == 504
    assert len(begun) == 1


@pytest.mark.parametrize("error", [OSError("/srv/secret/index"), IndexError_("/srv/secret is damaged"), MemoryError()])
def test_internal_error_stays_in_the_log(make_service, ask, monkeypatch, caplog, error: Exception) -> None:
    service = make_service()

    def broken(*given, **options):
        raise error

    monkeypatch.setattr(bundle_of(service), "answer", broken)
    with caplog.at_level(logging.ERROR):
        response = ask(service, lambda client: client.post("/search", json=QUERY))
    assert response.status_code == 500
    assert response.json() == {"error": "the request failed; see the log of the service"}
    assert type(error).__name__ in caplog.text


def test_error_outside_a_search_stays_in_the_log(make_service, ask, monkeypatch, caplog) -> None:
    service = make_service()

    async def talk(client):
        monkeypatch.setattr(service, "health", lambda: 1 / 0)
        return await client.get("/health")

    response = ask(service, talk)
    assert response.status_code == 500
    assert response.json() == {"error": "the request failed; see the log of the service"}
    assert "ZeroDivisionError" in caplog.text


def test_searches_without_a_mode_take_that_of_the_service(small_bundle, ask) -> None:
    service = SearchService(small_bundle, mode="keyword")
    bodies = ({"query": "counters"}, {"query": "counters", "mode": "hybrid"})
    keyword, hybrid = (
        ask(service, lambda client, body=body: client.post("/search", json=body)).json()["stage_ms"] for body in bodies
    )
    service.close()
    assert "dense" not in keyword and "lexical" in keyword
    assert {"dense", "lexical"} <= set(hybrid)


def test_unknown_mode_of_the_service_is_refused(small_bundle) -> None:
    with pytest.raises(ConfigError, check=naming("mode", "fast")):
        SearchService(small_bundle, mode="fast")


@pytest.fixture
def live(small_bundle: Path, tmp_path: Path) -> Path:
    """A link to a bundle, as one would deploy it."""
    shutil.copytree(small_bundle, tmp_path / "first")
    (tmp_path / "live").symlink_to(tmp_path / "first")
    return tmp_path / "live"


def renamed(live: Path, name: str) -> Path:
    """A copy of the bundle under another name."""
    copy = live.parent / name
    shutil.copytree(live.resolve(), copy)
    reseal(copy / "bundle.json", name=name)
    return copy


def deploy(live: Path, folder: Path) -> None:
    link = live.parent / "next"
    link.symlink_to(folder)
    link.replace(live)


async def reloaded(service: SearchService, seconds: float = 60.0) -> str:
    """Follow the folder until another version answers; returns it."""
    before = service.health().version
    following = asyncio.create_task(service.follow())
    async with asyncio.timeout(seconds):
        while service.health().version == before:
            await asyncio.sleep(0.01)
    following.cancel()
    return service.health().version


def test_clients_are_answered_while_bundles_are_replaced(make_service, ask, live: Path) -> None:
    service = make_service(live)
    before = bundle_of(service)
    folders = [renamed(live, name) for name in ("second", "third")]

    async def client_loop(client, stop, answers) -> None:
        while not stop.is_set():
            response = await client.post("/search", json={"query": "rotate a key", "top_n": 3})
            answers.append((response.status_code, response.json().get("bundle")))

    async def talk(client):
        stop, answers = asyncio.Event(), []
        clients = [asyncio.create_task(client_loop(client, stop, answers)) for _ in range(8)]
        for folder in folders:
            deploy(live, folder)
            await service.reload()
            await client.post("/search", json={"query": "after the exchange"})
            answered = len(answers)
            while len(answers) < answered + 16:
                await asyncio.sleep(0.01)
        stop.set()
        await asyncio.gather(*clients)
        return answers

    answers = ask(service, talk)
    assert {status for status, _ in answers} == {200}
    assert list(dict.fromkeys(name for _, name in answers)) == ["small", "second", "third"]
    assert answers[-1][1] == service.health().bundle == "third"
    with pytest.raises(IndexError_):
        before.search("keys")  # it is closed


def test_replaced_bundle_is_followed_once(make_service, live: Path, caplog) -> None:
    service = make_service(live)

    async def talk() -> None:
        following = asyncio.create_task(service.follow())
        deploy(live, renamed(live, "second"))
        while service.health().bundle != "second":
            await asyncio.sleep(0.01)
        live.unlink()  # nothing there for a while
        await asyncio.sleep(1.2)
        assert service.health().bundle == "second"
        live.symlink_to(live.parent / "first")
        while service.health().bundle != "small":
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.2)
        following.cancel()

    with caplog.at_level(logging.INFO, serving.__name__):
        asyncio.run(talk())
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["the bundle was reloaded"] * 2


def test_broken_bundle_is_reported_once_and_tried_again(make_service, live: Path, monkeypatch, caplog) -> None:
    service = make_service(live)
    monkeypatch.setattr(serving, "_AGAIN_S", 0.05)
    broken = renamed(live, "second")
    record = (broken / "bundle.json").read_text()
    (broken / "bundle.json").write_text("{")
    deploy(live, broken)

    async def talk() -> None:
        following = asyncio.create_task(service.follow())
        while not caplog.records:
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.5)
        assert service.health().bundle == "small"
        assert (await service.search(SearchRequest(query="keys", top_n=1))).bundle == "small"
        (broken / "bundle.json").write_text(record)
        while service.health().bundle != "second":
            await asyncio.sleep(0.01)
        following.cancel()

    with caplog.at_level(logging.ERROR, serving.__name__):
        asyncio.run(talk())
    (record,) = caplog.records
    assert "the earlier one still answers" in record.getMessage()


def test_refreshed_generation_is_followed(make_service, live: Path, tmp_path: Path) -> None:
    notes = Path(shutil.copytree(Path(__file__).parents[3] / "data" / "phases", tmp_path / "notes"))
    service = make_service(live)
    (notes / "zebra.md").write_text("# Zebra\n\nA zebra crossing is painted on the road.\n", encoding="utf-8")

    async def talk():
        await asyncio.to_thread(lambda: Refresher(live, notes).refresh())
        await reloaded(service)
        return await service.search(SearchRequest(query="zebra crossing", top_n=1))

    answer, health = asyncio.run(talk()), service.health()
    assert (answer.hits[0].docno, answer.version) == ("zebra", health.version)
    assert (health.generation, health.documents, health.kept_files) == (1, 20, 0)
    assert 0 < health.chunks_changed < 0.1


def test_searches_do_not_change_the_state_of_a_bundle(make_service, ask, live: Path) -> None:
    service = make_service(live)
    before = bundle_of(service).state()
    assert ask(service, lambda client: client.post("/search", json={"query": "keys"})).status_code == 200
    assert bundle_of(service).state() == before == bundle_of(service).opened_as


def test_version_names_the_content(make_service) -> None:
    assert make_service().health().version == make_service().health().version
