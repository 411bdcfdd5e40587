"""`ragbench topics validate`: from the arms' words to what both kinds of topics say of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.commands import cli

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
def test_both_kinds_of_topics_are_measured_and_compared(
    tmp_path: Path, write_vault, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = write_vault(tmp_path / "notes", 40)
    lines = ["text,relevant"]
    for path in sorted(notes.rglob("*.md"))[:20]:
        builder = path.read_text(encoding="utf-8").split("\n\n")[1].split(". ")[0]
        lines.append(f'"{builder}",{path.name}')
    (tmp_path / "queries.csv").write_text("\n".join(lines), encoding="utf-8")
    data = ["data=vault", f"data.corpus={notes}", f"data.queries={tmp_path / 'queries.csv'}"]
    around = [f"paths.results={tmp_path / 'results'}", "statistics.draws=500"]
    arms = ["+exp=lexical_only", "lexical.depth=1,3,50"]
    words = [*data, *around, *arms, "topics.limit=30"]
    assert cli.main(["topics", "validate", "--against", "human", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["topics"] == [20, 30] and len(found["effects"]) == 2
    assert set(found["tau"]) == {"", "value", "low", "high"}
    assert sum(found[name] for name in ("sure_same", "sure_other", "sure_one", "sure_none")) == 3
    persons, derived = found["runs"]
    assert cli.main(["topics", "validate", derived, "--against", persons, *around]) == 0
    said = capsys.readouterr().out
    assert "20 human-written queries" in said and "synthetic queries" in said
    assert "Order of 3 arms: Kendall's tau" in said
    assert cli.main(["topics", "validate", persons, "--against", derived, *around]) == 0
    assert "measured synthetic queries, which are not human-written" in capsys.readouterr().err


def test_one_run_too_many_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topics", "validate", "@1", "@2", "@3"]) == 2
    assert "topics validate takes one run, and the other with --against RUN" in capsys.readouterr().err
