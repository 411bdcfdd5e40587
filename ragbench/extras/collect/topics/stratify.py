"""Order members of groups so that every prefix has the groups in their proportions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def interleave(groups: Mapping[str, Sequence[T]], tie: Callable[[str, T], str]) -> list[T]:
    """All members, in the given order within their group; `tie` gives the key that orders members at equal places."""
    placed = [
        ((i + 0.5) / len(members), tie(name, member), member)
        for name, members in groups.items()
        for i, member in enumerate(members)
    ]
    return [member for _, _, member in sorted(placed, key=lambda item: item[:2])]
