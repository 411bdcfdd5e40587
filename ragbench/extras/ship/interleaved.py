"""Which of two bundles users prefer, from searches that both answered together.

A search in which something was opened is won by the bundle more of whose documents were opened. The difference of wins
has an interval over sessions: searches of one session are not independent (Chapelle et al., ACM TOIS 2012).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ragbench.benchmark.search_log import CANARY, FIRST, Search
from ragbench.evidence.t_statistic import Mean, mean

_ADDED = (1.0, 1.0, -1.0, -1.0)
"""Sessions added to the interval, so that a few equal ones do not prove anything (Agresti and Coull, 1998)."""


@dataclass(frozen=True)
class Preference:
    """Searches that both bundles of `versions` answered, in how many something counted, who won, and by how much.

    `difference`: the mean over sessions of wins of the canary less those of the first bundle, from -1 to 1. `others`:
    searches of other pairs of versions, which do not count.
    """

    versions: tuple[str, ...]
    searches: int
    first: int
    canary: int
    ties: int
    difference: Mean
    others: int

    @property
    def verdict(self) -> str:
        """What it shows."""
        if self.difference.low > 0:
            return "the canary is preferred"
        return "the first bundle is preferred" if self.difference.high < 0 else "no preference is shown"


def preference(searches: Iterable[Search]) -> Preference:
    """What the searches of the latest pair of versions show."""
    both = [each for each in searches if each.teams]
    latest = both[-1].versions if both else ()
    counted = [each for each in both if each.versions == latest]
    won: Counter[int] = Counter()
    sessions: dict[str, list[int]] = defaultdict(list)
    for number, search in enumerate(counted):
        opened = Counter(team for name, team in zip(search.shown, search.teams, strict=False) if name in search.clicked)
        if opened[FIRST] + opened[CANARY]:
            winner = int(np.sign(opened[CANARY] - opened[FIRST]))
            won[winner] += 1
            sessions[search.session or f"search {number}"].append(winner)
    values = [float(np.mean(each)) for each in sessions.values()]
    wide = mean([*values, *_ADDED])
    centre = float(np.mean(values)) if values else 0.0
    found = Mean(centre, max(-1.0, wide.low), min(1.0, wide.high), len(values))
    return Preference(latest, len(counted), won[-1], won[1], won[0], found, len(both) - len(counted))
