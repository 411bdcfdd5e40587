"""Weak judgments from clicks: a document is relevant if it is clicked at least as often as others at its ranks.

COEC, clicks over expected clicks (Zhang and Jones, WWW 2007): the expected clicks of a rank are the share of its
showings that were clicked, made monotone, so that a document gains nothing from being shown first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.extras.collect.search_log import Search


@dataclass
class Clicks:
    """The clicks of one query: how often each document was clicked and how often that was expected, by its name."""

    clicked: Counter[str] = field(default_factory=Counter)
    expected: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, search: Search, rates: NDArray[np.float64]) -> None:
        """Add a search."""
        self.clicked.update(dict.fromkeys(search.clicked, search.count))
        for rank, name in enumerate(search.shown):
            self.expected[name] += search.count * float(rates[rank])

    def relevant(self, least: int = minimums.CLICKS) -> list[str]:
        """The documents that were clicked `least` times or more, and at least as often as expected at their ranks."""
        return sorted(
            name for name, count in self.clicked.items() if count >= max(least, self.expected.get(name, 0.0) - 1e-9)
        )


def rates(searches: Iterable[Search]) -> NDArray[np.float64]:
    """The share of showings that were clicked, one value a rank, never rising; empty where nothing was shown."""
    from scipy.optimize import isotonic_regression

    counted: list[Sequence[int]] = [
        (rank, search.count, search.count if name in search.clicked else 0)
        for search in searches
        for rank, name in enumerate(search.shown)
    ]
    if not counted:
        return np.zeros(0)
    ranks, shown, clicked = np.array(counted).T
    n = np.bincount(ranks, shown)
    return np.asarray(isotonic_regression(np.bincount(ranks, clicked) / n, weights=n, increasing=False).x)
