"""The address of the studio for notebooks: while it runs, the studio keeps it in a file that only its owner may read.

The address contains the session's token, as in Jupyter's runtime files.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from ragbench.base import files

_SECONDS = 0.5


@dataclass(frozen=True)
class StudioLink:
    """A page of the studio; `address` is empty while no studio shows these results, and `command` starts one."""

    address: str
    command: str

    def __repr__(self) -> str:
        return self.address or f"no studio runs over these results: {self.command}"

    def _repr_html_(self) -> str:
        if not self.address:
            return f"<p>No studio runs over these results: <code>{escape(self.command)}</code></p>"
        return f'<a href="{escape(self.address)}" target="_blank" rel="noopener">open in the studio</a>'


def link(run: Path) -> StudioLink:
    """The page of a run's folder."""
    root = run.parent.parent
    return StudioLink(_address(root, f"/runs/{quote(run.name)}"), f"ragbench studio paths.results={root}")


@contextmanager
def announce(root: Path, address: str) -> Iterator[None]:
    """Keep the address in a file next to the results until the block ends; without results there is nothing to link."""
    path = _file(root)
    if root.is_dir():
        with files.atomic_write(path) as draft:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(address)
    try:
        yield
    finally:
        if path.is_file() and path.read_text(encoding="utf-8") == address:
            path.unlink()


def _file(root: Path) -> Path:
    return root / "studio" / "address"


def _address(root: Path, path: str) -> str:
    """The address with another path, empty when no studio answers there."""
    try:
        parts = urlsplit(_file(root).read_text(encoding="utf-8"))
        socket.create_connection((parts.hostname or "", parts.port or 80), _SECONDS).close()
    except (OSError, ValueError):
        return ""
    return urlunsplit(parts._replace(path=path))
