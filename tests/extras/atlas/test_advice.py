"""Every command that `ragbench advise` can print is one that ragbench takes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.config.overrides import named_arms
from ragbench.evaluation.diagnosis import BURIED, FUSED_OUT, NEVER
from ragbench.experiment.run import run
from ragbench.extras.atlas import advice
from ragbench.results.measurements import Measurements
from ragbench.workbench import Experiment
from tests.docs.pages import overrides, parsed

HANDBOOK = Path(__file__).parents[2] / "data" / "phases"
ROWS = ("how do programs prove their identity,authentication.md", "counters,metrics.md", "why is it slow,nowhere.md")


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    (tmp_path / "my queries.csv").write_text("\n".join(["text,relevant", *ROWS]), encoding="utf-8")
    return ["data=vault", f"data.corpus={HANDBOOK}", f"data.queries='{tmp_path / 'my queries.csv'}'", "split=all"]


@pytest.fixture
def measured(settings_of, tmp_path: Path, data: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def make(*words: str, name: str = "two words") -> Measurements:
        settings = settings_of(tmp_path / "results", *data, "latency.enabled=false", *words)
        return run([replace(settings, name=name)], load(settings.config))

    return make


def all_levers(results: Measurements) -> list[advice.Lever]:
    """All levers of the arm: most sections are lost, the machine is busy, queries are many or few."""
    arm = results.arms[0]
    outcomes = [("found", 2), (FUSED_OUT, 20), (BURIED, 30), (NEVER, 0)]
    fates = pd.DataFrame(
        [(arm, f"q{number}", f"{number}#a", *outcomes[number % 4]) for number in range(80)],
        columns=["arm", "qid", "section", "outcome", "rank"],
    ).assign(stage="fuse", grade=1)
    disturbed = {**results.record, "machine": {"busy": "other programs kept 2 of 2 processors busy"}}
    busy = replace(results, record=disturbed)
    return [
        *advice.levers(advice.AdvisedArm(busy, arm, fates)),
        *advice.levers(advice.AdvisedArm(busy, arm, fates[:4])),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("exp=baseline",), ("exp=recommended",), ("exp=phase1", "p6=on", "p6.depth=12")])
def test_advice_commands_are_parsed_and_planned(words: tuple[str, ...], measured) -> None:
    levers = all_levers(measured(*words))
    commands = {command for lever in levers for command in lever.commands}
    assert {shlex.split(command)[1] for command in commands} >= {"run", "topics", "data", "fit"}
    names = {lever.name for lever in levers}
    assert "find more" in names and "measure latency on a quiet machine" in names
    assert ("continue to train the ranker on your queries" in names) is (words == ("exp=recommended",))
    for command in commands:
        program, *typed = shlex.split(command)
        assert program == "ragbench", command
        parsed(typed)
        if typed[0] != "run":
            overrides(typed)
        elif "--remeasure-latency" not in typed:
            given = parsed(typed)
            if given.arm:
                assert composition.arms(named_arms(given.arm), given.overrides)
            else:
                assert Experiment.sweep(*given.overrides).settings
            assert not any("ragbench" in arm for arm in given.arm), command


@pytest.mark.slow
def test_advice_offers_only_sources_that_are_off(measured) -> None:
    (more,) = [lever for lever in all_levers(measured("exp=baseline"))[:20] if lever.name == "find more"][:1]
    assert [command.rpartition("=changed=")[0] or command.rsplit("changed=", 1)[1] for command in more.commands] == [
        "documents=on",
        "graph=on",
        "p7=on",
    ]
    (left,) = [
        lever for lever in all_levers(measured("p1=on", "graph=on", "documents=on")) if lever.name == "find more"
    ][:1]
    assert [command.rsplit("changed=", 1)[1] for command in left.commands] == ["p7=on"]


def test_advice_does_not_change_a_live_search(measured, benchmark_small: Benchmark) -> None:
    program = """live.program='echo "[{\\"path\\": \\"metrics.md\\"}]"'"""
    levers = all_levers(measured("live=command", program, "live.per_second=1000.0"))
    assert {lever.name for lever in levers} <= {
        "add queries",
        "judge what it returns",
        "measure latency on a quiet machine",
    }
