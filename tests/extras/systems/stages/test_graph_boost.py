"""The graph boost of seed 002."""

import pytest

from ragbench.extras.systems.stages.adjust import BoostConnected


@pytest.mark.parametrize(
    ("connections", "factor"),
    [(0, 1.0), (1, 1.069315), (1.8, 1.102962), (3, 1.138629), (4, 1.15), (100, 1.15)],  # 1 + ln(1 + c) / 10
)
def test_graph_boost_factor(connections: float, factor: float) -> None:
    assert BoostConnected().factor(connections) == pytest.approx(factor, abs=1e-6)


@pytest.fixture
def index(handmade, page):
    """Chunks 0 a, 1 b, 2 c, 3 d, 4 hub: a links to b, hub to a and b; b and c share a tag; d has nothing."""
    return handmade(
        [
            page("a", links=["b"]),
            page("b", tags=["t"]),
            page("c", tags=["t", "u"]),
            page("d", tags=["v"]),
            page("hub", links=["a", "b"]),
        ]
    )


def test_backlinks_cocitations_and_shared_tags(state, index) -> None:
    # a: cited with b 0.5;  b: linked by a 1, cited with a 0.5, a tag with c 0.3;  c: a tag with b 0.3
    ranking = state(lexical=[0, 1, 2, 3]).rankings["lexical"]
    assert BoostConnected().connections(ranking, index) == pytest.approx({0: 0.5, 1: 1.8, 2: 0.3, 3: 0.0})


def test_graph_boost_scores_are_multiplied_and_sorted(state, index) -> None:
    after = BoostConnected()([state(fused=[(3, 1.0), (0, 0.97), (1, 0.96), (2, 0.5)])], index)[0].fused
    # b 0.96 * 1.102962, a 0.97 * (1 + ln 1.5 / 10), d as it was, c 0.5 * (1 + ln 1.3 / 10)
    assert after.chunks.tolist() == [1, 0, 3, 2]
    assert after.scores.tolist() == pytest.approx([1.058844, 1.009330, 1.0, 0.513118], abs=1e-5)


def test_graph_boost_only_the_first_documents_are_looked_at(state, index) -> None:
    ranking = state(lexical=[0, 2, 1]).rankings["lexical"]
    assert BoostConnected(max_candidates=2).connections(ranking, index) == {0: 0.0, 2: 0.0}


def test_graph_boost_says_why(state, index) -> None:
    given = state(lexical=[0, 1, 3])
    reasons = BoostConnected().explain(given, index, 1)["graph_boost"]
    assert reasons == {"connections": 1.5, "boost_factor": pytest.approx(1.091629, abs=1e-6)}
    assert BoostConnected().explain(given, index, 3) == BoostConnected().explain(given, index, 2) == {}


def test_graph_boost_defaults_are_those_of_the_seed() -> None:
    stage = BoostConnected()
    assert (stage.max_candidates, stage.strength, stage.max_factor) == (20, 0.1, 1.15)
