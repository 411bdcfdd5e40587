"""A handbook of a package registry (tests/data/phases) that any configuration can search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ragbench.base.rankings import QueryState
from ragbench.base.types import Hit, Query
from ragbench.config.settings import Settings
from ragbench.corpus.links import collection_digest
from ragbench.corpus.reader import read_vault
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index
from ragbench.models.resolve import Models
from ragbench.search.engine.answer import answer
from ragbench.search.engine.pipeline import start
from tests.composed import composed

VAULT = Path(__file__).parent.parent / "data" / "phases"


@dataclass(frozen=True)
class Handbook:
    """Searches the handbook with a configuration, given as overrides."""

    index_of: Callable[[Settings], Index]

    def index(self, *overrides: str) -> Index:
        return self.index_of(composed(*overrides))

    def hits(self, text: str, *overrides: str, top_n: int = 10) -> list[Hit]:
        return list(answer(text, composed(*overrides).pipeline, self.index(*overrides), top_n).hits)

    def docnos(self, text: str, *overrides: str, top_n: int = 10) -> list[str]:
        """Documents by their best hit."""
        return list(dict.fromkeys(hit.docno for hit in self.hits(text, *overrides, top_n=top_n)))

    def state(self, text: str, *overrides: str) -> QueryState:
        return composed(*overrides).pipeline([Query("q", text)], self.index(*overrides))[0]

    def trail(self, text: str, *overrides: str) -> dict[str, QueryState]:
        """The state after every stage."""
        states, after = start([Query("q", text)]), {}
        for name, stage in composed(*overrides).pipeline:
            states = stage(states, self.index(*overrides))
            after[name] = states[0]
        return after


@pytest.fixture(scope="session")
def handbook(workplace: Path, models: Models) -> Handbook:
    documents = read_vault(VAULT).documents
    store = ArtefactStore(workplace / "index")
    digest = collection_digest(documents)
    built: dict[str, Index] = {}

    def index_of(settings: Settings) -> Index:
        key = repr(settings.index)
        if key not in built:
            built[key] = Index(settings.index, digest, lambda: documents, store, models)
        return built[key]

    return Handbook(index_of)
