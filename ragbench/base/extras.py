"""Where modules stand that are found by name: in the core, or in an extra that is installed.

`ragbench/extras/NAME` may be missing together with all that it holds. The core never imports one: it asks here for the
command `verify` or the part `prefixes` of an index, and `commands/verify.py` or `parts/prefixes.py` of any extra is
found. The standard library's tools for this import packages, which would slow `ragbench --help` down.
"""

# ruff: noqa: PTH110, PTH118, PTH120 -- pathlib would slow `--help` down

from __future__ import annotations

import os
from functools import cache

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_CORE = {"commands": "commands", "parts": "index/parts"}


@cache
def folders() -> tuple[str, ...]:
    """The names of the extras that are installed, sorted."""
    try:
        entries = sorted(entry.name for entry in os.scandir(os.path.join(_PACKAGE, "extras")) if entry.is_dir())
    except FileNotFoundError:
        return ()
    return tuple(name for name in entries if os.path.exists(os.path.join(_PACKAGE, "extras", name, "__init__.py")))


@cache
def module(kind: str, name: str) -> str | None:
    """The dotted name of the module of a command or of a part of an index; None where no installed one has it."""
    for folder in (_CORE[kind], *(f"extras/{extra}/{kind}" for extra in folders())):
        if name.isidentifier() and os.path.exists(os.path.join(_PACKAGE, folder, f"{name}.py")):
            return f"ragbench.{folder.replace('/', '.')}.{name}"
    return None
