"""A ledger of looks at the test topics: one file for every different look, in a folder for each benchmark.

    <results>/looks/<digest of the benchmark>/<digest of what was looked at>.json

Every look is another chance to mistake luck for a gain, so every later result on test topics is shown with their
number. Repeating the same look does not count again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragbench.benchmark.split import TEST
from ragbench.boundary.json import read_json_file
from ragbench.experiment.measurements import Measurements
from ragbench.experiment.store import errors_as_results_error
from ragbench.files import write_text
from ragbench.fingerprint import digest

_DIGITS = 16


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
            found.append(
                {"command": entry["command"], "arms": entry["arms"], "at": float(entry["at"]), "file": path.name}
            )
        except (OSError, ValueError, KeyError, TypeError):
            found.append(
                {"command": "unreadable", "arms": [], "at": 0.0, "file": path.name}
            )  # it was a look all the same
    return sorted(found, key=lambda each: (each["at"], each["file"]))


def of_results(root: Path, results: Measurements, command: str, key: object = None, split: str | None = None) -> int:
    """Enter a look of a reading command at finished results; 0 where they hold no test topic."""
    splits = results.per_query["split"]
    if not ((splits == TEST) if split in (None, "all") else splits == split).any() or split == "train":
        return 0
    seen = [results.folder.name, results.arms, key]
    return look(root, str(results.record["benchmark"]["digest"]), seen, command, results.arms)


def sentence(number: int, benchmark: str) -> str:
    """The number beside a result; empty for none."""
    if not number:
        return ""
    told = f"look {number} at the test topics of '{benchmark}'"
    return told if number == 1 else f"{told}: with every look, chance is more likely to pass as a gain"


def _folder(root: Path, benchmark: str) -> Path:
    return root / "looks" / benchmark[:_DIGITS]
