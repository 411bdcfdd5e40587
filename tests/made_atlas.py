"""An atlas of one change, and queries of a run that is added to one, for tests."""

from __future__ import annotations

import pandas as pd

from ragbench.extras.atlas.tables import COLLECTION_COLUMNS, EFFECT_COLUMNS, Atlas

QUESTIONS = """text,relevant
largest file I may send,configuration.md
which compiler do I need,clients.md
counters,metrics.md
the guide on emptying a queue,queues.md
"""
"""Queries on the handbook of `tests/data/phases`."""


def made(
    effects: list[float],
    learned: int = 0,
    change: str = "p8",
    questions: str = "derived",
    base: str = "plain_hybrid",
) -> Atlas:
    """An atlas of one change on so many collections."""
    rows = [(f"c{number:02}", base, change, 50, 0.6, effect, 0.01, 10, 5) for number, effect in enumerate(effects)]
    facts = {
        "questions": questions,
        "kind": "guides",
        "software": 1,
        "language": "en",
        "documents": 100,
        "topics": 50,
        "median_words": 300.0,
        "links_per_document": 4.0,
        "code_share": 0.1,
        "query_words": 6.0,
        "learned": learned,
        "source": "npm:x@1",
        "licence": "MIT",
        "digest": "0" * 64,
        "version": "1",
        "command": "",
    }
    collections = [{"collection": f"c{number:02}", **facts} for number in range(len(effects))]
    frame = pd.DataFrame(collections)[list(COLLECTION_COLUMNS)]
    return Atlas(pd.DataFrame(rows, columns=list(EFFECT_COLUMNS)), frame)
