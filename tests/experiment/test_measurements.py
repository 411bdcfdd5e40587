"""Measurements as tables and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from ragbench.benchmark.runs import read_run
from ragbench.evaluation.measures import decreasing
from ragbench.results import measurements, store
from ragbench.results.measurements import PER_QUERY_COLUMNS, Measurements, benchmark_of


def made(folder: Path, arms: tuple[str, ...] = ("b", "a")) -> Measurements:
    rows = [
        (arm, "document", split, kind, qid, "nDCG@10", value + actual)
        for actual, arm in enumerate(arms)
        for qid, split, kind, value in (("q2", "test", "x", 0.4), ("q1", "test", "y", 0.2), ("q3", "train", "x", 0.9))
    ]
    frame = pd.DataFrame(rows, columns=list(PER_QUERY_COLUMNS))
    return Measurements(folder, {"arms": list(arms), "index_bytes": {}}, frame, pd.DataFrame({"arm": [], "stage": []}))


def written(folder: Path) -> Measurements:
    path, run_folder = made(folder), store.RunFolder(folder)
    for arm in path.arms:
        run_folder.arm(arm).table(measurements.PER_QUERY, path.per_query[path.per_query["arm"] == arm])
        run_folder.arm(arm).finish_arm("key")
    run_folder.finish(path.record)
    return path


def test_measurements_means_by_hand_in_the_order_of_the_arms(tmp_path: Path) -> None:
    frame = made(tmp_path).summary(("split",))
    assert frame[["arm", "split", "n"]].to_numpy().tolist() == [
        ["b", "test", 2],
        ["b", "train", 1],
        ["a", "test", 2],
        ["a", "train", 1],
    ]
    assert frame["nDCG@10"].tolist() == pytest.approx([0.3, 0.9, 1.3, 1.9])
    assert made(tmp_path).summary(level="section").empty


def test_measurements_values_are_sorted_by_query_and_chosen_by_split(tmp_path: Path) -> None:
    result = made(tmp_path)
    assert result.values("b").to_dict() == {"q1": 0.2, "q2": 0.4, "q3": 0.9}
    assert list(result.values("b").index) == ["q1", "q2", "q3"]
    assert list(result.values("b", split="train").index) == ["q3"]
    assert result.values("b", "AP").empty


def test_measurements_read_back_as_written(tmp_path: Path) -> None:
    result = written(tmp_path)
    loaded = measurements.load(tmp_path)
    pd.testing.assert_frame_equal(loaded.per_query, result.per_query)
    assert loaded.latency.empty and loaded.peak_memory_mb == {}
    assert "<table" in loaded._repr_html_()


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_measurements_run_files_keep_order_and_scores(tmp_path_factory, scores: list[float]) -> None:
    path = tmp_path_factory.mktemp("run") / "run.trec"
    run = {"q 1".replace(" ", ""): decreasing((f"d{n}", s) for n, s in enumerate(sorted(scores, reverse=True)))}
    path.write_text(measurements.trec(run, "tag"))
    assert read_run(path) == {qid: hits for qid, hits in run.items() if hits}


def test_measurements_run_line_by_hand() -> None:
    assert measurements.trec({"q2": [("a", 0.5)], "q1": [("b", 2.0), ("c", 1.25)]}, "tag") == (
        "q1 Q0 b 1 2.0 tag\nq1 Q0 c 2 1.25 tag\nq2 Q0 a 1 0.5 tag\n"
    )


def test_measurements_run_of_version_1_by_its_former_name_is_read_as_version_1(tmp_path: Path) -> None:
    """It says data=builtin with version 1, which the default was then."""
    digest = "dc0baf0ac06ea53b8ad8bc97eae789e0ab33de50be457b1b784bd14fcc93826f"
    run = made(tmp_path, ("baseline",))
    config = {"data": {"loader": "builtin", "name": "builtin", "version": 1}, "topics": {"kind": "given"}}
    store.RunFolder(tmp_path).arm("baseline").text(measurements.CONFIG, store.yaml_text(config))
    result = replace(run, record={**run.record, "benchmark": {"name": "builtin", "digest": digest}})
    assert benchmark_of(result).digest == digest
