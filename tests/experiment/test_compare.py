"""Finished runs and runs of other systems side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.comparison import statistics
from ragbench.errors import BenchmarkError, ResultsError
from ragbench.experiment import compare
from ragbench.experiment.results import Results
from ragbench.experiment.run import run

NAMES = ("nDCG@10", "RR")


@pytest.fixture(scope="module")
def finished(settings_of, benchmark_small: Benchmark, tmp_path_factory) -> Results:
    folder = tmp_path_factory.mktemp("compare")
    quick = ("latency.enabled=false", "split=all")
    arms = [settings_of(folder, *quick, "name=both"), settings_of(folder, *quick, "dense=null", "name=words")]
    return run(arms, benchmark_small, say=lambda sentence: None)


def test_a_folder_gives_the_values_the_run_had(finished: Results, benchmark_small: Benchmark) -> None:
    frames = compare.values([str(finished.folder)], benchmark_small, "all", NAMES)
    assert list(frames) == ["both", "words"]
    for arm, frame in frames.items():
        for name in NAMES:
            assert frame[name].dropna().to_dict() == finished.values(arm, name).to_dict()


def test_differences_are_those_of_the_statistics(finished: Results, benchmark_small: Benchmark) -> None:
    frames = compare.values([str(finished.folder)], benchmark_small, "all", NAMES)
    (row,) = compare.compare(frames, None, "RR", seed=3).to_dict(orient="records")
    expected = statistics.compare(finished.values("words", "RR"), finished.values("both", "RR"), seed=3)
    assert (row["arm"], row["against"], row["n"]) == ("words", "both", 4)
    assert row["difference"] == expected.difference
    assert (row["p"], row["p_holm"], row["ci_low"]) == (expected.p_value, expected.p_value, expected.ci_low)
    (mirrored,) = compare.compare(frames, "words", "RR", seed=3).to_dict(orient="records")
    assert mirrored["difference"] == -row["difference"]


def test_run_files_of_other_systems_and_arms_of_equal_names(finished: Results, benchmark_small, tmp_path: Path) -> None:
    arm = finished.folder / "arms" / "words"
    other = tmp_path / "other.trec"
    # The same answers with scores that all tie, and without one of the queries.
    lines = (arm / "run.trec").read_text().splitlines()
    other.write_text("".join(f"{' '.join(line.split()[:4])} 1 x\n" for line in lines if not line.startswith("t3 ")))
    frames = compare.values([str(finished.folder), str(arm), str(other)], benchmark_small, "all", NAMES)
    assert list(frames) == ["both", "words", "words/words", "other"]
    assert frames["words"].equals(frames["words/words"])
    ours, theirs = frames["words"]["RR"], frames["other"]["RR"]
    assert theirs["t3"] == 0
    np.testing.assert_array_equal(ours.drop("t3"), theirs.drop("t3"))


def test_a_split_holds_only_its_topics(finished: Results, benchmark_small: Benchmark) -> None:
    frames = compare.values([str(finished.folder)], benchmark_small, "train", NAMES)
    assert list(frames["both"].index) == ["t3", "t4"]


def test_what_cannot_be_compared_is_named(finished: Results, benchmark_small: Benchmark, tmp_path: Path) -> None:
    frames = compare.values([str(finished.folder)], benchmark_small, "all", NAMES)
    with pytest.raises(ResultsError, match="no arm 'x' to compare with; arms: both, words"):
        compare.compare(frames, "x")
    with pytest.raises(ResultsError, match="at least two arms"):
        compare.compare({"both": frames["both"]}, None)
    with pytest.raises(ResultsError, match="'P@5' was not measured"):
        compare.compare(frames, None, "P@5")
    with pytest.raises(ResultsError, match="neither a results folder nor a TREC run file"):
        compare.values([str(tmp_path)], benchmark_small, "all", NAMES)
    (tmp_path / "bad.trec").write_text("q1 Q0 d1\n")
    with pytest.raises(BenchmarkError, match="must have six fields"):
        compare.values([str(tmp_path / "bad.trec")], benchmark_small, "all", NAMES)
