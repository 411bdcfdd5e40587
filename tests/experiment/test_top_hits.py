"""Top hits agree with rankings and judgments."""

from ragbench.results.top_hits import COLUMNS, top_hits
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.retrieve import RetrieveLexical


def test_top_hits_follow_the_ranking_and_the_judgments(index, benchmark_small) -> None:
    pipeline = Pipeline((("lexical", RetrieveLexical(depth=20)), ("fuse", Fuse()), ("cut", Cut(20))))
    final = pipeline([topic.query() for topic in benchmark_small.topics], index)
    frame = top_hits(final, index.chunks, benchmark_small, depth=3)
    assert list(frame.columns) == list(COLUMNS)
    for state in final:
        rows = frame[frame["qid"] == state.query.qid]
        expected = [index.chunks.chunk_ids[chunk] for chunk in state.fused.chunks[:3]]
        assert rows["chunk_id"].tolist() == expected
        assert rows["rank"].tolist() == list(range(1, len(expected) + 1))
    first = frame[(frame["qid"] == "t1") & (frame["docno"] == "reference/errors")].iloc[0]
    assert first["document_grade"] == first["section_grade"] == 3
    assert "LNT-301" in first["snippet"] and first["path"] == "reference/errors.md"
    assert frame["section_grade"].isna().any()


def test_top_hits_no_queries_give_an_empty_table_with_all_columns(index, benchmark_small) -> None:
    assert list(top_hits([], index.chunks, benchmark_small).columns) == list(COLUMNS)
