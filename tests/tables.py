"""Tables of inputs of tests: rows below the name of their test, in the file of its module in `tests/data/tables`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "data" / "tables"


@lru_cache
def _tables(module: str) -> dict[str, list[Any]]:
    text = (FOLDER / f"{module}.yaml").read_text(encoding="utf-8")
    tables: dict[str, list[Any]] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tables


def rows(module: str, table: str) -> list[Any]:
    """The rows of a table."""
    return _tables(module)[table]
