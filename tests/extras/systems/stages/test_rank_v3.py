"""Ranking of candidates by salient terms, seed 002; the formula is tested with the index of prefixes."""

from dataclasses import replace

import pytest

from ragbench.base.types import Filters
from ragbench.extras.systems.stages.lexical_v3 import RankCandidates
from ragbench.extras.systems.state import ExpandedQuery, RecalledNotes
from tests.naming import naming


@pytest.fixture
def index(handmade, page):
    """x/lamp has the chunks 0 and 1, sea 2, lamps 3."""
    return handmade(
        [page("x/lamp", ("dusk", "lamp")), page("sea", ("lamp at sea",), tags=["t"]), page("lamps", ("q",))]
    )


def ranked(given, index, stage=None) -> list[int]:
    return (stage or RankCandidates())([given], index)[0].rankings["lexical"].chunks.tolist()


def test_salient_terms_rank_and_other_phrasings_do_not(state, index) -> None:
    given = state("about the sea").with_fact(ExpandedQuery("about the sea", ("sea",), ("lamp",)))
    assert ranked(given, index) == [2]
    assert ranked(given.with_fact(ExpandedQuery("dusk", ())), index) == [0]  # the original, without terms


def test_title_and_path_outweigh_the_body_and_beginnings_count(state, index) -> None:
    assert ranked(state("lamp"), index)[0] == 1  # title, path and body
    assert set(ranked(state("lamp"), index)) == {0, 1, 2, 3}
    body = RankCandidates(weights={"body": 1.0})
    assert set(ranked(state("lamp"), index, body)) == {1, 2}


def test_rank_v3_candidates_and_filters_limit_it(state, index) -> None:
    assert set(ranked(state("lamp").with_fact(RecalledNotes((0, 2))), index)) == {0, 1, 3}
    assert ranked(replace(state("lamp"), filters=Filters(tags=("t",))), index) == [2]
    assert ranked(state("lamp").with_fact(RecalledNotes(())), index) == []
    assert len(ranked(state("lamp"), index, RankCandidates(depth=2))) == 2


class Broken:
    """An index of which the terms cannot be read."""

    def search(self, *_: object) -> None:
        raise OSError("the disk is gone")


def test_rank_v3_falls_back_to_the_place_among_files_that_hold_the_query(state, index) -> None:
    index.prefixes = Broken()
    with pytest.raises(
        OSError, check=naming("the disk is gone")
    ):  # the fallback is of the whole search: no later stage runs
        RankCandidates()([state("lamp")], index)
    # x/lamp and lamps by their path, sea by its content; 1 / place, one chunk each
    ranking = RankCandidates().when_failed(state("lamp"), index)
    assert ranking.chunks.tolist() in ([3, 0, 2], [0, 3, 2])
    assert ranking.scores.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    filtered = replace(state("lamp"), filters=Filters(tags=("t",)))
    assert RankCandidates().when_failed(filtered, index).chunks.tolist() == [2]


def test_rank_v3_finds_nothing_without_fallback(state, index) -> None:
    index.scan = type("Gone", (), {"recall": Broken.search})()
    assert RankCandidates().when_failed(state("lamp"), index).chunks.tolist() == []


def test_rank_v3_says_which_fields_match(state, index) -> None:
    reasons = RankCandidates().explain(state("lamp"), index, 0)
    assert reasons == {
        "lexical_matches": [
            {"field": "title", "query": "lamp", "weight": 5.0},
            {"field": "path", "query": "lamp", "weight": 1.5},
        ]
    }


def test_rank_v3_defaults_are_those_of_the_seed() -> None:
    assert RankCandidates().depth == 3 * 30
    assert RankCandidates().weights == {"title": 5, "tags": 4, "heading": 2.5, "path": 1.5, "body": 1}
