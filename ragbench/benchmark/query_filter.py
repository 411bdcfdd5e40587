"""The filter of a query: the documents that it may find, by columns of their frontmatter and other properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragbench.base.types import BenchmarkError, BoundaryError, shown
from ragbench.benchmark.quotes import entries
from ragbench.boundary.json import read_json

QueryFilter = Mapping[str, Any]
"""Conditions by name, such as `{"version": "3.2", "tags": ["auth"]}`; a document meets all of them."""

_SCALARS = (str, int, float)


def read_filter(value: Any, location: str) -> dict[str, Any]:
    """The conditions of a field: an object, its JSON, or `version=3.2; product=lantern`. Empty for an empty field.

    Raises BenchmarkError, with the location, for anything else.
    """
    conditions = _of_text(value) if isinstance(value, str) else {} if value is None else value
    if not isinstance(conditions, Mapping) or not all(map(_is_condition, conditions.items())):
        raise BenchmarkError(
            f'{location}: filter must name values by column, such as {{"version": "3.2"}} or version=3.2, '
            f"got {shown(value)}"
        )
    return {str(name): item for name, item in conditions.items()}


def _of_text(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return read_json(text)
        except BoundaryError:
            return None
    pairs = [entry.partition("=") for entry in entries(text)]
    return {name.strip(): item.strip() for name, _, item in pairs}


def _is_condition(item: tuple[Any, Any]) -> bool:
    name, value = item
    values = value if isinstance(value, list) else [value]
    named = isinstance(name, str) and bool(name.strip()) and bool(values)
    return named and all(isinstance(one, _SCALARS) and str(one).strip() for one in values)
