"""The options of one search without its query: the same in Python, over HTTP, over MCP and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ragbench.base.errors import ConfigError
from ragbench.base.options import Validated
from ragbench.base.types import Query, QueryClass, QueryState, Ranking
from ragbench.corpus.metadata import Date
from ragbench.search.engine.modes import Mode, Stages, in_mode
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.classify import Classify
from ragbench.search.stages.cut import Cut, ExpandToParents
from ragbench.search.stages.filters import FilterDocuments
from ragbench.search.stages.stage import Stage, StateProperty, StateStage

if TYPE_CHECKING:
    from ragbench.index.index import Index

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
