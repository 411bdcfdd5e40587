"""The comparisons made on judged queries: the first on a query is confirmatory, later ones are exploratory.

    <place>/comparisons/<collection>/<digest of the comparison>.json

The place is `.ragbench` of the project, or a folder of the user. A comparison is identified by what its arms do, its
measure and its query ids, so that neither another results folder, other names or another order of arms, nor an edited
document makes it a new one, and repeating it does not count again.

Ideas that come from looking at queries cannot be tested on the same queries: an ablation without any true effect,
followed by the combination of its positive factors, is "better" in 35% of the cases (20 factors, 100 queries). Each
comparison therefore has its full error rate, later ones are labelled exploratory, and *adopt* needs one comparison on
queries that were not used before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ragbench.base import locations
from ragbench.base.files import write_text
from ragbench.base.fingerprint import digest
from ragbench.boundary.json import read_json_file
from ragbench.results.store import errors_as_results_error

_DIGITS = 16


def record(collection: str, queries: Collection[str], compared: object, command: str, arms: Sequence[str]) -> int:
    """Record a comparison of arms on queries of a collection (its name); return its number on these queries, from 1.

    `compared` identifies what the arms do, and the measure. Raises ResultsError where it cannot be written.
    """
    folder = _folder(collection)
    path = folder / f"{digest([sorted(queries), compared])[:_DIGITS]}.json"
    if not path.is_file():
        entry = {"command": command, "arms": list(arms), "queries": sorted(queries), "at": time.time()}
        with errors_as_results_error(folder):
            write_text(path, json.dumps(entry))
    qids, number = set(queries), 0
    for comparison in recorded(collection):
        number += bool(qids.intersection(comparison["queries"])) or comparison["file"] == path.name
        if comparison["file"] == path.name:
            break
    return number


def recorded(collection: str) -> list[dict[str, Any]]:
    """All comparisons, the oldest first: command, arms, queries, at (seconds since 1970) and the file of each."""
    entries = []
    for path in _folder(collection).glob("*.json"):
        try:
            entry = dict(read_json_file(path))
            comparison = {
                "command": str(entry["command"]),
                "arms": list(entry["arms"]),
                "queries": list(entry["queries"]),
            }
            entries.append({**comparison, "at": float(entry["at"]), "file": path.name})
        except (OSError, ValueError, KeyError, TypeError):
            entries.append({"command": "unreadable", "arms": [], "queries": [], "at": 0.0, "file": path.name})
    return sorted(entries, key=lambda comparison: (comparison["at"], comparison["file"]))


def used(collection: str) -> frozenset[str]:
    """The ids of queries on which arms were compared."""
    return frozenset(qid for comparison in recorded(collection) for qid in comparison["queries"])


def describe(number: int) -> str:
    """The label of a comparison of this number, such as `exploratory: 3rd comparison on these queries`; or nothing."""
    if number < 2:
        return ""
    ordinal = f"{number}{'th' if 10 < number % 100 < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
    return f"exploratory: {ordinal} comparison on these queries"


def _folder(collection: str) -> Path:
    return locations.ledger() / "comparisons" / digest(collection)[:_DIGITS]
