"""One screen: every cell whole at 80, 100 and 160 columns and without a terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from ragbench.base import console
from ragbench.evidence import t_of_mean
from ragbench.report import screen
from ragbench.results import measurements
from ragbench.results.measurements import Measurements

LOW, HIGH = [0.4, 0.5] * 15, [0.6, 0.7] * 15
LONG = "baseline p6=on p6.depth=20 fuse.weights.lexical=0.35"


@pytest.fixture(scope="module")
def found(write_results, tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    arms = {"baseline": LOW, LONG: HIGH, "same": [*LOW[:-1], 0.6]}
    times = {"baseline": 20.0, LONG: 1190.0, "same": 21.0}
    return measurements.load(write_results(tmp_path_factory.mktemp("screen") / "run", arms, times, passages=arms))


def printed(found: Measurements, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(screen.table(found))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nothing_is_cut(found: Measurements, width: int) -> None:
    said = printed(found, width)
    assert "…" not in said and max(map(len, said.splitlines())) <= width
    end = next(line.index("documents") for line in said.splitlines() if "documents" in line)
    assert LONG.replace(" ", "") in "".join(line[:end] for line in said.splitlines()).replace(" ", "")
    for cell in ("0.450", "0.650 [+.12 +.25]", "1190 ms", "reject", "test split"):
        assert cell in said, said
    assert said.count("0.650 [+.12 +.25]") == 2  # documents and passages


def test_without_a_terminal_it_is_eighty_columns(found: Measurements, capsys: pytest.CaptureFixture[str]) -> None:
    screen.show(found)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "[low high] = change vs baseline, 95% CI\n" in said


def test_one_arm_has_the_interval_of_its_mean(write_results, tmp_path: Path) -> None:
    alone = measurements.load(write_results(tmp_path / "run", {"one": LOW}))
    said = printed(alone, 80)
    assert "0.450 [.43 .47]" in said and "passages" not in said


def test_the_interval_of_a_mean_is_students() -> None:
    # Deviation 0.1, t(2) = 4.3027: half of the interval is 4.3027 * 0.1 / sqrt(3).
    assert t_of_mean.mean([0.4, 0.5, 0.6])[1:3] == pytest.approx((0.5 - 0.2484, 0.5 + 0.2484), abs=1e-4)
    assert t_of_mean.mean([0.0, 1.0, 1.0])[1:3][1] == 1.0, "no mean of such values is above 1"
    assert t_of_mean.mean([1.0, 2.0, 9.0]).low < 0
    assert all(end != end for end in t_of_mean.mean([0.0, 1.0])[1:3])


@pytest.mark.parametrize("width", [80, 100, 160])
def test_wide_tables_go_on_below_in_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame([{"arm": "baseline", **{f"nDCG@{n} of it": n / 7 for n in range(12)}}])
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", str(width))
    console.print_table(frame, "Documents")
    said = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())  # without colours
    assert "…" not in said and max(map(len, said.splitlines())) <= width
    assert all(f"nDCG@{n} of it" in said and f"{n / 7:.4f}" in said for n in range(12))
    assert said.count("baseline") > 1


def test_it_says_why_an_arm_is_not_adopted(write_results, tmp_path: Path) -> None:
    arms = {"baseline": LOW, "slow": HIGH, "good": HIGH, "same": [*LOW[:-1], 0.6], "worse": [0.2, 0.3] * 15}
    times = {"baseline": 20.0, "slow": 1190.0, "good": 21.0, "same": 21.0, "worse": 20.0}
    said = screen.below(measurements.load(write_results(tmp_path / "run", arms, times)))
    assert "slow: latency over the budget of +50 ms" in said
    assert "same: not significant; 30 queries are too few to detect an effect this small" in said
    assert "worse: significantly worse" in said
    assert not any(line.startswith("good") for line in said)
    untimed = screen.below(measurements.load(write_results(tmp_path / "untimed", {"a": LOW, "b": HIGH})))
    assert "b: significantly better; latency unknown (not measured): ragbench run" in untimed
    assert "better; p95?" in printed(measurements.load(tmp_path / "untimed"), 80)


def test_one_arm_names_no_comparison(write_results, tmp_path: Path) -> None:
    """`ragbench compare` needs two arms, and there is no report to open."""
    assert screen.below(measurements.load(write_results(tmp_path / "run", {"alone": LOW}))) == [
        "[low high] = 95% CI of the mean"
    ]


def test_a_level_of_two_topics_is_left_out(write_results, tmp_path: Path) -> None:
    arms = {"baseline": LOW, "better": HIGH}
    few = {name: values[:2] for name, values in arms.items()}
    found = measurements.load(write_results(tmp_path / "run", arms, {"baseline": 20.0, "better": 21.0}, passages=few))
    assert "passages" not in printed(found, 80)
    assert "passages" not in str(screen.evidence.effects(found)["reason"].iloc[0])


def test_no_word_of_a_wide_table_is_cut_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"change": "recommended", "documents": "+0.113 [+0.072, +0.159]", "passages": "+0.1", "p95": "+1400.0 ms"}
    frame = pd.DataFrame([{**row, "quality": "better", "cost": "open", "verdict": "inconclusive"}])
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", "80")
    console.print_table(frame, "Against baseline")
    said = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert "…" not in said and max(map(len, said.splitlines())) <= 80
    assert "inconclusive" in said and "recommended" in said
