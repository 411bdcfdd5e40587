"""A ledger of looks at the test topics: one file for every different look, in a folder for each benchmark.

    <place>/looks/<digest of the benchmark>/<digest of what was looked at>.json

The place is `.ragbench` of the project, or a folder of the user: another results folder does not start afresh.

Every look is another chance to mistake luck for a gain. A look that judges arms against each other therefore has a
price: look k of these may err in 1 / (k (k + 1)) of 1 - confidence, so that all looks together, however many there
will be, err at most in 1 - confidence (alpha spending; Foster and Stine, JRSS B 70, 2008). After k looks 1 / (k + 1) of
it is left. Repeating the same look is no further one, and reading results again is none: they have the verdicts of
their run. `tests/bench/looks.py` compares this with other rules.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base.files import write_text
from ragbench.base.fingerprint import digest
from ragbench.boundary.json import read_json_file
from ragbench.results.store import errors_as_results_error

_DIGITS = 16
_READING = ("diagnose", "advise")
"""Commands that read what a run has shown already: earlier versions counted them as looks of their own."""
_UNJUDGED = (*_READING, "gate")
"""Commands that adopt nothing."""
_LEARNING = ("fit order", "fit adapter", "learn-ranker")
"""Commands that judge what was learned, under one name of an arm; the last is an earlier name of the first."""


def look(root: Path, benchmark: str, key: object, command: str, arms: Sequence[str]) -> int:
    """Record a look of a command at the test topics of a benchmark (its digest); returns its number, from 1.

    `key` names the measured data: the same key is the same look. Raises ResultsError where it cannot be written.
    """
    folder = _folder(root, benchmark)
    path = folder / f"{digest([command, key])[:_DIGITS]}.json"
    known = sorted(looks(root, benchmark), key=lambda each: float(each["at"]))
    if path.is_file():
        return 1 + next((place for place, each in enumerate(known) if each["file"] == path.name), len(known))
    with errors_as_results_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"command": command, "arms": list(arms), "at": time.time()}, indent=1))
    return len(known) + 1


def looks(root: Path, benchmark: str) -> list[dict[str, Any]]:
    """Every look, the oldest first: command, arms, at (seconds since 1970) and the file that holds it."""
    found = []
    for path in _folder(root, benchmark).glob("*.json"):
        try:
            entry = dict(read_json_file(path))
            if entry["command"] in _READING:
                continue
            found.append(
                {"command": entry["command"], "arms": entry["arms"], "at": float(entry["at"]), "file": path.name}
            )
        except (OSError, ValueError, KeyError, TypeError):
            found.append(
                {"command": "unreadable", "arms": [], "at": 0.0, "file": path.name}
            )  # it was a look all the same
    return sorted(found, key=lambda each: (each["at"], each["file"]))


def turn(root: Path, benchmark: str, key: object, command: str) -> int:
    """Which of the looks that judge arms a recorded look is, from 1: it sets the price. 0 for one that judges none."""
    name = f"{digest([command, key])[:_DIGITS]}.json"
    judging = [each["file"] for each in looks(root, benchmark) if judges(each)]
    return judging.index(name) + 1 if name in judging else 0


def judges(look: Mapping[str, Any]) -> bool:
    """Whether a look judges arms against each other."""
    command, arms = look["command"], look["arms"]
    return command not in _UNJUDGED and (len(arms) > 1 or command in _LEARNING)


def share(turn: int) -> float:
    """The share of 1 - confidence in which the judging look of this number may err; all of it for 0."""
    return 1 / (turn * (turn + 1)) if turn else 1.0


def left(turn: int) -> float:
    """The share of 1 - confidence that is left for later looks."""
    return 1 / (turn + 1)


def sentence(number: int, benchmark: str, turn: int = 0, confidence: float = 0.95) -> str:
    """The number beside a result, and what it costs and leaves where it judges arms; empty for none."""
    if not number:
        return ""
    told = f"look {number} at the test topics of '{benchmark}'"
    if not turn:
        return told
    may, rest = (1 - confidence) * share(turn), (1 - confidence) * left(turn)
    return f"{told}, number {turn} that judges: p <= {may:.2g} decides, {rest:.2g} is left for later looks"


def _folder(root: Path, benchmark: str) -> Path:
    return root / "looks" / benchmark[:_DIGITS]
