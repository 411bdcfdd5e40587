"""Many clients, no room, no time, and errors that stay at home."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from ragbench.base.errors import BundleError, ConfigError, IndexError_
from ragbench.extras.ship.serving.service import SearchService
from ragbench.search.engine.pipeline import Pipeline

QUERY = {"query": "how do programs prove their identity", "top_n": 3}


def bundle_of(service: SearchService):
    return service._current.active.bundle


def test_32_clients_at_once_get_the_same_answer(service, ask) -> None:
    async def talk(client):
        return await asyncio.gather(*(client.post("/search", json=QUERY) for _ in range(32)))

    responses = ask(service, talk)
    assert {response.status_code for response in responses} == {200}
    assert len({str(response.json()["hits"]) for response in responses}) == 1


@pytest.mark.slow
def test_several_workers_answer_alike(make_service, ask, service) -> None:
    several = make_service(workers=4)

    async def talk(client):
        queries = ("LNT-301", "counters", "getUserById", "how do programs prove their identity") * 8
        found = await asyncio.gather(*(client.post("/search", json={"query": query}) for query in queries))
        return [response.json()["hits"] for response in found]

    assert ask(several, talk) == ask(service, talk)


def test_beyond_the_queue_503_says_when_to_come_back(make_service, ask, monkeypatch) -> None:
    service = make_service(queue=2)
    gate, begun, search = threading.Event(), threading.Event(), bundle_of(service).answer

    def slow(*words, **options):
        begun.set()
        gate.wait()
        return search(*words, **options)

    monkeypatch.setattr(bundle_of(service), "answer", slow)

    async def talk(client):
        first = asyncio.create_task(client.post("/search", json=QUERY))
        await asyncio.to_thread(begun.wait)
        rest = [asyncio.create_task(client.post("/search", json=QUERY)) for _ in range(6)]
        done, waiting = set(), set(rest)
        while len(done) < 4:
            finished, waiting = await asyncio.wait(waiting, timeout=30, return_when=asyncio.FIRST_COMPLETED)
            done |= finished
        gate.set()
        answered = await asyncio.gather(first, *waiting)
        return [task.result() for task in done], answered

    refused, answered = ask(service, talk)
    assert [response.status_code for response in refused] == [503] * 4
    assert {int(response.headers["retry-after"]) for response in refused} == {1}
    assert "try again in 1 s" in refused[0].json()["error"]
    assert [response.status_code for response in answered] == [200] * 3


def test_a_search_beyond_its_time_is_504_and_the_next_one_is_answered(make_service, ask, monkeypatch) -> None:
    service = make_service(time_limit=1.0)
    gate, search = threading.Event(), bundle_of(service).answer

    def slow(*words, **options):
        gate.wait()
        return search(*words, **options)

    with monkeypatch.context() as patch:
        patch.setattr(bundle_of(service), "answer", slow)

        async def two(client):
            return await asyncio.gather(*(client.post("/search", json=QUERY) for _ in range(2)))

        late = ask(service, two)
    gate.set()
    assert [response.status_code for response in late] == [504, 504]
    assert "took longer than 1 s" in late[0].json()["error"]
    assert ask(service, lambda client: client.post("/search", json=QUERY)).status_code == 200


def test_the_time_limit_reaches_the_pipeline(make_service, ask, monkeypatch, idle) -> None:
    """A stage that would begin too late does not begin: the worker is free again."""
    service = make_service(time_limit=0.2)
    began = []

    class Slow(idle):
        def __call__(self, states, index):
            began.append(threading.Event().wait(0.4))
            return list(states)

    bundle = bundle_of(service)
    slow = Pipeline((*bundle.pipeline.stages, ("slow", Slow()), ("later", Slow())))
    monkeypatch.setattr(bundle, "pipeline", slow)
    assert ask(service, lambda client: client.post("/search", json=QUERY)).status_code == 504
    service._workers.submit(lambda: None).result(10)
    assert len(began) == 1


@pytest.mark.parametrize("error", [OSError("/srv/secret/index"), IndexError_("/srv/secret is damaged"), MemoryError()])
def test_an_error_of_ours_stays_in_the_log(make_service, ask, monkeypatch, caplog, error: Exception) -> None:
    service = make_service()

    def broken(*words, **options):
        raise error

    monkeypatch.setattr(bundle_of(service), "answer", broken)
    with caplog.at_level(logging.ERROR):
        response = ask(service, lambda client: client.post("/search", json=QUERY))
    assert response.status_code == 500
    assert response.json() == {"error": "the request failed; see the log of the service"}
    assert type(error).__name__ in caplog.text


def test_an_error_anywhere_else_stays_in_the_log(make_service, ask, monkeypatch, caplog) -> None:
    service = make_service()
    monkeypatch.setattr(service, "health", lambda: 1 / 0)
    response = ask(service, lambda client: client.get("/health"))
    assert response.status_code == 500
    assert response.json() == {"error": "the request failed; see the log of the service"}
    assert "ZeroDivisionError" in caplog.text


def test_a_closed_service_sends_away(make_service, ask) -> None:
    service = make_service()
    service.close()
    assert ask(service, lambda client: client.post("/search", json=QUERY)).status_code == 503


def test_what_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a bundle"):
        SearchService(tmp_path)


def test_searches_without_a_mode_take_that_of_the_service(small_bundle, ask) -> None:
    service = SearchService(small_bundle, mode="keyword")
    try:
        bodies = ({"query": "counters"}, {"query": "counters", "mode": "hybrid"})
        by_words, both = (
            ask(service, lambda client, body=body: client.post("/search", json=body)).json()["stage_ms"]
            for body in bodies
        )
    finally:
        service.close()
    assert "dense" not in by_words and "lexical" in by_words
    assert {"dense", "lexical"} <= set(both)
    with pytest.raises(ConfigError, match="mode must be one of keyword"):
        SearchService(small_bundle, mode="fast")
