"""Save what was learned as an option of the project: conf/GROUP/NAME.yaml and the trees next to it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from ragbench.base import locations, pinned_text
from ragbench.base.errors import ConfigError
from ragbench.base.files import write_text
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank


def check(name: str | None, reserved: Sequence[str] = ("on", "off")) -> None:
    """Raise ConfigError for a `--write` that cannot name an option of the configuration, or has no place."""
    if name is not None and (not re.fullmatch(r"\w[\w-]*", name) or name in reserved):
        raise ConfigError(
            f"--write must be a name of letters, digits and hyphens other than {', '.join(reserved)}, got {name}"
        )
    if name is not None and locations.project() is None and locations.checkout() is None:
        raise ConfigError("--write needs a project to write to: run ragbench init FOLDER first")
    shipped = locations.configuration()
    if name is not None and locations.fitted() != shipped and [*shipped.glob(f"*/{name}.yaml")]:
        raise ConfigError(f"--write {name} is a built-in option: choose another name")


def write(group: str, name: str, target: type, comment: str, values: str) -> Path:
    """Write conf/<group>/<name>.yaml: the comment in lines, the class, and the YAML text `values`."""
    path = locations.fitted() / group / f"{name}.yaml"
    lines = "".join(f"# {line}\n" for line in textwrap.wrap(comment, width=110))
    try:
        write_text(path, f"{lines}_target_: {target.__module__}.{target.__qualname__}\n{values}")
    except OSError as error:
        raise ConfigError(f"cannot write {path} ({error.strerror}): make the folder writable") from None
    return path


def write_order(name: str, stage: Rank, comment: str) -> list[Path]:
    """Write the files of `ranker=<name>`, trees first. Returns their paths."""
    of_trees = write_pinned(trees.GROUP, name, stage.trees)
    model = f"{pinned_text.named(name, stage.trees)}   # its trees and their digest"
    option = write(trees.GROUP, name, Rank, comment, f"prior: {stage.prior}\ndepth: {stage.depth}\nmodel: {model}\n")
    return [option, of_trees]


def write_pinned(group: str, name: str, text: str) -> Path:
    """Write the file of a name and its digest. ConfigError where it cannot be written."""
    file = locations.fitted() / group / f"{pinned_text.named(name, text).replace('@', '-')}.txt"
    try:
        write_text(file, text)
    except OSError as error:
        raise ConfigError(f"cannot write {file} ({error.strerror}): make the folder writable") from None
    pinned_text.text_of.cache_clear()
    return file
