"""The names of the proposals: a number, as in the seeds, and a word."""

from __future__ import annotations

ALIASES = {
    "p1": "vocabulary",
    "p2": "headings",
    "p3": "classify",
    "p4": "fields",
    "p5": "synonyms",
    "p6": "rerank",
    "p7": "code",
    "p8": "dedup",
    "p9": "frontmatter",
    "p10": "threshold",
    "p11": "mmr",
    "p12": "near_copies",
    "p13": "parents",
}
"""By the number of a proposal, its name; every command accepts either and shows both."""
_NUMBERS = {name: number for number, name in ALIASES.items()}


def numbered(key: str) -> str:
    """A key with the number of a proposal instead of its name: `p6.depth` for `rerank.depth`; other keys unchanged."""
    first, dot, rest = key.partition(".")
    return f"{_NUMBERS.get(first, first)}{dot}{rest}"


def label(switch: str) -> str:
    """A switch as tables show it: `p6 rerank`."""
    return f"{switch} {ALIASES[switch]}" if switch in ALIASES else switch
