"""Signals in the form of a query: names from programs, exact things, places in documents.

Regular expressions of seed 001, "Query Type Classification", and of seed 000, P3; error codes and flags are added.
"""

from __future__ import annotations

import re

# Written as in a program, so that code may hold it.
_IDENTIFIERS = (
    re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]"),  # camelCase, HTTPResponse
    re.compile(r"\b[a-zA-Z]+_[a-zA-Z_]+\b"),  # snake_case, UPPER_CASE
    re.compile(r"`[^`]+`"),
    re.compile(r"\w(?:::|->)\w|\w\(\)"),  # std::vector, p->next, close()
    re.compile(r"\b(?!\w\.\w\b)[a-zA-Z_]\w*\.[a-zA-Z_]\w*"),  # err.cause, fleetd.yaml, but not e.g. or a.m.
    re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*"),  # --max-lag
)
# Exact: a search by words finds it better than one by meaning.
_EXACT = (
    re.compile(r"\b[vV]?\d+\.\d+(?:\.\d+)?(?:-\w+)?\b"),  # a version
    re.compile(r"\"[^\"]+\"|\u201c[^\u201d]+\u201d"),  # a quoted phrase
    re.compile(r"\b[A-Z]+-?\d{2,}\b"),  # an error code: GTE-1119, E1042
)
_PLACES = re.compile(
    r"\[\[|\]\]|\b(?:section|chapter|guide|tutorial|page|reference|manual)s?\b|\bdoc(?:s|umentation)\b", re.IGNORECASE
)

# Those of the seeds alone: 001, "Query Type Classification"; 000, P3, whose words are not anchored, with "in the X".
_SEED_EXACT = (
    re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]"),
    re.compile(r"\b[a-z]+_[a-z_]+\b"),
    re.compile(r"`[^`]+`"),
    *_EXACT[:2],
)
_SEED_PLACES = re.compile(
    r"\[\[|\]\]|section|chapter|guide|tutorial|documentation|\bdocs\b|\bin the \w+", re.IGNORECASE
)


def names_code(text: str) -> bool:
    """Whether a query holds a name as programs write it: an identifier, a call, a flag, anything in backticks."""
    return any(signal.search(text) for signal in _IDENTIFIERS)


def names_something_exact(text: str, *, seed: bool = False) -> bool:
    """Whether a query holds a name as programs write it, a version, an error code or a quoted phrase.

    `seed`: by the signals of the seeds alone, without calls, flags, dotted names and error codes.
    """
    if seed:
        return any(signal.search(text) for signal in _SEED_EXACT)
    return names_code(text) or any(signal.search(text) for signal in _EXACT)


def names_a_location(text: str, *, seed: bool = False) -> bool:
    """Whether a query names a part of the documents: a section, a guide, `[[a note]]`; `seed`: as seed 000 does."""
    return (_SEED_PLACES if seed else _PLACES).search(text) is not None
