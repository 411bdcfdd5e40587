"""Where an engine is: a file, or an address of a server, which may be kept in an environment variable or a file.

notes.sqlite                                 a file
postgres://host:5432/database?schema=notes   an address; a password in it is refused, since commands and
                                             configurations are kept, shown and shared
env:NOTES_DSN                                the environment variable that holds the address, with a password
file:/run/secrets/notes                      the file that holds it
"""

from __future__ import annotations

import os
from pathlib import Path

from ragbench.base.errors import ConfigError
from ragbench.base.files import why_unreadable
from ragbench.boundary.capabilities import Capability
from ragbench.boundary.json import read_text

_KEPT = ("env:", "file:")


def is_remote(text: str) -> bool:
    """Whether this names an engine by its address, and no file."""
    return "://" in text or text.startswith(_KEPT)


def place(text: str) -> Path | str:
    """What a person typed: the path of a file or folder, or the address of a server as it was typed."""
    return text if is_remote(text) else Path(text)


def without_password(text: str) -> bool:
    """Whether an address holds no password."""
    authority = text.partition("://")[2].partition("/")[0]
    return ":" not in authority.rpartition("@")[0] and "password=" not in text.partition("?")[2]


def need(text: str) -> Capability:
    """What it takes to ask an engine."""
    return Capability.SENDS if is_remote(text) and not text.startswith("lancedb://") else Capability.READS


def resolved(text: str) -> str:
    """The address itself. Raises ConfigError where it is missing, or holds a password for everybody to see."""
    kind, _, name = text.partition(":")
    if text.startswith("env:"):
        found = os.environ.get(name, "")
    elif text.startswith("file:"):
        try:
            found = read_text(Path(name).expanduser())
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{text} cannot be read ({why_unreadable(error)}): name a file that holds the address"
            ) from None
    else:
        if not without_password(text):
            raise ConfigError(
                "an address with a password is kept where others see it: put it into an environment variable or a "
                "file and write env:NAME or file:PATH"
            )
        return text
    if "://" not in found:
        what = "the environment variable" if kind == "env" else "the file"
        raise ConfigError(f"{what} {name} holds no address: set it to one such as postgres://user@host/database")
    return found.strip()
