"""What ordering and retrieval could still bring, worked by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.base.types import Query, QueryState, Ranking
from ragbench.evaluation.headroom import headroom, sentences, sources, summary
from ragbench.search.engine.executor import Outcome

# 80 documents of one chunk each.
TABLE = SimpleNamespace(document=np.arange(80), document_number={f"d{n}": n for n in range(80)})


def outcome(dense: list[int], lexical: list[int], final: list[int]) -> Outcome:
    def ranking(chunks: list[int]) -> Ranking:
        return Ranking.ordered(chunks, [1.0 - 0.01 * place for place in range(len(chunks))])

    state = QueryState(Query("q", "text"), rankings={"dense": ranking(dense), "lexical": ranking(lexical)})
    fused = QueryState(state.query, rankings=state.rankings, fused=ranking(final))
    return Outcome("arm", ("lexical", "fuse"), ((state,), (fused,)))


def test_the_parts_add_up_to_a_perfect_order() -> None:
    # d1 stands third, d15 sixteenth, d60 was found by words only and cut, d99 is not in the collection's index.
    found = outcome(dense=list(range(20)), lexical=[60], final=[0, 2, 1, *range(3, 20)])
    frame = headroom(found, TABLE, {"q": {"d1": 1, "d15": 1, "d60": 1, "d70": 1, "d0": 0}})
    (row,) = frame.to_dict(orient="records")
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert row["nDCG@10"] == pytest.approx((1 / 2) / ideal)
    assert row["oracle_10"] == pytest.approx(1 / ideal)
    assert row["oracle_20"] == row["oracle_50"] == pytest.approx((1 + 1 / math.log2(3)) / ideal)
    assert row["oracle_all"] == pytest.approx((1 + 1 / math.log2(3) + 1 / 2) / ideal)
    assert (row["recall:dense"], row["recall:lexical"], row["recall:together"]) == (0.5, 0.25, 0.75)
    assert row["outcome"] == "found"
    (means,) = summary(frame).to_dict(orient="records")
    assert sum(means[part] for part in ("nDCG@10", "ordering", "depth", "retrieval")) == pytest.approx(1)
    assert means["lost"] == 0
    assert sources(frame) == ["dense", "lexical"]
    assert sentences(frame) == [
        "arm: nDCG@10 is 0.195; a perfect ranking of the top 50 would gain +.44, lower results of the retrievers "
        "+.20, documents that no retriever returned +.17"
    ]


def test_topics_without_a_relevant_document_take_no_part() -> None:
    assert headroom(outcome([1], [2], [1, 2]), TABLE, {"q": {"d1": 0}}).empty
