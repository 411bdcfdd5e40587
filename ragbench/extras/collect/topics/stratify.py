"""Order members of groups so that every prefix has the groups in their proportions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def interleave(groups: Mapping[str, Sequence[T]], tie: Callable[[str, T], str]) -> list[T]:
    """All members, in the given order within their group; `tie` gives the key that orders members at equal places."""
    placed = [
        ((place + 0.5) / len(members), tie(name, each), each)
        for name, members in groups.items()
        for place, each in enumerate(members)
    ]
    return [each for _, _, each in sorted(placed, key=lambda item: item[:2])]
