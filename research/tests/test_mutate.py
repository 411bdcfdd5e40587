"""The mutation check of research/conformance.yaml: its changes can be made, and one of them is caught."""

from __future__ import annotations

import pytest

from research import mutate
from research.conformance import read


def test_mutation_changes_one_value_of_a_row_with_tests() -> None:
    rows = {row.id: row for row in read()}
    assert len({mutation.id for mutation in mutate.MUTATIONS}) >= 20
    for mutation in mutate.MUTATIONS:
        assert rows[mutation.id].tests, mutation.id
        assert (mutate.ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.before) == 1, mutation


@pytest.mark.slow
def test_mutation_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate.main(["lib-snippet"]) == 0
    assert "1 of 1 changes make the named tests fail" in capsys.readouterr().out
