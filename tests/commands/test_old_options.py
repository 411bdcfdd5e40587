"""Options that were renamed: the old names still work, and no help text shows them."""

from __future__ import annotations

import argparse

import pytest

from ragbench.commands import WORDS, call, export, run
from ragbench.extras.fit.commands import fit_ranker

RENAMED = [
    (export, ["RUN", "--out", "b", "--cost-open"], "allow_unknown_latency", True),
    (export, ["RUN", "--out", "b", "--on-expectation"], "accept_predicted", True),
    (run, ["--time-again", "@1"], "remeasure_latency", "@1"),
    (fit_ranker, ["--anew"], "from_fusion", True),
]


@pytest.mark.parametrize(("command", "words", "name", "value"), RENAMED)
def test_an_old_option_sets_the_new_one(command, words: list[str], name: str, value: object) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    old = next(word for word in words if word.startswith("--") and word != "--out")
    new = f"--{name.replace('_', '-')}"
    assert getattr(parser.parse_args(words), name) == value
    assert parser.parse_args([new if word == old else word for word in words]) == parser.parse_args(words)
    assert old not in parser.format_help() and new in parser.format_help()


def test_the_old_name_of_fit_ranker_calls_it() -> None:
    assert call(["fit", "order", "--no-test"]) == call(["fit", "ranker", "--no-test"])
    assert "order" not in WORDS["fit"]
