"""Progress in a notebook is shown while something runs and is gone afterwards."""

from __future__ import annotations

import sys
import types
from typing import Any

import IPython.display
import pytest

from ragbench.base import console


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


def test_progress_is_said_in_lines_for_a_program(monkeypatch, capsys) -> None:
    import json

    monkeypatch.setenv(console.PROGRESS, "lines")
    with console.progress(quiet=True) as report:
        for done in range(1, 5):
            report("searching", done, 4)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(each["progress"], each["done"], each["total"]) for each in lines] == [("searching", n, 4) for n in (1, 4)]
