"""The answer to a query: hits with all their properties, and what the stages did.

`SearchOptions` are the options of one search without its query: the same in Python, over HTTP, over MCP and on the
command line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, cast
from xml.sax.saxutils import escape

from ragbench.base.document_names import readable
from ragbench.base.html import render
from ragbench.base.options import Validated
from ragbench.base.rankings import CompressionStats, QueryState, Ranking
from ragbench.base.types import ConfigError, Explanation, Hit, Place, Query, QueryClass
from ragbench.corpus.metadata import Date
from ragbench.search.engine.context import Context, context
from ragbench.search.engine.hits import first_hits, hits, with_children
from ragbench.search.engine.modes import Mode, Stages, in_mode
from ragbench.search.engine.pipeline import Pipeline, start
from ragbench.search.engine.snippet import highlights, snippet
from ragbench.search.stages.classify import Classify
from ragbench.search.stages.cut import Cut, ExpandToParents
from ragbench.search.stages.filters import FilterDocuments
from ragbench.search.stages.stage import FAILURES, Index, Stage, StateProperty, StateStage


@dataclass(frozen=True)
class Answer:
    """A query's hits with what the stages noted, how many hits every filter left and how long each stage took.

    The first `filter_results` hits are notes that the query names or notes of its time range, the others are those that
    the search ranked; ranks continue over both. `total` counts the hits before the cut to `top_n`, `filters_applied`
    names the conditions that documents had to meet. `pipeline` says in words how hits were found; `stage_ms` is in
    milliseconds, in the order of the stages.
    """

    query: str
    pipeline: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...]
    counts: dict[str, int]
    compression: CompressionStats
    stage_ms: dict[str, float]
    filter_results: int
    total: int
    filters_applied: dict[str, Any]

    @property
    def xml(self) -> str:
        """The hits as one text for a language model (`ragbench.search.engine.answer`)."""
        return _in_xml(self.hits, self.filter_results)

    def context(self, max_tokens: int) -> Context:
        """The passages of the hits that fit into `max_tokens`, cut and cited (`ragbench.search.engine.context`)."""
        return context(self.query, self.hits, max_tokens)

    def _repr_html_(self) -> str:
        matches = highlights(self.query)
        rows = [
            {
                "rank": hit.rank,
                "document": readable(hit.path or hit.docno),
                "section": " > ".join(hit.header_path) or hit.title,
                "text": snippet(hit.text, matches),
                "found_by": ", ".join(_retrieved_by(hit)),
            }
            for hit in self.hits
        ]
        return render(_HTML, query=self.query, rows=rows)


_HTML = """\
<p><i>{{ query }}</i></p>
<table class="ragbench-answer">
<tr><th>rank</th><th>section</th><th>text</th><th>found by</th></tr>
{% for row in rows %}
<tr><td>{{ row.rank }}</td><td><b>{{ row.document }}</b><br>{{ row.section }}</td>
<td>{{ row.text }}</td><td>{{ row.found_by }}</td></tr>
{% endfor %}
</table>
"""


def answer(
    query: str | Query,
    pipeline: Pipeline,
    index: Index,
    top_n: int,
    *,
    filters: FilterDocuments | None = None,
    options: SearchOptions | None = None,
    explain: bool = False,
    deadline: float | None = None,
) -> Answer:
    """The guaranteed hits and the best `top_n` (at least 1) others; with `explain`, each has an explanation.

    `filters` apply to this search only, `options` are its other options. When a stage fails and another one has a
    `fallback`, the failure is noted and the fallback gives the hits (seed 002, "Failure fallback"). Raises
    TimeoutError at the first stage that would begin after `deadline` (of `time.monotonic`), ConfigError for an option
    that the pipeline does not support.
    """
    if top_n < 1:
        raise ConfigError(f"top_n must be at least 1, got {top_n}")
    options = options or SearchOptions()
    if options.return_all:
        top_n = max(top_n, RETURN_ALL)
    pipeline = adapted_pipeline(pipeline, options, top_n)
    states = start([query if isinstance(query, Query) else options.query(query)])
    text = states[0].query.text
    if filters is not None:
        states = filters(states, index)
    stage_ms = {}

    def step(name: str, stage: Stage, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError(f"the time limit was reached before the stage {name}")
        began = time.perf_counter()
        new_states = stage(states, index)
        stage_ms[name] = round(1e3 * (time.perf_counter() - began), 3)
        return new_states

    passed = [states[0]]
    try:
        passed += (states_after[0] for _, states_after in pipeline.steps(states, index, step))
        final = passed[-1]
    except (ConfigError, TimeoutError):
        raise
    except FAILURES as error:
        fallback = _fallback(passed[0], pipeline, index, error)
        if fallback is None:
            raise
        final, explain = fallback, False
    top_hits = hits(final, index, top_n)
    applied = [filters, *(stage for _, stage in pipeline)]
    return Answer(
        query=text,
        pipeline=repr(pipeline),
        hits=tuple(_with_explanations(top_hits, passed, pipeline, index, top_n) if explain else top_hits),
        notes=final.notes,
        filter_results=sum(hit.guaranteed for hit in top_hits),
        total=0 if final.fused is None else len(final.fused),
        filters_applied={
            name: value
            for stage in applied
            if isinstance(stage, FilterDocuments)
            for name, value in stage.set_conditions.items()
        },
        counts=dict(final.counts),
        compression=CompressionStats.of(final),
        stage_ms=stage_ms,
    )


def _retrieved_by(hit: Hit) -> Sequence[str]:
    """How the hit was found; with an explanation, the sources and its rank in each."""
    if hit.explanation is None:
        return hit.matches
    return [f"{name} {rank.rank}" for name, rank in hit.explanation.sources.items()]


def _fallback(state: QueryState, pipeline: Pipeline, index: Index, error: Exception) -> QueryState | None:
    """The hits of the first stage with a fallback, and those that other stages guarantee; None without a fallback."""
    rankings = (stage.when_failed(state, index) for _, stage in pipeline)
    ranking = next((ranking for ranking in rankings if ranking is not None), None)
    if ranking is None:
        return None
    note = f"ranked by place among the files that hold the query, because the search failed: {error}"
    states: Sequence[QueryState] = [replace(state, fused=ranking).with_note(note)]
    for _, next_stage in pipeline:
        if StateProperty.GUARANTEED in next_stage.provides:
            states = next_stage(states, index)
    return states[0]


def _with_explanations(
    hits: Sequence[Hit], passed: Sequence[QueryState], pipeline: Pipeline, index: Index, top_n: int
) -> Iterator[Hit]:
    for hit, (chunk, _) in zip(hits, first_hits(passed[-1], top_n), strict=True):
        yield replace(hit, explanation=explanation(chunk, hit.score, pipeline, passed, index))


def show(answer: Answer, in_full: bool) -> None:
    """Print the hits: breadcrumb and snippet; in full, also what every stage did."""
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
    matches = highlights(answer.query)
    for hit in answer.hits:
        if answer.filter_results and hit.rank in (1, answer.filter_results + 1):
            console.print(Text("notes that the query names" if hit.guaranteed else "found by the search", style="bold"))
        crumb = " > ".join(hit.header_path) or hit.title
        name = readable(hit.path or hit.docno)
        console.print(Text.assemble((f"{hit.rank:2d}. ", "bold"), (name, "bold cyan"), "  ", crumb))
        console.print(Text(f"    {snippet(hit.text, matches)}"))
        if in_full and (reasons := hit.explanation) is not None:
            retrievers = "; ".join(
                f"{name} rank {position.rank} ({position.score:.4g})" for name, position in reasons.sources.items()
            )
            stage_ranks = " -> ".join(
                f"{name} {position.rank} ({position.score:.4f})" for name, position in reasons.stages.items()
            )
            console.print(Text(f"    found by: {retrievers or 'no source directly'}", style="dim"))
            console.print(Text(f"    then:     {stage_ranks}", style="dim"))
            console.print(Text(f"    because:  {_values_in_line(reasons.reasons)}", style="dim"))
            console.print(Text(f"    document: {_values_in_line(asdict(hit.metadata))}", style="dim"))


def _values_in_line(values: Mapping[str, Any]) -> str:
    """Plain values on one line."""

    def in_words(value: Any) -> str:
        if isinstance(value, Mapping):
            return "(" + ", ".join(f"{key} {in_words(item)}" for key, item in value.items()) + ")"
        if isinstance(value, list | tuple):
            return ", ".join(map(in_words, value)) or "none"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{name} {in_words(value)}" for name, value in values.items() if value != "")


def explanation(
    chunk: int, score: float, pipeline: Pipeline, passed: Sequence[QueryState], index: Index
) -> Explanation:
    """The explanation of a hit; `passed` are the states before every stage and after the last."""
    members, final = with_children(chunk, index.chunks), passed[-1]
    names = [name for name, _ in pipeline]
    rankings_after = [
        (name, state.fused) for name, state in zip(names, passed[1:], strict=True) if state.fused is not None
    ]
    return Explanation(
        sources=_places(sorted(final.rankings.items()), members),
        stages=_places(rankings_after, members),
        reasons=_reasons(chunk, score, members, pipeline, passed, index),
    )


def _reasons(
    chunk: int,
    score: float,
    members: Sequence[int],
    pipeline: Pipeline,
    passed: Sequence[QueryState],
    index: Index,
) -> dict[str, Any]:
    rankings = [state.rankings["lexical"] for state in passed if "lexical" in state.rankings]
    for state in passed:
        rankings += [*state.rankings.values(), *([] if state.fused is None else [state.fused])]
    scores = (position.score for ranking in rankings if (position := _place(ranking, members)))
    reasons: dict[str, Any] = {"base_score": next(scores, score), "final_score": score}
    for (_, stage), states_before in zip(pipeline, passed, strict=False):
        reasons |= stage.explain(states_before, index, members[-1])
    if chunk in passed[-1].guaranteed:
        reasons["source"] = passed[-1].guaranteed[chunk]
    return reasons


def _places(rankings: Sequence[tuple[str, Ranking]], members: Sequence[int]) -> dict[str, Place]:
    return {name: position for name, ranking in rankings if (position := _place(ranking, members))}


def _place(ranking: Ranking, members: Sequence[int]) -> Place | None:
    """The place of the first of these chunks."""
    for rank, (chunk, score) in enumerate(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True), start=1):
        if chunk in members:
            return Place(rank, score)
    return None


_NOT_IN_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _in_xml(hits: Sequence[Hit], filter_results: int) -> str:
    """`<filterResults>` with the first `filter_results` hits and `<searchResults>` with the others; ids count through.

    A named note has the way it was named as `matchType`, a hit of the search the date of its file as `modified`. A part
    without hits is excluded; without any hit there is an empty `<searchResults>`.
    """
    named, ranked = hits[:filter_results], hits[filter_results:]
    parts = []
    if named:
        parts.append(_part("filterResults", (_document(hit, "matchType", hit.matches[0]) for hit in named)))
    if ranked or not named:
        documents = (_document(hit, "modified", hit.metadata.last_modified) for hit in ranked)
        parts.append(_part("searchResults", documents))
    return "\n".join(parts)


def _part(name: str, documents: Iterable[str]) -> str:
    return "\n".join((f"<{name}>", *documents, f"</{name}>"))


def _document(hit: Hit, name: str, value: str) -> str:
    fields = {"id": hit.rank, "title": hit.title, "path": hit.path, name: value}
    heading = " > ".join(hit.header_path)
    fields |= {"heading": heading} if heading else {}
    fields |= {"content": hit.passage}
    inside = "\n".join(f"<{key}>{escape(_printable(str(text)))}</{key}>" for key, text in fields.items())
    return f"<document>\n{inside}\n</document>"


def _printable(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _NOT_IN_XML.sub("", text)


RETURN_ALL = 100
"""The hits of a search that asks for all (seed 002)."""


@dataclass(frozen=True)
class SearchOptions(Validated):
    """The options of a search; for options that are not given the pipeline decides.

    `hypothesis` is a hypothetical document, for pipelines with HyDE. `phrasings` are other phrasings of the query, used
    instead of asking a model, and `salient_terms` its important words and #tags, for pipelines that expand queries
    (seed 002). `after` (inclusive) and `before` (exclusive) are for pipelines that guarantee notes: the answer is then
    the notes of that time, without a search. `mode` is one of `ragbench.search.engine.modes`. `return_all`
    asks for 100 hits of 100 recalled notes and 300 ranked chunks (seed 002). `query_class` is used instead of the
    class that the pipeline would find (seed 003, R5).
    """

    hypothesis: str | None = None
    phrasings: tuple[str, ...] | None = None
    salient_terms: tuple[str, ...] = ()
    after: Date | None = None
    before: Date | None = None
    mode: Mode | None = None
    return_all: bool = False
    query_class: QueryClass | None = None

    def in_mode(self, mode: str | None) -> SearchOptions:
        """The options with this mode, unless they have one. ConfigError for an unknown mode."""
        return self if self.mode or not mode else replace(self, mode=cast(Mode, mode))

    def query(self, text: str) -> Query:
        """The query with the hypothesis, phrasings and terms that the caller gives."""
        return Query("q", text, self.hypothesis, phrasings=self.phrasings, salient_terms=self.salient_terms)

    @property
    def set_options(self) -> Mapping[str, Any]:
        """The options that are set, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if value not in (None, (), False)}


def adapted_pipeline(pipeline: Pipeline, options: SearchOptions, top_n: int) -> Pipeline:
    """The pipeline that answers one search for `top_n` hits. ConfigError for an option that it has no stage for."""
    supported = {option for _, stage in pipeline for option in stage.options}
    for names, requirement in _NEEDS.items():
        used = sorted(set(names) & set(options.set_options))
        if used and not supported.issuperset(names):
            raise ConfigError(f"{' and '.join(used)} cannot be used: this pipeline has no stage that {requirement}")
    stages = pipeline.stages
    if options.after is not None or options.before is not None:
        stages = _time_range_stages(stages, options)
    elif options.mode is not None:
        stages = in_mode(pipeline.stages, pipeline.modes, options.mode)
    if options.query_class is not None:
        stages = tuple(
            (name, replace(stage, override=options.query_class) if isinstance(stage, Classify) else stage)
            for name, stage in stages
        )
    if options.return_all:
        stages = tuple((name, stage.returning_all(RETURN_ALL)) for name, stage in stages)
    elif any(isinstance(stage, Cut) and stage.top_n < top_n for _, stage in stages):
        stages = tuple((name, stage.returning(top_n)) for name, stage in stages)
    else:
        stages = _with_last_choice(stages, top_n)
    return pipeline if stages == pipeline.stages else replace(pipeline, stages=stages)


_NEEDS: Mapping[tuple[str, ...], str] = {
    ("hypothesis",): "embeds one",
    ("phrasings", "salient_terms"): "expands queries",
    ("query_class",): "classifies queries",
    ("after", "before"): "guarantees notes; filters by date restrict any search",
}
"""Options of a search by what supports them: a stage that has their names in its class variable `options`."""


def _time_range_stages(stages: Stages, options: SearchOptions) -> Stages:
    """Return only the notes of a time range, without a search (seed 002, "Time-Range Flow")."""
    notes: list[tuple[str, Stage]] = [("search", _NoSearch())]
    for name, stage in stages:
        if isinstance(stage, FilterDocuments):
            notes.insert(0, (name, stage))
        elif (of_time := stage.of_time(options.after, options.before)) is not None:
            notes.append((name, of_time))
        elif isinstance(stage, Cut):
            notes.append((name, stage))
    return tuple(notes)


def _with_last_choice(stages: Stages, top_n: int) -> Stages:
    """If a stage chooses more hits than requested, add one before the end that chooses among them (`last_choice`)."""
    choices = (stage.last_choice(top_n) for _, stage in stages)
    choice = next((stage for stage in choices if stage is not None), None)
    if choice is None:
        return stages
    ends = (i for i, (_, stage) in enumerate(stages) if isinstance(stage, (ExpandToParents, Cut)))
    position = next(ends, len(stages))
    return (*stages[:position], (f"diverse at {top_n}", choice), *stages[position:])


@dataclass(frozen=True)
class _NoSearch(StateStage):
    """Return an empty ranking."""

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS, StateProperty.FUSED})

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Give the state an empty ranking."""
        return replace(state, fused=Ranking.empty())

    def describe(self) -> str:
        return "search nothing"
