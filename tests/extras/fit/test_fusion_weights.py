"""Learned fusion weights: found where one source is better, not invented where none is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.base import console
from ragbench.base.errors import BenchmarkError
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.extras.fit.fusions import document_gain, learn_weights
from ragbench.search.stages.fuse import Fuse

N = 12
INDEX = SimpleNamespace()


def states(right: str, wrong: str) -> list[QueryState]:
    """Chunk 0 answers every query; source `right` has it first, `wrong` last of ten."""
    good, bad = [0, *range(1, 10)], [*range(10, 19), 0]
    made = []
    for number in range(N):
        state = QueryState(Query(f"q{number}", "t"))
        for source, chunks in ((right, good), (wrong, bad)):
            state = state.with_ranking(source, Ranking.ordered(chunks, np.linspace(1, 0, 10)))
        made.append(state)
    return made


def reciprocal_rank(rankings) -> np.ndarray:
    return np.array([1 / (1 + ranking.chunks.tolist().index(0)) for ranking in rankings])


def groups(n: int = N) -> list[str]:
    return [f"g{number}" for number in range(n)]


def test_the_better_source_gains_weight() -> None:
    # 2/61 against 1/61 + 1/70: with equal weights chunk 0 is first already; a weight of 0 for the right one loses it
    fuse = Fuse(k=0, weights={"good": 0.1, "bad": 1.9})
    learned = learn_weights(states("good", "bad"), groups(), fuse, INDEX, reciprocal_rank, draws=40)
    assert (learned.before < 1).all()
    assert (learned.after == 1).all()
    assert (learned.held_out == 1).all()
    assert learned.weights["good"] > 0.1
    assert sum(learned.weights.values()) == pytest.approx(2.0, abs=2e-3)


def test_where_nothing_is_gained_the_configured_weights_stay() -> None:
    learned = learn_weights(states("good", "bad"), groups(), Fuse(), INDEX, reciprocal_rank, draws=40)
    assert learned.weights == {"good": 1.0, "bad": 1.0}
    assert (learned.after == learned.before).all()


def test_the_gain_of_documents_is_their_ndcg(index, benchmark_small) -> None:
    """The relevant document of t3 first, second and nowhere; its other values, such as Hits@10, have no part in it."""
    other, relevant = (
        np.flatnonzero([index.chunks.docno(chunk) == docno for chunk in range(len(index.chunks))])[0]
        for docno in ("index", "guides/authentication")
    )
    state = QueryState(Query("t3", "getAuthToken"))
    gain = document_gain([state], index.chunks, benchmark_small)
    for chunks, expected in (([relevant, other], 1.0), ([other, relevant], 1 / np.log2(3)), ([other], 0.0)):
        ranking = Ranking.ordered(chunks, np.linspace(1, 0.5, len(chunks)))
        assert gain([ranking]).tolist() == pytest.approx([expected])


def test_values_beyond_a_measure_are_refused() -> None:
    with pytest.raises(BenchmarkError, match="must be between 0 and 1, got 10"):
        learn_weights(states("good", "bad"), groups(), Fuse(), INDEX, lambda rankings: np.full(N, 10.0))


def test_chance_does_not_pass_for_a_gain_on_queries_left_out() -> None:
    chance = np.random.default_rng(3)
    random = [
        QueryState(Query(f"q{n}", "t"))
        .with_ranking("a", Ranking.ordered(chance.permutation(20), np.linspace(1, 0, 20)))
        .with_ranking("b", Ranking.ordered(chance.permutation(20), np.linspace(1, 0, 20)))
        for n in range(30)
    ]
    learned = learn_weights(random, groups(30), Fuse(), INDEX, reciprocal_rank)
    assert learned.after.mean() >= learned.before.mean()
    assert learned.held_out.mean() <= learned.after.mean()


def test_is_repeatable_and_tells_of_its_progress() -> None:
    told: list[tuple[str, int, int]] = []
    fuse = Fuse(weights={"good": 0.2, "bad": 1.8})
    with console.progress_to(lambda *step: told.append(step)):
        runs = [learn_weights(states("good", "bad"), groups(), fuse, INDEX, reciprocal_rank, draws=9) for _ in range(2)]
    assert runs[0].weights == runs[1].weights
    assert told[:10] == [("trying weights", n, 10) for n in range(1, 11)]


def test_too_few_sources_or_groups_are_refused() -> None:
    one = [QueryState(Query("q", "t")).with_ranking("dense", Ranking.ordered([0], [1.0]))]
    with pytest.raises(BenchmarkError, match="weights need at least two sources, and only dense found anything"):
        learn_weights(one, ["g"], Fuse(), INDEX, reciprocal_rank)
    with pytest.raises(BenchmarkError, match="at least two groups"):
        learn_weights(states("a", "b"), ["g"] * N, Fuse(), INDEX, reciprocal_rank)
