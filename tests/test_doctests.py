"""The examples in docstrings of what people call are run."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("ragbench.workbench.experiment", "ragbench.config.overrides", "ragbench.corpus.file_warning")


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 and found.failed == 0
