"""That two engines score alike."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from ragbench.export.engines import opened


def scores_alike(one: str | Path, other: str | Path, texts: Iterable[str], within: float | None = None) -> None:
    """Ask both every text, also among two chunks: the same hits, their scores, and those of every source.

    `within` is how far apart scores of a source may be besides the usual relative 1e-5.
    """
    with opened.load(one) as first, opened.load(other) as second:
        for text in texts:
            vector = first.index.encoder.encode_queries([text])[0]
            for only in (None, ["api-reference#0", "caching#0"]):
                these, those = (each.engine.ask(text, vector, only) for each in (first, second))
                assert {hit.chunk_id for hit in these} == {hit.chunk_id for hit in those}
                scores = {hit.chunk_id: hit for hit in those}
                for hit in these:
                    assert scores[hit.chunk_id].score == pytest.approx(hit.score, abs=1e-5)
                    assert scores[hit.chunk_id].sources == pytest.approx(hit.sources, rel=1e-5, abs=within)
