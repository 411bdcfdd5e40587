"""`ragbench topics`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench import console, project
from ragbench.overrides import key_of

if TYPE_CHECKING:
    from ragbench.configuration import Settings

DESCRIPTION = "Show the topics of a collection and which kinds are short, or make topics."
EXAMPLES = """examples:
  ragbench topics                                      how many there are of each kind, and how many are missing
  ragbench topics derive data=vault data.corpus=notes  known-item topics from the documents, into topics.jsonl
  ragbench topics derive data=vault data.corpus=notes topics.limit=100 topics.kinds=[description,link]
then: ragbench run -m +exp=baseline,phase1 data=vault data.corpus=notes topics=derived
or, with the topics of the file after you have read and corrected them: ... data.queries=topics.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The task, its inputs and where to write."""
    tasks = ", ".join(TASKS)
    parser.add_argument("words", nargs="*", metavar="task|key=value", help=f"one of {tasks} (default: show), overrides")
    parser.add_argument("--out", metavar="FILE", default="topics.jsonl", help="the file to write (topics.jsonl)")
    parser.add_argument("--replace", action="store_true", help="write over an existing file")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compose the configuration and do the task."""
    from ragbench import app
    from ragbench.errors import ConfigError

    overrides = [word for word in arguments.words if "=" in word and not Path(word).exists()]
    task, *arguments.inputs = [word for word in arguments.words if word not in overrides] or ["show"]
    if task not in TASKS:
        raise ConfigError(f"ragbench topics has no task '{task}': use {', '.join(TASKS)}")
    if task == "derive" and not any(override.startswith("topics=") for override in overrides):
        overrides.append("topics=derived")
    return TASKS[task](app.compose(overrides), arguments)


def _show(settings: Settings, arguments: argparse.Namespace) -> int:
    from ragbench.topics.load import load
    from ragbench.topics.overview import ENOUGH, overview

    benchmark = load(settings.config)
    table = overview(benchmark)
    if arguments.json:
        console.print_json(table.to_dict(orient="records"))
        return 0
    console.print_table(table, f"{benchmark.name}: {len(benchmark.topics)} topics")
    if table["short by"].any():
        print(f"A mean of fewer than {ENOUGH} topics changes with every new one (Buckley and Voorhees 2000).")
    return 0


def _derive(settings: Settings, arguments: argparse.Namespace) -> int:
    from ragbench.topics.load import derivation
    from ragbench.topics.overview import overview
    from ragbench.topics.written import write

    made, documents = derivation(settings.config)
    out = Path(arguments.out)
    write(out, made.topics, made.document_qrels, made.section_qrels, replace=arguments.replace)
    if arguments.json:
        console.print_json({"file": str(out), "topics": len(made.topics), "dropped": dict(made.dropped)})
        return 0
    console.print_table(overview(made), f"{len(made.topics)} derived topics from {documents} documents")
    print(f"not used: {', '.join(f'{count} {reason}' for reason, count in sorted(made.dropped.items()))}")
    print(f"wrote {out}; correct it, then use it with data.queries={out} and topics=given")
    console.next_command("run -m exp=baseline,phase1 topics=derived" + _data(settings))
    return 0


def _data(settings: Settings) -> str:
    """The words that name the data, where no project file does."""
    if project.find() is not None:
        return ""
    return "".join(f" {word}" for word in settings.overrides if key_of(word).split(".")[0] == "data")


TASKS: Mapping[str, Callable[[Settings, argparse.Namespace], int]] = {"show": _show, "derive": _derive}
