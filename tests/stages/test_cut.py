"""Cutting a ranking."""

from dataclasses import replace

import pytest

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.search.stages.cut import Cut


def test_cut_keeps_the_first() -> None:
    state = QueryState(Query("q", "t"), fused=Ranking.ordered([4, 2, 8], [0.9, 0.5, 0.1]))
    (after,) = Cut(top_n=2)([state], None)
    assert after.fused == Ranking.ordered([4, 2], [0.9, 0.5])
    assert len(state.fused) == 3


@pytest.mark.parametrize(
    ("guaranteed", "left"),
    [({8}, [4, 2, 8]), ({2}, [4, 2, 8]), ({8, 5}, [4, 2, 8, 5]), ({2, 8, 5}, [4, 2, 8, 5]), ({99}, [4, 2])],
)
def test_cut_keeps_guaranteed_hits_in_addition(state, guaranteed: set[int], left: list[int]) -> None:
    given = replace(
        state(fused=[(4, 0.9), (2, 0.5), (8, 0.1), (5, 0.05)]), guaranteed=dict.fromkeys(guaranteed, "title-match")
    )
    (after,) = Cut(top_n=2)([given], None)
    assert after.fused.chunks.tolist() == left
