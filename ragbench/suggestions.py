"""What a person who mistyped a name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ENOUGH = 0.6  # likeness from 0 to 1 that makes a name worth asking about
_SHOWN = 12
_ASKED = 4


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like a word, equally so; those first whose last part is the word itself."""
    names = list(dict.fromkeys(known))
    ends = [name for name in names if name.rpartition(".")[2].casefold() == word.casefold()]
    matcher = difflib.SequenceMatcher(b=word.casefold())
    likeness = {}
    for name in names:
        matcher.set_seq1(name.casefold())
        likeness[name] = matcher.ratio()
    most = max(likeness.values(), default=0.0)
    return ends or [name for name in names if likeness[name] == most >= _ENOUGH]


def did_you_mean(word: str, known: Iterable[str], kind: str = "choices") -> str:
    """The end of a sentence about an unknown word: the nearest names, else all of them."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)[:_ASKED]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f"; the {kind} are {shown}" if names else ""
