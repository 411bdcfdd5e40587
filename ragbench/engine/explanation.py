"""Why a hit is where it is: what every source and every stage did with it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ragbench.engine.pipeline import Pipeline, hits, start
from ragbench.index.artefacts import MANIFEST
from ragbench.types import CompressionStats, Hit, Query, QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class Explained:
    """A hit with its place in every source's ranking, `sources[name] = (rank, score)`, and after every later stage.

    `reasons` are the fields of seed 002's `SearchExplanation`: `base_score` when it was first found (by words, if it
    was), `final_score`, and what stages that have an `explain` say of it (`lexical_matches`, `folder_boost`,
    `graph_boost`, `source`). `metadata` are the fields of seed 004.
    """

    hit: Hit
    sources: Mapping[str, tuple[int, float]]
    stages: Mapping[str, tuple[int, float]]
    reasons: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """A query's hits with what the stages noted and how many hits every filter left."""

    query: str
    pipeline: Pipeline
    hits: tuple[Explained, ...]
    notes: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]
    compression: CompressionStats

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{each.hit.rank}</td><td><b>{escape(each.hit.docno)}</b><br>"
            f"{escape(' > '.join(each.hit.header_path) or each.hit.title)}</td>"
            f"<td>{escape(snippet(each.hit.text, self.query))}</td>"
            f"<td>{escape(', '.join(f'{name} {rank}' for name, (rank, _) in each.sources.items()))}</td></tr>"
            for each in self.hits
        )
        head = "<tr><th>rank</th><th>section</th><th>text</th><th>found by, rank</th></tr>"
        return f"<p><i>{escape(self.query)}</i></p><table class='ragbench-answer'>{head}{rows}</table>"


def explain(text: str, pipeline: Pipeline, index: Index, top_n: int) -> Answer:
    """Search and keep the state after every stage."""
    (first,) = start([Query("q", text)])
    trail = [(name, states[0]) for name, states in pipeline.steps([first], index)]
    passed = [first, *(state for _, state in trail)]
    final = passed[-1]
    indexed = datetime.datetime.fromtimestamp(
        (index.artefact("chunks").folder / MANIFEST).stat().st_mtime, datetime.UTC
    )
    ranking = final.fused or Ranking.empty()
    explained = []
    for hit, chunk in zip(hits(ranking, index, top_n, final.contexts), ranking.chunks.tolist(), strict=False):
        family = _family(chunk, index)
        sources = {source: place for source, each in sorted(final.rankings.items()) if (place := _place(each, family))}
        later = {
            name: place for name, state in trail if state.fused is not None and (place := _place(state.fused, family))
        }
        reasons = _reasons(hit, family, pipeline, passed, index)
        metadata = {**index.facets.metadata_of(chunk), "indexed_at": indexed.isoformat(timespec="seconds")}
        explained.append(Explained(hit, sources, later, reasons, metadata))
    return Answer(text, pipeline, tuple(explained), final.notes, final.counts, CompressionStats.of(final))


def _reasons(
    hit: Hit, family: Sequence[int], pipeline: Pipeline, passed: Sequence[QueryState], index: Index
) -> dict[str, Any]:
    """What the stages say; `passed` are the states before every stage and after the last."""
    lexical = [state.rankings["lexical"] for state in passed if "lexical" in state.rankings]
    rankings = [*lexical, *(each for state in passed for each in _rankings(state))]
    found = (place[1] for ranking in rankings if (place := _place(ranking, family)))
    reasons: dict[str, Any] = {"base_score": next(found, hit.score), "final_score": hit.score}
    for (_, stage), before in zip(pipeline, passed, strict=False):
        if hasattr(stage, "explain"):
            reasons |= stage.explain(before, index, family[-1])
    return reasons


def _rankings(state: QueryState) -> list[Ranking]:
    return [*state.rankings.values(), *([] if state.fused is None else [state.fused])]


def _family(chunk: int, index: Index) -> Sequence[int]:
    """The chunk and, for a parent, the children that stand for it before expansion."""
    import numpy as np

    return [chunk, *np.flatnonzero(index.chunks.parent == chunk).tolist()]


def _place(ranking: Ranking, family: Sequence[int]) -> tuple[int, float] | None:
    for rank, (chunk, score) in enumerate(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True), start=1):
        if chunk in family:
            return rank, score
    return None


def as_mapping(answer: Answer) -> dict[str, Any]:
    """The answer as plain values, for JSON."""
    return {
        "query": answer.query,
        "pipeline": repr(answer.pipeline),
        "notes": list(answer.notes),
        "counts": dict(answer.counts),
        "compression": asdict(answer.compression),
        "hits": [
            {
                "rank": each.hit.rank,
                "score": each.hit.score,
                "chunk_id": each.hit.chunk_id,
                "docno": each.hit.docno,
                "title": each.hit.title,
                "header_path": list(each.hit.header_path),
                "text": each.hit.text,
                "sources": {name: {"rank": r, "score": s} for name, (r, s) in each.sources.items()},
                "stages": {name: {"rank": r, "score": s} for name, (r, s) in each.stages.items()},
                "explanation": dict(each.reasons),
                "metadata": dict(each.metadata),
                **each.hit.details,
            }
            for each in answer.hits
        ],
    }


def show(answer: Answer, in_full: bool) -> None:
    """Print the hits: breadcrumb and snippet; in full, also every stage's part."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    if in_full:
        console.print(Text(repr(answer.pipeline), style="dim"))
        for note in answer.notes:
            console.print(Text(f"note: {note}", style="dim"))
        if answer.counts:
            console.print(Text("hits: " + ", ".join(f"{name} {n}" for name, n in answer.counts), style="dim"))
    if not answer.hits:
        console.print("no hits")
    for each in answer.hits:
        hit = each.hit
        crumb = " > ".join(hit.header_path) or hit.title
        console.print(Text.assemble((f"{hit.rank:2d}. ", "bold"), (hit.docno, "bold cyan"), "  ", crumb))
        console.print(Text(f"    {snippet(hit.text, answer.query)}"))
        if in_full:
            found = "; ".join(f"{name} rank {r} ({s:.4g})" for name, (r, s) in each.sources.items())
            then = " -> ".join(f"{name} {r} ({s:.4f})" for name, (r, s) in each.stages.items())
            console.print(Text(f"    found by: {found or 'no source directly'}", style="dim"))
            console.print(Text(f"    then:     {then}", style="dim"))
            console.print(Text(f"    because:  {_shown(each.reasons)}", style="dim"))
            console.print(Text(f"    document: {_shown(each.metadata)}", style="dim"))


def _shown(values: Mapping[str, Any]) -> str:
    """Plain values on one line."""

    def said(value: Any) -> str:
        if isinstance(value, Mapping):
            return "(" + ", ".join(f"{key} {said(each)}" for key, each in value.items()) + ")"
        if isinstance(value, list):
            return ", ".join(map(said, value)) or "none"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{name} {said(value)}" for name, value in values.items() if value != "")


def snippet(text: str, query: str, width: int = 220) -> str:
    """The stretch of a text with the most words of the query, on one line."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    words = {word for word in query.lower().split() if len(word) > 2}
    lowered = flat.lower()
    best = max(range(0, len(flat) - width // 2, 40), key=lambda at: sum(w in lowered[at : at + width] for w in words))
    return ("..." if best else "") + flat[best : best + width].strip() + "..."
