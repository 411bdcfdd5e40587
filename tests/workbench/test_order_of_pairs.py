"""Pairs keep their order; scores that look like distances are named."""

import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragbench
from ragbench.base.types import BenchmarkError
from tests.naming import naming

QRELS = {"q1": {"a": 1}, "q2": {"b": 1}}
DISTANCES = {"q1": {"a": 0.1, "b": 0.6, "c": 0.9}, "q2": {"b": 0.2, "a": 0.7}}


def test_evaluate_keeps_the_order_of_pairs(caplog: pytest.LogCaptureFixture) -> None:
    pairs = {qid: list(hits.items()) for qid, hits in DISTANCES.items()}
    with caplog.at_level(logging.WARNING):
        summary = ragbench.evaluate({"pairs": pairs}, QRELS, ["RR"]).summary()
    assert summary["RR"].tolist() == [1.0]
    assert "order is kept" in caplog.text


def test_evaluate_warns_of_scores_that_grow(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"dict": DISTANCES}, QRELS, ["RR"])
    assert "distances" in caplog.text


def test_evaluate_warns_of_a_frame_whose_scores_grow(caplog: pytest.LogCaptureFixture) -> None:
    rows = [(qid, docno, score) for qid, hits in DISTANCES.items() for docno, score in hits.items()]
    growing = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"ranks": growing.drop(columns="score").assign(rank=[1, 2, 3, 1, 2])}, QRELS, ["RR"])
        descending = growing.rename(columns={"score": "distance"}).sort_values("distance", ascending=False)
        ragbench.evaluate({"distances": descending}, QRELS, ["RR"])
        ragbench.evaluate({"falling": growing.sort_values("score", ascending=False)}, QRELS, ["RR"])
        assert caplog.text == ""
        ragbench.evaluate({"frame": growing}, QRELS, ["RR"])
    assert "run 'frame': in 2 of 2 queries the scores grow" in caplog.text


def test_evaluate_says_nothing_of_falling_scores(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"pairs": {"q1": [("a", 0.9), ("b", 0.9), ("c", 0.1)], "q2": ["b"]}}, QRELS, ["RR"])
    assert caplog.text == ""


@pytest.mark.parametrize(
    "distances",
    [
        {"q1": {"a": 0.0, "b": 0.0, "c": 0.9}, "q2": {"b": 0.1, "a": 0.7, "c": 0.7}},
        {"q1": {"a": 0.1, "b": 0.6}, "q2": {"b": 0.1, "a": 0.7}, "q3": {"b": 0.8, "a": 0.7}, "q4": {"a": 0.1}},
        {"q1": {"a": -0.9, "b": -0.6}, "q2": {"b": -0.9, "a": -0.8}},
    ],
    ids=["ties", "most queries", "inner products"],
)
def test_evaluate_warns_where_most_scores_grow(distances: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"dict": distances}, QRELS, ["RR"])
    assert "distances" in caplog.text


def test_evaluate_warns_of_a_run_file_whose_scores_grow(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = [
        f"{qid}\tQ0\t{docno} 1\t{rank}\t{score}\tx"
        for qid, hits in DISTANCES.items()
        for rank, (docno, score) in enumerate(hits.items(), start=1)
    ]
    (tmp_path / "run.trec").write_text("\n".join(lines))
    with caplog.at_level(logging.WARNING):
        summary = ragbench.evaluate({"file": tmp_path / "run.trec"}, {"q1": {"c 1": 1}, "q2": {"a 1": 1}}, ["RR"])
    assert "run.trec: in 2 of 2 queries the scores grow" in caplog.text.replace(str(tmp_path) + "/", "")
    assert summary.summary()["RR"].tolist() == [1.0]


def test_evaluate_warns_of_a_run_file_whose_ranks_follow_distances(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run.trec").write_text("q1 Q0 b 2 0.6 x\nq1 Q0 a 1 0.1 x\nq2 Q0 a 2 7e-1 x\nq2 Q0 b 1 2e-1 x\n")
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"file": tmp_path / "run.trec"}, QRELS, ["RR"])
    assert "in 2 of 2 queries the scores grow" in caplog.text


def test_evaluate_warns_of_scores_that_are_all_equal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 1 x\nq1 Q0 b 2 1 x\nq2 Q0 b 1 1 x\n")
    with caplog.at_level(logging.WARNING):
        summary = ragbench.evaluate({"file": tmp_path / "run.trec"}, QRELS, ["RR"]).summary()
    assert "in 1 of 1 queries all scores are equal" in caplog.text
    assert summary["RR"].tolist() == [0.75]  # trec_eval places b before a


def test_evaluate_takes_decomposed_ids_for_those_of_the_judgments(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q1 Q0 fa\u0308hre 1 2 x\nq1 Q0 b 2 1 x\n", encoding="utf-8")
    runs = {"file": tmp_path / "run.trec", "pairs": {"q1": [("fa\u0308hre", 2.0), ("b", 1.0)]}}
    assert ragbench.evaluate(runs, {"q1": {"f\u00e4hre": 1}}, ["RR"]).summary()["RR"].tolist() == [1.0, 1.0]


def test_evaluate_reads_columns_of_distances() -> None:
    rows = [{"qid": q, "docno": d, "_distance": s} for q, hits in DISTANCES.items() for d, s in hits.items()]
    by_query = {q: [{"docno": d, "distance": s} for d, s in hits.items()] for q, hits in DISTANCES.items()}
    runs = {"frame": pd.DataFrame(rows[::-1]), "dicts": by_query}
    assert ragbench.evaluate(runs, QRELS, ["RR"]).summary()["RR"].tolist() == [1.0, 1.0]


def test_evaluate_refuses_hits_that_it_cannot_read() -> None:
    with pytest.raises(BenchmarkError, check=naming("run 'mine'", "hit 1", "q1", "text")):
        ragbench.evaluate({"mine": {"q1": [("a", 0.9, "text")]}}, QRELS, ["RR"])


def test_evaluate_names_runs_without_hits_and_of_other_ids(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"mine": {"q1": ["a.md"]}}, QRELS, ["RR"])
    assert "no hits for 1 of 2 judged queries" in caplog.text
    assert "every value is 0; it returns 'a.md', the judgments name 'a'" in caplog.text


def test_evaluate_takes_judgments_as_lists_and_refuses_two_grades() -> None:
    assert ragbench.evaluate({"mine": {"q1": ["a"]}}, {"q1": ["a"]}, ["RR"]).summary()["RR"].tolist() == [1.0]
    twice = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["a", "a"], "label": [1, 0]})
    with pytest.raises(BenchmarkError, check=naming("a has two grades for q1")):
        ragbench.evaluate({"mine": {"q1": ["a"]}}, twice, ["RR"])
    with pytest.raises(BenchmarkError, check=naming("q1", "'a'")):
        ragbench.evaluate({"mine": {"q1": ["a"]}}, {"q1": "a"}, ["RR"])
