from __future__ import annotations

import threading

import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import ConfigError
from ragbench.models.parallel import map_in_threads, threads_for
from tests.naming import naming


@given(st.lists(st.integers(), max_size=30), st.integers(1, 5))
def test_map_in_threads_is_map_for_any_number_of_threads(items: list[int], threads: int) -> None:
    told: list[int] = []
    assert map_in_threads(lambda item: item * 2, items, threads, told.append) == [item * 2 for item in items]
    assert told == [1] * len(items)


def test_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(3)
    # Without three threads in it at once the barrier would never open.
    assert sorted(map_in_threads(lambda item: meeting.wait(30), [1, 2, 3], 3)) == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_map_in_threads_failure_ends_the_work_and_arrives(threads: int, failure: type[BaseException]) -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 5:
            raise failure("item 5")
        done.append(item)

    before = threading.active_count()
    with pytest.raises(failure, check=naming("item 5")):
        map_in_threads(work, range(10_000), threads)
    assert len(done) < 10_000
    assert threading.active_count() == before


def test_map_in_threads_failing_progress_arrives_too() -> None:
    def progress(n: int) -> None:
        raise RuntimeError("no screen")

    with pytest.raises(RuntimeError, check=naming("no screen")):
        map_in_threads(str, [1, 2, 3], 2, progress)


def test_map_in_threads_number_of_threads() -> None:
    assert threads_for(None) >= 1
    assert threads_for(3) == 3
    with pytest.raises(ConfigError, check=naming("threads", "got 0")):
        threads_for(0)
