"""Finished hyperparameter searches, as `ragbench tune` leaves them in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.errors import ResultsError
from ragbench.base.files import Damaged
from ragbench.boundary.sealed import read_sealed

RECORD = "report.json"


def read(folder: Path) -> dict[str, Any]:
    """The record of a finished search. ResultsError where it or a file of the report is missing or has changed."""
    try:
        record = read_sealed(folder / RECORD)
        files.check_digests(folder, record["files"])
    except FileNotFoundError:
        raise ResultsError(f"{folder} holds no search ({RECORD} is missing): run ragbench tune again") from None
    except Damaged as damage:
        raise ResultsError(f"the search in {folder} is damaged ({damage}): run ragbench tune again") from None
    return record
