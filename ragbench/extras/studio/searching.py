"""Searches in the index: two configurations side by side, opened once and kept.

Topics that are made here are appended to a file that `data.queries` reads.
"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import LRUCache
from pydantic import ValidationError

from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.base.fingerprint import digest
from ragbench.base.types import Hit
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.lines import write_atomically
from ragbench.benchmark.load import load
from ragbench.boundary.json import read_json_lines
from ragbench.boundary.paths import inside
from ragbench.boundary.permissions import NOTHING, Capability
from ragbench.config import catalogue
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.composition import compose
from ragbench.config.overrides import EXPERIMENT, section_of, why_not_plain
from ragbench.config.settings import Settings
from ragbench.extras.ship.serving.messages import SearchFilters, first_sentence
from ragbench.extras.studio.queries import Part, mark_matches
from ragbench.search.engine.answer import Answer, answer
from ragbench.search.engine.executor import Arm
from ragbench.search.engine.snippet import highlights, snippet
from ragbench.search.stages.filters import FilterDocuments

MOST = 2000
"""The most characters of a query."""

_OF_THE_OPERATOR = frozenset({"data", "topics", "paths", "live", "execution", "tracking"})
"""Keys that say what is searched and where things lie; a page does not change them."""

_WARM_UP = "a query before the first one"
_KEPT = 4
"""The most configurations that stay open."""


@dataclass(frozen=True)
class Found:
    """The answer of a configuration, with a snippet for every hit."""

    words: str
    answer: Answer
    snippets: tuple[tuple[Part, ...], ...]

    @property
    def hits(self) -> Sequence[tuple[Hit, tuple[Part, ...]]]:
        """Hits with their snippets."""
        return list(zip(self.answer.hits, self.snippets, strict=True))


@dataclass
class Searching:
    """Opens configurations when they are first used; `words` are the settings of the project, before all others.

    With `presets_only`, nothing but the name of a preset is taken.
    """

    root: Path
    words: tuple[str, ...] = ()
    presets_only: bool = False
    _allowed: LRUCache[tuple[str, frozenset[Capability]], Settings] = field(default_factory=lambda: LRUCache(64))
    _arms: LRUCache[str, Arm] = field(default_factory=lambda: LRUCache(_KEPT))
    _benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def search(
        self, query: str, overrides: str, filters: Mapping[str, str], may: frozenset[Capability], top: int = 10
    ) -> Found:
        """The best hits of a query in the configuration with these words; one search at a time.

        Raises ConfigError, also when the words, or the search, need more than `may` allows.
        """
        if not query.strip():
            raise ConfigError("the query is empty: pass a query")
        if len(query) > MOST:
            raise ConfigError(f"the query is longer than {MOST} characters: shorten it")
        conditions = _stage(filters)
        with self._lock:
            arm = self._arm_of(overrides, may)
            search_answer = answer(query, arm.pipeline, arm.index, top, filters=conditions, explain=True)
        pattern = highlights(query)
        return Found(
            overrides,
            search_answer,
            tuple(mark_matches(snippet(hit.text, pattern), pattern) for hit in search_answer.hits),
        )

    @property
    def topics_file(self) -> Path:
        """The file of the topics that were made here."""
        return self.root / "studio" / "topics.jsonl"

    def keep(self, query: str, relevant: Sequence[str]) -> int:
        """Append a topic with its relevant documents; returns the number of topics. BenchmarkError if known."""
        text = " ".join(query.split())
        if not text or len(text) > MOST or not text.isprintable():
            raise ConfigError(f"a topic has 1 to {MOST} printable characters")
        with self._lock:
            lines = self.topics_file.read_text(encoding="utf-8").splitlines() if self.topics_file.is_file() else []
            for docno in relevant:
                inside(self.root, docno)
            if any(topic["text"] == text for topic in read_json_lines("\n".join(lines))):
                raise BenchmarkError(f"'{text}' is a topic already: change {self.topics_file}")
            lines.append(json.dumps({"text": text, "relevant": list(relevant)}, ensure_ascii=False))
            write_atomically(self.topics_file, "".join(f"{line}\n" for line in lines))
            return len(lines)

    def is_pure(self, overrides: str) -> bool:
        """Whether a search with these words names no file, model or server: its address may be opened again."""
        with self._lock:
            try:
                self._settings_of(overrides, NOTHING)
            except ConfigError:
                return False
            return True

    def _settings_of(self, overrides: str, may: frozenset[Capability]) -> Settings:
        if (overrides, may) in self._allowed:
            return self._allowed[overrides, may]
        chosen = split(overrides)
        presets = {f"{EXPERIMENT}={name}" for name in experiments()} if self.presets_only else set()
        if self.presets_only and not presets.issuperset(override.lstrip("+") for override in chosen):
            raise ConfigError("a read-only studio searches with presets only: write exp=NAME")
        if refused := next((override for override in chosen if section_of(override) in _OF_THE_OPERATOR), None):
            raise ConfigError(f"'{refused[:80]}' cannot be changed here: give it to ragbench studio")
        settings = compose_for(chosen, self.words, may)
        needs = {key: need for key, (need, _) in settings.search_needs.items()}
        sends = [key for key, need in needs.items() if need in (Capability.SENDS, Capability.EXECUTES)]
        if sends and not may:  # the operator has set it, but an address that is opened must not ask by itself
            raise ConfigError(f"{min(sends)} {needs[min(sends)]}: press Search to allow that")
        self._allowed[overrides, may] = settings
        return settings

    def _arm_of(self, overrides: str, may: frozenset[Capability]) -> Arm:
        settings = self._settings_of(overrides, may)
        if overrides not in self._arms:
            key = digest(settings.config["data"])
            if key not in self._benchmarks:
                self._benchmarks[key] = load(settings.config["data"], topics=False)
            (arm,) = ArmBuilder.of(settings, self._benchmarks[key]).arms([settings])
            arm.index.prepare(arm.pipeline.needs | {"facets"})
            answer(_WARM_UP, arm.pipeline, arm.index, 1)  # so that loading does not count as time of a stage
            self._arms[overrides] = arm
        return self._arms[overrides]


def split(overrides: str) -> list[str]:
    """Overrides as they are typed in a shell. Raises ConfigError for options and open quotes."""
    try:
        parts = shlex.split(overrides)
    except ValueError:
        raise ConfigError("a quote in the overrides is not closed: close it") from None
    if refused := next((part for part in parts if part.startswith("-") or "=" not in part.lstrip("+~")), None):
        raise ConfigError(f"'{refused[:80]}' is not an override: write key=value, such as p6=on")
    return parts


def _stage(parameters: Mapping[str, str]) -> FilterDocuments | None:
    """The filters of a form: `tags` are separated by commas."""
    values: dict[str, object] = {name: text.strip() for name, text in parameters.items() if text.strip()}
    if "tags" in values:
        values["tags"] = [tag.strip() for tag in str(values["tags"]).split(",") if tag.strip()]
    try:
        return SearchFilters.model_validate(values).stage()
    except ValidationError as error:
        raise ConfigError(f"filter {first_sentence(error.errors())}") from None


def experiments() -> list[str]:
    """The names of the presets for `exp=`."""
    return [experiment.name for experiment in catalogue.read().experiments]


def compose_for(overrides: Sequence[str], base: Sequence[str], may: frozenset[Capability]) -> Settings:
    """The settings for overrides with no more permissions than `may`, after those of `base`, which may do anything.

    Raises ConfigError before anything is imported, sent, started or read that is not allowed.
    """
    for override in overrides if Capability.EXECUTES not in may else ():  # composing imports code, or reads variables
        if reason := why_not_plain(override):
            raise ConfigError(f"'{override[:80]}' {reason}, which is not allowed here: remove it")
    base_needs = compose(base).needs

    def require_allowed(settings: Settings) -> None:
        for key, (need, value) in settings.needs.items():
            if need not in may and base_needs.get(key) != (need, value):
                raise ConfigError(f"{key} {need}, which is not allowed here: remove it")

    return compose([*base, *overrides], inspect=require_allowed)
