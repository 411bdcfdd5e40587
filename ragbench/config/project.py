"""The project file, `ragbench.yaml`: words that are put before those of every command in its folder or below.

    data: vault                 # a line for each word of a command, as it would be typed
    data.corpus: notes          # paths are relative to the folder of the file
    topics: derived
    paths.results: results
    gate: results/runs/20260101-120000-run/arms/rerank   # what `ragbench gate` compares with: ragbench gate --pin
    arms:                       # what `ragbench run` measures; the first is the baseline
      baseline: exp=baseline
      rerank: exp=baseline rerank=on

A typed word replaces the line of its key, and a typed `data=...` every `data.` line; the other lines win over presets,
also over one that is typed. An arm is a preset, too: `exp=rerank`.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragbench.base.locations import PROJECT_FILE
from ragbench.base.options import ON
from ragbench.base.types import BoundaryError, ConfigError, why_unreadable
from ragbench.boundary.paths import regular_file
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config.available import Available, package_of
from ragbench.config.names import EXPERIMENT, numbered
from ragbench.config.overrides import key_of, word, words

FILE = PROJECT_FILE
ARMS, GATE = "arms", "gate"
_PATHS = ("data.corpus", "data.queries", "data.qrels", "data.folder", "paths.results", "paths.index", "paths.cache")
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Project:
    """The words of a project by key, the words of its arms by name, and the folder that `gate` compares with."""

    file: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    arms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gate: Path | None = None

    def overrides(self, typed: Sequence[str], known: Available) -> list[str]:
        """The words of the project with absolute paths, then the typed ones.

        A typed option omits those that the project sets below the key of its values, also in a mapping.
        """
        typed = [override for argument in typed for override in self._preset(argument, known)]
        for key, value in self.values.items():
            _check_mapping(key, value, known.by_group.get(numbered(key), ()))
        own = words({key: self._absolute(key, value) for key, value in self.values.items()}, known)
        typed_keys = [key_of(override) for override in typed]
        replaced = tuple(f"{package_of(key)}." for key in typed_keys if key in known.by_group)
        kept = [word for word in own if key_of(word) not in typed_keys and not f"{key_of(word)}.".startswith(replaced)]
        return [*kept, *typed]

    def _preset(self, override: str, known: Available) -> list[str]:
        """The words of an arm that is named like a preset, `exp=mine`; any other word as it is."""
        name = override.partition("=")[2]
        if key_of(override) != EXPERIMENT or name not in self.arms or name in known.by_group[EXPERIMENT]:
            return [override]
        return [word("name", name), *self.arms[name]]

    def _absolute(self, key: str, value: Any) -> Any:
        if key not in _PATHS or not isinstance(value, str):
            return value
        return str((self.file.parent / Path(value).expanduser()).resolve())


def _check_mapping(key: str, value: Any, options: Collection[str]) -> None:
    """Raise ConfigError for a mapping that names the option of a group, which has a line of its own."""
    if not isinstance(value, Mapping) or ON in options:
        return
    named = [option for option in (value.get("loader"), value.get("kind"), *value) if option in options]
    if named:
        raise ConfigError(
            f"{key} is a mapping that names {named[0]}: write the line `{key}: {named[0]}`, "
            f"and a line such as `{key}.KEY: VALUE` for each of its keys"
        )


def find(start: Path | None = None) -> Project | None:
    """The project of a folder (by default the working directory): the nearest file in it or above; None without one."""
    folder = (start or Path.cwd()).absolute()
    for directory in (folder, *folder.parents):
        try:
            if regular_file(directory / FILE):
                return read(directory / FILE)
        except BoundaryError as error:
            raise ConfigError(f"{directory / FILE} is {error}: put a project file there, or remove it") from None
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
    arms, gate = values.pop(ARMS, None) or {}, values.pop(GATE, None)
    if gate is not None and not isinstance(gate, str):
        raise ConfigError(f"{file}: gate must be the folder of a run or of an arm: write it with ragbench gate --pin")
    if not isinstance(arms, dict) or not all(isinstance(overrides, str) for overrides in arms.values()):
        raise ConfigError(f"{file}: arms must be lines such as `mine: exp=baseline rerank=on`")
    try:
        overrides_by_arm = {str(name): tuple(shlex.split(overrides)) for name, overrides in arms.items()}
        return Project(file, values, overrides_by_arm, None if gate is None else (file.parent / gate).resolve())
    except ValueError:
        raise ConfigError(f"{file}: a quote among the arms is not closed") from None
