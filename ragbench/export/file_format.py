"""The formats of exports: a bundle, engines that hold the documents, and files for other systems.

A file format is what an entry point of the group `ragbench.exports` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base import parts

if TYPE_CHECKING:
    from ragbench.config.settings import Settings
    from ragbench.search.stages.fuse import Fuse

BUNDLE = "ragbench"
ENGINES = {"sqlite": ".sqlite", "postgres": ".sql", "lancedb": ""}
"""The formats that hold the documents, beside a bundle: the endings of their files, empty where only --load fills one.

All others are configurations.
"""

Render = Callable[["Settings", Sequence[str], str | None], tuple[str, list[str]]]
"""Gives the text of the file, and a sentence for everything that it cannot express.

Takes the settings of the arm, sentences on its origin, and the version of the other system (None: the newest).
"""


def formats() -> tuple[str, ...]:
    """The names of all formats, also of other packages."""
    return BUNDLE, *ENGINES, *parts.names("ragbench.exports")


@dataclass(frozen=True)
class FileFormat:
    """`ending` of its files; `replayed`: the settings that the other system runs, of those of the arm and its version.

    `versioned`: its keys depend on the version of the other system. `fusions`: names of the methods of `fuse` that a
    search engine has, where it is one; `nearest`: what is tried in place of another method; `even`: with equal weights.
    """

    ending: str
    render: Render
    replayed: Callable[[Settings, str | None], Settings] | None = None
    versioned: bool = False
    fusions: Sequence[str] = ()
    nearest: Sequence[Fuse] = ()
    even: bool = False
