"""Filters of P9: what they mean, and that every source searches inside them."""

import pytest

from ragbench.base.types import ConfigError, Filters, Query
from ragbench.search.engine.pipeline import start
from ragbench.search.stages.filters import FilterDocuments, filters_of
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


VERSIONS = {
    "old": {"version": 3.1, "audience": ["staff", "Partners"]},
    "new": {"version": "3.2", "internal": True, "product": "Mast"},
    "plain": {},
}


@pytest.fixture
def versioned(handmade, page):
    return handmade([page(name, frontmatter=columns) for name, columns in VERSIONS.items()])


@pytest.mark.parametrize(
    ("conditions", "documents"),
    [
        ({"version": "3.1"}, ["old"]),
        ({"version": [3.1, "3.2"]}, ["old", "new"]),
        ({"audience": "partners"}, ["old"]),
        ({"internal": True}, ["new"]),
        ({"product": "mast"}, ["new"]),  # declared, so not the first folder
        ({"version": "3.2", "audience": "staff"}, []),
        ({"frontmatter": {"version": "3.1"}}, ["old"]),
    ],
)
def test_filters_by_columns_of_the_frontmatter(versioned, conditions: dict, documents: list[str]) -> None:
    passing = versioned.passing(filters_of(conditions).conditions)
    assert [name for name, passes in zip(versioned.chunks.docnos, passing, strict=True) if passes] == documents


def test_filter_by_a_column_that_no_document_has_is_refused(versioned) -> None:
    with pytest.raises(ConfigError, match="no document has 'versoin' in its frontmatter; did you mean version"):
        versioned.passing(filters_of({"versoin": "3.1"}).conditions)


def test_query_begins_with_its_filter(versioned) -> None:
    plain, filtered = start([Query("q1", "lamp"), Query("q2", "lamp", filter={"version": "3.2"})])
    assert plain.filters is None
    assert filtered.filters == Filters(frontmatter=(("version", ("3.2",)),))
    with pytest.raises(ConfigError, match="query 'q2' has a filter, and the pipeline its own"):
        FilterDocuments(tags=("a",))([filtered], versioned)
    with pytest.raises(ConfigError, match=r"query 'q3': filters\.min_bytes must be at least 0"):
        start([Query("q3", "lamp", filter={"min_bytes": -1})])
