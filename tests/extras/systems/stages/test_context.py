"""One hit per document with its neighbours (seed 004)."""

from dataclasses import replace

import pytest

from ragbench.base.types import Filters
from ragbench.extras.systems.librarian_chunking import LibrarianFixedChunker
from ragbench.extras.systems.stages.librarian import AddNeighbours
from ragbench.index.index import IndexSpec
from ragbench.search.engine.hits import _join_texts


@pytest.fixture
def index(handmade, page):
    """a has the chunks 0 to 3, b 4 and 5."""
    return handmade([page("a", "wxyz", tags=["t"]), page("b", "uv")])


def test_context_best_of_every_document_with_one_on_either_side(state, index) -> None:
    (after,) = AddNeighbours()([state(fused=[(2, 0.9), (5, 0.8), (0, 0.7), (4, 0.6)])], index)
    assert after.fused.chunks.tolist() == [2, 5]
    assert after.contexts == {2: (1, 2, 3), 5: (4, 5)}
    assert after.counts == (("original_count", 4), ("after_documents", 2))


@pytest.mark.parametrize(("neighbours", "around"), [(0, (1,)), (1, (0, 1, 2)), (9, (0, 1, 2, 3))])
def test_neighbours_end_with_the_document(state, index, neighbours: int, around: tuple[int, ...]) -> None:
    (after,) = AddNeighbours(neighbours)([state(fused=[(1, 0.9)])], index)
    assert after.contexts == {1: around}


def test_guaranteed_hits_and_their_contexts_stay(state, index) -> None:
    given = replace(state(fused=[(2, 0.9), (0, 0.7)]), guaranteed={0: "title-match"}, contexts={0: (0, 1, 2, 3)})
    (after,) = AddNeighbours()([given], index)
    assert after.contexts == {0: (0, 1, 2, 3), 2: (1, 2, 3)}
    assert after.fused.chunks.tolist() == [2, 0]


def test_filters_hold_for_neighbours(make_index, state) -> None:
    index = make_index()
    under = index.facets.under_headings((2,))
    chunk = next(
        n
        for n in range(1, len(under))
        if under[n] and not under[n - 1] and index.chunks.document[n - 1] == index.chunks.document[n]
    )
    given = replace(state(fused=[(chunk, 0.9)]), filters=Filters(heading_levels=(2,)))
    assert chunk - 1 not in AddNeighbours()([given], index)[0].contexts[chunk]


def test_texts_are_joined_without_repeating_what_overlaps(make_index) -> None:
    index = make_index(IndexSpec(chunker=LibrarianFixedChunker(20, 5)))
    table = index.chunks
    start, stop = max((table.chunks_of(d) for d in range(table.n_documents)), key=lambda span: span[1] - span[0])
    document = next(d for d in index._documents() if d.docno == table.docno(start))
    whole = _join_texts(table, range(start, stop))
    assert "".join(whole.split()) == "".join(document.text.split())
    assert _join_texts(table, [start]) == table.text(start)
    assert _join_texts(table, [start, stop - 1]) == f"{table.text(start)}\n\n{table.text(stop - 1)}"
