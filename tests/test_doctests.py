"""Docstrings of the public API: their sections are complete, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

import ragbench

FUNCTIONS = sorted(name for name in ragbench.__all__ if inspect.isfunction(getattr(ragbench, name)))
CLASSES = sorted(name for name in ragbench.__all__ if inspect.isclass(getattr(ragbench, name)))
HEAVY = {"load", "tune"}  # an example would measure; the notebooks have one of each
MODULES = sorted({getattr(ragbench, name).__module__ for name in [*FUNCTIONS, *CLASSES] if name not in HEAVY})
MODULES += ["ragbench.config.overrides", "ragbench.corpus.file_warning"]


def test_examples_hold() -> None:
    failed, attempted = 0, 0
    for name in MODULES:
        outcome = doctest.testmod(importlib.import_module(name))
        failed, attempted = failed + outcome.failed, attempted + outcome.attempted
    assert failed == 0 and attempted > 30


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections_name_every_parameter(name: str) -> None:
    function = getattr(ragbench, name)
    text = inspect.getdoc(function) or ""
    parts = {part: text.find(f"{part}:\n") for part in ("Args", "Returns", "Example")}
    assert all(at > 0 for part, at in parts.items() if part != "Example" or name not in HEAVY), parts
    arguments = text[parts["Args"] : parts["Returns"]]
    for parameter in inspect.signature(function).parameters:
        assert f"{parameter}: " in arguments, parameter


@pytest.mark.parametrize("name", CLASSES)
def test_classes_describe_their_attributes(name: str) -> None:
    fields = [each for each in getattr(ragbench, name).__dataclass_fields__ if not each.startswith("_")]
    text = inspect.getdoc(getattr(ragbench, name)) or ""
    assert [each for each in fields if f"    {each}: " not in text] == []
