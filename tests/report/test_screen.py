"""One screen: every cell whole at 80, 100 and 160 columns and without a terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from ragbench.base import console
from ragbench.base.columns import records
from ragbench.base.types import probability
from ragbench.commands import cli
from ragbench.evidence import t_statistic
from ragbench.extras.report.html import verdict_sentence
from ragbench.extras.tracking.write import summarise
from ragbench.report import cells, screen
from ragbench.results import measurements
from ragbench.results.measurements import Measurements, Prediction

LOW, HIGH = [0.4, 0.5] * 15, [0.6, 0.7] * 15
LONG = "baseline p6=on p6.depth=20 fuse.weights.lexical=0.35"


@pytest.fixture(scope="module")
def finished(write_results, tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    arms = {"baseline": LOW, LONG: HIGH, "same": [*LOW[:-1], 0.6]}
    times = {"baseline": 20.0, LONG: 1190.0, "same": 21.0}
    return measurements.load(write_results(tmp_path_factory.mktemp("screen") / "run", arms, times, passages=arms))


def printed(finished: Measurements, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(screen.table(finished))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_screen_cuts_nothing(finished: Measurements, width: int) -> None:
    message = printed(finished, width)
    assert "…" not in message and max(map(len, message.splitlines())) <= width
    end = next(line.index("documents") for line in message.splitlines() if "documents" in line)
    assert LONG.replace(" ", "") in "".join(line[:end] for line in message.splitlines()).replace(" ", "")
    for cell in ("0.450", "0.650 [+.12 +.25]", "1190 ms", "reject", "test split"):
        assert cell in message, message
    assert message.count("0.650 [+.12 +.25]") == 2  # documents and passages


def test_screen_without_a_terminal_it_is_eighty_columns(
    finished: Measurements, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.show(finished)
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "[low high] = change vs baseline, 95% CI\n" in output


def test_screen_recall_within_a_token_budget_is_secondary(write_results, tmp_path: Path) -> None:
    arms = {"baseline": LOW, "wide": HIGH, "same": LOW}
    two = {arm: arms[arm] for arm in ("baseline", "wide")}
    results = measurements.load(write_results(tmp_path / "two", two, passages=two, recalls=two))
    assert "secondary Recall@2000tokens 0.450 -> 0.650: +0.200 [+0.1" in "\n".join(screen._pair(results))
    results = measurements.load(write_results(tmp_path / "three", arms, passages=arms, recalls=arms))
    lines = screen._below(results)
    assert "secondary, Recall@2000tokens: wide +0.200 [+.12 +.25], same +0.000 [-.06 +.06]" in " ".join(lines)
    assert max(map(len, [*screen._pair(results), *lines])) <= 80


def test_screen_one_arm_has_the_interval_of_its_mean(write_results, tmp_path: Path) -> None:
    alone = measurements.load(write_results(tmp_path / "run", {"one": LOW}))
    message = printed(alone, 80)
    assert "0.450 [.43 .47]" in message and "passages" not in message


def test_screen_interval_of_a_mean_is_students() -> None:
    # Deviation 0.1, t(2) = 4.3027: half of the interval is 4.3027 * 0.1 / sqrt(3).
    assert t_statistic.mean([0.4, 0.5, 0.6])[1:3] == pytest.approx((0.5 - 0.2484, 0.5 + 0.2484), abs=1e-4)
    assert t_statistic.mean([0.0, 1.0, 1.0])[1:3][1] == 1.0, "no mean of such values is above 1"
    assert t_statistic.mean([1.0, 2.0, 9.0]).low < 0
    assert all(end != end for end in t_statistic.mean([0.0, 1.0])[1:3])


@pytest.mark.parametrize("width", [80, 100, 160])
def test_screen_wide_tables_go_on_below_in_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame([{"arm": "baseline", **{f"nDCG@{n} of it": n / 7 for n in range(12)}}])
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", str(width))
    console.print_table(frame, "Documents")
    message = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())  # without colours
    assert "…" not in message and max(map(len, message.splitlines())) <= width
    assert all(f"nDCG@{n} of it" in message and f"{n / 7:.4f}" in message for n in range(12))
    assert message.count("baseline") > 1


def test_screen_says_why_an_arm_is_not_adopted(write_results, tmp_path: Path) -> None:
    arms = {"baseline": LOW, "slow": HIGH, "good": HIGH, "same": [*LOW[:-1], 0.6], "worse": [0.2, 0.3] * 15}
    times = {"baseline": 20.0, "slow": 1190.0, "good": 21.0, "same": 21.0, "worse": 20.0}
    message = screen._below(measurements.load(write_results(tmp_path / "run", arms, times)))
    assert "slow: latency over the budget of +50 ms" in message
    assert "same: not significant; 30 queries are too few to detect an effect this small" in message
    assert "worse: significantly worse" in message
    assert not any(line.startswith("good") for line in message)
    untimed = screen._below(measurements.load(write_results(tmp_path / "untimed", {"a": LOW, "b": HIGH})))
    assert "b: significantly better; latency unknown: latency was not measured" in untimed
    assert printed(measurements.load(tmp_path / "untimed"), 80).rstrip().endswith("inconclusive")


def rows(finished: Measurements, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The rows of a run of two arms by their name, each on one line."""
    screen.show(finished)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:2] == ["nDCG@10 on made (test split, 30 queries)", "base -> new"]
    made: dict[str, str] = {}
    name = ""
    for line in lines[2:]:
        name = line[:10].strip() or name
        made[name] = f"{made[name]} {line[10:]}" if name in made else line[10:]
    assert list(made)[:3] == ["quality", "latency", "verdict"] and len(made) <= 5
    return made


def test_screen_two_arms_are_a_row_each_for_quality_latency_and_verdict(
    write_results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, new: list[float], p95: float | None = 28.0) -> Path:
        times = {"base": 20.0, "new": p95} if p95 else None
        return write_results(tmp_path / name, {"base": LOW, "new": new}, times)

    message = rows(measurements.load(run("better", HIGH)), capsys)
    assert message["quality"] == "documents 0.450 -> 0.650: +0.200 [+0.125, +0.252], 95% CI"
    assert message["latency"] == "p95 20 -> 28 ms: +8 ms [+8, +8], 95% CI; wall-clock time"
    assert message["verdict"] == "adopt: significantly better, latency within the budget of +50 ms"
    message = rows(measurements.load(run("slow", HIGH, 1190.0)), capsys)
    assert message["verdict"] == "reject: latency over the budget of +50 ms"
    message = rows(measurements.load(run("untimed", HIGH, None)), capsys)
    assert message["latency"] == "unknown: latency was not measured"
    assert message["verdict"] == "inconclusive: significantly better; latency unknown: latency was not measured"
    message = rows(measurements.load(run("worse", [0.2, 0.3] * 15)), capsys)
    assert message["verdict"] == "reject: significantly worse"
    message = rows(measurements.load(run("same", [*LOW[:-1], 0.6])), capsys)
    assert message["verdict"].startswith("inconclusive: not significant; 30 queries are too few")
    assert "predicted" not in message


def test_screen_verdict_by_quality_alone_is_labelled(
    write_results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = measurements.load(write_results(tmp_path / "two", {"base": LOW, "new": HIGH}, latency_enabled=False))
    message = rows(two, capsys)
    assert message["latency"] == "not judged: latency was turned off (latency.enabled=false)"
    assert message["verdict"] == "adopt: significantly better, by quality alone"
    assert verdict_sentence(two) == (
        "Adopt new instead of base: significantly better, by quality alone. nDCG@10 of documents 0.450 to 0.650: "
        "+0.200 [+0.125, +0.252], 95% CI."
    )
    (row,) = two_rows = records(two.verdicts)
    assert (row["verdict"], row["judged_by"], row["cost"]) == ("adopt", "quality", "off") and len(two_rows) == 1
    assert "Latency not judged, so quality alone decides: latency was turned off" in row["reason"]
    assert "ragbench run --remeasure-latency @1" in row["reason"]
    arms = {"base": LOW, "new": HIGH, "worse": [0.2, 0.3] * 15}
    three = measurements.load(write_results(tmp_path / "three", arms, latency_enabled=False))
    assert "verdict by quality" in printed(three, 80) and "…" not in printed(three, 80)
    assert "new, worse: verdict by quality alone: latency was turned off" in screen._below(three)


def test_screen_two_arms_on_a_busy_machine_say_how_latency_was_measured(
    write_results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The decision is that of the quiet machine, and no further command is needed for it."""
    folder = write_results(tmp_path / "run", {"base": LOW, "new": HIGH}, {"base": 20.0, "new": 28.0})
    results = measurements.load(folder)
    for arm in ("base", "new"):  # every second query waited for a CPU, three times as long as it computed
        file = folder / "arms" / arm / "latency.parquet"
        frame = pd.read_parquet(file)
        waited = 3 * frame["total"] * (frame.index % 2)
        frame.assign(total=frame["total"] + waited, waited=waited).to_parquet(file)
    state = {"seconds": 9, "load": 9, "others": 2.0, "steal": 0.0, "switches": 300, "processors": 2, "busy": "busy"}
    busy = {"busy": "other programs kept 2.0 of 2 CPUs busy", "before": state, "timing": state}
    record = {**results.record, "machine": busy, "index_bytes": {"base": 1, "new": 1}}
    results = Measurements(folder, record, results.per_query, results.latency)
    measurements.against_first(results)
    message = rows(results, capsys)
    assert message["latency"].startswith("p95 20 -> 28 ms: +8 ms [")
    assert message["latency"].endswith("time waiting for a CPU subtracted, because the machine was busy")
    assert message["verdict"] == "adopt: significantly better, latency within the budget of +50 ms"
    # the same times in the table of the screen, in MLflow and in an exported file
    net = results.net_p95_ms
    assert [f"{net[arm]:.0f} ms" for arm in ("base", "new")] == re.findall(r"\d+ ms", printed(results, 80))
    assert summarise(results).arms["new"].headline["net_p95_ms"] == net["new"]
    means = cells.arms(results)
    heads = [heading for heading, _ in means.columns]
    assert means.rows[1][heads.index("net p95 ms")].text == f"{net['new']:.1f}"


def test_compare_prints_the_screen_of_its_run(
    write_results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One table of a run, in one rounding, whichever command prints it."""
    monkeypatch.chdir(tmp_path)
    folder = write_results(
        tmp_path / "results" / "runs" / "one", {"base": LOW, "new": HIGH}, {"base": 20.0, "new": 28.4}
    )
    results = measurements.load(folder)
    screen.show(results, more=False)
    shown = capsys.readouterr().out
    assert cli.main(["compare", str(folder)]) == 0
    again = capsys.readouterr().out
    assert again.startswith(shown) and "new: adopt. " in again.removeprefix(shown)
    assert cli.main(["compare", str(folder), "--baseline", "new"]) == 0
    other = capsys.readouterr().out
    assert "Change in nDCG@10 from new" in other and " ms " in other and not re.search(r"\d\.\d ms", other)


def test_screen_shows_a_prediction_in_one_line(
    write_results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Prediction("new", "base", 30, 0.071, 0.032, 0.109, 0.996, "10 other collections")
    monkeypatch.setattr(screen.measurements, "predictions_of_run", lambda results, arms: [known])
    actual = measurements.load(write_results(tmp_path / "run", {"base": LOW, "new": [*LOW[:-1], 0.6]}))
    message = rows(actual, capsys)
    assert message["predicted"] == "+0.071 [+0.032, +0.109] from other collections, P(gain): > 0.99"
    assert message["to export"] == "it anyway: ragbench export @1/new --accept-predicted"


def test_screen_one_arm_names_no_comparison(write_results, tmp_path: Path) -> None:
    """`ragbench compare` needs two arms, and there is no report to open."""
    alone = measurements.load(write_results(tmp_path / "run", {"alone": LOW}))
    assert screen._below(alone) == ["[low high] = 95% CI of the mean"]
    assert "verdict" not in printed(alone, 80), "no column is empty"


def test_probability_of_a_prediction_is_never_one() -> None:
    assert [probability(share) for share in (0.5, 0.994, 0.9951, 1.0)] == ["0.50", "0.99", "> 0.99", "> 0.99"]


def test_screen_level_of_two_topics_is_left_out(write_results, tmp_path: Path) -> None:
    arms = {"baseline": LOW, "better": HIGH}
    few = {name: values[:2] for name, values in arms.items()}
    results = measurements.load(write_results(tmp_path / "run", arms, {"baseline": 20.0, "better": 21.0}, passages=few))
    assert "passages" not in printed(results, 80)
    assert "passages" not in str(results.verdicts["reason"].iloc[0])


def test_zero_values_of_all_queries_are_named(write_results, tmp_path: Path) -> None:
    nothing, something = [0.0] * 12, [0.0] * 11 + [0.5]
    results = measurements.load(write_results(tmp_path / "run", {"ours": something, "live": nothing}))
    assert results.without_answers.startswith("live: no relevant document was returned for any judged query")
    results = measurements.load(write_results(tmp_path / "more", {"ours": something}))
    assert results.without_answers == ""
