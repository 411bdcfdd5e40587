"""Suggestions for a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_LEAST_LIKENESS = 0.6  # similarity from 0 to 1 from which a name is suggested
_MOST_LISTED = 12
_MOST_SUGGESTED = 4


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known names whose last part is the word; if there are none, the most similar names (several if equal)."""
    names = list(dict.fromkeys(known))
    ends = [name for name in names if name.rpartition(".")[2].casefold() == word.casefold()]
    matcher = difflib.SequenceMatcher(b=word.casefold())
    likeness = {}
    for name in names:
        matcher.set_seq1(name.casefold())
        likeness[name] = matcher.ratio()
    best = max(likeness.values(), default=0.0)
    return ends or [name for name in names if likeness[name] == best >= _LEAST_LIKENESS]


def did_you_mean(word: str, known: Iterable[str], kind: str = "options") -> str:
    """The end of a sentence about an unknown word: the most similar names, else all of them."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)[:_MOST_SUGGESTED]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    listed = ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
    return f"; the {kind} are {listed}" if names else ""


def options_hint(name: str, options: Sequence[str]) -> str:
    """The end of a message for an unknown option: all of a few options, the nearest of many."""
    return f": the options are {', '.join(options)}" if len(options) <= 6 else did_you_mean(name, options)
