"""An answer has everything about its hits; an explanation is what the pipeline did with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.types import Place
from ragbench.config import composition
from ragbench.index.index import Index, IndexSpec
from ragbench.search.engine.answer import Answer, answer, show
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.calibrate import Calibrate, FilterByConfidence
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.retrieve import RetrieveDense, RetrieveLexical
from tests.answers import as_mapping
from tests.naming import naming

QUERY = "what happens after too many wrong passwords"


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(
        (
            *(("dense", RetrieveDense(depth=20)), ("lexical", RetrieveLexical(depth=20)), ("fuse", Fuse())),
            *(("calibration", Calibrate()), ("p10", FilterByConfidence(threshold=0.2)), ("cut", Cut(5))),
        )
    )


def test_answer_explained_hits_are_those_of_a_search(pipeline: Pipeline, index: Index) -> None:
    explained = answer(QUERY, pipeline, index, 3, explain=True).hits
    assert [replace(hit, explanation=None) for hit in explained] == list(answer(QUERY, pipeline, index, 3).hits)
    assert explained[0].docno == "guides/authentication"


def test_answer_gives_ranks_in_every_source_and_stage(pipeline: Pipeline, index: Index) -> None:
    explained = answer(QUERY, pipeline, index, 5, explain=True).hits
    parts = dict(pipeline)
    alone = {
        name: list(answer(QUERY, Pipeline(((name, parts[name]), ("fuse", Fuse()))), index, 20).hits)
        for name in ("dense", "lexical")
    }
    for hit in explained:
        why = hit.explanation
        for source, position in why.sources.items():
            assert alone[source][position.rank - 1].chunk_id == hit.chunk_id
        assert hit.matches == tuple(why.sources)
        assert list(why.stages) == ["fuse", "calibration", "p10", "cut"]
        assert why.stages["cut"] == Place(hit.rank, pytest.approx(hit.score))
        # fused score: 1 / (60 + rank) for every source
        expected = sum(1 / (60 + position.rank) for position in why.sources.values())
        assert why.stages["fuse"].score == pytest.approx(expected, rel=1e-5)


def test_answer_counts_what_every_filter_left(pipeline: Pipeline, index: Index) -> None:
    result = answer(QUERY, pipeline, index, 5)
    assert result.compression.original_count == result.counts["original_count"]
    assert result.compression.after_threshold == result.counts["after_threshold"] <= result.counts["original_count"]
    mapping = as_mapping(result)
    assert json.loads(json.dumps(mapping)) == mapping
    assert mapping["counts"] == result.counts
    assert [hit["chunk_id"] for hit in mapping["hits"]] == [hit.chunk_id for hit in result.hits]
    assert list(result.stage_ms) == [name for name, _ in pipeline]


def test_answer_names_the_lines_of_a_hit(pipeline: Pipeline, index: Index, vault_folder: Path) -> None:
    for hit in answer("lamps errors keys dusk", pipeline, index, 5).hits:
        lines = (vault_folder / hit.path).read_text(encoding="utf-8").splitlines()
        assert "\n".join(lines[hit.start_line - 1 : hit.end_line]).strip() == hit.text.strip()


def test_answer_ends_at_the_deadline_before_a_stage_begins(pipeline: Pipeline, index: Index) -> None:
    with pytest.raises(TimeoutError, check=naming("stage dense")):
        answer(QUERY, pipeline, index, 5, deadline=0.0)


def test_answer_gives_a_parent_the_rank_of_its_children(make_index) -> None:
    from ragbench.config import composition

    settings = composition.compose(["p13=on"])
    assert isinstance(settings.index, IndexSpec)
    index = make_index(settings.index)
    hits = answer(QUERY, settings.pipeline, index, 3, explain=True).hits
    parents = [hit for hit in hits if hit.chunk_id not in index.chunks.chunk_ids[: index.chunks.n_retrievable]]
    assert parents
    assert all(hit.matches and "fuse" in hit.explanation.stages for hit in parents)


def test_show_names_an_empty_answer(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer("zzzz", Pipeline((("lexical", RetrieveLexical()), ("fuse", Fuse()))), index, 5)
    assert result.hits == ()
    show(result, in_full=True)
    assert "no hits" in capsys.readouterr().out


def test_show_names_sources_and_stages(pipeline: Pipeline, index: Index, capsys) -> None:
    result = answer(QUERY, pipeline, index, 2, explain=True)
    show(result, in_full=False)
    brief = capsys.readouterr().out
    show(result, in_full=True)
    full = capsys.readouterr().out
    assert "guides/authentication" in brief and "found by" not in brief
    assert "found by: dense rank" in full and "calibration" in full and "hits: original_count" in full


# Reasons and metadata -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explained(make_index):
    """A function from a query and overrides to the answer of that configuration."""

    def ask(text: str, *overrides: str) -> Answer:
        settings = composition.compose(list(overrides))
        index = make_index(settings.index)
        index.prepare(settings.pipeline.needs)
        return answer(text, settings.pipeline, index, 5, explain=True)

    return ask


def test_explanation_has_its_fields(explained) -> None:
    first, *_ = explained("schedules at dusk", "+exp=semantic_v3").hits
    reasons = first.explanation.reasons
    assert first.docno == "guides/schedules"
    assert {"lexical_matches", "base_score", "final_score", "folder_boost"} <= set(reasons)
    assert {"field": "title", "query": "schedules", "weight": 5.0} in reasons["lexical_matches"]
    assert reasons["final_score"] == first.score <= 1
    assert reasons["base_score"] > 1  # of BM25+, before it is normalised
    assert reasons["folder_boost"]["folder"] == "guides"
    assert reasons["folder_boost"]["boost_factor"] == 1.15


def test_explanation_says_how_a_guaranteed_note_was_named(explained) -> None:
    first, *_ = explained("keys in [[auth]]", "+exp=lexical_v3", "index.chunking.max_chars=300").hits
    assert first.guaranteed
    assert first.matches[0] == first.explanation.reasons["source"] == "title-match"
    assert first.passage == first.context
    assert len(first.context) > len(first.text)


def test_hit_has_the_metadata_of_its_file(explained, vault_folder: Path) -> None:
    for hit in explained("lamps", "+exp=baseline").hits:
        file = vault_folder / hit.path
        assert hit.metadata.file_size == file.stat().st_size
        assert hit.metadata.product == (hit.docno.split("/")[0] if "/" in hit.docno else "")
        lines = file.read_text(encoding="utf-8").splitlines()
        if hit.heading_level:
            assert "#" * hit.heading_level + f" {hit.header_path[-1]}" in lines


@pytest.mark.parametrize("preset", [pytest.param("all", marks=pytest.mark.slow), "lexical_v3", "librarian_rerank"])
def test_answer_becomes_plain_values_and_lines(explained, preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = explained("how do lamps know when the sun sets [[auth]]", f"+exp={preset}", "p10=off")
    first, *_ = json.loads(json.dumps(as_mapping(result)))["hits"]
    assert first["explanation"]["reasons"]["final_score"] == first["score"]
    assert (first["context"] is not None) == (preset != "all")
    show(result, in_full=True)
    assert "because:  base_score" in capsys.readouterr().out
