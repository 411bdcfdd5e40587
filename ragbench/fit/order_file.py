"""Keeps a learned order as an option of the configuration: conf/rank/NAME.yaml, and its trees in NAME.txt beside it."""

from __future__ import annotations

import textwrap
from pathlib import Path

from ragbench.base.errors import ConfigError
from ragbench.base.files import write_text
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank


def write(name: str, stage: Rank, comment: str) -> list[Path]:
    """Write the files of `rank=<name>`, trees first; `comment` is said above the option. Returns their paths."""
    text = stage.trees
    of_trees = trees.file_of(name)
    option = of_trees.with_suffix(".yaml")
    lines = "".join(f"# {line}\n" for line in textwrap.wrap(comment, width=110))
    target = f"{Rank.__module__}.{Rank.__qualname__}"
    values = (
        f"prior: {stage.prior}\ndepth: {stage.depth}\nmodel: {trees.named(name, text)}   # its trees and their digest\n"
    )
    try:
        write_text(of_trees, text)
        write_text(option, f"{lines}_target_: {target}\n{values}")
    except OSError as error:
        raise ConfigError(f"cannot write {option} ({error.strerror}): make the folder writable") from None
    trees.text_of.cache_clear()
    return [option, of_trees]
