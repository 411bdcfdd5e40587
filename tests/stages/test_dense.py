"""Dense retrieval: texts as queries, hypotheses as passages."""

from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.errors import ConfigError
from ragbench.stages.dense import RetrieveDense


def test_a_hypothesis_is_embedded_as_a_passage_in_place_of_the_query(state, handmade, page) -> None:
    class TwoWays:
        dim = 2

        def encode_queries(self, texts):
            return np.tile(np.array([1, 0], np.float32), (len(texts), 1))

        def encode_passages(self, texts):
            return np.tile(np.array([0, 1], np.float32), (len(texts), 1))

    index = handmade([page("a", ("x", "y"))], np.eye(2))
    index.encoder = TwoWays()
    plain, supposed = state("t"), state("t").with_text("hypothesis", "an answer")
    first = [each.rankings["dense"].chunks[0] for each in RetrieveDense()([plain, supposed, plain], index)]
    assert first == [0, 1, 0]
    assert RetrieveDense().question(plain) != RetrieveDense().question(supposed)
    # a hypothesis stands alone: no terms of P1 are added to it
    assert RetrieveDense().question(supposed) == RetrieveDense().question(supposed.with_text("dense", "t more"))


def test_finds_by_meaning(state, index) -> None:
    (after,) = RetrieveDense(depth=3)([state("who may log in")], index)
    ranking = after.rankings["dense"]
    assert "locked for fifteen minutes" in index.chunks.text(ranking.chunks[0])
    assert len(ranking) == 3
    assert -1 <= ranking.scores[-1] <= ranking.scores[0] <= 1.0001


def test_no_states_no_work() -> None:
    encoder = SimpleNamespace(dim=2)
    assert RetrieveDense()([], SimpleNamespace(encoder=encoder)) == []


def test_depth_must_be_positive() -> None:
    with pytest.raises(ConfigError, match=r"depth must be at least 1, got 0"):
        RetrieveDense(depth=0)
