"""Learned text in a file of its own, named in a configuration by `NAME@DIGEST`: conf/GROUP/NAME-DIGEST.txt.

It is next to the project file, where there is one. Writing a name again adds a file, so that a configuration always
names complete text. Shipped text is in NAME.txt."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from ragbench.base import locations
from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import text_digest

_DIGITS = 12


def named(name: str, text: str) -> str:
    """What stands for the text in a configuration: its name and a digest."""
    return f"{name}@{text_digest(text, _DIGITS)}"


def file_of(group: str, name: str) -> Path:
    """The file of a name: that of the project, if it exists, else the shipped one."""
    fitted_file = locations.fitted() / group / f"{name}.txt"
    return fitted_file if fitted_file.is_file() else locations.configuration() / group / f"{name}.txt"


@lru_cache(16)
def text_of(group: str, key: str, value: str, label: str) -> str:
    """The text that the value of a key stands for: itself, or that of the file that `NAME@DIGEST` names.

    Messages call the contents `label`, in the plural. ConfigError for a file that cannot be read or was changed.
    """
    name, at, digest = value.partition("@")
    if not at or not re.fullmatch(r"\w[\w-]*", name) or not re.fullmatch(f"[0-9a-f]{{{_DIGITS}}}", digest):
        return value
    file = file_of(group, f"{name}-{digest}")
    file = file if file.exists() else file_of(group, name)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"{key} is {value}, and {file} cannot be read: run this in the project that has it, or fit it again"
        ) from None
    if named(name, text) != value:
        raise ConfigError(
            f"{key} is {value}, and this version of ragbench has other {label} in {file}: measure again with "
            f"{named(name, text)}, or use the version that measured it"
        )
    return text
