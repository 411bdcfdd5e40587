"""`ragbench init`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ragbench.base import console

DESCRIPTION = """Look at a folder of notes and write ragbench.yaml, which every later command here reads.

It holds the data, the arms that `ragbench run` measures, the budget and where results go. Notes without queries get
known-item topics from their own texts (topics: derived)."""
EXAMPLES = """examples:
  ragbench init notes             asks at most three questions
  ragbench init notes --yes       asks nothing
  ragbench init notes --queries questions.csv
then: ragbench run
"""

_ARMS = {
    "baseline": ("exp=baseline",),
    "recommended": ("exp=recommended",),
    "rerank": ("exp=recommended", "rerank=on"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder, answers given beforehand, output options."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="the folder of notes (default: this one)")
    parser.add_argument("--queries", type=Path, metavar="FILE", help="CSV or JSONL with the column text")
    parser.add_argument("--yes", "-y", action="store_true", help="ask nothing, take what is proposed")
    parser.add_argument("--replace", action="store_true", help="write over an existing ragbench.yaml")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Look, ask, write, say what to type next."""
    from ragbench.base.errors import ConfigError
    from ragbench.benchmark.recognise import recognise
    from ragbench.config import project

    file = Path(project.FILE)
    if file.exists() and not arguments.replace:
        raise ConfigError(f"{file} exists already: edit it, or add --replace")
    found = recognise(arguments.folder)
    asks = not arguments.yes and not arguments.json and sys.stdin.isatty()
    if not arguments.json:
        print(f"{arguments.folder}: {found.said if arguments.queries is None else f'{found.documents} markdown files'}")
    queries = arguments.queries or (_ask_file() if asks and not found.queries else None)
    if queries is not None and not queries.is_file():
        raise ConfigError(f"--queries {queries} is not a file: name a CSV or JSONL file with the column text")
    data = {**found.data, **({"data.queries": str(queries)} if queries else {})}
    # Results go beside the notes; a folder among the notes would be in the way, so it is a hidden one.
    here = arguments.folder.resolve() == Path.cwd()
    results = _ask("Where do results go?", ".ragbench" if here else "results") if asks else None
    budget = _ask_number("How many milliseconds may a change add to a slow query (p95)?", 50) if asks else 50
    values = {
        **data,
        **({} if found.queries or queries else {"topics": "derived"}),
        "budget.p95_ms": budget,
        "paths.results": results or (".ragbench" if here else "results"),
    }
    project.Project(file.absolute(), values, _ARMS).write()
    if arguments.json:
        console.print_json({"file": str(file), **values, "arms": {name: list(words) for name, words in _ARMS.items()}})
        return 0
    print(f"wrote {file}")
    console.next_command("run")
    return 0


def _ask(question: str, default: str) -> str:
    return input(f"{question} [{default}] ").strip() or default


def _ask_number(question: str, default: int) -> float:
    while True:
        said = _ask(question, str(default))
        try:
            return float(said) if "." in said else int(said)
        except ValueError:
            print(f"'{said}' is not a number")


def _ask_file() -> Path | None:
    said = _ask("Which file has your queries? Enter makes some from the notes.", "none")
    return None if said == "none" else Path(said).expanduser()
