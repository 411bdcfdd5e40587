"""Documents, sections and quotes are judged apart, and a topic only at the levels where it has judgments."""

from __future__ import annotations

from dataclasses import replace

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.benchmark.quotes import Quote
from ragbench.evaluation.measures import has_enough_judgments, levels


def by_measure(level, benchmark, names=("RR", "Silence")):
    frame = level.evaluate([name for name in names if name != "Silence"], benchmark.unanswerable)
    return frame[frame["measure"].isin(names)].set_index(["qid", "measure"])["value"].to_dict()


def test_levels_hit_is_named_by_the_first_quotes_it_covers(index, benchmark_small) -> None:
    table = index.chunks
    docno, (start, end) = table.docno(3), table.span(3)
    third = (end - start) // 3
    quotes = (
        Quote("t1", "", docno, start, start + third),  # inside the chunk
        Quote("t1", "", docno, end - third, end + third),  # half of it inside
        Quote("t1", "", docno, end - third + 2, end + third),  # less than half
    )
    ranking = Ranking.ordered([0, 3, 3 + 1, 3], [4.0, 3.0, 2.0, 1.0])
    states = [QueryState(Query("t1", "x"), fused=ranking), QueryState(Query("t2", "x"), fused=ranking)]
    benchmark = replace(benchmark_small, quotes=quotes)
    frame = {level.name: level for level in levels(states, table, benchmark)}["quote"]
    assert [name for name, _ in frame.run["t1"]] == [
        table.chunk_ids[0],
        quotes[0].id,
        quotes[1].id,
        *([quotes[2].id] if table.docno(4) == docno else [table.chunk_ids[4]]),
        table.chunk_ids[3],
    ]
    assert list(frame.run) == ["t1"]
    assert by_measure(frame, benchmark) == {("t1", "RR"): 1 / 2}


def test_levels_lost_quote_is_no_judgment(index, benchmark_small) -> None:
    lost = replace(benchmark_small, quotes=(Quote("t1", "gone", "x", 0, 0, "lost"),))
    assert [level.name for level in levels([], index.chunks, lost)] == ["document", "section"]


def test_levels_topic_judged_by_document_is_not_silent_about_sections(index, benchmark_small) -> None:
    only_documents = {qid: grades for qid, grades in benchmark_small.section_qrels.items() if qid != "t2"}
    benchmark = replace(benchmark_small, section_qrels=only_documents)
    ranking = Ranking.ordered([0], [1.0])
    states = [QueryState(topic.query(), fused=ranking) for topic in benchmark.topics]
    document, section = levels(states, index.chunks, benchmark)
    assert {qid for qid, measure in by_measure(document, benchmark) if measure == "Silence"} == {"t5"}
    assert {qid for qid, _ in by_measure(section, benchmark)} == {"t1", "t3", "t4", "t5"}
    assert by_measure(section, benchmark)["t5", "Silence"] == 0.0


def test_levels_level_of_a_handful_of_topics_is_left_out() -> None:
    assert [has_enough_judgments(topics, 257) for topics in (0, 3, 19, 20, 257)] == [False, False, False, True, True]
    assert [has_enough_judgments(topics, 12) for topics in (0, 5, 6, 12)] == [
        False,
        False,
        True,
        True,
    ]  # few topics, half of them
    assert has_enough_judgments(1, 1)
