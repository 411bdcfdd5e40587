"""A format of exports: what an entry point of the group `ragbench.exports` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragbench.config.settings import Settings

Render = Callable[["Settings", Sequence[str], str | None], tuple[str, list[str]]]
"""Gives the text of the file, and a sentence for everything that it cannot express.

Takes the settings of the arm, sentences on its origin, and the version of the other system (None: the newest).
"""


@dataclass(frozen=True)
class FileFormat:
    """`ending` of its files; `versioned`: its keys depend on the version of the other system."""

    ending: str
    render: Render
    versioned: bool = False
