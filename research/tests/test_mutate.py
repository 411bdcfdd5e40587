"""Every requirement has a mutation that can still be made; one of them is tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from research import mutate
from research.conformance import Requirement, read


def test_every_row_has_a_mutation_that_can_be_made() -> None:
    assert mutate.problems(read(), mutate.read_mutations()) == [], "update research/mutations.yaml"


ROW = Requirement("a", "s", "000", "x", tests=("tests/engine/test_snippet.py",))
MUTATION = mutate.Mutation(
    "a",
    "ragbench/search/engine/snippet.py",
    "LENGTH = 200",
    "LENGTH = 300",
    "test_snippet_is_cut_to_where_the_words_are",
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"row": "b"}, "a: add a mutation to mutations.yaml"),
        ({"row": "b"}, "b: no row of conformance.yaml has this id"),
        ({"test": "test_nothing"}, "a: no file of its tests has test_nothing"),
        ({"before": "LENGTH = 201"}, "a: ragbench/search/engine/snippet.py does not have 'LENGTH = 201'"),
        ({"file": "ragbench/nothing.py"}, "a: ragbench/nothing.py does not have 'LENGTH = 200'"),
        ({"before": "def "}, "a: ragbench/search/engine/snippet.py has 'def ' "),
    ],
)
def test_mutation_that_cannot_be_made_is_named(changes: dict[str, str], problem: str) -> None:
    assert mutate.problems([ROW], [MUTATION]) == []
    assert any(found.startswith(problem) for found in mutate.problems([ROW], [replace(MUTATION, **changes)]))


def test_mutate_refuses_a_row_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate.main(["no-such-row"]) == 2
    assert capsys.readouterr().err == "no-such-row: no such row\n"


@pytest.mark.slow
def test_mutation_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate.main(["lib-snippet"]) == 0
    assert "1 of 1 mutations make the named test fail" in capsys.readouterr().out
