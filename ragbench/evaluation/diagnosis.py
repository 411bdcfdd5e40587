"""Diagnosis: the stage at which each relevant section (document, where no section was judged) was found or lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base.columns import Columns

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.rankings import Ranking
    from ragbench.benchmark.benchmark import Benchmark, Qrels
    from ragbench.index.chunks import ChunkTable
    from ragbench.search.engine.pipeline import Outcome

FOUND = "found"
NEVER = "never retrieved"
FUSED_OUT = "lost in fusion"
BURIED = "ranked too low"

_Ranks = Mapping[int, int]
"""The rank of each chunk in a ranking, from 1; of each document's row where documents are judged."""

COLUMNS = Columns.of(
    *("arm", "qid", "section", "grade", "outcome", "stage", "rank", "best_source", "best_source_rank"),
)


def of_benchmark(outcome: Outcome, table: ChunkTable, benchmark: Benchmark) -> pd.DataFrame:
    """`diagnose` by sections, or by documents where few topics have judged sections."""
    qrels = benchmark.section_qrels if benchmark.by_section else benchmark.document_qrels
    return diagnose(outcome, table, qrels, by_document=not benchmark.by_section)


def diagnose(
    outcome: Outcome, table: ChunkTable, qrels: Qrels, cutoff: int = 10, by_document: bool = False
) -> pd.DataFrame:
    """One row for every relevant section of every query, for every relevant document with `by_document`.

    `section` is its id, or the docno; documents are ranked by their best chunk. `outcome` says what happened to it and
    `stage` at which stage: `fate` among the first `cutoff` hits; `never retrieved` by any source; `lost in fusion`:
    below the cut-off after fusion although a source had it above; `ranked too low` by each source; `dropped` by a
    filter, deduplication or limit; `ranked down` by a later stage. Ranks count from 1; 0 means absent.
    """
    members = {docno: [row] for docno, row in table.document_number.items()} if by_document else _in_sections(table)
    rows = []
    for trail in _trails(outcome, table if by_document else None):
        for section, grade in sorted(qrels.get(trail.qid, {}).items()):
            if grade > 0:
                fate = trail.outcome_of(members.get(section, ()), cutoff)
                rows.append((outcome.arm, trail.qid, section, grade, *fate))
    return COLUMNS.frame(rows)


@dataclass(frozen=True)
class _Trail:
    """The ranks of a query's hits: in every source, and after every stage from fusion on."""

    qid: str
    sources: Mapping[str, _Ranks]
    stages: Sequence[tuple[str, _Ranks]]

    def outcome_of(self, members: Sequence[int], cutoff: int) -> tuple[str, str, int, str, int]:
        """What happened to the best of `members`: outcome, stage, rank, best source, its rank there."""
        in_sources = [(rank, name) for name, places in self.sources.items() if (rank := _best(places, members))]
        source_rank, source = min(in_sources, default=(0, ""))
        ranks = [(name, _best(places, members)) for name, places in self.stages]
        final = ranks[-1][1]
        ends = (final, source, source_rank)
        if 0 < final <= cutoff:
            return FOUND, ranks[-1][0], *ends
        if source_rank == 0 and all(rank == 0 for _, rank in ranks):
            return NEVER, "retrieval", *ends
        for (_, before), (name, after) in itertools.pairwise(ranks):
            if before and not after:
                return "dropped", name, *ends
        above = [i for i, (_, rank) in enumerate(ranks) if 0 < rank <= cutoff]
        if above:
            return "ranked down", ranks[above[-1] + 1][0], *ends
        if 0 < source_rank <= cutoff:
            return FUSED_OUT, ranks[0][0], *ends
        return BURIED, "retrieval", *ends


def _trails(outcome: Outcome, documents: ChunkTable | None = None) -> Iterator[_Trail]:
    """The trail of every query: of its chunks, or of the documents of the table `documents`, each by its best chunk."""
    for number, final in enumerate(outcome.final):
        ranks: dict[int, _Ranks] = {}
        yield _Trail(
            final.query.qid,
            {name: _ranks(ranking, ranks, documents) for name, ranking in final.rankings.items()},
            [
                (name, _ranks(states[number].fused, ranks, documents))
                for name, states in zip(outcome.stages, outcome.states, strict=True)
                if states[number].fused is not None
            ],
        )


def unit(diagnosis: pd.DataFrame) -> str:
    """What was diagnosed: `sections`, or `documents` where no section was judged."""
    return "sections" if not len(diagnosis) or "#" in diagnosis["section"].iloc[0] else "documents"


def losses(diagnosis: pd.DataFrame) -> pd.DataFrame:
    """How many relevant sections or documents each arm lost, by outcome and stage, with the share of all of them."""
    counts = diagnosis.groupby(["arm", "outcome", "stage"], sort=False).size().rename("sections").reset_index()
    counts["share"] = counts["sections"] / counts["arm"].map(diagnosis.groupby("arm").size())
    return counts.sort_values(["arm", "sections"], ascending=[True, False]).reset_index(drop=True)


def _ranks(ranking: Ranking | None, ranks: dict[int, _Ranks], documents: ChunkTable | None) -> _Ranks:
    """The rank of every hit, from 1; computed once for each object, as most stages pass their input on unchanged."""
    if ranking is None:
        return {}
    if id(ranking) not in ranks:
        hits = ranking.chunks if documents is None else documents.document[ranking.chunks]
        ranks[id(ranking)] = {hit: rank for rank, hit in enumerate(dict.fromkeys(hits.tolist()), start=1)}
    return ranks[id(ranking)]


def _best(ranks: _Ranks, chunks: Sequence[int]) -> int:
    """The best rank of any of the chunks; 0 when none is there."""
    return min((ranks[chunk] for chunk in chunks if chunk in ranks), default=0)


def _in_sections(table: ChunkTable) -> dict[str, list[int]]:
    chunks: dict[str, list[int]] = {}
    for chunk, sections in enumerate(table.section_ids):
        for section in sections:
            chunks.setdefault(section, []).append(chunk)
    return chunks
