"""Queries that were lost or won between two searches: their relevant page left the first hits, or entered them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Ranks = Mapping[str, int | None]
"""The rank of each relevant page of a query, from 1; None where it is not among the first hits."""
Answers = Mapping[str, Ranks]
"""The ranks by query."""


@dataclass(frozen=True)
class Moved:
    """A query whose best relevant page left the first hits, or entered them.

    `instead`: the page that is now at the old place of a lost one, "" if there is none. `counts`: whether a lost query
    was in the first half of the hits, so that no small shift explains it.
    """

    query: str
    page: str
    before: int | None
    now: int | None
    instead: str = ""
    counts: bool = False

    def sentence(self, depth: int, quoted: Callable[[str], str] = lambda name: name) -> str:
        """What happened to the page; `quoted` writes the names of pages."""
        page = quoted(self.page)
        if self.now:
            return f"{page} was not in {depth}, is at {self.now}"
        instead = f"; at {self.before} is now {quoted(self.instead)}" if self.instead else ""
        slight = "" if self.counts else " (not counted: a small shift may do this)"
        return f"{page} was at {self.before}, is not in {depth}{instead}{slight}"


def moves(
    before: Answers, now: Answers, depth: int, hits: Mapping[str, Sequence[str]] | None = None
) -> tuple[list[Moved], list[Moved]]:
    """The lost and the won queries of `before` among `depth` hits; `hits` are the names of the hits now."""
    lost, won = [], []
    for query, ranks in before.items():
        page, rank = _best(ranks, depth)
        page_now, rank_now = _best(now.get(query, {}), depth)
        if rank and not rank_now:
            listed = list(dict.fromkeys((hits or {}).get(query, ())))
            instead = listed[rank - 1] if len(listed) >= rank else ""
            lost.append(Moved(query, page, rank, None, instead, counts=rank <= depth // 2))
        elif rank_now and not rank:
            won.append(Moved(query, page_now, None, rank_now))
    return lost, won


def _best(ranks: Ranks, depth: int) -> tuple[str, int | None]:
    """The page with the best rank within `depth`, and the rank; the first page and None without any."""
    page = min(ranks, key=lambda name: ranks[name] or depth + 1, default="")
    rank = ranks.get(page)
    return page, rank if rank is not None and rank <= depth else None
