"""Community: the example of seed 001 on two groups of documents."""

import pytest

from ragbench.search.stages.links import BoostCommunity


@pytest.fixture
def index(handmade, page):
    """auth, login, sessions link in a ring; cake, bread, tea too; lonely has no links. Chunks 0 to 6 in that order."""
    ring = lambda a, b, c: [page(a, links=[b]), page(b, links=[c]), page(c, links=[a])]  # noqa: E731
    return handmade([*ring("auth", "login", "sessions"), *ring("cake", "bread", "tea"), page("lonely")])


def scores(stage: BoostCommunity, given, index) -> dict[int, float]:
    ranking = stage([given], index)[0].fused
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


@pytest.mark.parametrize(
    ("include_seeds", "expected"),
    [
        (True, {0: 0.033, 1: 0.0308, 3: 0.029, 6: 0.027, 2: 0.022}),  # 1.1 times the scores of auth, login, sessions
        (False, {1: 0.0308, 0: 0.030, 3: 0.029, 6: 0.027, 2: 0.022}),  # only others, as in seed 001
    ],
)
def test_community_of_the_best_document_counts_more(state, index, include_seeds, expected) -> None:
    given = state(fused=[(0, 0.030), (3, 0.029), (1, 0.028), (6, 0.027), (2, 0.020)])
    boosted = scores(BoostCommunity(seeds=1, include_seeds=include_seeds), given, index)
    assert boosted == pytest.approx(expected) and list(boosted) == list(expected)


def test_community_seeds_are_documents(state, handmade, page) -> None:
    index = handmade([page("a", ("x", "y"), links=["b"]), page("b"), page("c", links=["d"]), page("d")])
    given = state(fused=[(0, 0.9), (1, 0.8), (3, 0.7), (4, 0.6)])
    # two hits of a are one seed; the second seed is c, whose community d shares
    assert scores(BoostCommunity(factor=2.0, seeds=2), given, index) == pytest.approx({0: 1.8, 1: 1.6, 3: 1.4, 4: 1.2})


def test_community_without_links_boosts_nothing(state, index) -> None:
    given = state(fused=[(6, 0.03), (0, 0.02)])
    assert scores(BoostCommunity(seeds=1), given, index) == pytest.approx({6: 0.03, 0: 0.02})


def test_community_default_is_that_of_the_seed() -> None:
    assert BoostCommunity().factor == 1.1
