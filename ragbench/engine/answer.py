"""A query's answer: hits with all that is known about them, and what the stages did on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ragbench.engine.explanation import explanation
from ragbench.engine.hits import hits
from ragbench.engine.pipeline import Pipeline, start
from ragbench.errors import ConfigError
from ragbench.types import CompressionStats, Hit, Query, QueryState, Ranking

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.stages.stage import Stage


@dataclass(frozen=True)
class Answer:
    """A query's hits with what the stages noted, how many hits every filter left and how long each stage took.

    `pipeline` says in words how hits were found; `stage_ms` is in milliseconds, in the order of the stages.
    """

    query: str
    pipeline: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...]
    counts: dict[str, int]
    compression: CompressionStats
    stage_ms: dict[str, float]

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{hit.rank}</td><td><b>{escape(hit.docno)}</b><br>"
            f"{escape(' > '.join(hit.header_path) or hit.title)}</td>"
            f"<td>{escape(snippet(hit.text, self.query))}</td><td>{escape(', '.join(_found_by(hit)))}</td></tr>"
            for hit in self.hits
        )
        head = "<tr><th>rank</th><th>section</th><th>text</th><th>found by</th></tr>"
        return f"<p><i>{escape(self.query)}</i></p><table class='ragbench-answer'>{head}{rows}</table>"


def answer(
    query: str | Query,
    pipeline: Pipeline,
    index: Index,
    top_n: int,
    *,
    first: Stage | None = None,
    explain: bool = False,
    deadline: float | None = None,
) -> Answer:
    """The best `top_n` (at least 1) hits; with `explain`, each says why it is where it is.

    `first` is a stage that runs before the pipeline, such as filters of this search alone. Raises TimeoutError at the
    first stage that would begin after `deadline` (of `time.monotonic`).
    """
    if top_n < 1:
        raise ConfigError(f"top_n must be at least 1, got {top_n}")
    states = start([query if isinstance(query, Query) else Query("q", query)])
    text = states[0].query.text
    if first is not None:
        states = first(states, index)
    stage_ms = {}

    def step(name: str, stage: Stage, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError(f"the time limit was reached before the stage {name}")
        began = time.perf_counter()
        after = stage(states, index)
        stage_ms[name] = round(1e3 * (time.perf_counter() - began), 3)
        return after

    passed = [states[0], *(after[0] for _, after in pipeline.steps(states, index, step))]
    final = passed[-1]
    found = hits(final, index, top_n)
    return Answer(
        query=text,
        pipeline=repr(pipeline),
        hits=tuple(_explained(found, passed, pipeline, index) if explain else found),
        notes=final.notes,
        counts=dict(final.counts),
        compression=CompressionStats.of(final),
        stage_ms=stage_ms,
    )


def _found_by(hit: Hit) -> Sequence[str]:
    """How the hit was found, with its rank in every source where it is explained."""
    if hit.explanation is None:
        return hit.matches
    return [f"{name} {place.rank}" for name, place in hit.explanation.sources.items()]


def _explained(found: Sequence[Hit], passed: Sequence[QueryState], pipeline: Pipeline, index: Index) -> Iterator[Hit]:
    ranking = passed[-1].fused or Ranking.empty()
    for hit, chunk in zip(found, ranking.chunks.tolist(), strict=False):
        yield replace(hit, explanation=explanation(chunk, hit.score, pipeline, passed, index))


def as_mapping(answer: Answer) -> dict[str, Any]:
    """The answer as plain values, for JSON."""
    from pydantic import TypeAdapter

    plain: dict[str, Any] = TypeAdapter(Answer).dump_python(answer, mode="json")
    return plain


def show(answer: Answer, in_full: bool) -> None:
    """Print the hits: breadcrumb and snippet; in full, also every stage's part."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    if in_full:
        console.print(Text(answer.pipeline, style="dim"))
        for note in answer.notes:
            console.print(Text(f"note: {note}", style="dim"))
        if answer.counts:
            counts = ", ".join(f"{name} {n}" for name, n in answer.counts.items())
            console.print(Text(f"hits: {counts}", style="dim"))
    if not answer.hits:
        console.print("no hits")
    for hit in answer.hits:
        crumb = " > ".join(hit.header_path) or hit.title
        console.print(Text.assemble((f"{hit.rank:2d}. ", "bold"), (hit.docno, "bold cyan"), "  ", crumb))
        console.print(Text(f"    {snippet(hit.text, answer.query)}"))
        if in_full and (why := hit.explanation) is not None:
            found = "; ".join(f"{name} rank {place.rank} ({place.score:.4g})" for name, place in why.sources.items())
            then = " -> ".join(f"{name} {place.rank} ({place.score:.4f})" for name, place in why.stages.items())
            console.print(Text(f"    found by: {found or 'no source directly'}", style="dim"))
            console.print(Text(f"    then:     {then}", style="dim"))
            console.print(Text(f"    because:  {_shown(why.reasons)}", style="dim"))
            console.print(Text(f"    document: {_shown(asdict(hit.metadata))}", style="dim"))


def _shown(values: Mapping[str, Any]) -> str:
    """Plain values on one line."""

    def said(value: Any) -> str:
        if isinstance(value, Mapping):
            return "(" + ", ".join(f"{key} {said(each)}" for key, each in value.items()) + ")"
        if isinstance(value, list | tuple):
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
