"""Where an engine is: a file, or an address of a server, which may be kept in an environment variable.

notes.sqlite                                 a file
postgres://host:5432/database?schema=notes   an address; a password in it is refused, since commands and
                                             configurations are kept, shown and shared
env:NOTES_DSN                                the environment variable that holds the address, with a password
"""

from __future__ import annotations

from pathlib import Path


def is_remote(text: str) -> bool:
    """Whether this names an engine by its address, and no file."""
    return "://" in text or text.startswith("env:")


def parse_location(text: str) -> Path | str:
    """What the user typed: the path of a file or folder, or the address of a server as it was typed."""
    return text if is_remote(text) else Path(text)
