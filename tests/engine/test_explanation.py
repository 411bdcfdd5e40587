"""An explanation is what the pipeline did, and the hits are those of a search."""

from __future__ import annotations

import json

import pytest

from ragbench import app
from ragbench.engine.explanation import Answer, as_mapping, explain, show, snippet
from ragbench.engine.pipeline import Pipeline
from ragbench.index.index import Index, IndexSpec
from ragbench.stages.calibrate import Calibrate
from ragbench.stages.confidence import FilterByConfidence
from ragbench.stages.cut import Cut
from ragbench.stages.dense import RetrieveDense
from ragbench.stages.fuse import Fuse
from ragbench.stages.lexical import RetrieveLexical

QUERY = "what happens after too many wrong passwords"


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(
        (
            *(("dense", RetrieveDense(depth=20)), ("lexical", RetrieveLexical(depth=20)), ("fuse", Fuse())),
            *(("calibration", Calibrate()), ("p10", FilterByConfidence(threshold=0.2)), ("cut", Cut(5))),
        )
    )


def test_hits_are_those_of_a_search(pipeline: Pipeline, index: Index) -> None:
    answer = explain(QUERY, pipeline, index, 3)
    assert [each.hit for each in answer.hits] == pipeline.search(QUERY, index, 3)
    assert answer.hits[0].hit.docno == "guides/authentication"


def test_places_are_those_in_the_rankings_of_every_source_and_stage(pipeline: Pipeline, index: Index) -> None:
    answer = explain(QUERY, pipeline, index, 5)
    parts = dict(pipeline)
    alone = {
        name: Pipeline(((name, parts[name]), ("fuse", Fuse()))).search(QUERY, index, 20)
        for name in ("dense", "lexical")
    }
    for each in answer.hits:
        for source, (rank, _) in each.sources.items():
            assert alone[source][rank - 1].chunk_id == each.hit.chunk_id
        assert list(each.stages) == ["fuse", "calibration", "p10", "cut"]
        assert each.stages["cut"] == (each.hit.rank, pytest.approx(each.hit.score))
        # fused score: 1 / (60 + rank) for every source
        expected = sum(1 / (60 + rank) for rank, _ in each.sources.values())
        assert each.stages["fuse"][1] == pytest.approx(expected, rel=1e-5)


def test_counts_say_what_every_filter_left(pipeline: Pipeline, index: Index) -> None:
    answer = explain(QUERY, pipeline, index, 5)
    counts = dict(answer.counts)
    assert answer.compression.original_count == counts["original_count"]
    assert answer.compression.after_threshold == counts["after_threshold"] <= counts["original_count"]
    said = as_mapping(answer)
    assert json.loads(json.dumps(said)) == said
    assert said["counts"] == counts
    assert [hit["chunk_id"] for hit in said["hits"]] == [each.hit.chunk_id for each in answer.hits]


def test_a_parent_stands_where_its_children_stood(make_index) -> None:
    from ragbench import app

    settings = app.compose(["p13=on"])
    assert isinstance(settings.index, IndexSpec)
    index = make_index(settings.index)
    answer = explain(QUERY, settings.pipeline, index, 3)
    parents = [
        each for each in answer.hits if each.hit.chunk_id not in index.chunks.chunk_ids[: index.chunks.n_retrievable]
    ]
    assert parents
    assert all(each.sources and "fuse" in each.stages for each in parents)


def test_nothing_found_is_said(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    answer = explain("zzzz", Pipeline((("lexical", RetrieveLexical()), ("fuse", Fuse()))), index, 5)
    assert answer.hits == ()
    show(answer, in_full=True)
    assert "no hits" in capsys.readouterr().out


def test_what_is_shown_names_sources_and_stages(pipeline: Pipeline, index: Index, capsys) -> None:
    answer = explain(QUERY, pipeline, index, 2)
    show(answer, in_full=False)
    brief = capsys.readouterr().out
    show(answer, in_full=True)
    full = capsys.readouterr().out
    assert "guides/authentication" in brief and "found by" not in brief
    assert "found by: dense rank" in full and "calibration" in full and "hits: original_count" in full


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [("short  text\nhere", "x", "short text here"), ("a " * 200 + "needle", "the needle", "needle...")],
)
def test_snippets_are_where_the_words_are(text: str, query: str, expected: str) -> None:
    assert snippet(text, query).endswith(expected)
    assert len(snippet(text, query)) <= 226


# Reasons and metadata -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explained(make_index):
    """A function from a query and overrides to the answer of that configuration."""

    def ask(text: str, *overrides: str) -> Answer:
        settings = app.compose(list(overrides))
        index = make_index(settings.index)
        index.prepare(settings.pipeline.needs)
        return explain(text, settings.pipeline, index, 5)

    return ask


def test_fields_of_a_search_explanation(explained) -> None:
    answer = explained("schedules at dusk", "+exp=semantic_v3")
    reasons = answer.hits[0].reasons
    assert answer.hits[0].hit.docno == "guides/schedules"
    assert {"lexical_matches", "base_score", "final_score", "folder_boost"} <= set(reasons)
    assert {"field": "title", "query": "schedules", "weight": 5.0} in reasons["lexical_matches"]
    assert reasons["final_score"] == answer.hits[0].hit.score <= 1
    assert reasons["base_score"] > 1  # of BM25+, before it is normalised
    assert reasons["folder_boost"]["folder"] == "guides"
    assert reasons["folder_boost"]["boost_factor"] == 1.15


def test_a_guaranteed_note_says_how_it_was_named_and_comes_whole(explained) -> None:
    first, *_ = explained("keys in [[auth]]", "+exp=lexical_v3", "index.chunking.max_chars=300").hits
    assert first.reasons["source"] == "title-match"
    assert len(first.hit.details["context"]) > len(first.hit.text)


def test_metadata_of_every_hit(explained) -> None:
    for each in explained("lamps", "+exp=baseline").hits:
        assert set(each.metadata) == {
            "last_modified",
            "file_size",
            "heading_level",
            "tags",
            "doc_type",
            "product",
            "component",
            "indexed_at",
        }


@pytest.mark.parametrize("preset", ["all", "lexical_v3", "librarian_rerank"])
def test_plain_values_and_lines(explained, preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = explained("how do lamps know when the sun sets [[auth]]", f"+exp={preset}", "p10=off")
    plain = json.loads(json.dumps(as_mapping(answer)))
    assert plain["hits"][0]["explanation"]["final_score"] == plain["hits"][0]["score"]
    assert ("context" in plain["hits"][0]) == (preset != "all")
    show(answer, in_full=True)
    assert "because:  base_score" in capsys.readouterr().out
