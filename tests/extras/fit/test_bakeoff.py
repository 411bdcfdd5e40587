"""Encoders in the same search, here one under two names: equal quality, and everything is said of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.errors import ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.extras.fit.bakeoff import bakeoff
from ragbench.extras.fit.commands import compare_encoders as command

NAMES = ["bge-small-en-v1.5", "BAAI/bge-small-en-v1.5"]


@pytest.mark.slow
def test_every_encoder_is_an_arm_with_its_costs(workplace: Path, benchmark_small: Benchmark) -> None:
    words = (f"paths.results={workplace}", "latency.enabled=false", "tracking.enabled=false", "split=all")
    found = bakeoff(NAMES, *words, benchmark=benchmark_small, say=lambda sentence: None)
    assert list(found.table["encoder"]) == found.results.arms == NAMES
    assert found.table["nDCG@10"].nunique() == 1
    assert (found.table["index s"] >= 0).all() and (found.table["index MB"] > 0).all()
    assert list(found.results.verdicts["factor"]) == NAMES[1:]
    assert found.results.config(NAMES[1])["index"]["passage"]["title"]  # the recommended search


def test_one_encoder_is_no_bakeoff() -> None:
    with pytest.raises(ConfigError, match="a bake-off needs two encoders, got a: name another one"):
        bakeoff(["a", "a"])


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("models/mine", ["models/mine"]),
        ("encoders=[bge-small-en-v1.5,draft, openai:small]", ["bge-small-en-v1.5", "draft", "openai:small"]),
        ("encoders=draft", ["draft"]),
    ],
)
def test_encoders_are_named_one_by_one_or_in_a_list(word: str, names: list[str]) -> None:
    assert command.encoders(word) == names


@pytest.mark.parametrize("word", ["encoders=[", "encoders=[1]", "encoders={a: b}"])
def test_a_list_that_names_no_encoders_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"names no encoders: write encoders=\[bge-small-en-v1.5,draft\]"):
        command.encoders(word)
