"""Chunks of a ranking as hits: with text and context, place in the document, and the sources that found them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Hit
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index

REPEATED = "a document was returned more than once: its first place counts"
"""The note of a query whose hits from another system repeat a document."""


def hits(state: QueryState, index: Index, top_n: int) -> list[Hit]:
    """The guaranteed hits of a state, then the first `top_n` others of its fused ranking, without explanations."""
    places = enumerate(first_hits(state, top_n), start=1)
    sources = [(name, frozenset(state.rankings[name].chunks.tolist())) for name in sorted(state.rankings)]
    return [_hit(rank, score, chunk, state, index, sources) for rank, (chunk, score) in places]


def first_hits(state: QueryState, top_n: int) -> list[tuple[int, float]]:
    """The chunks of `hits` with their scores."""
    ranking = state.fused or Ranking.empty()
    listed = list(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))
    guaranteed = [hit for hit in listed if hit[0] in state.guaranteed]
    return [*guaranteed, *[hit for hit in listed if hit[0] not in state.guaranteed][:top_n]]


def _hit(
    rank: int, score: float, chunk: int, state: QueryState, index: Index, sources: Sequence[tuple[str, frozenset[int]]]
) -> Hit:
    """The hit of a chunk; `sources` are the chunks that each source found, by its name."""
    table, facets = index.chunks, index.facets
    members = with_children(chunk, table)
    document = int(table.document[chunk])
    (start, end), (start_line, end_line) = table.span(chunk), table.lines(chunk)
    named, opening = state.guaranteed.get(chunk), table.opening(chunk)
    return Hit(
        rank=rank,
        score=score,
        chunk_id=table.chunk_ids[chunk],
        docno=table.docnos[document],
        path=str(table.document_value("path", document)),
        title=table.titles[document],
        header_path=table.header_path(chunk),
        heading_level=int(facets.heading_level[chunk]),
        start=start,
        end=end,
        start_line=start_line,
        end_line=end_line,
        text=opening + table.text(chunk),
        lead=len(opening),
        context=_join_texts(table, state.contexts[chunk]) if chunk in state.contexts else None,
        matches=(*([named] if named else []), *(name for name, chunks in sources if not chunks.isdisjoint(members))),
        guaranteed=named is not None,
        metadata=facets.metadata_of(document),
    )


def with_children(chunk: int, table: ChunkTable) -> list[int]:
    """The chunk and, for a parent, its children, which take its place before expansion."""
    if chunk < table.n_retrievable:
        return [chunk]
    return [chunk, *np.flatnonzero(table.parent == chunk).tolist()]


def _join_texts(table: ChunkTable, chunks: Sequence[int]) -> str:
    """The texts of chunks of one document in order, overlaps written once, gaps as a blank line."""
    text, end = "", 0
    for chunk in chunks:
        start, stop = table.span(chunk)
        if not text:
            text, end = table.opening(chunk) + table.text(chunk), stop
        elif stop > end:
            text += table.text(chunk)[end - start :] if start <= end else f"\n\n{table.text(chunk)}"
            end = stop
    return text


def problems(states: Sequence[QueryState]) -> list[str]:
    """A sentence for what is wrong with the hits of a live search in some queries."""
    outside = [name for state in states for _, name in state.unmatched]
    repeated = [state.query.qid for state in states if REPEATED in state.notes]
    sentences = []
    if outside:
        names = ", ".join(dict.fromkeys(outside[:3]))
        hits = sum(len(state.hits_with_unmatched()) for state in states)
        sentences.append(
            f"{len(outside)} of {hits} hits are in no document of the collection and count as not relevant: {names}"
        )
    if repeated:
        sentences.append(f"{REPEATED} ({len(repeated)} queries, such as {repeated[0]})")
    return sentences
