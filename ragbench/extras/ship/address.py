"""Where an engine is: a file, or an address of a server, which may be kept in an environment variable or a file.

notes.sqlite                                 a file
postgres://host:5432/database?schema=notes   an address; a password in it is refused, since commands and
                                             configurations are kept, shown and shared
env:NOTES_DSN                                the environment variable that holds the address, with a password
file:/run/secrets/notes                      the file that holds it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragbench.base import plugins
from ragbench.base.errors import ConfigError
from ragbench.boundary.permissions import Capability

_KEPT = ("env:", "file:")


def is_remote(text: str) -> bool:
    """Whether this names an engine by its address, and no file."""
    return "://" in text or text.startswith(_KEPT)


def parse_location(text: str) -> Path | str:
    """What the user typed: the path of a file or folder, or the address of a server as it was typed."""
    return text if is_remote(text) else Path(text)


def need(text: str) -> Capability:
    """What it takes to ask an engine."""
    return Capability.SENDS if is_remote(text) else Capability.READS


def engines(location: str | Path) -> Any:
    """What opens engines, if this is the file or the address of one; None for the folder of a bundle.

    Raises ConfigError for an address where no installed extra opens engines.
    """
    find_engine = plugins.hook("engines")
    if find_engine is None and is_remote(str(location)):
        raise ConfigError(f"{location} is an engine, which needs ragbench/extras/engines: install ragbench[all]")
    return find_engine if find_engine is not None and find_engine.is_engine(location) else None
