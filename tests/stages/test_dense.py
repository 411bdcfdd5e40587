"""Dense retrieval: texts as queries, hypotheses as passages."""

from types import SimpleNamespace

import numpy as np

from ragbench.index.dense import Centroids, build_centroids
from ragbench.index.index import VectorsSpec
from ragbench.search.stages.retrieve import RetrieveDense


def test_retrieve_dense_embeds_a_hypothesis_as_a_passage(state, handmade, page) -> None:
    class TwoWays:  # without `dim`, which loads a model whose vectors may be in the cache
        def encode_queries(self, texts):
            return np.tile(np.array([1, 0], np.float32), (len(texts), 1))

        def encode_passages(self, texts):
            return np.tile(np.array([0, 1], np.float32), (len(texts), 1))

    index = handmade([page("a", ("x", "y"))], np.eye(2))
    index.encoder = TwoWays()
    plain, supposed = state("t"), state("t").with_text("hypothesis", "an answer")
    first = [after.rankings["dense"].chunks[0] for after in RetrieveDense()([plain, supposed, plain], index)]
    assert first == [0, 1, 0]
    assert RetrieveDense().question(plain) != RetrieveDense().question(supposed)
    # a hypothesis stands alone: no terms of P1 are added to it
    assert RetrieveDense().question(supposed) == RetrieveDense().question(supposed.with_text("dense", "t more"))


def test_retrieve_dense_finds_by_meaning(state, index) -> None:
    (after,) = RetrieveDense(depth=3)([state("who may log in")], index)
    ranking = after.rankings["dense"]
    assert "locked for fifteen minutes" in index.chunks.text(ranking.chunks[0])
    assert len(ranking) == 3
    assert -1 <= ranking.scores[-1] <= ranking.scores[0] <= 1.0001


def test_retrieve_dense_weighs_the_mean_of_a_document(state, handmade, page) -> None:
    """Worked by hand: query (1, 0); the mean of a is (0.6, 0.8) + (1, 0), that of b is its only chunk (0.8, 0.6)."""
    index = handmade([page("a", ("x", "y")), page("b")], [[0.6, 0.8], [1.0, 0.0], [0.8, 0.6]])
    index.encoder = SimpleNamespace(
        dim=2, encode_queries=lambda texts: np.tile(np.array([1, 0], np.float32), (len(texts), 1))
    )
    build_centroids(index.folder, index.chunks, index.dense.vectors)
    index.centroids = Centroids(index.folder, index.chunks, index.dense)
    (alone,) = RetrieveDense()([state()], index)
    assert alone.rankings["dense"].chunks.tolist() == [1, 2, 0]
    (mixed,) = RetrieveDense(document=0.5)([state()], index)
    mean = 1.6 / np.hypot(1.6, 0.8)
    ranking = mixed.rankings["dense"]
    assert ranking.chunks.tolist() == [1, 2, 0]
    np.testing.assert_allclose(ranking.scores, [(1 + mean) / 2, 0.8, (0.6 + mean) / 2], rtol=1e-6)
    # one hit by its own vector brings the chunks of the nearest document with it
    assert RetrieveDense(document=0.5, depth=1)([state()], index)[0].rankings["dense"].chunks.tolist() == [1]
    assert RetrieveDense(document=0.5).needs == {"dense", "encoder", "centroids"}


def test_retrieve_dense_source_reads_its_own_parts() -> None:
    own = RetrieveDense(source="minilm", index=VectorsSpec())
    assert own.needs == {"dense:minilm", "encoder:minilm"}
