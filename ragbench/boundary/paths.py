"""Names of files from outside, which stay inside their folder, and addresses, which may be kept elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import SplitResult, urlsplit

from ragbench.base.types import BoundaryError, ConfigError, without_secret

_LONGEST = 1_024  # characters
_UNWRITABLE = re.compile("[\0-\x1f\x7f\ud800-\udfff]")
_SHOWN = 60
PORTS = {"http": 80, "https": 443}


def inside(root: Path, name: str) -> Path:
    """The path of `name` inside the folder `root`, which a link must not leave; the file need not exist.

    Raises BoundaryError for an absolute name, for `..`, control characters, and a name that leads out of the folder.
    """
    _check_name(name)
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or PureWindowsPath(name).drive or ".." in pure.parts:
        raise BoundaryError(f"'{_shown(name)}' leads out of its folder")
    try:
        base, path = root.resolve(), (root / pure).resolve()
    except (OSError, RuntimeError):  # a loop of links
        raise BoundaryError(f"'{_shown(name)}' is a link that leads nowhere") from None
    if not path.is_relative_to(base):
        raise BoundaryError(f"'{_shown(name)}' leads out of its folder")
    return root / pure


def _check_name(name: str) -> None:
    """Raise BoundaryError for a text that cannot be the name of a file: empty, too long, or with control characters."""
    if not isinstance(name, str):  # of a database
        raise BoundaryError("a name is not text")
    if not name.strip():
        raise BoundaryError("a name is empty")
    if _UNWRITABLE.search(name):
        raise BoundaryError(f"'{_shown(name)}' has a character that no file name may have")
    if len(name) > _LONGEST or any(len(os.fsencode(part)) > 255 for part in PurePosixPath(name).parts):
        raise BoundaryError(f"'{_shown(name)}' is too long for a file name")


def regular_file(path: Path) -> bool:
    """Whether a file is there. Raises BoundaryError when something else has its name, or a link leads nowhere."""
    try:
        present = path.exists()
        if path.is_symlink() and not present:
            raise BoundaryError("a link that leads nowhere")
        if path.is_dir():
            raise BoundaryError("a folder, not a file")
        if present and not path.is_file():
            raise BoundaryError("not a regular file")
    except OSError as error:
        raise BoundaryError((error.strerror or "the system refuses").lower()) from None
    return present


def _shown(name: str) -> str:
    """A name in one short line of printable characters, for a message."""
    text = "".join(character if character.isprintable() else "?" for character in name)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def resolved(text: str) -> str:
    """Return an address, or the one in the environment variable of `env:NAME`.

    Raises ConfigError if that is missing, or if the text itself contains a password, which others could see.
    """
    kind, _, name = text.partition(":")
    if kind != "env":
        if not without_secret(text):
            raise ConfigError(
                "an address with a password is kept where others see it: put it into an environment variable and write "
                "env:NAME"
            )
        return text
    value = os.environ.get(name, "")
    if "://" not in value:
        raise ConfigError(
            f"the environment variable {name} holds no address: set it to one such as postgres://user@host/database"
        )
    return value.strip()


def split_address(address: str) -> SplitResult:
    """The parts of an address of HTTP. Raises BoundaryError for any other, and for one with a name or password."""
    if any(ord(character) < 33 or character == "\x7f" or not character.isprintable() for character in address):
        raise BoundaryError("an address has no blanks and no control characters")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BoundaryError("not an address: write http://HOST or https://HOST") from None
    if parts.scheme not in PORTS or not host:
        raise BoundaryError("not an address: write http://HOST or https://HOST")
    if "@" in parts.netloc:
        raise BoundaryError("an address with a name or password in it: name the environment variable of a key instead")
    return parts
