from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.benchmark.judge_widget import judge_widget
from ragbench.benchmark.pool import COLUMNS, read_pool, to_csv


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "pool.csv"
    rows = [("q", "a <b>", "n", f"a#{n}", "h", "<script>x</script>", "", "") for n in range(2)]
    path.write_text(to_csv(COLUMNS, rows))
    return path


def test_buttons_grade_and_save(path: Path) -> None:
    view, row = judge_widget(path).children
    buttons = {button.description: button for button in row.children}
    assert list(buttons) == ["0", "1", "2", "3", "skip", "undo"]
    assert "a &lt;b&gt;" in view.value and "<script>" not in view.value and "a#0" in view.value
    buttons["3"].click()
    assert "a#1" in view.value
    buttons["skip"].click()
    assert [each["grade"] for each in read_pool(path).rows] == ["3", "s"]
    buttons["1"].click()
    assert "Nothing left to grade" in view.value and buttons["0"].disabled
    buttons["undo"].click()
    assert not buttons["0"].disabled
    assert [each["grade"] for each in read_pool(path).rows] == ["3", "s"]
