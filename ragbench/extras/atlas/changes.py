"""The changes that the atlas knows, by name and by the overrides that make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ragbench.boundary.yaml import read_yaml_file

BASE = "plain_hybrid"
BASES = (BASE, "baseline", "recommended")
"""What effects are measured against: all changes against the first, presets also against the others."""
ORDER, WITHOUT = "ranker=questions", "-without-"
"""The order that was learned from questions, and what follows its name if a site was held out (`fit ranker`)."""
EARLIER = "earlier"
"""The group of changes whose presets have other values now: no prediction is made from them."""
_FILE = Path(__file__).with_name("changes.yaml")
_SHARED = ("name", "data", "topics", "split", "seed", "latency", "tracking", "paths", "execution", "statistics")
_SHARED_MORE = ("budget", "links", "artefacts", "measures", "primary", "context_tokens", "design", "tune")


@cache
def groups() -> Mapping[str, Mapping[str, str]]:
    """Overrides by name of the change, in groups that are measured together; later groups cost more."""
    found = read_yaml_file(_FILE)
    return {str(group): {str(name): str(words) for name, words in each.items()} for group, each in found.items()}


@cache
def changes() -> Mapping[str, str]:
    """The overrides of every change by name, the base among them."""
    return {name: words for group in groups().values() for name, words in group.items()}


@cache
def _names() -> Mapping[frozenset[str], str]:
    earlier = groups().get(EARLIER, {})
    return {key(words.split()): name for name, words in changes().items() if name not in earlier}


def key(words: Iterable[str]) -> frozenset[str]:
    """What words make of the pipeline: without those on data, files and measuring; no preset is the baseline.

    The order that was learned without a site is, on this site, the change that the order is.
    """
    kept = {word.lstrip("+") for word in words}
    kept = {word for word in kept if word.partition("=")[0].partition(".")[0] not in (*_SHARED, *_SHARED_MORE)}
    if others := {word for word in kept if word.startswith(f"{ORDER}{WITHOUT}")}:
        kept = kept - others | ({ORDER} if "exp=recommended" not in kept else set())
    if not any(word.startswith("exp=") for word in kept):
        kept.add("exp=baseline")
    return frozenset(kept)


def name_of(words: Iterable[str]) -> str | None:
    """The change that these overrides make, None where the atlas does not know it."""
    return _names().get(key(words))


def has_order(name: str) -> bool:
    """Whether a change ranks by the order that was learned from questions about other documentation."""
    words = changes().get(name, "").split()
    return ORDER in words or ("exp=recommended" in words and "ranker=off" not in words)


def name_on_base(base: Iterable[str], arm: Iterable[str]) -> str | None:
    """The change that is known on `BASE` by the words that an arm adds to its base, None where there is none."""
    before, after = key(base), key(arm)
    if not before < after:
        return None
    return _names().get((after - before) | key(changes()[BASE].split()))
