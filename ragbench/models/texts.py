"""What models accept as text."""

from __future__ import annotations

from collections.abc import Sequence


def checked(texts: Sequence[str]) -> list[str]:
    """The texts as a list; TypeError for one string in place of a sequence and for an item that is no string.

    Halves of surrogate pairs, which damaged files decode to and which no tokenizer takes, become U+FFFD.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"a model takes a sequence of strings, got {type(texts).__name__}: put the text in a list")
    return [_one(number, text) for number, text in enumerate(texts)]


def _one(number: int, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a model takes a sequence of strings, got {type(text).__name__} at position {number}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, so that two halves that belong together become the character they stand for.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(text)
