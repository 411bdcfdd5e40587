"""Progress in a notebook is shown while something runs and is gone afterwards."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import IPython.display
import pandas as pd
import pytest

from ragbench.base import console, progress
from ragbench.base.progress import Step
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


def test_bars_in_a_notebook_leave_nothing(shown: list[dict[str, Any]]) -> None:
    with console.progress() as progress:
        progress("embedding <chunks>", 1, 4)
    bar = "<div>embedding &lt;chunks&gt; 1/4 <progress value='1' max='4'></progress></div>"
    assert [each.get("text/html") for each in shown] == [None, bar, None]
    assert all(each["text/plain"] == "" for each in shown)


def test_nothing_to_show_is_nothing_shown(shown: list[dict[str, Any]]) -> None:
    with console.progress():
        pass
    with console.progress(quiet=True) as progress:
        progress("embedding", 1, 4)
    assert shown == []


def test_progress_goes_to_the_function_of_a_caller_or_to_what_is_shown(shown: list[dict[str, Any]]) -> None:
    told: list[tuple[str, int, int]] = []
    with console.progress_to(lambda *step: told.append(step)), console.progress_to(None):
        assert list(progress.steps("reading", "ab")) == ["a", "b"]
        assert list(progress.track("hits", "cd")) == ["c", "d"]  # rows of a part are not rows of a task
    assert told == [("reading", 0, 2), ("reading", 1, 2), ("reading", 2, 2)]
    assert shown == []
    with console.progress_to(None):
        progress.report("embedding", 1, 4)
    assert "embedding 1/4" in str(shown)


def test_progress_is_said_in_lines_for_a_program(monkeypatch, capsys) -> None:
    import json

    monkeypatch.setenv(console.PROGRESS, "lines")
    with console.progress(quiet=True) as report:
        for done in range(1, 5):
            report("searching", done, 4)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(each["progress"], each["done"], each["total"]) for each in lines] == [("searching", n, 4) for n in (1, 4)]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_breaks_sentences_and_cells_between_words_only(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    words = "results in results/runs/20261124-085649-run-2-arms, MLflow run 42f4cd322f20437b8720d905efbb6fbb, whole"
    console.print_text(words)
    console.print_table(pd.DataFrame({"id": ["42f4cd322f20437b8720d905efbb6fbb"], "text": [words]}), words)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)  # without colours
    assert max(map(len, shown.splitlines())) <= columns
    assert all(shown.count(word) == 3 for word in words.split() if word not in ("in", "run", "results"))


def test_a_pipe_gets_whole_sentences_and_no_blanks_at_the_ends_of_lines(capsys: pytest.CaptureFixture[str]) -> None:
    words = "documents that no retriever returned " * 5
    console.print_table(pd.DataFrame({"arm": ["a", "bb"], "text": ["short", words]}), words)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == words and lines[1].startswith("┏") and max(map(len, lines[1:])) < 200
    numbers = {f"oracle {depth}": [0.5] for depth in range(9)}
    console.print_table(pd.DataFrame({"arm": ["a"], **numbers}), in_pipe=console.SCREEN)
    console.print_text(words, in_pipe=console.SCREEN)
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 80 and narrow.count("oracle") == 9 and narrow.count("arm") == 2
    assert cli.main(["list", "experiments"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) > 10 and not [line for line in listed if line != line.rstrip()]


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"p95_ms": float("nan"), "rows": [(1.5, float("inf"))], "name": "x"})
    out = capsys.readouterr().out
    assert json.loads(out, parse_constant=pytest.fail) == {"p95_ms": None, "rows": [[1.5, None]], "name": "x"}


def test_a_frame_is_printed_as_records_and_a_dataclass_as_a_mapping(capsys) -> None:
    import json

    import pandas as pd

    frame = pd.DataFrame({"arm": ["a", "b"], "n": [1, 2], "p": [0.5, float("nan")]})
    console.print_json({"table": frame, "step": Step("embedding", "a", 2.5), "folder": Path("x/y")})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {
        "table": [{"arm": "a", "n": 1, "p": 0.5}, {"arm": "b", "n": 2, "p": None}],
        "step": {"task": "embedding", "arm": "a", "seconds": 2.5, "even": True},
        "folder": "x/y",
    }
