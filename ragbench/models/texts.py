"""The texts that models accept, and the texts of their errors."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
"""What counts as a token for a model without a tokenizer."""


def one_line(error: Exception) -> str:
    """The text of a library's error in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; TypeError for one string instead of a sequence and for an item that is not a string.

    Halves of surrogate pairs, which come from damaged files and which no tokenizer accepts, become U+FFFD.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"a model takes a sequence of strings, got {type(texts).__name__}: put the text in a list")
    return [_check_text(number, text) for number, text in enumerate(texts)]


def _check_text(number: int, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a model takes a sequence of strings, got {type(text).__name__} at position {number}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 joins two halves that belong together.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(text)
