"""Settings that many tests need, composed once in a process."""

from __future__ import annotations

from functools import cache

from ragbench.config import composition
from ragbench.config.settings import Settings


@cache
def composed(*overrides: str) -> Settings:
    """The settings for overrides, where no project file adds others."""
    return composition.compose(overrides)
