"""Diagnosis: the stage at which each relevant section was won or lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Qrels
    from ragbench.engine.executor import Outcome
    from ragbench.index.chunks import ChunkTable
    from ragbench.types import Ranking

FOUND = "found"
NEVER = "never retrieved"
FUSED_OUT = "fused out"
BURIED = "never near the top"

Ranks = Mapping[int, int]
"""By chunk, its rank in a ranking, from 1."""

COLUMNS = ("arm", "qid", "section", "grade", "outcome", "stage", "rank", "best_source", "best_source_rank")


def diagnose(outcome: Outcome, table: ChunkTable, qrels: Qrels, cutoff: int = 10) -> pd.DataFrame:
    """One row for every relevant section of every query.

    `outcome` says what became of it, `stage` where: `found` among the first `cutoff` hits; `never retrieved` by any
    source; `fused out`, below the cut-off after fusion though a source had it above; `never near the top`;
    `dropped` by a filter, deduplication or limit; `ranked down` by a later stage. Ranks count from 1, 0 is absent.
    """
    import pandas as pd

    chunks_of = _chunks_of_sections(table)
    rows = []
    for place, final in enumerate(outcome.final):
        known: dict[int, Ranks] = {}
        sources = {name: _ranks(ranking, known) for name, ranking in final.rankings.items()}
        trail = [
            (name, _ranks(states[place].fused, known))
            for name, states in zip(outcome.stages, outcome.states, strict=True)
            if states[place].fused is not None
        ]
        for section, grade in sorted(qrels.get(final.query.qid, {}).items()):
            if grade > 0:
                found = _fate(trail, sources, chunks_of.get(section, ()), cutoff)
                rows.append((outcome.arm, final.query.qid, section, grade, *found))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def losses(diagnosis: pd.DataFrame) -> pd.DataFrame:
    """How many relevant sections each arm lost, by outcome and stage, with the share of all relevant sections."""
    counts = diagnosis.groupby(["arm", "outcome", "stage"], sort=False).size().rename("sections").reset_index()
    counts["share"] = counts["sections"] / counts["arm"].map(diagnosis.groupby("arm").size())
    return counts.sort_values(["arm", "sections"], ascending=[True, False]).reset_index(drop=True)


def sentences(diagnosis: pd.DataFrame) -> list[str]:
    """The losses in words: `p10 drops 31 of 74 relevant sections`."""
    relevant = diagnosis.groupby("arm").size().to_dict()
    said = []
    for row in losses(diagnosis).to_dict(orient="records"):
        if row["outcome"] != FOUND:
            dropped = row["outcome"] == "dropped"
            what = f"{row['stage']} drops" if dropped else f"{row['outcome']} ({row['stage']}):"
            said.append(f"{row['arm']}: {what} {row['sections']} of {relevant[row['arm']]} relevant sections")
    return said


def _fate(
    trail: Sequence[tuple[str, Ranks]], sources: Mapping[str, Ranks], chunks: Sequence[int], cutoff: int
) -> tuple[str, str, int, str, int]:
    brought = [(rank, name) for name, places in sources.items() if (rank := _best(places, chunks))]
    source_rank, source = min(brought, default=(0, ""))
    ranks = [(name, _best(places, chunks)) for name, places in trail]
    final = ranks[-1][1]
    if 0 < final <= cutoff:
        return FOUND, ranks[-1][0], final, source, source_rank
    if source_rank == 0 and all(rank == 0 for _, rank in ranks):
        return NEVER, "retrieval", final, source, source_rank
    before = ranks[0][1]
    for name, rank in ranks[1:]:
        if before and not rank:
            return "dropped", name, final, source, source_rank
        before = rank
    above = [0 < rank <= cutoff for _, rank in ranks]
    if any(above):
        last = max(place for place, is_above in enumerate(above) if is_above)
        return "ranked down", ranks[last + 1][0], final, source, source_rank
    if 0 < source_rank <= cutoff:
        return FUSED_OUT, ranks[0][0], final, source, source_rank
    return BURIED, "retrieval", final, source, source_rank


def _ranks(ranking: Ranking | None, known: dict[int, Ranks]) -> Ranks:
    """The rank of every chunk, from 1; made once for each object, as most stages hand on what they were given."""
    if ranking is None:
        return {}
    if id(ranking) not in known:
        known[id(ranking)] = {chunk: rank for rank, chunk in enumerate(ranking.chunks.tolist(), start=1)}
    return known[id(ranking)]


def _best(ranks: Ranks, chunks: Sequence[int]) -> int:
    """The best rank of any of the chunks; 0 when none is there."""
    return min((ranks[chunk] for chunk in chunks if chunk in ranks), default=0)


def _chunks_of_sections(table: ChunkTable) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for chunk, sections in enumerate(table.section_ids):
        for section in sections:
            found.setdefault(section, []).append(chunk)
    return found
