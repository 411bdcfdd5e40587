"""The part of a text that answers a query, and which of its words to mark, for readers: no search uses them."""

from __future__ import annotations

import re
from functools import lru_cache

_LENGTH = 200
"""Characters of a snippet, at most."""

_CACHE_SIZE = 16_384  # arms answer the same queries, mostly with the same passages: ten each of 1,600 queries
_ELLIPSIS = "…"
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be but by can did do does for from get has have how i if in into is it its me my no not of
        on or our should so such that the their then there these they this to us was we were what when where which who
        why will with you your""",
    )
)
_SUFFIXES = ("ing", "ies", "ed", "es", "s", "e")


def stems(text: str) -> list[str]:
    """The stems of a query's words in lower case, in order, each once, without common words; of compound identifiers
    also those of the parts.

    A stem is a prefix of the inflected forms of its word.
    """
    unique_stems: dict[str, None] = {}
    for token in (part.lower() for word in re.findall(r"[^\W_]+", text) for part in (word, *_parts(word))):
        if token in _COMMON or (len(token) < 3 and not any(letter.isdigit() for letter in token)):
            continue
        ending = next((s for s in _SUFFIXES if token.endswith(s) and len(token) - len(s) >= 4), "")
        unique_stems[token.removesuffix(ending)] = None
    return list(unique_stems)


def _parts(token: str) -> list[str]:
    """The parts of a compound identifier, such as getUserById or HTTPResponse; empty for other words."""
    inside = re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]", token)
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", token) if inside else []


@lru_cache(_CACHE_SIZE)
def highlights(query: str) -> re.Pattern[str]:
    """A pattern that matches words that begin with any stem of a query."""
    alternatives = "|".join(stems(query)) or r"(?!)"
    return re.compile(rf"(?<![^\W_])(?:{alternatives})[^\W_]*", re.IGNORECASE)


@lru_cache(_CACHE_SIZE)
def snippet(text: str, matches: re.Pattern[str]) -> str:
    """The part of a text with the most distinct matches, at most LENGTH characters, white space as single spaces."""
    flat = " ".join(text.split())
    if len(flat) <= _LENGTH:
        return flat
    hits = [(hit.start(), hit.end(), hit[0].lower()[:5]) for hit in matches.finditer(flat)]
    available = _LENGTH - 2 * len(_ELLIPSIS)

    def start(hit: int) -> int:
        """Where the part begins that shows a match with a fifth of the part before it."""
        return min(flat.rfind(" ", 0, max(0, hit - available // 5) + 1) + 1, len(flat) - available)

    def terms_in_window(begin: int) -> int:
        return len({stem for at, end, stem in hits if begin <= at and end <= begin + available})

    begin = max((start(at) for at, _, _ in hits), key=lambda begin: (terms_in_window(begin), -begin), default=0)
    part = flat[begin : begin + available]
    return (_ELLIPSIS if begin else "") + part.strip() + (_ELLIPSIS if begin + available < len(flat) else "")
