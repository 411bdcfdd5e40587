"""Finished runs and runs of other systems side by side."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench.base.errors import BenchmarkError, ResultsError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.evaluation import measures
from ragbench.evidence import statistics
from ragbench.evidence.statistics import Comparison
from ragbench.evidence.table import table
from ragbench.experiment.run import run
from ragbench.results import verdicts
from ragbench.results.compare import GatheredArms, gather, trec_eval_order
from ragbench.results.measurements import Measurements


@pytest.fixture(scope="module")
def finished(settings_of, benchmark_small: Benchmark, tmp_path_factory) -> Measurements:
    folder = tmp_path_factory.mktemp("compare")
    quick = ("latency.enabled=false", "split=all")
    arms = [settings_of(folder, *quick, "name=both"), settings_of(folder, *quick, "dense=null", "name=words")]
    return run(arms, benchmark_small)


def against(gathered: GatheredArms, base: str | None = None) -> dict[str, Comparison]:
    return {each.contrast.factors[0]: each.levels["document"].comparison for each in gathered.arms.against(base)}


def test_a_folder_gives_the_verdicts_the_run_wrote(finished: Measurements) -> None:
    written = verdicts.read(finished)
    told = table(gather([finished.folder]).arms.against())
    pd.testing.assert_frame_equal(told, written, check_dtype=False, atol=1e-11)


def test_differences_are_those_of_the_statistics(finished: Measurements) -> None:
    found = against(gather([finished.folder], measure="RR"))["words"]
    expected = statistics.compare(finished.values("words", "RR"), finished.values("both", "RR"), seed=13)
    assert found.n == 4
    assert found.difference == expected.difference
    assert against(gather([finished.folder], measure="RR"), "words")["both"].difference == -found.difference


def test_run_files_of_other_systems_and_arms_of_equal_names(
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
def test_equal_scores_are_ordered_as_trec_eval_does(scores, chance) -> None:
    import pytrec_eval

    hits = [(f"d{n}", score) for n, score in enumerate(scores)]
    chance.shuffle(hits)
    qrels = {"q": {f"d{n}": n % 3 for n in range(8)}}
    reference = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate({"q": dict(hits)})
    found = measures.evaluate({"q": trec_eval_order(hits)}, qrels, ["nDCG@10"])
    value = found.loc[found["measure"] == "nDCG@10", "value"].item() if len(found) else 0.0
    assert value == pytest.approx(reference["q"]["ndcg_cut_10"], abs=1e-9)


def test_a_split_holds_only_its_topics(finished: Measurements) -> None:
    gathered = gather([finished.folder], split="train")
    assert sorted(gathered.arms.arms["both"].levels["document"]) == ["t3", "t4"]


def test_other_data_are_refused(
    finished: Measurements, settings_of, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    from dataclasses import replace as changed

    fewer = changed(benchmark_small, topics=benchmark_small.topics[:2])
    elsewhere = run([settings_of(tmp_path, "latency.enabled=false", "split=all", "name=x")], fewer)
    with pytest.raises(ResultsError, match="compare runs over the same documents, queries and judgments"):
        gather([finished.folder, elsewhere.folder])
    with pytest.raises(ResultsError, match=r"the topics of 'lantern' have changed since .* was measured: run it again"):
        gather([finished.folder], benchmark=fewer)
    with pytest.raises(ResultsError, match="measured 'lantern' and not 'moon'"):
        gather([finished.folder], benchmark=changed(benchmark_small, name="moon", topics=benchmark_small.topics[:2]))


def test_what_cannot_be_compared_is_named(finished: Measurements, benchmark_small: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="unknown arm 'x' to compare with; arms: both, words"):
        gather([finished.folder]).arms.against("x")
    with pytest.raises(ResultsError, match="at least two arms"):
        gather([finished.folder / "arms" / "both"])
    with pytest.raises(ResultsError, match="'P@3' of arm 'both' was not measured"):
        gather([finished.folder], measure="P@3")
    with pytest.raises(ResultsError, match="neither a results folder nor a TREC run file"):
        gather([tmp_path])
    (tmp_path / "bad.trec").write_text("q1 Q0 d1\n")
    with pytest.raises(BenchmarkError, match="must have six fields"):
        gather([finished.folder, tmp_path / "bad.trec"], benchmark=benchmark_small)
    (tmp_path / "foreign.trec").write_text("q1 Q0 d1 1 1.0 x\n")
    with pytest.raises(ResultsError, match="has no hits for any topic of 'lantern'"):
        gather([finished.folder, tmp_path / "foreign.trec"], benchmark=benchmark_small)
