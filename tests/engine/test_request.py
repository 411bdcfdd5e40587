"""What one search may ask for: modes of Librarian, the request fields of lexical search v3."""

from __future__ import annotations

from dataclasses import dataclass, replace
from xml.etree import ElementTree

import pytest

from ragbench.base.types import ConfigError
from ragbench.config import composition
from ragbench.extras.systems.stages.adjust import BoostFolder, KeepDiverse
from ragbench.extras.systems.stages.guarantee import GuaranteeNotes
from ragbench.extras.systems.stages.lexical_v3 import RankCandidates, RecallBySubstring
from ragbench.index.index import Index
from ragbench.search.engine.answer import Answer, SearchOptions, _in_xml, adapted_pipeline, answer
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.cut import Cut
from tests.naming import naming

V3 = composition.compose(["+exp=lexical_v3"])


@pytest.fixture(scope="module")
def ask(make_index):
    """Ask the pipeline of lexical search v3."""
    index = make_index(V3.index)

    def run(text: str, top_n: int = 10, pipeline: Pipeline = V3.pipeline, **options) -> Answer:
        return answer(text, pipeline, index, top_n, options=SearchOptions(**options))

    return run


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid", "rerank"])
def test_mode_is_the_preset_of_its_name(mode: str) -> None:
    pipeline, expected = (composition.compose([f"+exp=librarian_{name}"]).pipeline for name in ("hybrid", mode))
    assert adapted_pipeline(pipeline, SearchOptions(mode=mode), 10) == expected


def test_mode_without_its_search_is_refused() -> None:
    pipeline = composition.compose(["+exp=librarian_rerank"]).pipeline
    assert (
        adapted_pipeline(pipeline, SearchOptions(mode="semantic"), 10)
        == composition.compose(["+exp=librarian_semantic"]).pipeline
    )
    with pytest.raises(ConfigError, check=naming("mode hybrid", "lexical")):
        adapted_pipeline(pipeline, SearchOptions(mode="hybrid"), 10)


def test_request_without_depth_gives_all_hits() -> None:
    stages = {type(stage): stage for _, stage in adapted_pipeline(V3.pipeline, SearchOptions(return_all=True), 10)}
    assert stages[RecallBySubstring].limit == 100
    assert stages[RankCandidates].depth == 300
    assert stages[KeepDiverse].top_k == 100
    assert dict(adapted_pipeline(V3.pipeline, SearchOptions(return_all=True), 10))["cut"].top_n == 100


def test_request_documents_are_diverse_at_the_number_asked_for(ask) -> None:
    asked = adapted_pipeline(V3.pipeline, SearchOptions(), 4).stages
    assert [name for name, _ in asked[-3:]] == ["guarantee", "diverse at 4", "cut"]
    assert adapted_pipeline(V3.pipeline, SearchOptions(), 30) == V3.pipeline
    result = ask("lamp schedule account", 4)
    assert len({hit.docno for hit in result.hits}) == len(result.hits) == 4


def test_request_keeps_named_notes_apart_from_ranked_ones(ask) -> None:
    result = ask("#lantern/schedules lamps", 1)
    named, ranked = result.hits[: result.filter_results], result.hits[result.filter_results :]
    assert len(named) > 1 and all(hit.matches[0] == "tag-match" for hit in named)
    assert len(ranked) == 1 and not ranked[0].guaranteed
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    assert ranked[0].docno not in {hit.docno for hit in named}


def test_xml_has_every_hit_of_the_answer(ask) -> None:
    """Seed 002, "How they reach final RAG context": two sections, matchType and modified, ids that count through."""
    result = ask("#lantern/schedules lamps", 2)
    tree = ElementTree.fromstring(f"<context>{result.xml}</context>")
    named, ranked = tree.find("filterResults"), tree.find("searchResults")
    assert [element.findtext("matchType") for element in named] == ["tag-match"] * result.filter_results
    assert [element.findtext("modified") for element in ranked] == [
        hit.metadata.last_modified for hit in result.hits[-2:]
    ]
    assert [int(element.findtext("id")) for element in (*named, *ranked)] == [hit.rank for hit in result.hits]
    assert [element.findtext("content") for element in (*named, *ranked)] == [hit.passage for hit in result.hits]
    assert named.find("document/modified") is None and ranked.find("document/matchType") is None
    assert {element.findtext("path") for element in named} == {hit.path for hit in result.hits if hit.guaranteed}


def test_request_xml_of_odd_texts_and_of_nothing(ask) -> None:
    (first, *_) = ask("lamps", 1).hits
    odd = replace(first, rank=1, text="a < b && \x00 c\ud800 \U0001f4a1", title="<T>")
    document = ElementTree.fromstring(_in_xml([odd], 0)).find("document")
    assert (document.findtext("content"), document.findtext("title")) == ("a < b &&  c \U0001f4a1", "<T>")
    assert _in_xml([], 0) == "<searchResults>\n</searchResults>"


def test_request_for_a_time_takes_no_search(ask) -> None:
    pipeline = adapted_pipeline(V3.pipeline, SearchOptions(after="2026-01-14", before="2026-01-15"), 10)
    assert [name for name, _ in pipeline] == ["search", "guarantee", "cut"]
    result = ask("anything", after="2026-01-14", before="2026-01-15")
    assert "2026-01-14" in [hit.docno for hit in result.hits]
    assert all(hit.matches == ("time-filtered",) for hit in result.hits)
    assert result.filter_results == len(result.hits)


def test_request_takes_phrasings_and_terms_of_the_caller(ask) -> None:
    assert ask("xyzzy").hits == ()
    assert ask("xyzzy", phrasings=("lamp",), salient_terms=("lamp",)).hits
    tagged = ask("xyzzy", salient_terms=("#lantern",))
    assert tagged.filter_results == len(tagged.hits) > 0


def test_request_answer_counts_candidates_and_names_filters(index: Index) -> None:
    pipeline = composition.compose(["filters=on", "filters.file_types=[MD]"]).pipeline
    result = answer("lamps", pipeline, index, 2)
    assert len(result.hits) == 2 < result.total
    assert result.filters_applied == {"file_types": ("MD",)}
    assert (
        answer("lamps", composition.compose(["filters=on", "filters.file_types=[.txt]"]).pipeline, index, 2).total == 0
    )


def test_request_may_exceed_the_depth_of_the_preset(ask) -> None:
    stages = {type(stage): stage for _, stage in adapted_pipeline(V3.pipeline, SearchOptions(), 60)}
    assert (stages[RankCandidates].depth, stages[KeepDiverse].top_k, stages[Cut].top_n) == (180, 60, 60)
    assert stages[RecallBySubstring].limit == 200
    few = composition.compose(["+exp=lexical_v3", "diverse.top_k=3", "cut.top_n=3"]).pipeline
    assert len(ask("lamp schedule account", 6, few).hits) == 6


def test_request_may_name_the_class_of_the_query(ask) -> None:
    pipeline = composition.compose(["p3=on"]).pipeline
    named = dict(adapted_pipeline(pipeline, SearchOptions(query_class="navigational"), 10))
    assert named["p3"].override == "navigational" and dict(pipeline)["p3"].override is None
    with pytest.raises(ConfigError, check=naming("query_class")):
        adapted_pipeline(V3.pipeline, SearchOptions(query_class="factual"), 10)


@dataclass(frozen=True)
class Broken(BoostFolder):
    """A boost that fails."""

    def __call__(self, states, index):
        """Fail."""
        raise OSError("the graph is gone")


def test_failing_search_falls_back_to_documents_that_hold_the_query(ask, index: Index) -> None:
    broken = Pipeline(tuple((n, Broken() if isinstance(s, BoostFolder) else s) for n, s in V3.pipeline))
    result = ask("[[authentication]]", pipeline=broken)
    assert (result.hits[0].docno, result.filter_results) == ("guides/authentication", 1)
    result = ask("password", pipeline=broken)
    assert [hit.score for hit in result.hits] == pytest.approx([1 / rank for rank in range(1, len(result.hits) + 1)])
    assert result.hits and "because the search failed: the graph is gone" in result.notes[-1]
    plain = composition.compose([]).pipeline
    with pytest.raises(OSError, check=naming("the graph is gone")):
        answer("password", Pipeline((plain.stages[0], ("broken", Broken()), *plain.stages[1:])), index, 3)


@pytest.mark.parametrize(
    "options", [{"hypothesis": "x"}, {"phrasings": ("x",), "salient_terms": ("y",)}, {"after": "2026-01-01"}]
)
def test_request_beyond_the_pipeline_is_refused(options: dict) -> None:
    with pytest.raises(ConfigError, check=naming(*options, "pipeline")):
        adapted_pipeline(composition.compose([]).pipeline, SearchOptions(**options), 10)


@pytest.mark.parametrize("options", [{"mode": "fast"}, {"after": "soon"}])
def test_request_refuses_options_that_mean_nothing(options: dict) -> None:
    with pytest.raises(ConfigError, check=naming(*options, *options.values())):
        SearchOptions(**options)


def test_request_refuses_a_time_that_ends_before_it_begins(ask) -> None:
    with pytest.raises(ConfigError, check=naming("after", "before")):
        ask("x", after="2026-02-01", before="2026-01-01")
    assert isinstance(dict(V3.pipeline)["guarantee"], GuaranteeNotes)
