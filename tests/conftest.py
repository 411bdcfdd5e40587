"""What tests share: a small vault, its benchmark and an index over it, made once for a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.corpus.reader import read_vault
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec
from ragbench.models.access import Models

DATA = Path(__file__).parent / "data"

TOPICS = (
    Topic("t1", "LNT-301", "factual", "test"),
    Topic("t2", "how do lamps know when the sun sets", "vocabulary", "test"),
    Topic("t3", "getAuthToken", "code", "train"),
    Topic("t4", "what happens after too many wrong passwords", "exploratory", "train"),
    Topic("t5", "can lantern play music", "no_answer", "test"),
)
SECTION_QRELS = {
    "t1": {"reference/errors#error-codes": 3, "guides/authentication#authentication/certificates-for-controllers": 2},
    "t2": {"guides/schedules#schedules/dusk-and-dawn": 3, "guides/schedules-v1#schedules/dusk-and-dawn": 0},
    "t3": {"guides/authentication#authentication/certificates-for-controllers": 3},
    "t4": {"guides/authentication#authentication/accounts-for-people": 3},
    "t5": {"index#lantern-handbook": 0},
}


@pytest.fixture(scope="session")
def vault_folder() -> Path:
    return DATA / "vault"


@pytest.fixture(scope="session")
def benchmark_small(vault_folder: Path) -> Benchmark:
    from ragbench.benchmark.native import best_sections

    documents = read_vault(vault_folder).documents
    return Benchmark("lantern", documents, TOPICS, best_sections(SECTION_QRELS), SECTION_QRELS)


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder for the session, so that embeddings and artefacts are made once."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="session")
def models(workplace: Path) -> Models:
    return Models(cache=workplace / "cache")


@pytest.fixture(scope="session")
def make_index(benchmark_small: Benchmark, workplace: Path, models: Models):
    """A function from an index specification to the index of the small vault."""

    def make(spec: IndexSpec | None = None) -> Index:
        store = ArtefactStore(workplace / "index")
        return Index(spec or IndexSpec(), benchmark_small.collection, lambda: benchmark_small.documents, store, models)

    return make


@pytest.fixture(scope="session")
def index(make_index) -> Index:
    return make_index()
