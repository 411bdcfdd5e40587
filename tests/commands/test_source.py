"""`ragbench search --source` shows a page as it is indexed."""

from pathlib import Path

import pytest

from ragbench.commands.cli import main


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/🐘.md").write_text("---\ntags: [big]\n---\n<h1>Elephants ✓</h1>\n\nThey swim. <!-- hidden -->\n")
    return tmp_path / "notes"


def test_source_marks_what_differs_from_the_file(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--source", "Elephants ✓", "data=vault", f"data.corpus={notes}"]) == 0
    output = capsys.readouterr().out
    assert "-<h1>Elephants ✓</h1>" in output and "+# Elephants ✓" in output
    assert "-They swim. <!-- hidden -->" in output


def test_source_of_an_unknown_page_is_refused(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--source", "zebras.md", "data=vault", f"data.corpus={notes}"]) == 2
    assert "zebras.md" in capsys.readouterr().err
