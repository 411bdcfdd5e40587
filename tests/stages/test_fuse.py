"""Fusion by ranks, with the worked examples of seed 001, and by scores, with numbers worked by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.search.stages.fuse import Fuse

# Two documents: chunks 0 to 2, and all others.
INDEX = SimpleNamespace(chunks=SimpleNamespace(document=np.array([0, 0, 0, *[1] * 60], dtype=np.int32)))


def state(**rankings: Ranking) -> QueryState:
    made = QueryState(Query("q", "text"))
    for source, ranking in rankings.items():
        made = made.with_ranking(source, ranking)
    return made


def ranked(*chunks: int) -> Ranking:
    return Ranking.ordered(chunks, [1.0 / (rank + 1) for rank in range(len(chunks))])


def fuse(given_state: QueryState, **parameters) -> dict[int, float]:
    ranking = Fuse(**parameters).fuse(given_state, INDEX)
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


def test_fuse_adds_reciprocal_ranks_of_three_lists() -> None:
    # auth.md of seed 001: ranks 3, 5 and 2 -> 1/63 + 1/65 + 1/62 = 0.0473...
    scores = fuse(state(dense=ranked(7, 8, 1), lexical=ranked(7, 8, 9, 10, 1), graph=ranked(7, 1)))
    assert scores[1] == pytest.approx(1 / 63 + 1 / 65 + 1 / 62, rel=1e-6)


def test_fuse_adds_reciprocal_ranks_of_two_lists() -> None:
    # deploy.md of seed 001: ranks 1 and 10 -> 1/61 + 1/70 = 0.0307
    scores = fuse(state(dense=ranked(2), graph=ranked(*range(10, 19), 2)))
    assert scores[2] == pytest.approx(0.0307, abs=5e-5)


def test_fuse_multiplies_by_weights() -> None:
    # seed 001: 1.2/63 + 0.8/65 = 0.0313
    scores = fuse(state(dense=ranked(7, 8, 1), lexical=ranked(7, 8, 9, 10, 1)), weights={"dense": 1.2, "lexical": 0.8})
    assert scores[1] == pytest.approx(1.2 / 63 + 0.8 / 65, rel=1e-6)
    assert scores[1] == pytest.approx(0.0313, abs=1e-4)


def test_fuse_multiplies_weights_of_state_and_configuration() -> None:
    weighted = state(dense=ranked(1), lexical=ranked(2)).with_weight("lexical", 1.5)
    assert fuse(weighted, weights={"lexical": 2.0}) == pytest.approx({2: 3.0 / 61, 1: 1.0 / 61}, rel=1e-6)


def test_fuse_skips_sources_of_weight_zero() -> None:
    assert list(fuse(state(dense=ranked(1), lexical=ranked(2)), weights={"lexical": 0.0})) == [1]


def test_fuse_breaks_ties_by_chunk_number() -> None:
    ranking = Fuse().fuse(state(dense=ranked(9), lexical=ranked(4)), INDEX)
    assert ranking.chunks.tolist() == [4, 9]


def test_fuse_without_hits_is_an_empty_ranking() -> None:
    assert len(Fuse().fuse(state(dense=Ranking.empty()), INDEX)) == 0


@given(
    st.lists(st.lists(st.integers(0, 50), unique=True, max_size=20), min_size=1, max_size=4),
    st.floats(0, 100, allow_nan=False),
)
def test_fuse_agrees_with_a_plain_loop(lists: list[list[int]], k: float) -> None:
    given_state = state(**{f"s{n}": ranked(*chunks) for n, chunks in enumerate(lists)})
    expected: dict[int, float] = {}
    for chunks in lists:
        for rank, chunk in enumerate(chunks, start=1):
            expected[chunk] = expected.get(chunk, 0.0) + 1 / (k + rank)
    ranking = Fuse(k=k).fuse(given_state, INDEX)
    assert dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True)) == pytest.approx(expected, rel=1e-5)
    assert np.all(np.diff(ranking.scores) <= 0)


def test_fuse_chunks_of_a_document_share_its_rank() -> None:
    documents = Ranking.ordered([4, 5, 6, 0, 1], [2.0, 2.0, 2.0, 1.0, 1.0], of_documents=True)
    scores = fuse(state(documents=documents, dense=ranked(1)), k=1.0)
    assert scores == pytest.approx({4: 1 / 2, 5: 1 / 2, 6: 1 / 2, 0: 1 / 3, 1: 1 / 3 + 1 / 2})


def scored(**scores: float) -> Ranking:
    """Chunks `c1`, `c2` ... with their scores, best first."""
    return Ranking.ordered([int(name[1:]) for name in scores], list(scores.values()))


DENSE = scored(c1=0.9, c2=0.7, c3=0.5)
LEXICAL = scored(c2=12.0, c4=3.0)


@pytest.mark.parametrize(
    ("norm", "dense", "lexical"),
    [
        ("min_max", {1: 1, 2: 0.5, 3: 0}, {2: 1, 4: 0}),
        # from -1 for cosines and from 0 for the others: 1.9, 1.7 and 1.5 of 1.9; 3 of 12
        ("theoretical", {1: 1, 2: 1.7 / 1.9, 3: 1.5 / 1.9}, {2: 1, 4: 0.25}),
        # mean 0.7, deviation sqrt(0.08 / 3); mean 7.5, deviation 4.5
        ("z", {1: 0.2 / np.sqrt(0.08 / 3), 2: 0, 3: -0.2 / np.sqrt(0.08 / 3)}, {2: 1, 4: -1}),
        ("three_sigma", {1: 0.5 + 0.2 / np.sqrt(0.96), 2: 0.5, 3: 0.5 - 0.2 / np.sqrt(0.96)}, {2: 4 / 6, 4: 2 / 6}),
    ],
)
def test_fuse_normalises_and_weighs_scores(norm: str, dense: dict[int, float], lexical: dict[int, float]) -> None:
    """What a source did not return has what its last hit has."""
    scores = fuse(state(dense=DENSE, lexical=LEXICAL), method="convex", norm=norm, weights={"dense": 3.0})
    expected = {n: 0.75 * dense.get(n, dense[3]) + 0.25 * lexical.get(n, lexical[4]) for n in (1, 2, 3, 4)}
    assert scores == pytest.approx(expected, abs=1e-6)


def test_fuse_by_dbsf_is_convex_within_three_sigma() -> None:
    given = state(dense=DENSE, lexical=LEXICAL)
    assert fuse(given, method="dbsf", norm="z") == fuse(given, method="convex", norm="three_sigma")


@pytest.mark.parametrize(("norm", "value"), [("min_max", 1.0), ("theoretical", 1.0), ("z", 0.0), ("three_sigma", 0.5)])
def test_fuse_normalises_equal_scores(norm: str, value: float) -> None:
    assert fuse(state(dense=scored(c1=0.1, c2=0.1, c3=0.1)), method="convex", norm=norm) == dict.fromkeys(
        (1, 2, 3), value
    )


@given(
    st.lists(st.floats(-1, 50, width=32), min_size=1, max_size=30),
    st.lists(st.floats(-1, 50, width=32), min_size=1, max_size=30),
    st.sampled_from(["min_max", "theoretical", "three_sigma"]),
)
def test_fused_scores_agree_with_a_plain_loop(first: list[float], second: list[float], norm: str) -> None:
    rankings = {"a": Ranking.of(range(len(first)), first), "b": Ranking.of(range(5, 5 + len(second)), second)}
    scores = fuse(state(**rankings), method="convex", norm=norm)
    assert set(scores) == set(range(len(first))) | set(range(5, 5 + len(second)))
    for chunk, value in scores.items():
        expected = 0.0
        for ranking in rankings.values():
            own = ranking.scores.astype(float)
            score = own[ranking.chunks.tolist().index(chunk)] if chunk in ranking.chunks else own.min()
            if own.max() == own.min():
                expected += 0.25 if norm == "three_sigma" else 0.5
            elif norm == "three_sigma":
                expected += 0.5 * ((score - own.mean()) / own.std() / 6 + 0.5)
            else:
                low = own.min() if norm == "min_max" else min(0.0, own.min())
                expected += 0.5 * (score - low) / (own.max() - low)
        assert value == pytest.approx(expected, abs=1e-5)
