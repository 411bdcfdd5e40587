"""Graph: neighbours of what was found, scored, bounded and represented by one chunk each."""

import math
from dataclasses import replace
from functools import partial

import pytest

from ragbench.base.types import Filters
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.links import FollowLinks

Every = partial(FollowLinks, new_only=False, share=1.0)  # all neighbours, found already or not


@pytest.fixture
def chain(handmade, page):
    """a -> b -> c -> d, and e linked with nobody; one chunk each, numbers 0 to 4."""
    return handmade([page("a", links=["b"]), page("b", links=["c"]), page("c", links=["d"]), page("d"), page("e")])


def neighbours(stage: FollowLinks, given, index) -> dict[int, float]:
    ranking = stage([given], index)[0].rankings["graph"]
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


def test_follow_links_both_ways_for_one_hop(state, chain) -> None:
    assert neighbours(Every(), state(dense=[1]), chain) == {0: 1.0, 2: 1.0}


def test_follow_links_ranks_a_neighbour_with_its_best_seed(state, chain) -> None:
    # e first (no links), then d (neighbour c, 1/2), then a (neighbour b, 1/3)
    assert neighbours(Every(), state(dense=[4, 3, 0]), chain) == pytest.approx({2: 1 / 2, 1: 1 / 3})


def test_follow_links_every_further_hop_costs_the_factor(state, chain) -> None:
    assert neighbours(Every(hops=2), state(dense=[0]), chain) == {1: 1.0, 2: 0.5}
    assert neighbours(Every(hops=3), state(dense=[0]), chain) == {1: 1.0, 2: 0.5, 3: 0.25}


def test_follow_links_weighs_half_in_fusion_as_in_seed_001(state, chain) -> None:
    # seed 001, end to end: a neighbour alone in the graph's list gets 0.5 * 1/(60+1) = 0.0082
    (after,) = Every()([state(dense=[0])], chain)
    assert after.weights == {"graph": 0.5}
    ranking = Fuse().fuse(after, chain)
    assert dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True)) == pytest.approx(
        {0: 1 / 61, 1: 0.5 / 61}, rel=1e-6
    )


def test_follow_links_multiplies_the_weight_of_a_navigational_query(state, chain) -> None:
    (after,) = Every()([state(dense=[0]).with_weight("graph", 1.5)], chain)
    assert after.weights == {"graph": 0.75}


def test_follow_links_of_the_first_seeds_only(state, chain) -> None:
    assert neighbours(Every(seeds=1), state(dense=[4, 3]), chain) == {}
    assert neighbours(Every(seeds=2), state(dense=[4, 3]), chain) == {2: 0.5}


def test_follow_links_takes_seeds_from_all_sources(state, chain) -> None:
    # d is first in lexical, a second in dense: both sources are searched, ranks 1 for e and d (chunk numbers decide)
    assert neighbours(Every(seeds=2), state(dense=[4, 0], lexical=[3]), chain) == {2: 1.0}


def test_follow_links_counts_a_document_once(state, handmade, page) -> None:
    angles = [0, 80, 40, 10, 60]
    vectors = [(math.cos(math.radians(a)), math.sin(math.radians(a))) for a in angles]
    index = handmade([page("a", links=["long"]), page("long", ("p", "q", "r", "s"))], vectors)
    # chunk 3, at 10 degrees, is nearest to the seed's chunk at 0
    assert neighbours(Every(), state(dense=[0]), index) == {3: 1.0}
    # but what another source found of the document stands for it
    assert neighbours(Every(), state(dense=[0], lexical=[4]), index) == {0: 0.5, 4: 1.0}


def test_follow_links_bounds_the_share_of_neighbours(state, handmade, page) -> None:
    pages = [page("hub", ("p", "q", "r", "s"), links=[f"n{n}" for n in range(6)]), *(page(f"n{n}") for n in range(6))]
    index = handmade(pages)
    given = state(dense=[0, 1, 2], lexical=[3, 0])  # four hits: with two more, a third are neighbours
    assert list(neighbours(FollowLinks(share=1 / 3), given, index)) == [4, 5]
    assert list(neighbours(FollowLinks(share=0.2), given, index)) == [4]
    assert [len(neighbours(FollowLinks(share=share), given, index)) for share in (0, 0.19, 1)] == [0, 1, 6]


def test_follow_links_adds_only_new_documents_by_default(state, chain) -> None:
    given = state(dense=[1], lexical=[0])
    assert neighbours(Every(new_only=True), given, chain) == {2: 0.5}
    assert neighbours(Every(), given, chain) == {0: 0.5, 1: 1.0, 2: 0.5}


def test_follow_links_skips_a_neighbour_without_chunks(state, handmade, page) -> None:
    index = handmade([page("a", links=["empty", "b"]), page("empty", ()), page("b")])
    assert neighbours(Every(), state(dense=[0]), index) == {1: 1.0}


def test_follow_links_keeps_filters(state, handmade, page) -> None:
    index = handmade([page("a", links=["b", "c"]), page("b"), page("c", tags=["auth/tokens"])])
    given = replace(state(dense=[0]), filters=Filters(tags=("auth",)))
    assert neighbours(Every(), given, index) == {2: 1.0}


def test_follow_links_has_the_defaults_of_the_seed() -> None:
    assert (FollowLinks().factor, FollowLinks().hops) == (0.5, 1)
