"""One call of a program that searches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from ragbench.base.errors import BoundaryError
from ragbench.base.processes import SAFE_PATH
from ragbench.boundary.json import read_json, read_json_lines
from ragbench.extras.remote.live.answers import fill_in
from ragbench.extras.remote.live.client import RequestFailed

_LARGEST_ANSWER = 20_000_000


def asking(program: Sequence[str], timeout_s: float) -> Callable[[str, int], Any]:
    """A function that runs the program, without a shell, and reads what it prints: JSON, or JSON Lines as a list.

    `{query}` and `{depth}` in its words are replaced; the query also stands on its standard input.
    """

    def ask(query: str, depth: int) -> Any:
        arguments = [str(argument) for argument in fill_in(list(program), query, depth)]
        try:
            process = subprocess.run(
                arguments,
                input=f"{query}\n".encode(errors="replace"),
                capture_output=True,
                timeout=timeout_s,
                env=own_environment(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RequestFailed(f"no answer within {timeout_s:g} s") from None
        except (OSError, ValueError) as error:  # no such program; a NUL in its words
            raise RequestFailed(getattr(error, "strerror", None) or str(error), again=False) from None
        if process.returncode != 0:
            last = (process.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing on standard error"])[-1]
            raise RequestFailed(f"exit code {process.returncode} ({last[:120]})")
        return _read(process.stdout)

    return ask


def _read(printed: bytes) -> Any:
    try:
        return read_json(printed, max_bytes=_LARGEST_ANSWER)
    except BoundaryError:
        pass  # perhaps one value a line
    try:
        return list(read_json_lines(printed, max_bytes=_LARGEST_ANSWER))
    except BoundaryError:
        raise RequestFailed("what it prints is neither JSON nor JSON Lines", again=False) from None


def own_environment() -> dict[str, str]:
    """Return the environment for a program of the user, which may import from its own folder."""
    return {name: value for name, value in os.environ.items() if (name, value) != SAFE_PATH}
