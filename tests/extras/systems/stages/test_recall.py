"""Recall by substring of seed 002."""

from dataclasses import replace

import pytest

from ragbench.base.types import Filters
from ragbench.extras.systems.stages.lexical_v3 import RecallBySubstring
from ragbench.extras.systems.state import ExpandedQuery, RecalledNotes


@pytest.fixture
def index(handmade, page):
    return handmade(
        [page("sea", ("waves",), tags=["t"]), page("b", ("a sea of lamps",)), page("c", ("lamp",)), page("d", ("x",))]
    )


def candidates(given, index) -> tuple[int, ...]:
    return RecallBySubstring()([given], index)[0].fact(RecalledNotes).documents


def test_recall_without_expansion_the_query_is_the_only_term(state, index) -> None:
    assert candidates(state("sea"), index) == (0, 1)
    assert candidates(state("sea of LAMPS"), index) == (1,)
    assert candidates(state("the sea"), index) == ()
    assert candidates(state("x"), index) == ()


def test_recall_other_phrasings_and_salient_terms_widen_it(state, index) -> None:
    given = state("no such").with_fact(ExpandedQuery("no such", ("lamp",), ("waves",)))
    assert candidates(given, index) == (0, 1, 2)
    assert RecallBySubstring()([given], index)[0].notes == ("3 candidates hold a term, 0 of them in their path",)


def test_recall_filters_act_inside(state, index) -> None:
    assert candidates(replace(state("sea"), filters=Filters(tags=("t",))), index) == (0,)


def test_recall_limits_of_the_seed() -> None:
    assert RecallBySubstring().limit == 200
