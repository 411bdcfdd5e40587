"""P1: the vocabulary's nearest terms, by hand on chosen vectors and with the real encoder."""

from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.index.vocabulary import Vocabulary, build_vocabulary
from ragbench.search.stages.expand import ExpandTerms

# Terms at these cosines from the query's vector (1, 0); the example of seed 001.
COSINES = {"indexing": 0.68, "query": 0.62, "performance": 0.58, "database": 0.55, "cooking": 0.2}


class FixedVectors:
    """Gives every term the vector at its cosine, every query (1, 0)."""

    def encode_passages(self, terms):
        return np.array([(COSINES[t], np.sqrt(1 - COSINES[t] ** 2)) for t in terms], dtype=np.float32)

    def encode_queries(self, texts):
        return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))


@pytest.fixture
def index(tmp_path):
    build_vocabulary(tmp_path, list(COSINES), FixedVectors())
    return SimpleNamespace(encoder=FixedVectors(), vocabulary=Vocabulary(tmp_path))


def test_expand_terms_worked_example_of_the_seed(state, index) -> None:
    (after,) = ExpandTerms()([state("database optimization")], index)
    assert after.text_for("dense") == "database optimization indexing query performance"
    assert after.text_for("lexical") == "database optimization"
    assert after.notes == ("expanded with indexing (0.68), query (0.62), performance (0.58)",)


@pytest.mark.parametrize(
    ("parameters", "text", "expanded"),
    [
        ({"top_k": 1}, "slow", "slow indexing"),
        ({"threshold": 0.6}, "slow", "slow indexing query"),
        ({"threshold": 0.62001}, "slow", "slow indexing"),
        ({"threshold": 0.9}, "slow", "slow"),
        # a term that stands in the query takes one of the three places and is not repeated
        ({}, "Query planner", "Query planner indexing performance"),
        ({"top_k": 99, "threshold": -1.0}, "database", "database indexing query performance cooking"),
    ],
)
def test_expand_terms_how_many_and_how_near(state, index, parameters: dict, text: str, expanded: str) -> None:
    (after,) = ExpandTerms(**parameters)([state(text)], index)
    assert after.text_for("dense") == expanded


def test_expand_terms_sources_may_be_chosen_and_keep_what_they_have(state, index) -> None:
    given = state("slow").with_text("lexical", "slow sluggish")
    (after,) = ExpandTerms(top_k=1, sources=("dense", "lexical"))([given], index)
    assert after.texts == {"dense": "slow indexing", "lexical": "slow sluggish indexing"}


def test_expand_terms_takes_an_empty_vocabulary(state, tmp_path) -> None:
    class Nothing(FixedVectors):
        def encode_passages(self, terms):
            return np.empty((0, 2), dtype=np.float32)

    build_vocabulary(tmp_path, [], Nothing())
    index = SimpleNamespace(encoder=Nothing(), vocabulary=Vocabulary(tmp_path))
    assert ExpandTerms()([state("slow")], index) == [state("slow")]


def test_expand_terms_adds_authentication_to_auth(state, index_of_vault) -> None:
    (after,) = ExpandTerms()([state("auth")], index_of_vault)
    assert "authentication" in after.text_for("dense").split()


@pytest.fixture
def index_of_vault(make_index):
    return make_index()
