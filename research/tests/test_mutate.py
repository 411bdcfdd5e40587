"""The mutation check of research/conformance.yaml: its changes can be made, and one of them is caught."""

from __future__ import annotations

import pytest

from research import mutate
from research.conformance import read


def test_mutation_changes_one_value_of_a_done_row() -> None:
    rows = {row.id: row for row in read()}
    assert len({each.id for each in mutate.MUTATIONS}) >= 20
    for each in mutate.MUTATIONS:
        assert rows[each.id].state == "done", each.id
        assert (mutate.ROOT / each.file).read_text(encoding="utf-8").count(each.before) == 1, each


@pytest.mark.slow
def test_mutation_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate.main(["lib-snippet"]) == 0
    assert "1 of 1 changes make the named tests fail" in capsys.readouterr().out
