"""Finished runs and runs of other systems side by side."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import BenchmarkError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.evaluation import measures
from ragbench.evidence import statistics
from ragbench.evidence.arms import verdict_table
from ragbench.evidence.statistics import Comparison
from ragbench.experiment.run import run
from ragbench.results.compare import GatheredArms, gather, trec_eval_order
from ragbench.results.measurements import Measurements
from tests.naming import naming


@pytest.fixture(scope="module")
def finished(settings_of, benchmark_small: Benchmark, tmp_path_factory) -> Measurements:
    folder = tmp_path_factory.mktemp("compare")
    quick = ("latency.enabled=false", "split=all")
    arms = [settings_of(folder, *quick, "name=both"), settings_of(folder, *quick, "dense=null", "name=words")]
    return run(arms, benchmark_small)


def against(gathered: GatheredArms, base: str | None = None) -> dict[str, Comparison]:
    return {item.contrast.factors[0]: item.levels["document"].comparison for item in gathered.arms.against(base)}


def test_compare_folder_gives_the_verdicts_the_run_wrote(finished: Measurements) -> None:
    written = finished.verdicts
    messages = verdict_table(gather([finished.folder]).arms.against())
    pd.testing.assert_frame_equal(messages, written, check_dtype=False, atol=1e-11)


def test_compare_differences_are_those_of_the_statistics(finished: Measurements) -> None:
    path = against(gather([finished.folder], measure="RR"))["words"]
    expected = statistics.compare(finished.values("words", "RR"), finished.values("both", "RR"), seed=13)
    assert path.n == 4
    assert path.difference == expected.difference
    assert against(gather([finished.folder], measure="RR"), "words")["both"].difference == -path.difference


def test_compare_run_files_of_other_systems_and_arms_of_equal_names(
    finished: Measurements, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    arm = finished.folder / "arms" / "words"
    other = tmp_path / "other.trec"
    # The same answers without one of the queries.
    lines = (arm / "run.trec").read_text().splitlines()
    other.write_text("".join(f"{line}\n" for line in lines if not line.startswith("t3 ")))
    gathered = gather([finished.folder, arm, other], benchmark=benchmark_small)
    assert list(gathered.arms.arms) == ["both", "words", "words/words", "other"]
    assert gathered.notes == (f"{other} returned no hits for 1 of the topics",)
    ours, theirs = (gathered.arms.arms[name].levels["document"] for name in ("words", "other"))
    assert theirs["t3"] == 0
    assert {q: v for q, v in ours.items() if q != "t3"} == {q: v for q, v in theirs.items() if q != "t3"}
    assert list(gathered.arms.levels) == ["document"]  # nothing is known of its passages


@given(st.lists(st.sampled_from([0.5, 1.0, 1.5]), min_size=1, max_size=8), st.randoms())
@settings(max_examples=40, deadline=None)
def test_compare_equal_scores_are_ordered_as_trec_eval_does(scores, chance) -> None:
    import pytrec_eval

    hits = [(f"d{n}", score) for n, score in enumerate(scores)]
    chance.shuffle(hits)
    qrels = {"q": {f"d{n}": n % 3 for n in range(8)}}
    reference = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate({"q": dict(hits)})
    result = measures.evaluate({"q": trec_eval_order(hits)}, qrels, ["nDCG@10"])
    value = result.loc[result["measure"] == "nDCG@10", "value"].item() if len(result) else 0.0
    assert value == pytest.approx(reference["q"]["ndcg_cut_10"], abs=1e-9)


def test_compare_split_holds_only_its_topics(finished: Measurements) -> None:
    gathered = gather([finished.folder], split="train")
    assert sorted(gathered.arms.arms["both"].levels["document"]) == ["t3", "t4"]


def test_compare_other_data_are_refused(
    finished: Measurements, settings_of, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    from dataclasses import replace as changed

    fewer = changed(benchmark_small, topics=benchmark_small.topics[:2])
    elsewhere = run([settings_of(tmp_path, "latency.enabled=false", "split=all", "name=x")], fewer)
    with pytest.raises(ResultsError, check=naming("same documents")):
        gather([finished.folder, elsewhere.folder])
    with pytest.raises(ResultsError, check=naming("have changed")):
        gather([finished.folder], benchmark=fewer)
    with pytest.raises(ResultsError, check=naming("'moon'")):
        gather([finished.folder], benchmark=changed(benchmark_small, name="moon", topics=benchmark_small.topics[:2]))


def test_compare_names_incomparable_sources(finished: Measurements, benchmark_small: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, check=naming("'x'")):
        gather([finished.folder]).arms.against("x")
    with pytest.raises(ResultsError, check=naming("two arms", "ragbench compare @1 @2")):
        gather([finished.folder / "arms" / "both"])
    with pytest.raises(ResultsError, check=naming("'P@3'")):
        gather([finished.folder], measure="P@3")
    with pytest.raises(ResultsError, check=naming("neither")):
        gather([tmp_path])
    (tmp_path / "bad.trec").write_text("q1 Q0 d1\n")
    with pytest.raises(BenchmarkError, check=naming("six fields")):
        gather([finished.folder, tmp_path / "bad.trec"], benchmark=benchmark_small)
    (tmp_path / "foreign.trec").write_text("q1 Q0 d1 1 1.0 x\n")
    with pytest.raises(ResultsError, check=naming("no hits")):
        gather([finished.folder, tmp_path / "foreign.trec"], benchmark=benchmark_small)
