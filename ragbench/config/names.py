"""The names of the proposals: a number, as in the seeds, and a word."""

from __future__ import annotations

EXPERIMENT = "exp"
"""The group of presets."""
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
_CANONICAL = {**{name: number for number, name in ALIASES.items()}, "rank": "ranker"}


def numbered(key: str) -> str:
    """Return a key with the number of a proposal (`p6.depth` for `rerank.depth`), a renamed key by its new name."""
    first, dot, rest = key.partition(".")
    return f"{_CANONICAL.get(first, first)}{dot}{rest}"


def label(switch: str) -> str:
    """A switch as tables show it: `p6 rerank`."""
    return f"{switch} {ALIASES[switch]}" if switch in ALIASES else switch
