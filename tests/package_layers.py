"""The packages and their imports; `python -m tests.package_layers` writes their table into ARCHITECTURE.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("package_layers.toml")
PAGE = Path(__file__).resolve().parent.parent / "ARCHITECTURE.md"
_HEAD = "| package | contents | may import |\n|---|---|---|\n"


class Room(NamedTuple):
    """What a room holds, and all rooms that it may import."""

    holds: str
    imports: tuple[str, ...]


def read() -> dict[str, Room]:
    """Every room, from top to bottom."""
    rooms = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {name: Room(room["holds"], tuple(room["imports"])) for name, room in rooms.items()}


def table(rooms: Mapping[str, Room]) -> str:
    """The rooms as a table in markdown."""
    rows = (
        f"| `{name}` | {room.holds} | {', '.join(f'`{imported}`' for imported in room.imports) or '-'} |\n"
        for name, room in rooms.items()
    )
    return _HEAD + "".join(rows)


def main() -> None:
    """Replace the table in ARCHITECTURE."""
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(_HEAD) + r"(?:\|.*\n)+"
    PAGE.write_text(re.sub(pattern, lambda match: table(read()), page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
