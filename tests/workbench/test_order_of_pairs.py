"""Pairs keep their order; scores that look like distances are named."""

import logging

import pandas as pd
import pytest

import ragbench

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
        ragbench.evaluate({"falling": growing.sort_values("score", ascending=False)}, QRELS, ["RR"])
        assert caplog.text == ""
        ragbench.evaluate({"frame": growing}, QRELS, ["RR"])
    assert "run 'frame': in every query the scores grow" in caplog.text


def test_evaluate_says_nothing_of_falling_scores(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ragbench.evaluate({"pairs": {"q1": [("a", 0.9), ("b", 0.9), ("c", 0.1)]}}, QRELS, ["RR"])
    assert caplog.text == ""
