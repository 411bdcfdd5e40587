"""The project file, `ragbench.yaml`: words that are put before those of every command in its folder or below.

    data: vault                 # a line for each word of a command, as it would be typed
    data.corpus: notes          # paths are relative to the folder of the file
    topics: derived
    paths.results: results
    arms:                       # what `ragbench run` measures; the first is the baseline
      baseline: exp=baseline
      rerank: exp=baseline rerank=on

Typed words win; a typed `data=...` leaves out every `data.` line.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragbench.boundary.paths import regular_file
from ragbench.boundary.trust import trust_own
from ragbench.boundary.yaml import read_yaml_file
from ragbench.catalogue import Catalogue, numbered
from ragbench.errors import BoundaryError, ConfigError
from ragbench.files import why_unreadable, write_text
from ragbench.overrides import key_of, words

FILE = "ragbench.yaml"
_ARMS = "arms"
_PATHS = ("data.corpus", "data.queries", "data.qrels", "data.folder", "paths.results", "paths.index", "paths.cache")
_MOST_BYTES = 1_000_000
_HEAD = """# Every ragbench command run in this folder, or below it, begins with these words; typed ones win.
# All keys: ragbench list parameters. What they make: ragbench config
"""
_ARMS_HEAD = """# What `ragbench run` measures when no arm is typed; the first is the baseline.
"""


@dataclass(frozen=True)
class Project:
    """The words of a project by key, and the words of its arms by name."""

    file: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    arms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def words(self, typed: Sequence[str], known: Catalogue) -> list[str]:
        """The words of the project with absolute paths, then the typed ones; a typed choice leaves out all below it."""
        taken = {key_of(each) for each in typed}
        kept = [key for key in self.values if not {numbered(key), numbered(key.split(".")[0])} & taken]
        return [*words({key: self._absolute(key, self.values[key]) for key in kept}, known), *typed]

    def _absolute(self, key: str, value: Any) -> Any:
        if key not in _PATHS or not isinstance(value, str):
            return value
        return str((self.file.parent / Path(value).expanduser()).resolve())

    def write(self) -> None:
        """Write the file."""
        import yaml

        text = _HEAD + yaml.safe_dump(dict(self.values), sort_keys=False, allow_unicode=True, width=1000)
        if self.arms:
            arms = {name: shlex.join(words) for name, words in self.arms.items()}
            text += _ARMS_HEAD + yaml.safe_dump({_ARMS: arms}, sort_keys=False, allow_unicode=True, width=1000)
        write_text(self.file, text)
        trust_own(self.file)  # what a command of this user has written


def data_words(typed: Sequence[str], keys: Collection[str] = ("data", "links")) -> str:
    """The typed words that name the data, to be repeated in a shell; none where a project file names it."""
    if find() is not None:
        return ""
    return "".join(f" {shlex.quote(word)}" for word in typed if key_of(word).split(".")[0] in keys)


def find(start: Path | None = None) -> Project | None:
    """The project of a folder (by default the working directory): the nearest file in it or above; None without one."""
    folder = (start or Path.cwd()).absolute()
    for place in (folder, *folder.parents):
        try:
            if regular_file(place / FILE):
                return read(place / FILE)
        except BoundaryError as error:
            raise ConfigError(f"{place / FILE} is {error}: put a project file there, or remove it") from None
    return None


def read(file: Path) -> Project:
    """The project in a file. Raises ConfigError for one that cannot be read."""
    try:
        values = read_yaml_file(file, max_bytes=_MOST_BYTES)
    except (OSError, BoundaryError) as error:
        raise ConfigError(
            f"{file} cannot be read ({why_unreadable(error)}): correct it, or write it again with ragbench init"
        ) from None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{file} must hold lines such as `data: vault`: correct it, or run ragbench init again")
    arms = values.pop(_ARMS, None) or {}
    if not isinstance(arms, dict) or not all(isinstance(words, str) for words in arms.values()):
        raise ConfigError(f"{file}: arms must be lines such as `mine: exp=baseline rerank=on`")
    try:
        return Project(file, values, {str(name): tuple(shlex.split(words)) for name, words in arms.items()})
    except ValueError:
        raise ConfigError(f"{file}: a quote among the arms is not closed") from None
