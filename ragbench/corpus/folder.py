"""Which files of a folder belong to a collection."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragbench.base.files import resolved
from ragbench.corpus.file_warning import FileWarning

MARKDOWN = ("**/*.md", "**/*.markdown", "**/*.mdx")
"""The files that are documents, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file: `path` below the root with `/` on every system, `location` where to open it."""

    path: str
    location: Path


def find_files(root: Path, include: Sequence[str]) -> tuple[list[SourceFile], list[FileWarning]]:
    """The files below `root` whose path matches one of the globs, in no particular order, and what was refused.

    Names that start with a dot are excluded. Linked folders are never entered (a loop could be endless, and a folder
    inside the root is read at its real place); a link that leads out of the root is reported.
    """
    patterns = [_glob_pattern(glob) for glob in include]
    inside = resolved(root)
    files: list[SourceFile] = []
    warnings: list[FileWarning] = []

    def refuse(path: str, name: str, message: str) -> None:
        warnings.append(FileWarning(printable(path), name, message))

    def unreadable(error: OSError) -> None:
        path = Path(os.fsdecode(error.filename)).relative_to(root).as_posix()
        refuse(path, "unreadable", f"{error.strerror}; correct the folder's permissions.")

    for folder, folders, names in os.walk(root, onerror=unreadable):
        inner = Path(folder).relative_to(root).as_posix()
        above = "" if inner == "." else f"{inner}/"
        for name in list(folders):
            folder_path = Path(folder) / name
            if name.startswith("."):
                folders.remove(name)
            elif folder_path.is_symlink() and not _leads_inside(folder_path, inside):
                refuse(above + name, "symlink-outside", "it leads out of the folder; copy the files in instead.")
        for name in names:
            path = above + name
            if name.startswith(".") or not any(pattern.fullmatch(path) for pattern in patterns):
                continue
            folder_path = Path(folder) / name
            if folder_path.is_symlink() and folder_path.exists() and not _leads_inside(folder_path, inside):
                refuse(path, "symlink-outside", "it leads out of the folder; copy the file in instead.")
            else:
                files.append(SourceFile(path, folder_path))
    return files, warnings


def other_files(root: Path) -> str:
    """The three most frequent endings below `root` and how many files have them, in words; "" without files."""
    files, _ = find_files(root, ["**"])
    endings = Counter(posixpath.splitext(file.path)[1].lower() or "no ending" for file in files)
    return ", ".join(f"{count} {ending}" for ending, count in endings.most_common(3))


def _glob_pattern(glob: str) -> re.Pattern[str]:
    """A glob over `/`-separated paths as a pattern: `**/` is any number of folders; `*` and `?` never match `/`."""
    tokens = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(tokens.get(part, re.escape(part)) for part in parts), re.IGNORECASE | re.DOTALL)


def printable(path: str) -> str:
    """A path that can be written and printed: bytes that are not UTF-8 become U+FFFD."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _leads_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a loop of links
        return False
