"""Filters of P9: what they mean, and that every source searches inside them."""

import pytest

from ragbench.base.types import Filters
from ragbench.search.stages.filters import FilterDocuments
from ragbench.search.stages.retrieve import RetrieveCode, RetrieveDense, RetrieveLexical


def docnos(stage, given, index) -> set[str]:
    (after,) = stage([given], index)
    return {index.chunks.docno(chunk) for chunk in after.rankings[stage.source].chunks}


def admitted(state, index, **conditions) -> set[str]:
    (given,) = FilterDocuments(**conditions)([state("lamps schedules account controller mast")], index)
    by_meaning, by_words = docnos(RetrieveDense(), given, index), docnos(RetrieveLexical(), given, index)
    assert by_words <= by_meaning
    return by_meaning


@pytest.mark.parametrize(
    ("conditions", "docnos"),
    [
        ({"category": "Reference"}, {"reference/limits"}),
        ({"category": "tutorial"}, {"guides/first-lamp"}),  # `type` is the category's other name
        ({"author": "ada  quist"}, {"guides/first-lamp", "reference/limits"}),
        ({"author": "Bo Lind"}, {"reference/limits"}),
        ({"tags": ("lantern/schedules",)}, {"guides/schedules", "guides/schedules-v1"}),
        ({"tags": ("#Time", "oncall")}, {"guides/schedules", "2026-01-14"}),
        ({"modified_after": "2025-11-02", "modified_before": "2025-11-03"}, {"guides/first-lamp"}),
        ({"modified_after": "2026-01-20", "modified_before": "2026-01-21"}, {"guides/schedules"}),
        ({"modified_before": "1980-01-02"}, set()),
        ({"author": "Ada Quist", "category": "reference"}, {"reference/limits"}),
        ({"tags": ("lanter",)}, set()),  # the beginning of a word is no tag above it
        ({"category": "nothing"}, set()),
    ],
)
def test_filter_documents_by_conditions(state, index, conditions: dict, docnos: set[str]) -> None:
    assert admitted(state, index, **conditions) == docnos


def test_filter_documents_takes_tags_below_a_tag(state, index) -> None:
    assert admitted(state, index, tags=("lantern",)) == {
        "index",
        "guides/authentication",
        "guides/first-lamp",
        "guides/schedules",
        "guides/schedules-v1",
    }


def test_filters_leave_the_number_of_hits(state, index) -> None:
    (given,) = FilterDocuments(tags=("lantern/schedules",))([state("how do I sign in")], index)
    for stage in (RetrieveDense(depth=2), RetrieveLexical(depth=2)):
        (after,) = stage([given.with_text("lexical", "lamps schedule dusk")], index)
        assert len(after.rankings[stage.source]) == 2


def test_filters_hold_for_code(state, index) -> None:
    everywhere = docnos(RetrieveCode(min_match=0), state("LampClient getAuthToken policy"), index)
    assert everywhere == {"guides/first-lamp", "guides/authentication", "reference/errors"}
    (given,) = FilterDocuments(author="Ada Quist")([state("LampClient getAuthToken policy")], index)
    assert docnos(RetrieveCode(min_match=0), given, index) == {"guides/first-lamp"}


def test_states_may_have_different_filters(state, index) -> None:
    from dataclasses import replace

    plain = state("lamps")
    tutorial = replace(plain, filters=Filters(category="tutorial"))
    together = RetrieveDense()([plain, tutorial, plain], index)
    assert together == [RetrieveDense()([one], index)[0] for one in (plain, tutorial, plain)]
    assert RetrieveDense().question(plain) != RetrieveDense().question(tutorial)


def test_filter_documents_counts_those_that_pass(state, index) -> None:
    (after,) = FilterDocuments(author="Ada Quist")([state()], index)
    assert after.filters == Filters(author="Ada Quist")
    assert after.notes == ("2 of 8 documents pass the filters",)
    assert FilterDocuments(author="Ada Quist", tags=("a", "b")).describe() == "filter by author Ada Quist, tags a or b"


def test_filter_documents_without_conditions(state, index) -> None:
    assert FilterDocuments()([state()], index) == [state()]
