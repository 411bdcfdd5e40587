"""The outcome of a gate as markdown, for the comment on a pull request: the verdict first, then what it rests on.

Queries, names of pages and messages come from others. The first two are in code spans, in which a forge renders no
markup and sends no notification; of messages every sign of markdown and HTML is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragbench.base.types import counted
from ragbench.extras.export import moves

_MOST = 20  # queries that are listed under a title; a comment of GitHub holds 65,536 characters
_LONGEST = 200  # characters of a query or name
_INVISIBLE = "\N{ZERO WIDTH SPACE}"  # after @ and #: no notification, no reference to another issue


@dataclass(frozen=True)
class GateSection:
    """What a gate says of one search, or of one pair of runs.

    `table`: a row of headings, then the rows. `facts`: sentences in markdown. `depth`: of `lost` and `won`.
    """

    title: str
    table: Sequence[Sequence[str]] = ()
    facts: Sequence[str] = ()
    lost: Sequence[moves.Moved] = ()
    won: Sequence[moves.Moved] = ()
    depth: int = 10


def page(outcome: str, sections: Sequence[GateSection], advice: str) -> str:
    """The markdown of an outcome, such as `fails`, its sections, and what to do."""
    number = {name: sum(len(getattr(section, name)) for section in sections) for name in ("lost", "won")}
    moved = [f"{counted(count, 'query')} {name}" for name, count in number.items() if count]
    head = f"## Search gate {outcome}" + (f": {', '.join(moved)}" if moved else "")
    return "\n\n".join([head, *map(_section, sections), f"**What to do.** {advice}"]) + "\n"


def refused(reason: str) -> str:
    """The markdown of a gate that could compare nothing."""
    return page("compared nothing", [GateSection("", facts=[escaped(reason)])], "Repair this, and run the gate again.")


def _section(section: GateSection) -> str:
    parts = [f"### {escaped(section.title)}"] if section.title else []
    if section.table:
        head, *rows = section.table
        lines = [head, ["---", *["---:"] * (len(head) - 2), "---"], *rows]
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    for title, moved in (("Lost", section.lost), ("Won", section.won)):
        parts += listed(title, [f"{code(each.query)}: {each.sentence(section.depth, code)}" for each in moved])
    return "\n\n".join([*parts, *section.facts])


def listed(title: str, rows: Sequence[str]) -> list[str]:
    """A title and the first of these rows of markdown as a list; nothing without rows."""
    if not rows:
        return []
    lines = [f"- {row}" for row in rows[:_MOST]]
    if len(rows) > _MOST:
        lines.append(f"- and {len(rows) - _MOST} more, in the output of the command")
    return [f"**{title}**", "\n".join(lines)]


def code(text: str) -> str:
    """A text as a code span of one line, whatever signs it has."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    line = " ".join(line.split()) or "(empty)"
    line = f"{line[: _LONGEST - 1]}…" if len(line) > _LONGEST else line
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    edge = " " if "`" in (line[0], line[-1]) else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def escaped(text: str) -> str:
    """A sentence without signs that markdown, HTML or a forge would read."""
    plain = re.sub(r"([\\`*_{}\[\]|~])", r"\\\1", " ".join(text.split()))
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"(?<!\w)([@#])(?=\w)", rf"\1{_INVISIBLE}", plain)
