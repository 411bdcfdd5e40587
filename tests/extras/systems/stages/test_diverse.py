"""Note-diverse selection of seed 002."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ragbench.extras.systems.stages.adjust import KeepDiverse


@pytest.mark.parametrize(
    ("top_k", "kept"),
    [(1, [0]), (2, [0, 2]), (3, [0, 2, 3]), (4, [0, 1, 2, 3]), (5, [0, 1, 2, 3, 4]), (30, [0, 1, 2, 3, 4])],
)
def test_keep_diverse_every_document_once_before_any_twice(top_k: int, kept: list[int]) -> None:
    # documents a a b c b
    assert np.flatnonzero(KeepDiverse(top_k=top_k).select(np.array([0, 0, 1, 2, 1]))).tolist() == kept


def test_keep_diverse_order_stays_and_guaranteed_hits_too(state, handmade, page) -> None:
    index = handmade([page("a", ("x", "y")), page("b"), page("c")])
    scored = state(fused=[(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.6)])
    assert KeepDiverse(top_k=2)([scored], index)[0].fused.chunks.tolist() == [0, 2]
    kept = replace(scored, guaranteed={1: "title-match", 3: "title-match"})
    assert KeepDiverse(top_k=1)([kept], index)[0].fused.chunks.tolist() == [0, 1, 3]
    assert KeepDiverse(top_k=2)([kept], index)[0].fused.chunks.tolist() == [0, 1, 2, 3]
    assert KeepDiverse(top_k=1)([state(lexical=[1, 0, 3])], index)[0].rankings["lexical"].chunks.tolist() == [1]


@given(documents=st.lists(st.integers(0, 5), max_size=30), top_k=st.integers(1, 20))
@settings(max_examples=60)
def test_keep_diverse_as_many_hits_and_documents_as_can_be(documents: list[int], top_k: int) -> None:
    keep = KeepDiverse(top_k=top_k).select(np.array(documents, dtype=np.int32))
    assert keep.sum() == min(top_k, len(documents))
    assert len({d for d, k in zip(documents, keep, strict=True) if k}) == min(top_k, len(set(documents)))
