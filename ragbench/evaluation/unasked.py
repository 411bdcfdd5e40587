"""Novel queries, which no cache can answer.

The topics of a run are not novel when they are timed: the pass that measured quality has asked them, so a stage,
plug-in or endpoint that remembers answers by text would be timed by its memory. A fresh process forgets what a process
keeps, and neither what is on disk nor what an endpoint keeps. A novel text is new to all of them. A variant
exchanges one word of a query for a word of another one, so that it has as many words, from the same vocabulary.
`tests/bench/memory_and_time.py` compares the times of variants and of the queries themselves.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ragbench.base.types import Query

_TRIES = 50


class Unasked:
    """Makes variants of queries, every one once."""

    def __init__(self, queries: Sequence[Query], known: Iterable[str] = ()) -> None:
        """`known` texts are not made either."""
        self._words = [word for query in queries for word in query.text.split()] or ["word"]
        self._known = {query.text for query in queries} | set(known)
        # Not seeded: an endpoint that remembers the variants of an earlier run must not have seen these.
        self._chance = random.SystemRandom()

    def of(self, query: Query) -> Query:
        """A variant that was not made before, with the qid of its query."""
        words = query.text.split() or [""]
        for attempt in range(_TRIES):
            made = list(words)
            for place in self._chance.sample(range(len(made)), min(len(made), 1 + attempt // 10)):
                made[place] = self._chance.choice(self._words)
            if (text := " ".join(made)) not in self._known:
                break
        else:
            # So few words that all exchanges are used up: a number is new for certain.
            text = f"{query.text} {self._chance.getrandbits(40)}"
        self._known.add(text)
        return replace(query, text=text)
