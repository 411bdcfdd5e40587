"""The commands, one module each: `DESCRIPTION`, `EXAMPLES`, `add_arguments(parser)`, `main(arguments)`.

The first line of a module names its command, its group and its purpose as `ragbench --help` shows them. A command may
have sub-commands, in modules of their own: `ragbench fit ranker` is `command.fit.ranker` in the registry. A module is
imported only when its command is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from ragbench.base import registry

_ENTRIES = registry.entries("command")

GROUPS: Mapping[str, Mapping[str, str]] = {
    task: {name: entry["about"] for name, entry in _ENTRIES.items() if entry.get("task") == task}
    for task in dict.fromkeys(entry["task"] for entry in _ENTRIES.values() if "task" in entry)
}
"""The commands by task, each with one line."""

SUMMARY: Mapping[str, str] = {name: line for group in GROUPS.values() for name, line in group.items()}

WORDS: Mapping[str, Mapping[str, str]] = {
    name: words
    for name in SUMMARY
    if (words := {key.partition(".")[2]: e["about"] for key, e in _ENTRIES.items() if key.startswith(f"{name}.")})
}
"""The sub-commands of a command, each with one line."""


@dataclass(frozen=True)
class Call:
    """A command as it is called: its name in one or two words, the words that follow, the module that runs it."""

    name: str
    rest: tuple[str, ...]
    module: ModuleType


def call(arguments: Sequence[str]) -> Call | None:
    """Return the command that the arguments after `ragbench` call; None if the first is not a command."""
    first, *rest = arguments
    size = 2 if rest and rest[0] in WORDS.get(first, {}) else 1
    module = registry.find("command", ".".join(arguments[:size])) if "." not in first else None
    return None if module is None else Call(" ".join(arguments[:size]), tuple(arguments[size:]), module)


def everything() -> tuple[str, ...]:
    """The names of all commands and sub-commands."""
    return tuple(SUMMARY) + tuple(f"{name} {word}" for name, words in WORDS.items() for word in words)
