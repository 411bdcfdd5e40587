"""Adds notes that the query names, which no later stage may drop: the `FilterRetriever` of lexical search v3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ragbench.base.options import Count, option
from ragbench.corpus.metadata import Date, normalise_tags, timestamp
from ragbench.extras.systems.parts.names import mentions, tags_in
from ragbench.extras.systems.state import ExpandedQuery
from ragbench.search.stages.stage import Filters, Index, QueryState, Ranking, StateProperty, StateStage, fused

TITLE, TAG, TIME = "title-match", "tag-match", "time-filtered"
_DAY = 86_400.0


@option(
    "guarantee", "Return notes that the query names as [[note]] or #tag first, whole, and never drop them (source 002)."
)
@dataclass(frozen=True)
class GuaranteeNotes(StateStage):
    """Put the notes first that the query names by `[[note]]` and by `#tag`, with score 1.0 and their whole text.

    Seed 002, "Doc Title/Tag Guarantee". A tag admits the tags below it (`#project` admits `project/alpha`). Every note
    is one hit, its first chunk, with all its chunks as context; other hits of the search in such notes are dropped. At
    most `limit` (at least 1) notes are guaranteed, named ones before tagged ones.

    With `after` (inclusive) or `before` (exclusive), dates such as 2026-01-31, the notes of that time are the whole
    answer ("Time-Range Flow"): daily notes, named after a day in it, and all notes modified in it, the most recent
    first. A daily note's time is its day. The score is 1 - 0.01 for each day before the most recent note, at least 0.3;
    the seed says only "by recency". Filters apply to guaranteed notes, too.
    """

    mentions: bool = True  # notes named by [[note]]
    tags: bool = True  # notes with a #tag of the query
    after: Date | None = None  # inclusive date; with a date, the results are all notes in the range
    before: Date | None = None  # a date, exclusive
    limit: Count = 100  # maximum number of notes

    options: ClassVar[frozenset[str]] = frozenset({"after", "before"})
    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "facets", "modified", "names"})
    requires: ClassVar[frozenset[str]] = frozenset({StateProperty.FUSED})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.GUARANTEED})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.GUARANTEED: "notes have been guaranteed already",
        StateProperty.CUT: "what it adds would not be cut",
        StateProperty.PARENTS: "it names chunks, not their parents",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        after, before = self._range
        if after >= before:
            raise self.refused("after", f"must be earlier than before, got {self.after} and {self.before}")

    @cached_property
    def _range(self) -> tuple[float, float]:
        return (
            (timestamp(self.after) if self.after else None) or -np.inf,
            (timestamp(self.before) if self.before else None) or np.inf,
        )

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Add the notes to the fused ranking."""
        if self.after is not None or self.before is not None:
            return self._with_notes_of_time(state, index)
        return self._with_named_notes(state, index)

    def matching(self, state: QueryState, index: Index) -> dict[int, str]:
        """The named documents by row, in order, each with how it was named."""
        matches: dict[int, str] = {}
        names = mentions(state.query.text) if self.mentions else ()
        for name in names:
            matches.update((row, TITLE) for row in index.names.rows_named(name))
        tags = ExpandedQuery.of(state).tags or tags_in(state.query.text)
        if self.tags and tags:
            tagged = index.facets.passing(Filters(tags=normalise_tags(tags)))
            for row in np.flatnonzero(tagged).tolist():
                matches.setdefault(row, TAG)
        return matches

    def _with_named_notes(self, state: QueryState, index: Index) -> QueryState:
        notes = self.matching(state, index)
        whole_notes = dict(_whole_notes(notes, state, index, self.limit))
        if not whole_notes:
            return state
        ranking = fused(state)
        documents = index.chunks.document
        covered = np.isin(documents[ranking.chunks], documents[list(whole_notes)])
        covered &= ~np.isin(ranking.chunks, [chunk for chunk in state.guaranteed if chunk not in whole_notes])
        others = ranking.keep(~covered)
        best = max(1.0, float(others.scores.max(initial=0.0)))
        merged = Ranking.ordered([*whole_notes, *others.chunks], [*([best] * len(whole_notes)), *others.scores])
        kinds = {chunk: notes[int(documents[chunk])] for chunk in whole_notes}
        by_name = list(kinds.values()).count(TITLE)
        note = f"notes guaranteed: {by_name} by name, {len(kinds) - by_name} by tag"
        return _with_guaranteed(state, merged, whole_notes, kinds).with_note(note)

    def _with_notes_of_time(self, state: QueryState, index: Index) -> QueryState:
        after, before = self._range
        times = {row: time for row, time in index.names.days if after <= time < before}
        inside = (index.modified >= after) & (index.modified < before)
        for row in np.flatnonzero(inside).tolist():
            times.setdefault(row, float(index.modified[row]))
        order = sorted(times, key=lambda row: (-times[row], row))
        whole_notes = dict(_whole_notes(order, state, index, self.limit))
        dates = [times[int(index.chunks.document[chunk])] for chunk in whole_notes]
        scores = [max(0.3, 1 - 0.01 * (dates[0] - date) / _DAY) for date in dates]
        note = f"{len(whole_notes)} notes of the time asked for are the whole answer"
        ranking = Ranking.ordered(list(whole_notes), scores)
        return _with_guaranteed(state, ranking, whole_notes, dict.fromkeys(whole_notes, TIME)).with_note(note)

    def of_time(self, after: str | None, before: str | None) -> GuaranteeNotes:
        """The stage that answers a search for the notes of a time."""
        return replace(self, after=after, before=before)

    def describe(self) -> str:
        if self.after is not None or self.before is not None:
            return f"take the notes of {self.after or 'the beginning'} to {self.before or 'now'} alone"
        return "put the notes first that the query names"


def _whole_notes(
    documents: Iterable[int], state: QueryState, index: Index, limit: int
) -> Iterable[tuple[int, tuple[int, ...]]]:
    """(first chunk, all chunks) of the first `limit` documents that have chunks which the filters admit."""
    allowed = index.allowed(state.filters)
    remaining = limit
    for document in documents:
        chunks = tuple(c for c in range(*index.chunks.chunks_of(document)) if allowed is None or allowed[c])
        if chunks and remaining:
            remaining -= 1
            yield chunks[0], chunks


def _with_guaranteed(
    state: QueryState, ranking: Ranking, whole_notes: Mapping[int, tuple[int, ...]], kinds: Mapping[int, str]
) -> QueryState:
    return replace(
        state,
        fused=ranking,
        guaranteed={**state.guaranteed, **kinds},
        contexts={**state.contexts, **whole_notes},
    )
