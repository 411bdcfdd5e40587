"""P11: maximal marginal relevance, by hand and against the formula of the seeds."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.search.stages.redundancy import Diversify, _marginal_order

RELEVANCE = np.array([1.0, 0.9, 0.5])
SIMILARITY = np.array([[1.0, 0.95, 0.1], [0.95, 1.0, 0.2], [0.1, 0.2, 1.0]], dtype=np.float32)


@pytest.mark.parametrize(
    ("weight", "order", "scores"),
    [
        # 0.5: 1 first; then .5*.9 + .5*(1-.95) = .475 against .5*.5 + .5*(1-.1) = .7; last .5*.9 + .5*(1-.95)
        (0.5, [0, 2, 1], [1.0, 0.7, 0.475]),
        # 0.7: .7*.9 + .3*.05 = .645 against .7*.5 + .3*.9 = .62; last .7*.5 + .3*(1-.2)
        (0.7, [0, 1, 2], [1.0, 0.645, 0.59]),
        (1.0, [0, 1, 2], [1.0, 0.9, 0.5]),  # relevance alone
        (0.0, [0, 2, 1], [1.0, 0.9, 0.05]),  # diversity alone: 1 - .1, then 1 - .95
    ],
)
def test_mmr_by_hand(weight: float, order: list[int], scores: list[float]) -> None:
    chunks, values = _marginal_order(RELEVANCE, SIMILARITY, weight)
    assert chunks == order
    assert values == pytest.approx(scores)


def seed_mmr(relevance: np.ndarray, similarity: np.ndarray, weight: float) -> list[int]:
    """The loop of seed 000."""
    selected: list[int] = []
    remaining = list(range(len(relevance)))
    while remaining:
        best, best_score = remaining[0], -math.inf
        for candidate in remaining:
            closest = max((similarity[candidate, s] for s in selected), default=0.0)
            score = weight * relevance[candidate] - (1 - weight) * closest
            if score > best_score + 1e-12:
                best, best_score = candidate, score
        selected.append(best)
        remaining.remove(best)
    return selected


@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 10_000))
def test_mmr_agrees_with_the_loop_of_the_seed_and_never_grows(n: int, weight: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = chance.standard_normal((n, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = np.clip(vectors @ vectors.T, 0, 1)
    relevance = np.sort(chance.random(n))[::-1]
    order, scores = _marginal_order(relevance, similarity.astype(np.float64), weight)
    assert order == seed_mmr(relevance, similarity, weight)
    assert np.all(np.diff(scores) <= 1e-12)
    assert np.all((scores >= -1e-12) & (scores <= 1 + 1e-12))


def unit(*degrees: float) -> list[tuple[float, float]]:
    return [(math.cos(math.radians(a)), math.sin(math.radians(a))) for a in degrees]


def test_mmr_scales_relevance_and_diversifies(state, handmade, page) -> None:
    # fused .03, .02, .01 scale to 1, .5, 0. Vectors at 0, 1 and 90 degrees. With 0.5: second is
    # .5*.5 + .5*(1-.99985) = .25 against 0 + .5*1 = .5.
    index = handmade([page("a", ("x", "y", "z"))], unit(0, 1, 90))
    given_state = state(fused=[(0, 0.03), (1, 0.02), (2, 0.01)])
    (after,) = Diversify(lambda_=0.5)([given_state], index)
    assert after.fused.chunks.tolist() == [0, 2, 1]
    assert after.fused.scores.tolist() == pytest.approx([1.0, 0.5, 0.25008], abs=1e-4)
    assert given_state.fused.chunks.tolist() == [0, 1, 2]


def test_mmr_takes_scores_as_they_are(state, handmade, page) -> None:
    # calibrated .9 and .6, at right angles: .7*.9 + .3 = .93 and .7*.6 + .3 = .72
    index = handmade([page("a", ("x", "y"))], unit(0, 90))
    (after,) = Diversify(scale="score")([state(fused=[(0, 0.9), (1, 0.6)])], index)
    assert after.fused.scores.tolist() == pytest.approx([0.93, 0.72])


def test_mmr_counts_opposite_vectors_as_unlike(state, handmade, page) -> None:
    index = handmade([page("a", ("x", "y"))], unit(0, 180))
    (after,) = Diversify(lambda_=0.0)([state(fused=[(0, 0.9), (1, 0.6)])], index)
    assert after.fused.scores.tolist() == [1.0, 1.0]


def test_mmr_takes_no_one_and_equal_candidates(state, handmade, page) -> None:
    index = handmade([page("a", ("x", "y", "z"))], unit(0, 0, 0))
    nothing, one, equal = Diversify()(
        [state(fused=[]), state(fused=[(1, 0.2)]), state(fused=[(2, 0.4), (0, 0.4), (1, 0.4)])], index
    )
    assert len(nothing.fused) == 0
    assert (one.fused.chunks.tolist(), one.fused.scores.tolist()) == ([1], [1.0])
    # all alike: the order stays, relevance is 1 for all, the later ones lose what is theirs for being new
    assert equal.fused.chunks.tolist() == [2, 0, 1]
    assert equal.fused.scores.tolist() == pytest.approx([1.0, 0.7, 0.7])


def test_mmr_hits_beyond_the_candidates_follow(state, handmade, page) -> None:
    index = handmade([page("a", ("w", "x", "y", "z"))], unit(0, 0, 90, 0))
    hits = [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.6)]
    (after,) = Diversify(candidates=2)([state(fused=hits)], index)
    assert after.fused.chunks.tolist() == [0, 1, 2, 3]
    # the second candidate has relevance 0 and is a copy: its score is 0, nobody after it may have more
    assert after.fused.scores.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_mmr_lambda_by_query_class(state, handmade, page) -> None:
    from dataclasses import replace

    index = handmade([page("a", ("x", "y", "z"))], unit(0, 1, 90))
    hits = [(0, 0.03), (1, 0.02), (2, 0.01)]
    stage = Diversify(lambda_=1.0, by_class={"exploratory": 0.5})
    states = [state(fused=hits), *(replace(state(fused=hits), query_class=c) for c in ("factual", "exploratory"))]
    assert [after.fused.chunks.tolist() for after in stage(states, index)] == [[0, 1, 2], [0, 1, 2], [0, 2, 1]]


def test_mmr_has_the_defaults_of_the_seed() -> None:
    assert (Diversify().lambda_, Diversify().candidates) == (0.7, 50)
