"""Which files of a folder belong to a collection."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragbench.base.files import resolved
from ragbench.base.types import ConfigError
from ragbench.corpus.file_warning import LEFT_OUT, FileWarning

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = (".md", ".markdown", ".mdx", ".mdown", ".mkd", ".qmd", ".rmd", ".canvas")
MARKDOWN = tuple(f"**/*{suffix}" for suffix in SUFFIXES)
"""The files that are documents, where nothing else is said."""

_DEPENDENCIES = re.compile(
    "node_modules|bower_components|jspm_packages|site-packages|__pycache__|__pypackages__|venv|elm-stuff|pods|carthage"
)
_BUILD_OUTPUT = re.compile("build|dist|out|output|target|site|public|htmlcov|coverage")
_ALWAYS_OUTPUT = ("_site", "_build", "_book")
_COPIED = ("vendor", "third_party", "deps")  # perhaps
_PROJECT_FILE = re.compile(
    r"(?i)\.gitignore|package\.json|pyproject\.toml|setup\.py|cargo\.toml|go\.mod|composer\.json|gemfile|pom\.xml|makefile"
    r"|build\.gradle|mkdocs\.ya?ml|book\.toml|hugo\.(?:toml|ya?ml)|config\.toml|_config\.yml|conf\.py"
    r"|docusaurus\.config\.[jt]s"
)
"""In a folder with one of them, `build` and the like are output."""
_MAX_GITIGNORE = 1_000_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file: `path` below the root with `/` on every system, `location` where to open it."""

    path: str
    location: Path


class Files(NamedTuple):
    """The `files` of a collection in no particular order, what was refused, and what belongs to other things."""

    files: list[SourceFile]
    warnings: list[FileWarning]
    left_out: list[FileWarning]


def find_files(root: Path, include: Sequence[str], exclude: Sequence[str] = ()) -> Files:
    """The files below `root` whose path matches one of the globs `include`.

    Excluded are names that start with a dot, what `.gitignore` names, folders of dependencies and of build output, and
    what `exclude` names, in the form of `.gitignore`: `!build/` takes a folder back. Linked folders are never entered
    (a loop could be endless, and a folder inside the root is read at its real place); a link that leads out of the root
    is reported. Raises ConfigError for a glob that cannot be read.
    """
    patterns = [_glob_pattern(glob) for glob in include]
    inside = resolved(root)
    files: list[SourceFile] = []
    warnings: list[FileWarning] = []
    left_out: list[FileWarning] = []
    rules = _Rules.of(inside, exclude)

    def refuse(path: str, name: str, message: str) -> None:
        warnings.append(FileWarning(printable(path), name, message))

    def leave_out(path: str, name: str) -> None:
        left_out.append(FileWarning(printable(path), name, LEFT_OUT[name]))

    def unreadable(error: OSError) -> None:
        path = Path(os.fsdecode(error.filename)).relative_to(root).as_posix()
        refuse(path, "unreadable", f"{error.strerror}; correct the folder's permissions.")

    for folder, folders, names in os.walk(root, onerror=unreadable):
        inner = Path(folder).relative_to(root).as_posix()
        above = "" if inner == "." else f"{inner}/"
        if ".gitignore" in names:
            rules.read(Path(folder), above)
        project = ".git" in folders or any(map(_PROJECT_FILE.fullmatch, names))
        for name in list(folders):
            folder_path = Path(folder) / name
            if name.startswith("."):
                folders.remove(name)
                if name != ".git":
                    leave_out(f"{above}{name}/", "hidden")
            elif folder_path.is_symlink():
                if not _leads_inside(folder_path, inside):
                    refuse(above + name, "symlink-outside", "it leads out of the folder; copy the files in instead.")
                else:
                    leave_out(f"{above}{name}/", "linked-folder")
            elif kind := rules.kind(f"{above}{name}/", _kind_of_folder(folder_path, project)):
                folders.remove(name)
                leave_out(f"{above}{name}/", kind)
            elif not above and (_BUILD_OUTPUT.fullmatch(name.lower()) or name in _COPIED):
                message = f"it is read; if its text is not yours, add '{name}/' to data.exclude."
                refuse(f"{name}/", "output-folder", message)
        for name in names:
            path = above + name
            if not any(pattern.fullmatch(path) for pattern in patterns):
                continue
            if kind := "hidden" if name.startswith(".") else rules.kind(path):
                leave_out(path, kind)
                continue
            file_path = Path(folder) / name
            if file_path.is_symlink() and file_path.exists() and not _leads_inside(file_path, inside):
                refuse(path, "symlink-outside", "it leads out of the folder; copy the file in instead.")
            else:
                files.append(SourceFile(path, file_path))
    return Files(files, warnings, left_out)


def _kind_of_folder(folder: Path, in_project: bool) -> str:
    """Why a folder is excluded by its name; folders with a common name only in a project or with pages in HTML."""
    name = folder.name.lower()
    if _DEPENDENCIES.fullmatch(name) or (name == "vendor" and in_project):
        return "dependencies"
    if name in _ALWAYS_OUTPUT or (_BUILD_OUTPUT.fullmatch(name) and (in_project or any(folder.glob("*.html")))):
        return "build-output"
    return ""


@dataclass
class _Rules:
    """The rules of `.gitignore` files and of `data.exclude`: where they hold, what they match, and why."""

    git: list[tuple[str, str, GitIgnoreSpec]]
    exclude: GitIgnoreSpec

    @staticmethod
    def of(root: Path, exclude: Sequence[str]) -> _Rules:
        """Those of a folder, and of the folders above it in its repository, unless these exclude the folder itself."""
        from pathspec import GitIgnoreSpec

        try:
            if wrong := next((glob for glob in exclude if re.search(r"\\(?:\w|$)", glob)), None):
                raise ValueError(f"separate the folders of '{wrong}' by '/'")
            rules = _Rules([], GitIgnoreSpec.from_lines(glob.removeprefix("./") for glob in exclude))
        except ValueError as error:
            raise ConfigError(f"data.exclude cannot be read: {error}") from None
        parents = list(root.parents)
        repository = next((n for n, folder in enumerate((root, *parents)) if (folder / ".git").exists()), 0)
        for folder in reversed(parents[:repository]):
            inner = f"{root.relative_to(folder).as_posix()}/"
            if (folder / ".gitignore").is_file() and not _gitignore(folder).match_file(inner):
                rules.git.append(("", inner, _gitignore(folder)))
        return rules

    def read(self, folder: Path, above: str) -> None:
        """Add the rules of a `.gitignore` in a folder."""
        if not (folder / ".gitignore").is_symlink():
            self.git.append((above, "", _gitignore(folder)))

    def kind(self, path: str, kind: str = "") -> str:
        """Why a path is excluded, empty if it is not: the last rule that matches decides."""
        for above, prefix, spec in self.git:
            if path.startswith(above) and (match := spec.check_file(prefix + path[len(above) :])).include is not None:
                kind = "ignored" if match.include else ""
        chosen = self.exclude.check_file(path).include if self.exclude.patterns else None
        return kind if chosen is None else "excluded" if chosen else ""


def _gitignore(folder: Path) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    lines: list[str] = []
    with contextlib.suppress(OSError):  # git would not read it either
        lines = (folder / ".gitignore").read_bytes()[:_MAX_GITIGNORE].decode("utf-8-sig", "replace").splitlines()
    patterns = []
    for line in lines:
        with contextlib.suppress(ValueError):  # git ignores a pattern that it cannot read
            patterns += list(GitIgnoreSpec.from_lines([line]).patterns)
    return GitIgnoreSpec(patterns)


def other_files(root: Path) -> str:
    """The three most frequent endings below `root` and how many files have them, in words; "" without files."""
    files = find_files(root, ["**"]).files
    endings = Counter(posixpath.splitext(file.path)[1].lower() or "no ending" for file in files)
    return ", ".join(f"{count} {ending}" for ending, count in endings.most_common(3))


def _glob_pattern(glob: str) -> re.Pattern[str]:
    """A glob over `/`-separated paths as a pattern: `**/` is any number of folders; `*` and `?` never match `/`.

    Raises ConfigError for one that no path matches.
    """
    if glob.startswith("!") or "\\" in glob:
        raise ConfigError(f"data.include has '{glob}': separate folders by '/', and exclude with data.exclude")
    glob = glob.removeprefix("./")
    tokens = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(tokens.get(part, re.escape(part)) for part in parts), re.IGNORECASE | re.DOTALL)


def printable(path: str) -> str:
    """A path that can be written and printed: bytes that are not UTF-8 become U+FFFD."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _leads_inside(path: Path, root: Path) -> bool:
    with contextlib.suppress(OSError, RuntimeError):  # a loop of links
        return path.resolve().is_relative_to(root)
    return False
