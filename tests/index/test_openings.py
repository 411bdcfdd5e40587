"""Texts that continue a table or a list begin with its opening."""

import pytest

from ragbench.index.openings import opening

TABLE = "# Relays\n\nAll.\n\n| relay | volts |\n| --- | --- |\n| r1 | 1 |\n| r2 | 2 |\n"
LIST = "The flags are:\n\n- `a`\n- `b`\n  - deep\n  - deeper\n- `c`\n\nThe end.\n\n- other\n"


@pytest.mark.parametrize(
    ("text", "at", "lines"),
    [
        (TABLE, "| r2", "| relay | volts |\n| --- | --- |\n"),
        (TABLE, "| r1", "| relay | volts |\n| --- | --- |\n"),
        (TABLE, "| relay", ""),
        (TABLE, "All.", ""),
        (LIST, "- `b`", "The flags are:\n"),
        (LIST, "- `a`", ""),
        (LIST, "- deeper", "The flags are:\n- `b`\n"),
        (LIST, "- other", ""),
        (f"{'| x' * 200} |\n|---|\n| r |", "| r |", ""),
    ],
)
def test_opening_of_a_piece(text: str, at: str, lines: str) -> None:
    start = text.index(at)
    start -= len(text[:start]) - len(text[:start].rstrip(" "))
    assert opening(text, start) == lines
