"""The way in for notebooks: experiments as values, own stages as switches, results as frames and figures."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

import ragbench
from ragbench import Experiment, Results
from ragbench.base.options import option
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.index.index import Index
from ragbench.report import screen
from ragbench.search.stages.stage import Reorder, fused
from tests.naming import naming


@option("guides_only", before="cut")
@dataclass(frozen=True)
class OnlyFolder(Reorder):
    """Keep the hits of one folder."""

    folder: str = "guides"

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        ranking = fused(state)
        kept = [n for n, chunk in enumerate(ranking.chunks) if index.chunks.docno(chunk).startswith(self.folder)]
        return Ranking.of(ranking.chunks[kept], ranking.scores[kept])

    def describe(self) -> str:
        return f"keep {self.folder}"


@pytest.fixture(scope="module")
def around(workplace: Path) -> list[str]:
    quick = ["latency.queries=2", "latency.rounds=1", "latency.warmup=1", "latency.cold_start=false"]
    return [f"paths.results={workplace}", "tracking.enabled=false", "split=all", *quick]


@pytest.fixture(scope="module")
def measured(benchmark_small: Benchmark, around: list[str]) -> Results:
    arms = {"plain": ["+exp=baseline", *around], "own": ["+exp=baseline", *around, "guides_only=on"]}
    return Experiment.arms(arms, benchmark_small).run()


def test_workbench_own_stage_takes_part_and_is_written_with_the_results(measured: Results) -> None:
    assert set(measured.top_hits[measured.top_hits["arm"] == "own"]["docno"].str.split("/").str[0]) == {"guides"}
    assert len(set(measured.top_hits[measured.top_hits["arm"] == "plain"]["docno"].str.split("/").str[0])) > 1
    config = (measured.folder / "arms" / "own" / "config.yaml").read_text()
    assert "test_workbench.OnlyFolder" in config


def test_results_are_plain_values_for_json(measured: Results) -> None:
    values = measured.as_json()
    single = {"summary", "best_arm", "latency", "peak_memory_mb"}
    common = {"folder", "mlflow_run", "comparison", "verdicts"}
    assert set(values) == common | single
    assert [row["factor"] for row in values["verdicts"]] == ["own"]
    ablation = replace(measured, record={**measured.record, "command": "ablate"})
    assert set(ablation.as_json()) == common


def test_results_answer_with_frames(measured: Results) -> None:
    (verdict,) = measured.verdicts.to_dict(orient="records")
    assert verdict["factor"] == "own" and verdict["effect"] < 0  # t1 is answered in reference/, which the stage drops
    recall = [measured.values(arm, "Recall@2000tokens", level="passage") for arm in ("plain", "own")]
    assert verdict["recall_effect"] == pytest.approx((recall[1] - recall[0]).mean(), abs=1e-9)
    assert verdict["recall_n"] == len(recall[0]) == 4
    total = measured.latency[measured.latency["stage"] == "total"].set_index("arm")
    summary = measured.summary(by=()).set_index("arm")
    assert summary["p50_ms"].to_dict() == total["p50"].to_dict()
    assert summary["p95_ms"].to_dict() == {"plain": measured.p95_ms("plain"), "own": measured.p95_ms("own")}
    assert "<th>p95_ms</th>" in measured._repr_html_()
    partly = replace(measured, latency=measured.latency[measured.latency["arm"] == "own"])
    assert list(partly.summary()["p95_ms"].isna()) == [True, True, False, False]
    assert "p95_ms" not in replace(measured, latency=measured.latency[:0]).summary()
    assert list(measured.by_type.columns) == ["type", "n", "plain", "own"]
    config = {**measured.config("plain"), "primary": "RR"}
    of_primary = replace(measured)
    of_primary._configs["plain"] = config
    reciprocal = of_primary.by_type.set_index("type")
    kinds = measured.topics.set_index("qid")["type"]
    expected = measured.values("own", "RR").groupby(kinds).mean()
    assert reciprocal["own"].to_dict() == pytest.approx(expected.to_dict())
    assert set(measured.topics["qid"]) == {"t1", "t2", "t3", "t4", "t5"}
    lost = measured.losses[(measured.losses["arm"] == "own") & (measured.losses["stage"] == "guides_only")]
    assert int(lost["sections"].sum()) == 1
    assert len(measured.fates) == 2 * 5
    shares, rows = measured.contexts.set_index("arm"), measured.polluters
    assert list(shares.index) == ["plain", "own"]
    for arm in measured.arms:
        of_arm = rows[rows["arm"] == arm].groupby("by")["pollution"].sum()
        assert of_arm.to_dict() == pytest.approx(shares.loc[arm, ["folder", "type"]].to_dict())
    useful = measured.values("own", "Useful@2000tokens", level="passage").mean()
    assert shares.loc["own", "useful"] == pytest.approx(useful)
    assert list(rows.loc[(rows["arm"] == "own") & (rows["by"] == "folder"), "group"]) == ["guides"]
    side = measured.side_by_side("t1", depth=3)
    assert list(side.index) == [1, 2, 3] and list(side.columns.levels[0]) == ["own", "plain"]
    with pytest.raises(ConfigError, check=naming("'nothing'")):
        measured.side_by_side("nothing")


@pytest.mark.parametrize("name", ["effects", "pareto", "latency", "losses"])
def test_results_answer_with_figures(measured: Results, name: str) -> None:
    import plotly.graph_objects as go

    assert isinstance(getattr(measured, f"plot_{name}")(), go.Figure)


def test_results_are_found_again(measured: Results) -> None:
    again = Results.load(measured.folder)
    assert again.arms == ["plain", "own"]
    assert again.per_query.equals(measured.per_query)
    assert (measured.folder / "report.html").is_file()


@pytest.mark.slow
def test_workbench_own_stage_is_a_factor_of_an_ablation(benchmark_small: Benchmark, around: list[str]) -> None:
    experiment = Experiment.ablate(
        "+exp=baseline",
        *around,
        "guides_only=on",
        "factors=[guides_only,p12]",
        "design=factorial",
        benchmark=benchmark_small,
    )
    assert {name: "guides_only" in dict(p.stages) for name, p in experiment.pipelines.items()} == {
        "none": False,
        "p12": False,
        "guides_only": True,
        "all": True,
    }
    results = experiment.run()
    effects = results.verdicts.set_index(["factor", "other"])["effect"]
    assert effects[("guides_only", "")] < 0
    assert (results.folder / "verdicts.csv").is_file() and "factorial" in (results.folder / "design.txt").read_text()


def test_workbench_search_shows_what_found_each_hit(benchmark_small: Benchmark, around: list[str]) -> None:
    experiment = Experiment.sweep("+exp=baseline", *around, benchmark=benchmark_small)
    answer = experiment.search("getAuthToken", top=2)
    assert [hit.rank for hit in answer.hits] == [1, 2]
    shown = answer._repr_html_()
    assert "guides/authentication" in shown and "lexical 1" in shown
    assert "<script" not in experiment.search("<script>alert(1)</script>")._repr_html_()
    assert "dense" not in experiment.search("getAuthToken", mode="keyword").stage_ms
    with pytest.raises(ConfigError, check=naming("'other'")):
        experiment.search("anything", arm="other")
    with pytest.raises(ConfigError, match=r"options\.moode is unknown; did you mean options\.mode"):
        experiment.search("anything", moode="keyword")


def test_workbench_arms_that_differ_in_the_index_only_show_the_difference(around: list[str]) -> None:
    arms = {"base": ["exp=baseline", *around], "headings": ["exp=baseline", *around, "p2=on"]}
    for pair, difference in ((arms, "p2=on"), (dict(reversed(arms.items())), "without p2=on")):
        experiment = Experiment.arms(pair)
        assert experiment.pipelines["base"] == experiment.pipelines["headings"]
        first, second = pair
        shown = experiment._repr_html_()
        assert f"<dt><b>{first}</b></dt>" in shown and f"<b>{second}</b> <code>{difference}</code></dt>" in shown


def test_package_offers_what_notebooks_need() -> None:
    for name in ragbench.__all__:
        assert getattr(ragbench, name).__doc__
    with pytest.raises(AttributeError, check=naming("nothing")):
        _ = ragbench.nothing


def test_workbench_arms_without_any_judgment_still_make_a_report(benchmark_small: Benchmark, around: list[str]) -> None:
    unjudged = replace(benchmark_small, document_qrels={}, section_qrels={})
    arms = ("+exp=baseline,lexical_only", *around)
    with pytest.raises(BenchmarkError, match=r"none of the .* has a relevance judgment.*add allow_unjudged=true"):
        Experiment.sweep(*arms, benchmark=unjudged).run()
    results = Experiment.sweep(*arms, "allow_unjudged=true", benchmark=unjudged).run()
    assert results.verdicts.empty and results.comparison == 0
    assert results.next_command == "data pool"
    assert screen._below(results) == [
        f"none of {results.record['topics']} queries has a relevance judgment: only latency was measured"
    ]
    assert "lexical_only" in (results.folder / "report.html").read_text()
    assert (results.folder / "arms" / "baseline" / "sections.trec").is_file()  # what a pool is made of


def test_workbench_run_says_some_warnings_and_counts_the_others(
    benchmark_small: Benchmark, around: list[str], caplog
) -> None:
    alike = [f"{n}.md: no-text: it is short." for n in range(50)]
    warned = replace(benchmark_small, warnings=(*alike, *(f"file {n}" for n in range(11))))
    Experiment.sweep("+exp=lexical_only", *around, "latency.enabled=false", benchmark=warned).run()
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "no-text in 50 files, such as 0.md: it is short.",
        *(f"file {n}" for n in range(9)),
        "2 more about the data: ragbench data check shows them all",
    ]


def test_workbench_values_are_short_in_words(measured: Results, around: list[str]) -> None:
    assert repr(measured) == f"Results(plain, own; in {measured.folder.name})"
    assert repr(Experiment.sweep("+exp=baseline", *around)) == "Experiment(baseline)"
