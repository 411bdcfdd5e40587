"""P8: hits per document."""

from dataclasses import replace

import pytest

from ragbench.search.stages.redundancy import LimitPerDocument

HITS = [(0, 0.9), (1, 0.8), (3, 0.7), (2, 0.6), (4, 0.5)]


@pytest.fixture
def index(handmade, page):
    return handmade([page("a", ("p", "q", "r")), page("b", ("s", "t"))])


@pytest.mark.parametrize(
    ("limit", "left"), [(1, [0, 3]), (2, [0, 1, 3, 4]), (3, [0, 1, 3, 2, 4]), (0, [0, 1, 3, 2, 4])]
)
def test_limit_per_document_keeps_the_best_of_every_document_in_order(
    state, index, limit: int, left: list[int]
) -> None:
    (after,) = LimitPerDocument(limit)([state(fused=HITS)], index)
    assert after.fused.chunks.tolist() == left
    assert after.counts[1:] == (("after_doc_limit", len(left)),)


def test_limit_per_document_has_the_default_of_the_seed() -> None:
    assert LimitPerDocument().max_per_doc == 2


def test_limit_per_document_keeps_guaranteed_hits(state, index) -> None:
    (after,) = LimitPerDocument(1)([replace(state(fused=HITS), guaranteed={2: "title-match"})], index)
    assert after.fused.chunks.tolist() == [0, 3, 2]
