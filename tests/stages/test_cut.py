"""Cutting a ranking."""

import pytest

from ragbench.errors import ConfigError
from ragbench.stages.cut import Cut
from ragbench.types import Query, QueryState, Ranking


def test_keeps_the_first() -> None:
    state = QueryState(Query("q", "t"), fused=Ranking.ordered([4, 2, 8], [0.9, 0.5, 0.1]))
    (after,) = Cut(top_n=2)([state], None)
    assert after.fused == Ranking.ordered([4, 2], [0.9, 0.5])
    assert len(state.fused) == 3


def test_top_n_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="top_n must be at least 1, got 0"):
        Cut(top_n=0)
