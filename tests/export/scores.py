"""That two engines score alike."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pytest

from ragbench.extras.engines import opened
from ragbench.extras.engines.search import Found


def by_chunk(found: Found) -> dict[str, tuple[float, dict[str, float]]]:
    """The fused score of every chunk, and its score in the sources that found it; best first."""
    sources = {source: values.tolist() for source, values in found.sources.items()}
    return {
        chunk: (score, {source: each[row] for source, each in sources.items() if not math.isnan(each[row])})
        for row, (chunk, score) in enumerate(zip(found.chunk_ids, found.scores.tolist(), strict=True))
    }


def scores_alike(one: str | Path, other: str | Path, texts: Iterable[str], within: float | None = None) -> None:
    """Ask both every text, also among two chunks: the same hits, their scores, and those of every source.

    `within` is how far apart scores of a source may be besides the usual relative 1e-5.
    """
    with opened.load(one) as first, opened.load(other) as second:
        for text in texts:
            vector = first.index.encoder.encode_queries([text])[0]
            for only in (None, ["api-reference#0", "caching#0"]):
                these, those = (by_chunk(each.engine.ask(text, vector, only)) for each in (first, second))
                assert these.keys() == those.keys()
                for chunk, (score, sources) in these.items():
                    assert those[chunk][0] == pytest.approx(score, abs=1e-5)
                    assert those[chunk][1] == pytest.approx(sources, rel=1e-5, abs=within)
