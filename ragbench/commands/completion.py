"""`ragbench completion`, and what a shell may put where the cursor is.

The shell runs `ragbench` with `_ARGCOMPLETE` set; argcomplete reads the parser of the command that is on the line.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Collection
from functools import partial

from ragbench.commands import SUMMARY, WORDS, call

DESCRIPTION = "Print the shell code that completes commands, options, presets and keys."
EXAMPLES = """examples:
  source <(ragbench completion bash)        in this shell; put the line into ~/.bashrc to keep it
  source <(ragbench completion zsh)         the same for zsh, after compinit
  ragbench completion fish | source
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that you use")


def main(arguments: argparse.Namespace) -> int:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["ragbench"], shell=arguments.shell))
    return 0


def answer() -> None:
    """Answer the shell and end the process, when a shell asks."""
    import argcomplete
    from argcomplete.completers import SuppressCompleter  # without an answer the shell offers file names

    line = parser(os.environ.get("COMP_LINE", ""))
    argcomplete.autocomplete(line, always_complete_options=False, default_completer=SuppressCompleter())


def parser(line: str) -> argparse.ArgumentParser:
    """The parser of a line: all commands, and the arguments of the named one, whose module alone is imported."""
    root = argparse.ArgumentParser(prog="ragbench")
    commands = root.add_subparsers()
    typed = line.split()[1:]
    complete = typed if line.endswith(" ") else typed[:-1]  # the last word may still become another one
    called = call(complete) if complete else None
    for name in dict.fromkeys((*SUMMARY, *(complete[:1] if called else ()))):
        commands.add_parser(name)
    if called is None:
        return root
    command = commands.choices[complete[0]]
    if " " in called.name and complete[0] in SUMMARY:
        command = command.add_subparsers().add_parser(called.name.split()[1])
    importlib.import_module(called.module).add_arguments(command)
    for action in command._actions:
        if not action.option_strings:
            offered = (*(() if called.rest else WORDS.get(called.name, ())), *(action.choices or ()))
            action.completer = partial(offer, offered, action.dest)  # type: ignore[attr-defined]  # argcomplete reads it
    return root


def offer(choices: Collection[str], kind: str, prefix: str, **context: object) -> list[str]:
    """Sub-commands and choices; and overrides, where also files are possible only once a letter is typed."""
    return [*choices, *(overrides(prefix) if kind == "overrides" or (kind == "words" and prefix) else ())]


def overrides(prefix: str) -> list[str]:
    """Keys up to their `=`, then values; after a comma the next value. The shell keeps what begins with `prefix`."""
    from ragbench.config import catalogue

    known = catalogue.read()
    key, equals, begun = prefix.partition("=")
    if not equals:
        keys = ["+exp" if prefix.startswith("+") else "exp", *(group.name for group in known.groups)]
        return [f"{key}=" for key in (*keys, *(parameter.key for parameter in known.parameters if prefix))]
    defaults = {parameter.key: parameter.default for parameter in known.parameters}
    values = {key: ["true", "false"] if value in ("true", "false") else [value] for key, value in defaults.items()}
    values |= {group.name: [option.name for option in group.options] for group in known.groups}
    values["exp"] = [experiment.name for experiment in known.experiments]
    head, comma, _ = begun.rpartition(",")
    offered = [value for value in values.get(key.lstrip("+"), ()) if value not in head.split(",") and "{" not in value]
    return [f"{key}={head}{comma}{value}" for value in offered]
