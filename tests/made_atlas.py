"""An atlas of one change, and queries of a run, for tests."""

from __future__ import annotations

import pandas as pd

from ragbench.extras.atlas.tables import Atlas

QUESTIONS = """text,relevant
largest file I may send,configuration.md
which compiler do I need,clients.md
counters,metrics.md
the guide on emptying a queue,queues.md
"""
"""Queries on the handbook of `tests/data/phases`."""


def made(
    effects: list[float], learned: int = 0, change: str = "p8", questions: str = "derived", base: str = "plain_hybrid"
) -> Atlas:
    """An atlas of one change on so many collections."""
    measured = {"base": base, "change": change, "topics": 50, "mean": 0.6, "error": 0.01, "better": 10, "worse": 5}
    rows = [{"collection": f"c{number:02}", "effect": effect, **measured} for number, effect in enumerate(effects)]
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
    return Atlas(pd.DataFrame(rows), pd.DataFrame(collections))
