"""A run file of any system is an arm: judged like the others, without times; and other tools read what a run writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base import registry
from ragbench.base.types import LiveError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.runs import read_run
from ragbench.commands import cli
from ragbench.config.settings import Settings
from ragbench.evidence.cost import RECORDED
from ragbench.experiment.run import run
from ragbench.extras.remote.live.external import LiveRun
from ragbench.extras.report import html
from ragbench.report import screen
from ragbench.results.compare import gather
from ragbench.results.measurements import Measurements
from ragbench.workbench import Results
from tests.naming import naming

MEASURES = ("nDCG@10", "RR", "R@10", "P@5", "AP")


@pytest.fixture
def arm(settings_of, tmp_path: Path):
    def make(name: str, *overrides: str) -> Settings:
        return settings_of(tmp_path / "results", "split=all", f"name={name}", *overrides)

    return make


def measured(benchmark: Benchmark, *arms: Settings) -> Measurements:
    return run(arms, benchmark)


@pytest.fixture
def ours(arm, benchmark_small: Benchmark) -> Measurements:
    return measured(benchmark_small, arm("ours", "latency.enabled=false"))


def test_run_file_keeps_its_values(
    arm, ours: Measurements, benchmark_small: Benchmark, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ours.arm_path("ours") / "run.trec"
    both = measured(benchmark_small, arm("ours"), arm("theirs", "live=trec", f"live.path={file}"))
    for measure in MEASURES:
        values = [both.values(name, measure).to_dict() for name in ("ours", "theirs")]
        assert values[0] == values[1], measure
        assert any(values[0].values()), measure
    assert set(both.latency["arm"]) == {"ours"}
    (row,) = both.verdicts.to_dict("records")
    assert RECORDED in row["reason"]
    assert "--remeasure-latency" not in row["reason"]
    screen.show(both)
    assert "theirs" in capsys.readouterr().out
    assert f"take the first 1000 hits of the run file {file}" in html.render(both)


def test_next_command_is_no_export_of_a_run_file(arm, ours: Measurements, benchmark_small: Benchmark) -> None:
    file = ours.arm_path("ours") / "run.trec"
    both = measured(benchmark_small, arm("theirs", f"source=trec:{file}"), arm("ours", "latency.enabled=false"))
    shown = "diagnose" if "diagnose" in registry.entries("command") else "report"
    assert Results.load(both.folder).next_command == shown


def test_sections_of_a_run_file_are_judged_as_sections(arm, ours: Measurements, benchmark_small: Benchmark) -> None:
    file = ours.arm_path("ours") / "sections.trec"
    theirs = measured(benchmark_small, arm("theirs", f"source=trec:{file}"))
    before = ours.values("ours", "nDCG@10", level="section")
    after = theirs.values("theirs", "nDCG@10", level="section")
    assert before.mean() > 0.3
    assert after.to_dict() == pytest.approx(before.to_dict(), abs=0.05)


def test_ties_gaps_and_strangers_count_as_in_compare(
    arm, ours: Measurements, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    lines = []
    for qid, hits in read_run(ours.arm_path("ours") / "run.trec").items():
        if qid != "t3":  # a topic without an answer
            lines.append(f"{qid} Q0 somewhere-else 1 9.0 x")
            lines += [f"{qid} Q0 {name} {rank} 1.5 x" for rank, (name, _) in enumerate(hits[:6], start=2)]
    (tmp_path / "theirs.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
    results = measured(benchmark_small, arm("theirs", "live=trec", f"live.path={tmp_path / 'theirs.trec'}"))
    compared = gather([ours.folder, tmp_path / "theirs.trec"], benchmark=benchmark_small).arms.arms["theirs"]
    values = results.values("theirs", "nDCG@10").to_dict()
    assert values == pytest.approx(dict(compared.levels["document"]))
    assert values["t3"] == 0
    assert 0 < max(values.values()) < 1
    assert set(results.values("theirs", "Unplaced@10").drop("t3")) == {0.1}


def test_run_file_mostly_outside_the_collection_fails(
    arm, ours: Measurements, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    """Six of ten hits outside are refused, five are not, and a key accepts all but a run without any document."""

    def theirs_with(strangers: int, *words: str) -> Measurements:
        lines = []
        for qid, hits in read_run(ours.arm_path("ours") / "run.trec").items():
            names = [f"elsewhere-{n}" for n in range(strangers)] + [name for name, _ in hits[: 10 - strangers]]
            lines += [f"{qid} Q0 {name} {rank} {20 - rank} x" for rank, name in enumerate(names, start=1)]
        (tmp_path / "theirs.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")
        theirs = arm("theirs", "live=trec", f"live.path={tmp_path / 'theirs.trec'}", *words)
        return measured(benchmark_small, theirs)

    assert theirs_with(3).values("theirs", "Unplaced@10").max() == 0.3
    with pytest.raises(LiveError, check=naming("hits outside of the collection", "elsewhere-0", "max_unmatched=1")):
        theirs_with(8)
    assert theirs_with(8, "live.max_unmatched=1").values("theirs", "Unplaced@10").max() == 0.8


def test_changed_run_file_is_another_arm(tmp_path: Path) -> None:
    from ragbench.search.engine.pipeline import Pipeline

    file = tmp_path / "a.trec"
    file.write_text("q Q0 d 1 2.0 x\n")
    before = Pipeline((("live", LiveRun(path=str(file))),)).fingerprint
    assert Pipeline((("live", LiveRun(path=str(file))),)).fingerprint == before
    file.write_text("q Q0 e 1 2.0 x\n")
    assert Pipeline((("live", LiveRun(path=str(file))),)).fingerprint != before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("z9 Q0 index 1 2.0 x\n", "has no hits for any of the topics: it answers z9, the topics are t1, t2"),
        ("t1 Q0 nowhere 1 2.0 x\n", "has none of the collection's documents: it names nowhere, the collection"),
        ("t1 index 2.0\n", "must have six fields (qid Q0 id rank score tag), got 3; a run file has lines such as"),
        (None, "cannot be read (no such file or directory)"),
    ],
)
def test_foreign_run_files_are_refused(
    content: str | None, reason: str, arm, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "a.trec").write_text(content)
    with pytest.raises(LiveError, check=naming(reason)):
        measured(benchmark_small, arm("a", "live=trec", f"live.path={tmp_path / 'a.trec'}"))


def test_typed_query_is_in_no_run_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.trec").write_text("q Q0 d 1 2.0 x\n")
    assert cli.main(["search", "keys", f"source=trec:{tmp_path / 'a.trec'}"]) == 2
    assert "a run file answers only the topics in it" in capsys.readouterr().err
