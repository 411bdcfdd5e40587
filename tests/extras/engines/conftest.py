"""A plan and two documents, small enough to score by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ragbench.extras.engines.content import ChunkRow, DocumentRow
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.words import Terms
from ragbench.index.lexical import Bm25F


@pytest.fixture
def two_chunks() -> tuple[SearchPlan, list[tuple[DocumentRow, NDArray[np.float32]]], Terms]:
    """A plan, two documents of one chunk with their vectors, and what analyses their words."""
    scoring = Bm25F((("content", 1.0),), 1.2, 0.75)
    plan = SearchPlan(
        {"dense": 2, "lexical": 2, "documents": 2}, {"dense": 0.5, "lexical": 0.3, "documents": 0.2}, "convex", 60.0,
        scoring, scoring, "technical",
    )  # fmt: skip
    rows = []
    for name, text, vector in (("a", "apple pear", (1.0, 0.0)), ("b", "apple apple", (0.6, 0.8))):
        chunk = ChunkRow(f"{name}#0", (), 0, 1, 1, text, {"content": text}, text, 0)
        row = DocumentRow(name, f"{name}.md", name, 0.0, {}, {"content": text}, (chunk,), name)
        rows.append((row, np.array(vector, np.float32)))
    return plan, rows, Terms("technical")
