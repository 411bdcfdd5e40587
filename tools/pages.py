"""Write between two marks of a page."""

from __future__ import annotations

from pathlib import Path

from ragbench.base.files import write_text
from ragbench.base.types import ConfigError


def write_between(path: Path, mark: str, text: str) -> None:
    """Put text between the lines `<!-- mark -->` and `<!-- end of mark -->` of a page. ConfigError where one lacks."""
    page, begin, end = path.read_text(encoding="utf-8"), f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    head, begins, remainder = page.partition(begin)
    _, ends, tail = remainder.partition(end)
    if not begins or not ends:
        raise ConfigError(f"{path} has no {begin} and {end} to write between: add the two lines")
    write_text(path, f"{head}{begin}\n{text}\n{end}{tail}")
