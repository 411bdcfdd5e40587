"""What the explorer is given: values, hits and losses of every query and arm."""

import pytest

from ragbench.extras.report.html import explorer
from ragbench.results.measurements import Measurements


def test_explorer_every_query_with_its_values_and_hits(ablation: Measurements) -> None:
    result = explorer(ablation)
    assert result["arms"] == ablation.arms
    assert result["measures"][0] == "nDCG@10"
    assert "section nDCG@10" in result["measures"]
    queries = {query["qid"]: query for query in result["queries"]}
    assert list(queries) == ["t1", "t2", "t3", "t4", "t5", "t6"]
    path = ablation.arms.index("p8")
    assert queries["t1"]["values"][0][path] == pytest.approx(ablation.values("p8")["t1"], abs=5e-5)
    assert queries["t5"]["values"][0] == [None] * len(ablation.arms)
    for query in result["queries"]:
        assert len(query["hits"]) == len(ablation.arms)
        assert all(
            len(hits) <= 10 and all(0 <= hit < len(query["passages"]) for hit, _ in hits) for hits in query["hits"]
        )
        scores = [[score for _, score in hits] for hits in query["hits"]]
        assert scores == [sorted(actual, reverse=True) for actual in scores]


def test_explorer_passage_is_stored_once(ablation: Measurements) -> None:
    for query in explorer(ablation)["queries"]:
        passages = [tuple(passage) for passage in query["passages"]]
        assert len(passages) == len(set(passages))


def test_explorer_grades_are_those_of_the_judgments(ablation: Measurements, hostile) -> None:
    for query in explorer(ablation)["queries"]:
        judged = hostile.document_qrels.get(query["qid"], {})
        for docno, _, _, _, document, section in query["passages"]:
            assert document == judged.get(docno)
            assert section is None or document is not None


def test_explorer_losses_name_every_relevant_section_best_first(ablation: Measurements, hostile) -> None:
    for query in explorer(ablation)["queries"]:
        relevant = {name: grade for name, grade in hostile.section_qrels.get(query["qid"], {}).items() if grade > 0}
        assert {section: grade for section, grade, _ in query.get("lost", [])} == relevant
        assert all(all(fates) and len(fates) == len(ablation.arms) for _, _, fates in query.get("lost", []))


def test_explorer_limit_keeps_the_texts_of_the_queries_that_differ_most(ablation: Measurements) -> None:
    result = explorer(ablation, limit=2)
    spread = {
        query["qid"]: max(v for v in query["values"][0]) - min(query["values"][0])
        for query in result["queries"]
        if query["values"][0][0] is not None
    }
    kept = {query["qid"] for query in result["queries"] if "hits" in query}
    assert kept == set(sorted(spread, key=lambda qid: (-spread[qid], qid))[:2])
    assert result["texts"] == 2
