"""Searches in the index: two configurations side by side, opened once and kept."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from re import Pattern
from typing import NamedTuple

from cachetools import LRUCache

from ragbench.base.fingerprint import digest
from ragbench.base.types import ConfigError, Hit
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import available
from ragbench.config.composition import compose
from ragbench.config.overrides import section_of, why_not_plain
from ragbench.config.settings import ArmBuilder
from ragbench.index import jvm
from ragbench.search.engine import snippet
from ragbench.search.engine.answer import Answer, answer
from ragbench.search.engine.pipeline import Arm

MOST = 2000
"""The most characters of a query."""

_OF_THE_OPERATOR = frozenset({"data", "topics", "paths", "live", "source", "execution", "tracking"})
"""Keys that say what is searched and where things lie; a page does not change them."""

_WARM_UP = "a query before the first one"
_KEPT = 4
"""The most configurations that stay open."""


class TextPiece(NamedTuple):
    """A piece of text, `marked` if it matches a word of the query."""

    text: str
    marked: bool


@dataclass(frozen=True)
class Side:
    """The answer of a configuration, with a snippet for every hit."""

    words: str
    answer: Answer
    snippets: tuple[tuple[TextPiece, ...], ...]

    @property
    def hits(self) -> Sequence[tuple[Hit, tuple[TextPiece, ...]]]:
        """Hits with their snippets."""
        return list(zip(self.answer.hits, self.snippets, strict=True))


@dataclass
class Searching:
    """Opens configurations when they are first used; `words` are the settings of the project, before all others."""

    words: tuple[str, ...] = ()
    _arms: LRUCache[str, Arm] = field(default_factory=lambda: LRUCache(_KEPT))
    _benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def search(self, query: str, overrides: str, top: int = 10) -> Side:
        """The best hits of a query in the configuration with these words; one search at a time. Raises ConfigError."""
        if not query.strip():
            raise ConfigError("the query is empty: pass a query")
        if len(query) > MOST:
            raise ConfigError(f"the query is longer than {MOST} characters: shorten it")
        try:
            with self._lock:
                arm = self._arm_of(overrides)
                search_answer = answer(query, arm.pipeline, arm.index, top, explain=True)
        finally:
            jvm.detach()  # threads of the pool end when they are idle
        pattern = snippet.highlights(query)
        snippets = (mark_matches(snippet.snippet(hit.text, pattern), pattern) for hit in search_answer.hits)
        return Side(overrides, search_answer, tuple(snippets))

    def _arm_of(self, overrides: str) -> Arm:
        if overrides not in self._arms:
            settings = compose([*self.words, *split(overrides)])
            key = digest(settings.data)
            if key not in self._benchmarks:
                self._benchmarks[key] = settings.documents()
            (arm,) = ArmBuilder.of(settings, self._benchmarks[key]).arms([settings])
            arm.index.prepare(arm.pipeline.needs | {"facets"})
            answer(_WARM_UP, arm.pipeline, arm.index, 1)  # so that loading does not count as time of a stage
            self._arms[overrides] = arm
        return self._arms[overrides]


def split(overrides: str) -> list[str]:
    """Overrides as they are typed in a shell. Raises ConfigError for options, keys of the project and code."""
    try:
        parts = shlex.split(overrides)
    except ValueError:
        raise ConfigError("a quote in the overrides is not closed: close it") from None
    for part in parts:
        if part.startswith("-") or "=" not in part.lstrip("+~"):
            raise ConfigError(f"'{part[:80]}' is not an override: write key=value, such as p6=on")
        if section_of(part) in _OF_THE_OPERATOR:
            raise ConfigError(f"'{part[:80]}' cannot be changed here: give it to ragbench studio")
        if reason := why_not_plain(part):
            raise ConfigError(f"'{part[:80]}' {reason}, which is not allowed here: give it to ragbench studio")
    return parts


def experiments() -> list[str]:
    """The names of the presets for `exp=`."""
    return [experiment.name for experiment in available.read().presets]


def mark_matches(text: str, pattern: Pattern[str]) -> tuple[TextPiece, ...]:
    """A text in pieces; those that match are marked."""
    parts, end = [], 0
    for match in pattern.finditer(text):
        if match.start() > end:
            parts.append(TextPiece(text[end : match.start()], False))
        parts.append(TextPiece(match[0], True))
        end = match.end()
    return (*parts, TextPiece(text[end:], False)) if end < len(text) else tuple(parts)
