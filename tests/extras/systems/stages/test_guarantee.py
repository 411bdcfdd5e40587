"""Guaranteed notes of seed 002: named, tagged, of a time; nothing after them drops one, and filters hold."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ragbench.base.types import Filters, Query
from ragbench.config import composition
from ragbench.extras.systems.stages.guarantee import GuaranteeNotes
from ragbench.extras.systems.state import ExpandedQuery
from ragbench.search.engine.hits import hits
from ragbench.search.engine.pipeline import Pipeline, start
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.filters import FilterDocuments
from ragbench.search.stages.stage import Stage
from tests.composed import composed

DAY = 86_400.0


@pytest.fixture
def index(handmade, page):
    """alpha 0 1; beta 2; gamma 3 4 5; 1970-01-03 6."""
    return handmade(
        [
            page("alpha", ("p", "q"), modified=1 * DAY, frontmatter={"aliases": ["first"]}),
            page("beta", tags=["project"], modified=5 * DAY),
            page("gamma", "xyz", tags=["project/alpha", "other"], modified=9 * DAY),
            page("1970-01-03", tags=["projects"], modified=500 * DAY),
        ]
    )


def after(stage: GuaranteeNotes, state, index):
    return stage([state], index)[0]


def test_guarantee_named_note_comes_first_whole_and_the_search_loses_its_hits(state, index) -> None:
    result = after(GuaranteeNotes(), state("see [[First]]", fused=[(2, 0.9), (1, 0.8), (3, 0.7)]), index)
    assert result.fused.chunks.tolist() == [0, 2, 3]
    assert result.fused.scores.tolist() == pytest.approx([1.0, 0.9, 0.7])
    assert set(result.guaranteed) == {0}
    assert result.contexts == {0: (0, 1)}
    assert hits(result, index, 1)[0].context


def test_guarantee_keeps_earlier_guaranteed_hits(state, index) -> None:
    given_ = replace(state("[[alpha]]", fused=[(1, 0.9), (2, 0.8)]), guaranteed={1: "title-match"})
    result = after(GuaranteeNotes(), given_, index)
    assert result.fused.chunks.tolist() == [0, 1, 2]
    assert set(result.guaranteed) == {0, 1}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("#project", [2, 3]),  # and the tags below it, not #projects
        ("#project/alpha", [3]),
        ("#PROJECT/alpha", [3]),
        ("#alpha", []),
        ("project", []),
        ("#other [[alpha]]", [0, 3]),  # named before tagged
        ("#project [[gamma]]", [3, 2]),
        ("[[nowhere]] #none", []),
    ],
)
def test_tags_by_hierarchy(state, index, text: str, first: list[int]) -> None:
    result = after(GuaranteeNotes(), state(text, fused=[]), index)
    assert result.fused.chunks.tolist() == first
    assert result.fused.scores.tolist() == [1.0] * len(first)


def test_salient_tags_come_before_those_of_the_text(state, index) -> None:
    given_ = state("#other", fused=[]).with_fact(ExpandedQuery("#other", ("#projects",)))
    assert after(GuaranteeNotes(), given_, index).fused.chunks.tolist() == [6]


def test_guarantee_each_kind_can_be_off_and_their_number_has_a_limit(state, index) -> None:
    given_ = state("[[alpha]] #project", fused=[])
    assert after(GuaranteeNotes(tags=False), given_, index).fused.chunks.tolist() == [0]
    assert after(GuaranteeNotes(mentions=False), given_, index).fused.chunks.tolist() == [2, 3]
    assert after(GuaranteeNotes(limit=2), given_, index).fused.chunks.tolist() == [0, 2]


def test_guarantee_says_how_it_was_named(state, index) -> None:
    given_ = state("[[alpha]] #project", fused=[(6, 0.5)])
    result = after(GuaranteeNotes(), given_, index)
    assert result.guaranteed == {0: "title-match", 2: "tag-match", 3: "tag-match"}
    assert result.notes == ("notes guaranteed: 1 by name, 2 by tag",)


def test_guarantee_time_is_the_whole_answer_most_recent_first(state, index) -> None:
    # the daily note counts for 3 January, whenever it was changed; gamma of day 9 is the first
    given_ = state("anything [[beta]]", fused=[(0, 0.9)])
    result = after(GuaranteeNotes(after="1970-01-02", before="1970-01-11"), given_, index)
    assert result.fused.chunks.tolist() == [3, 2, 6, 0]
    assert result.fused.scores.tolist() == pytest.approx([1.0, 0.96, 0.93, 0.92])  # days 9, 5, 2 and 1
    assert result.guaranteed == dict.fromkeys((3, 2, 6, 0), "time-filtered")


@pytest.mark.parametrize(
    ("after_", "before", "chunks"),
    [("1970-01-06", None, [6, 3, 2]), (None, "1970-01-03", [0]), ("1970-01-03", "1970-01-04", [6]), ("1980", None, [])],
)
def test_guarantee_beginning_of_a_time_belongs_to_it_and_its_end_does_not(state, index, after_, before, chunks) -> None:
    result = after(GuaranteeNotes(after=after_, before=before), state(fused=[(0, 0.9)]), index)
    assert result.fused.chunks.tolist() == chunks
    assert (result.fused.scores >= 0.3).all()


def test_filters_hold_for_guaranteed_notes(state, index) -> None:
    given_ = replace(state("[[alpha]] #project", fused=[]), filters=Filters(tags=("other",)))
    assert after(GuaranteeNotes(), given_, index).fused.chunks.tolist() == [3]
    assert after(GuaranteeNotes(after="1970-01-01"), given_, index).fused.chunks.tolist() == [3]


# Properties over whole pipelines --------------------------------------------------------------------------------------

QUERY = Query("q", "who may rotate keys [[auth]] and see [[2026-01-14]] #lantern/schedules")
LATER = ("p10", "p8.content_hash", "p12", "p8.semantic", "p11", "p8.limit", "context", "keywords", "p6", "p13.expand")


def later_stages() -> dict[str, Stage]:
    """Every stage that may come after the guarantee, by name; P11 replaces one of them, so there are two sources."""
    switches = [f"{name}=on" for name in ("calibration", "p8", "p10", "p12", "context", "keywords", "p6", "p13")]
    both = (composed("+exp=lexical_v3", *switches), composed("+exp=lexical_v3", *switches, "p11=on"))
    return {name: stage for preset in both for name, stage in preset.pipeline}


@pytest.fixture(scope="module")
def guaranteed(make_index):
    """The index with parents and the state after the guarantee."""
    settings_ = composed("+exp=lexical_v3", "calibration=on", "p13=on")
    index = make_index(settings_.index)
    states = start([QUERY])
    names = [name for name, _ in settings_.pipeline]
    for _, stage in settings_.pipeline.stages[: names.index("guarantee") + 1]:
        states = stage(states, index)
    return index, states[0]


@given(chosen=st.sets(st.sampled_from(LATER)), top_n=st.integers(1, 8))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_guarantee_no_subset_of_later_stages_drops_a_guaranteed_note(guaranteed, chosen: set[str], top_n: int) -> None:
    index, state = guaranteed
    stages = later_stages()
    for name in LATER:
        if name in chosen:
            (state,) = stages[name]([state], index)
    (state,) = Cut(top_n)([state], index)
    docnos = {index.chunks.docno(chunk) for chunk in state.fused.chunks}
    assert docnos >= {"guides/authentication", "2026-01-14", "guides/schedules", "guides/schedules-v1"}
    assert set(state.guaranteed) <= set(state.fused.chunks.tolist())
    assert len(state.fused) <= top_n + len(state.guaranteed)


def test_guarantee_later_stages_are_all_there() -> None:
    places = list(composed().config["order"])
    assert [name for name in places[places.index("guarantee") + 1 :] if name != "cut"] == list(LATER)
    assert set(LATER) <= set(later_stages())


CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.sampled_from([("lantern",), ("lantern/schedules",), ("time",)]),
        "doc_type": st.sampled_from(["guide", "reference", "documentation"]),
        "product": st.sampled_from(["guides", "reference"]),
        "modified_after": st.sampled_from(["2025-12-01", "2026-01-20"]),
        "min_bytes": st.integers(0, 2000),
        "heading_levels": st.sampled_from([(1,), (2, 3), (0,)]),
    },
)
PRESETS = ("lexical_v3", "semantic_v3", "librarian_hybrid", "librarian_rerank", "phase1")


@pytest.fixture(scope="module")
def open_index(make_index):
    """The index of a preset, opened once."""
    return lru_cache(lambda preset: make_index(composed(f"+exp={preset}").index))


@given(conditions=CONDITIONS, preset=st.sampled_from(PRESETS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_guarantee_filters_never_leak(open_index, conditions: dict[str, Any], preset: str) -> None:
    settings_ = composed(f"+exp={preset}")
    index = open_index(preset)
    pipeline = Pipeline((("filters", FilterDocuments(**conditions)), *settings_.pipeline.stages))
    for state in pipeline([QUERY, Query("r", "lamps at dusk")], index):
        if not conditions:
            assert state.filters is None
            continue
        result = state.fused.chunks.tolist()
        shown = [*result, *(chunk for hit in result for chunk in state.contexts.get(hit, ()))]
        assert index.allowed(state.filters)[shown].all()


def test_guarantee_filter_gives_as_many_hits_as_enough_documents_allow(make_index) -> None:
    plain, filtered = composition.sweep(["+exp=librarian_hybrid", "filters=on", "filters.product=guides,null"])
    index = make_index(plain.index)
    (some,) = plain.pipeline([Query("r", "lamps at dusk")], index)
    (every,) = filtered.pipeline([Query("r", "lamps at dusk")], index)
    assert len(some.fused) == sum(docno.startswith("guides/") for docno in index.chunks.docnos)
    assert len(every.fused) > len(some.fused)
