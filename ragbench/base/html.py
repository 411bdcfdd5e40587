"""HTML by Jinja, which escapes every value."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment, Template


def templates(folder: Path | None = None) -> Environment:
    """Templates of a folder, or those given as text; an unknown name raises."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder) if folder else None,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _compiled(template: str) -> Template:
    return templates().from_string(template)


def render(template: str, **values: Any) -> str:
    """The text of a template with values."""
    return _compiled(template).render(**values)
