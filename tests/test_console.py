"""Tables, sentences and JSON on standard output, and the progress of a notebook and of a program."""

from __future__ import annotations

import json
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import IPython.display
import pandas as pd
import pytest

from ragbench.base import console, progress
from ragbench.base.types import with_interval
from ragbench.commands import cli


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a notebook would show at one place, one after the other."""
    data: list[dict[str, Any]] = []

    class Handle:
        def update(self, bundle: dict[str, Any], raw: bool) -> None:
            data.append(bundle)

    def display(bundle: dict[str, Any], raw: bool, display_id: bool) -> Handle:
        data.append(bundle)
        return Handle()

    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(IPython.display, "display", display)
    return data


def test_notebook_bars_leave_nothing(shown: list[dict[str, Any]]) -> None:
    with console.progress() as progress:
        progress("embedding <chunks>", 1, 4)
    bar = "<div>embedding &lt;chunks&gt; 1/4 <progress value='1' max='4'></progress></div>"
    assert [bundle.get("text/html") for bundle in shown] == [None, bar, None]
    assert all(bundle["text/plain"] == "" for bundle in shown)


def test_notebook_shows_nothing_when_quiet_or_idle(shown: list[dict[str, Any]]) -> None:
    with console.progress():
        pass
    with console.progress(quiet=True) as progress:
        progress("embedding", 1, 4)
    assert shown == []


def test_progress_to_calls_function_or_the_shown_progress(shown: list[dict[str, Any]]) -> None:
    reports: list[tuple[str, int, int]] = []
    with console.progress_to(lambda *step: reports.append(step)), console.progress_to(None):
        assert list(progress.steps("reading", "ab")) == ["a", "b"]
        assert list(progress.track("hits", "cd")) == ["c", "d"]  # rows of a part are not rows of a task
    assert reports == [("reading", 0, 2), ("reading", 1, 2), ("reading", 2, 2)]
    assert shown == []
    with console.progress_to(None):
        progress.report("embedding", 1, 4)
    assert "embedding 1/4" in str(shown)


def test_progress_lines_are_json(monkeypatch, capsys) -> None:
    monkeypatch.setenv(console.PROGRESS, "lines")
    with console.progress(quiet=True) as report:
        for done in range(1, 5):
            report("searching", done, 4)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    counts = [(line["progress"], line["done"], line["total"]) for line in lines]
    assert counts == [("searching", 1, 4), ("searching", 4, 4)]


@pytest.mark.parametrize("columns", [80, 120])
def test_terminal_breaks_sentences_and_cells_between_words(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    sentence = "results in results/runs/20261124-085649-run-2-arms, MLflow run 42f4cd322f20437b8720d905efbb6fbb, whole"
    console.print_text(sentence)
    console.print_table(pd.DataFrame({"id": ["42f4cd322f20437b8720d905efbb6fbb"], "text": [sentence]}), sentence)
    screen = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)  # without colours
    assert max(map(len, screen.splitlines())) <= columns
    assert all(screen.count(word) == 3 for word in sentence.split() if word not in ("in", "run", "results"))


def test_pipe_gets_whole_sentences_without_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "documents that no retriever returned " * 5
    console.print_table(pd.DataFrame({"arm": ["a", "bb"], "text": ["short", sentence]}), sentence)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == sentence and lines[1].startswith("┏") and max(map(len, lines[1:])) < 200
    numbers = {f"oracle {depth}": [0.5] for depth in range(9)}
    console.print_table(pd.DataFrame({"arm": ["a"], **numbers}), in_pipe=console.SCREEN)
    console.print_text(sentence, in_pipe=console.SCREEN)
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 80 and narrow.count("oracle") == 9 and narrow.count("arm") == 2
    assert cli.main(["list", "experiments"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) > 10 and not [line for line in listed if line != line.rstrip()]


def test_print_json_writes_null_for_nan(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"p95_ms": float("nan"), "rows": [(1.5, float("inf"))], "name": "x"})
    out = capsys.readouterr().out
    assert json.loads(out, parse_constant=pytest.fail) == {"p95_ms": None, "rows": [[1.5, None]], "name": "x"}


def test_print_json_takes_frames_and_dataclasses(capsys) -> None:
    @dataclass
    class Hit:
        docno: str
        score: float

    frame = pd.DataFrame({"arm": ["a", "b"], "n": [1, 2], "p": [0.5, float("nan")]})
    console.print_json({"table": frame, "hit": Hit("a", 2.5), "folder": Path("x/y")})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "table": [{"arm": "a", "n": 1, "p": 0.5}, {"arm": "b", "n": 2, "p": None}],
        "hit": {"docno": "a", "score": 2.5},
        "folder": "x/y",
    }


def test_effect_of_too_few_queries_has_no_interval() -> None:
    nan = float("nan")
    assert with_interval(0.055, 0.036, 0.074) == "+0.055 [+0.036, +0.074]"
    assert with_interval(0.0, nan, nan) == "+0.000"
