"""Checks with an outcome and a sentence, and how a command prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ragbench.base import console
from ragbench.base.exit_codes import FAILED, NOT_CHECKED

Outcome = Literal["passes", "fails", "not checked"]


@dataclass(frozen=True)
class Check:
    """A check: the part that was checked, the outcome, and a sentence about it.

    `undecided`: it was to be shown, and there is too little to show it.
    """

    part: str
    outcome: Outcome
    said: str
    undecided: bool = False


def show(checks: Iterable[Check], as_json: bool) -> int:
    """Print each check when it ends, or all as JSON; return the exit code."""
    from rich.console import Console
    from rich.text import Text

    marks = {"passes": ("passes ", "green"), "fails": ("FAILS  ", "bold red"), "not checked": ("-      ", "yellow")}
    screen = Console(highlight=False, soft_wrap=True)
    done = []
    for check in checks:
        done.append(check)
        if not as_json:
            said = check.said if check.outcome != "not checked" else f"not checked: {check.said}"
            screen.print(Text.assemble(marks[check.outcome], (f"{check.part:<30} ", "bold"), said))
    failed = any(check.outcome == "fails" for check in done)
    undecided = any(check.undecided for check in done)
    if as_json:
        rows = [{"part": check.part, "outcome": check.outcome, "said": check.said} for check in done]
        console.print_json({"passes": not failed and not undecided, "checks": rows})
    return FAILED if failed else NOT_CHECKED if undecided else 0
