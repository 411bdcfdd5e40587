"""What a shell may put where the cursor is: commands, options, `exp=` names, switches, keys and values.

The shell runs `ragbench` with `_ARGCOMPLETE` set (`ragbench completion` prints the code for that). Only the module of
the command on the line is imported.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Iterable

from ragbench.commands import SUMMARY, WORDS, Call, call
from ragbench.config import catalogue

_OVERRIDES, _PATHS_OR_OVERRIDES = "overrides", "words"
_TRUTH = ("true", "false")

_Completer = Callable[..., list[str]]


def answer() -> None:
    """Answer the shell and end the process, when a shell asks."""
    import argcomplete
    from argcomplete.completers import SuppressCompleter

    # Without an answer the shell offers file names.
    argcomplete.autocomplete(
        parser(os.environ.get("COMP_LINE", "")), always_complete_options=False, default_completer=SuppressCompleter()
    )


def parser(line: str) -> argparse.ArgumentParser:
    """The parser of a line that begins with the program's name: every command, arguments for the one that is named."""
    root = argparse.ArgumentParser(prog="ragbench")
    root.add_argument("--version", action="store_true")
    commands = root.add_subparsers(dest="command")
    typed = line.split()[1:]
    done = typed if line.endswith(" ") else typed[:-1]  # the last word may still become another one
    called = call(done) if done else None
    for name, summary in SUMMARY.items():
        commands.add_parser(name, help=summary)
    if called is None:
        return root
    command = commands.add_parser(done[0]) if done[0] not in SUMMARY else commands.choices[done[0]]
    if " " in called.name and done[0] in SUMMARY:
        command = command.add_subparsers(dest="word").add_parser(called.name.split()[1])
    _add_arguments(command, called)
    return root


def _add_arguments(command: argparse.ArgumentParser, called: Call) -> None:
    """The arguments of a command; its first word may be a sub-command."""
    importlib.import_module(called.module).add_arguments(command)
    command.add_argument("--verbose", "-v", action="store_true")
    words = WORDS.get(called.name, {}) if not called.rest else {}
    for action in command._actions:
        offer: _Completer | None = None
        if action.dest in (_OVERRIDES, _PATHS_OR_OVERRIDES):
            offer = _overrides_once_begun if action.dest == _PATHS_OR_OVERRIDES else _all_overrides
        if words and not action.option_strings:
            offer = _also(words, offer, action.choices or ())
            words = {}
        if offer is not None:
            action.completer = offer  # type: ignore[attr-defined]  # argcomplete reads it


def _also(words: Iterable[str], offer: _Completer | None, choices: Iterable[str]) -> _Completer:
    """Offers sub-commands, in addition to what is offered anyway."""

    def offered(prefix: str, **context: object) -> list[str]:
        begun = [word for word in (*words, *choices) if word.startswith(prefix)]
        return begun + (offer(prefix) if offer is not None else [])

    return offered


def _all_overrides(prefix: str, **context: object) -> list[str]:
    return overrides(prefix, catalogue.read())


def _overrides_once_begun(prefix: str, **context: object) -> list[str]:
    """Overrides once a letter is typed: before that the shell offers files."""
    return overrides(prefix, catalogue.read()) if prefix else []


def overrides(prefix: str, known: catalogue.Catalogue) -> list[str]:
    """The overrides that begin with `prefix`: keys up to their `=`, then values; after a comma the next value."""
    key, equals, begun = prefix.partition("=")
    if not equals:
        return sorted(f"{word}=" for word in _keys(known, prefix) if word.startswith(prefix))
    head, comma, last = begun.rpartition(",")
    given = set(head.split(",")) if comma else set()
    return [
        f"{key}={head}{comma}{value}" for value in _values(known, key) if value.startswith(last) and value not in given
    ]


def _keys(known: catalogue.Catalogue, prefix: str) -> Iterable[str]:
    yield "+exp" if prefix.startswith("+") else "exp"
    yield from (group.name for group in known.groups)
    if prefix:  # nothing typed yet: keys of parameters would bury the rest
        yield from (parameter.key for parameter in known.parameters)


def _values(known: catalogue.Catalogue, key: str) -> list[str]:
    if key.lstrip("+") == "exp":
        return [each.name for each in known.experiments]
    for group in known.groups:
        if group.name == key:
            return [option.name for option in group.options]
    default = next((each.default for each in known.parameters if each.key == key), "")
    return list(_TRUTH) if default in _TRUTH else [default] if default and "{" not in default else []
