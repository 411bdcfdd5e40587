"""`ragbench judge`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = "Grade a pool with the keys 0 to 3, stop and go on at any time, and merge the grades into the judgments."
EXAMPLES = """examples:
  ragbench judge pool.csv                    keys: 0 1 2 3 grade, s skip, u undo, q quit
  ragbench judge pool.csv --merge            put the grades into the benchmark's qrels
  ragbench judge pool.csv --merge data=native data.corpus=notes data.qrels=my-qrels
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The pool and what to do with it."""
    parser.add_argument("pool", help="a CSV that `ragbench pool` wrote")
    parser.add_argument("--merge", action="store_true", help="merge the grades instead of grading")
    parser.add_argument("--overwrite", action="store_true", help="let the pool's grades win over other judgments")
    console.add_overrides(parser)


def main(arguments: argparse.Namespace) -> int:
    """Grade, or merge."""
    from ragbench import app, locations
    from ragbench.benchmark.judge import merge_into_folder
    from ragbench.benchmark.judge_terminal import judge_in_terminal
    from ragbench.errors import ConfigError

    pool = Path(arguments.pool)
    if not arguments.merge:
        judge_in_terminal(pool)
        return 0
    settings = app.compose(arguments.overrides)
    data = settings.config["data"]
    if data["loader"] not in ("builtin", "native", "vault"):
        raise ConfigError(f"grades cannot be merged into data={data['loader']}: use data=native or data=vault")
    if data["loader"] == "vault" and not data["qrels"]:
        raise ConfigError("name the folder for the judgments with data.qrels=FOLDER")
    folder = Path(data["qrels"] or locations.builtin() / "qrels")
    folder.mkdir(parents=True, exist_ok=True)
    merged = merge_into_folder(pool, folder, arguments.overwrite)
    print(f"{merged.added} added, {merged.unchanged} known, {merged.replaced} replaced, {merged.left} open; {folder}")
    return 0
