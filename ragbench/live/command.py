"""One call of a program that searches."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from ragbench.live.answers import fill_in
from ragbench.live.asking import Unanswered


def asking(program: Sequence[str], timeout_s: float) -> Callable[[str, int], Any]:
    """A function that runs the program, without a shell, and reads what it prints: JSON, or JSON Lines as a list.

    `{query}` and `{depth}` in its words are replaced; the query also stands on its standard input.
    """

    def ask(query: str, depth: int) -> Any:
        words = [str(word) for word in fill_in(list(program), query, depth)]
        try:
            done = subprocess.run(
                words, input=query + "\n", capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unanswered(f"no answer within {timeout_s:g} s") from None
        except OSError as error:
            raise Unanswered(error.strerror or str(error), again=False) from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
            raise Unanswered(f"exit code {done.returncode} ({last[:120]})")
        return _read(done.stdout)

    return ask


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass  # perhaps one value a line
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        raise Unanswered("what it prints is neither JSON nor JSON Lines", again=False) from None
