"""The queue: in order, bounded, without those who left, and it ends."""

from __future__ import annotations

import threading

import pytest

from ragbench.extras.ship.serving.service import Busy, Workers


@pytest.fixture
def gate():
    """An event that lets the first task go; opened at the end in any case."""
    event = threading.Event()
    yield event
    event.set()


def occupied(workers: Workers, gate: threading.Event):
    """Give the worker a task that waits for the gate, and see it begin."""
    begun = threading.Event()

    def task() -> None:
        begun.set()
        gate.wait()

    future = workers.submit(task)
    assert begun.wait(10)
    return future


def test_one_worker_does_tasks_in_order_in_one_thread(gate) -> None:
    workers: Workers = Workers(1, 20)
    occupied(workers, gate)
    done = []
    futures = [workers.submit(lambda n=n: done.append((n, threading.get_ident()))) for n in range(20)]
    gate.set()
    for future in futures:
        future.result(10)
    assert [n for n, _ in done] == list(range(20))
    assert len({thread for _, thread in done}) == 1
    workers.close(1)


def test_beyond_the_queue_there_is_no_room(gate) -> None:
    workers: Workers = Workers(1, 2)
    occupied(workers, gate)
    waiting = [workers.submit(lambda: "answer") for _ in range(2)]
    assert len(workers) == 2
    with pytest.raises(Busy) as busy:
        workers.submit(lambda: "too much")
    assert busy.value.retry_after == 1
    gate.set()
    assert [future.result(10) for future in waiting] == ["answer", "answer"]
    assert workers.submit(lambda: "room again").result(10) == "room again"
    workers.close(1)


def test_retry_after_follows_the_time_of_a_task(gate) -> None:
    workers: Workers = Workers(2, 30)
    workers._mean_seconds = 0.5
    occupied(workers, gate), occupied(workers, gate)
    for _ in range(30):
        workers.submit(lambda: None)
    with pytest.raises(Busy) as busy:
        workers.submit(lambda: None)
    assert busy.value.retry_after == 8  # 30 tasks of half a second for two workers: 7.5 s
    gate.set()
    workers.close(1)


def test_a_task_that_nobody_waits_for_is_left_out(gate) -> None:
    workers: Workers = Workers(1, 5)
    occupied(workers, gate)
    done = []
    left = workers.submit(lambda: done.append("left"))
    stayed = workers.submit(lambda: done.append("stayed"))
    assert left.cancel()
    gate.set()
    stayed.result(10)
    assert done == ["stayed"]
    workers.close(1)


def test_an_error_is_for_the_one_who_asked_and_the_worker_goes_on() -> None:
    workers: Workers = Workers(1, 5)
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 / 0).result(10)
    assert workers.submit(lambda: 7).result(10) == 7
    workers.close(1)


def test_close_sends_away_those_who_wait_and_does_not_wait_forever(gate) -> None:
    workers: Workers = Workers(1, 5)
    running = occupied(workers, gate)
    waiting = workers.submit(lambda: None)
    workers.close(0.05)
    assert isinstance(waiting.exception(0), Busy)
    assert not running.done()
    with pytest.raises(Busy):
        workers.submit(lambda: None)


def test_close_ends_with_more_busy_workers_than_places_in_the_queue(gate) -> None:
    workers: Workers = Workers(4, 1)
    for _ in range(4):
        occupied(workers, gate)
    workers.close(0.05)
