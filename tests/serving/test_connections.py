"""Which connection makes room for a new one."""

from __future__ import annotations

from ragbench.serving.connections import _make_room


class Held:
    """A connection that does nothing but say whose it is, since when it waits, and that it was told to leave."""

    def __init__(self, client: str, since: float, waits: bool = True) -> None:
        self.client, self.since, self.waits, self.transport = (client, 1), since, waits, self
        self.left = False

    def is_closing(self) -> bool:
        return False

    def leave(self) -> None:
        self.left = True


def left(*held: Held) -> list[tuple[str, float]]:
    _make_room(list(held))
    return [(each.client[0], each.since) for each in held if each.left]


def test_the_client_with_most_connections_loses_the_one_that_waited_longest() -> None:
    assert left(Held("a", 1.0), Held("b", 3.0), Held("b", 2.0), Held("c", 4.0)) == [("b", 2.0)]


def test_a_request_under_way_is_never_cut() -> None:
    assert left(Held("b", 1.0, False), Held("b", 2.0, False), Held("a", 3.0)) == [("a", 3.0)]
