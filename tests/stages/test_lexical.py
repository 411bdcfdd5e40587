"""Lexical retrieval: any of the words, the best first."""

import pytest

from ragbench.errors import ConfigError
from ragbench.stages.lexical import RetrieveLexical


def test_finds_by_any_word(state, index) -> None:
    # an AND of all words would match nothing here
    (after,) = RetrieveLexical(depth=3)([state("LNT-204 unicorns rainbows")], index)
    assert "LNT-204" in index.chunks.text(after.rankings["lexical"].chunks[0])


def test_searches_the_text_for_its_source(state, index) -> None:
    (after,) = RetrieveLexical(depth=1)([state("nothing of it").with_text("lexical", "sixty-four masts")], index)
    assert index.chunks.docno(after.rankings["lexical"].chunks[0]) == "reference/limits"


def test_no_states_no_work(index) -> None:
    assert RetrieveLexical()([], index) == []


def test_depth_must_be_positive() -> None:
    with pytest.raises(ConfigError, match=r"depth must be at least 1, got 0"):
        RetrieveLexical(depth=0)
