"""A bundle is closed once, after its last search, whichever way it is replaced."""

from __future__ import annotations

from ragbench.extras.ship.serving.service import CurrentBundle, OpenBundle, open_bundle


class Recorder:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_replaced_bundle_closes_when_its_last_search_ends() -> None:
    first, second = Recorder(), Recorder()
    current = CurrentBundle(OpenBundle(first, "1"))
    with current.lease() as outer:
        with current.lease() as inner:
            current.replace(OpenBundle(second, "2"))
            assert (outer.version, inner.version) == ("1", "1")
            with current.lease() as later:
                assert later.version == "2"
        assert first.closed == 0
    assert (first.closed, second.closed) == (1, 0)
    current.close()
    current.close()
    assert (first.closed, second.closed) == (1, 1)


def test_an_idle_bundle_closes_at_once() -> None:
    first = Recorder()
    current = CurrentBundle(OpenBundle(first, "1"))
    current.replace(OpenBundle(Recorder(), "2"))
    assert first.closed == 1


def test_the_version_names_the_content(small_bundle) -> None:
    one, two = open_bundle(small_bundle), open_bundle(small_bundle)
    assert one.version == two.version
    one.bundle.close(), two.bundle.close()
