"""A second bundle that answers a share of the searches together with the first, to learn which one users prefer.

Team draft (Radlinski, Kurup and Joachims, CIKM 2008): the two take turns, a coin deciding who begins each round, and
add their best hit that is not there yet. What is opened counts for the bundle that added it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragbench.base.bounds import Checked, Share
from ragbench.base.types import Hit
from ragbench.benchmark.search_log import CANARY, FIRST

NEITHER = "-"


@dataclass(frozen=True)
class CanarySpec(Checked):
    """The folder of the second bundle, and the share (0 to 1) of the searches that it takes part in."""

    folder: Path
    share: Share = 0.05


@dataclass(frozen=True)
class Drafted:
    """Hits of two bundles, the team of every document, and the versions of the two."""

    hits: tuple[Hit, ...]
    teams: dict[str, str]
    versions: tuple[str, str] = ("", "")


@dataclass
class Draft:
    """Interleaves hits; `chance` decides who begins a round."""

    chance: random.Random = field(default_factory=random.SystemRandom)

    def __call__(self, first: Sequence[Hit], canary: Sequence[Hit], named: int) -> Drafted:
        """As many hits as `first` has; its first `named` hits, which the query names, belong to neither.

        A document belongs to the team that adds it first; the other team does not add it again.
        """
        chosen, teams = list(first[:named]), {hit.docno: NEITHER for hit in first[:named]}
        left = {FIRST: list(first[named:]), CANARY: [hit for hit in canary if not hit.guaranteed]}
        picks = dict.fromkeys(left, 0)
        while len(chosen) < len(first) and any(left.values()):
            even = picks[FIRST] == picks[CANARY]
            team = self.chance.choice((FIRST, CANARY)) if even else min(picks, key=lambda each: picks[each])
            picks[team] += 1
            for place, hit in enumerate(left[team]):
                if teams.setdefault(hit.docno, team) == team:
                    chosen.append(hit)
                    del left[team][: place + 1]
                    break
            else:
                left[team] = []
        return Drafted(tuple(replace(hit, rank=rank) for rank, hit in enumerate(chosen, start=1)), teams)
