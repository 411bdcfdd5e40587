"""The pages of the documentation, the blocks of code in them, and the calls of ragbench in those blocks."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ragbench.commands import call, cli
from ragbench.config import composition

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n\n)?^ *```(?P<kind>bash|python)?\n(?P<body>.*?)^ *```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `reason` says why it is not run, by the comment `<!-- not run: REASON -->` above it."""

    page: Path
    number: int
    kind: str
    body: str
    reason: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, continued ones joined; in a screen those behind a prompt (`$ ragbench run`)."""
        lines = [line.strip() for line in self.body.replace("\\\n", "").splitlines()]
        if self.kind == "bash":
            return [line for line in lines if line and not line.startswith("#")]
        return [line[2:] for line in lines if line.startswith("$ ragbench ")] if not self.kind else []

    @property
    def calls(self) -> Iterator[list[str]]:
        """The words of every call of ragbench."""
        for line in self.commands:
            for part in re.split(r" (?:&&|\|\||\|) ", line):
                words = shlex.split(part, comments=True)
                words = words[2:] if words[:2] == ["python", "-m"] else words
                if words[:1] == ["ragbench"]:
                    yield words[1 : words.index(">") if ">" in words else None]


@cache
def blocks() -> list[Block]:
    """The blocks of all pages, in their order."""
    return [
        Block(page, number, match["kind"] or "", match["body"], match["reason"] or "")
        for page in PAGES
        for number, match in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8")))
    ]


def name(page: Path) -> str:
    """The path of a page in the repository."""
    return str(page.relative_to(ROOT))


def parsed(words: list[str]) -> argparse.Namespace:
    """The parsed arguments of a call of ragbench."""
    called = call(words)
    assert called is not None, f"there is no command {words[0]}"
    module = called.module
    parser = argparse.ArgumentParser(prog=f"ragbench {called.name}", exit_on_error=False)
    module.add_arguments(parser)
    cli.add_common(parser)
    return parser.parse_intermixed_args(called.rest)


def overrides(words: list[str]) -> list[str] | None:
    """The overrides of a call, None when its command takes none."""
    arguments = vars(parsed(words))
    if "overrides" not in arguments and "words" not in arguments:
        return None
    return [word for word in (*arguments.get("overrides", []), *arguments.get("words", [])) if "=" in word]


def compose(words: list[str]) -> None:
    """Parse a call and compose its overrides."""
    if not words or words[0] in ("--help", "--version"):
        return
    given = overrides(words)
    if given is not None:
        (composition.sweep if vars(parsed(words)).get("multirun") else composition.compose)(given)
