"""Requests and answers, and their limits: the same over HTTP and MCP."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.config import JsonValue

from ragbench.base.options import Count, Positive, Validated, build
from ragbench.base.types import ConfigError, Hit, QueryClass
from ragbench.extras.ship.documents import StoredDocument
from ragbench.index.doc_type import DOC_TYPES
from ragbench.search.engine.answer import SearchOptions
from ragbench.search.engine.context import MAX_BUDGET
from ragbench.search.engine.modes import Mode
from ragbench.search.stages.filters import FilterDocuments, filters_of

_INT64 = 2**63 - 1
DEFAULT_BUDGET = 2_000
"""Tokens of a search result in markdown."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Date = Annotated[str, Field(min_length=1, max_length=40, examples=["2026-01-31"])]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Bytes = Annotated[int, Field(ge=0, le=_INT64)]
Value = Name | int | float | bool


@dataclass(frozen=True)
class MessageLimits(Validated):
    """Limits of a service, all above 0.

    `max_body`: bytes of a request. `max_query`: characters of a query, and of a hypothesis. `max_top`: hits of one
    answer. `time_limit`: seconds for a request to arrive, and then from its arrival to its answer, including the time
    that it waits for others.
    """

    max_body: Count = 65_536
    max_query: Count = 2_000
    max_top: Count = 100
    time_limit: Positive = 10.0


class Message(BaseModel):
    """A message without unknown fields and without conversions: "10" is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SearchFilters(Message):
    """Conditions that a document must meet, all of them: the parameters of the stage `filters`.

    Any other name is a column of the frontmatter, with one value or a list of which the document has one.
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, Value | list[Value]]

    category: Name | None = Field(None, description="its category, without regard to case")
    author: Name | None = Field(None, description="one of its authors, without regard to case")
    tags: list[Name] = Field([], max_length=50, description="at least one of these tags, or a tag below one")
    modified_after: Date | None = Field(None, description="modified at this date or later")
    modified_before: Date | None = Field(None, description="modified on this date or before")
    doc_type: Name | None = Field(None, description=f"its type: {', '.join(DOC_TYPES)}")
    product: Name | None = Field(None, description="declared in its frontmatter, else its first folder")
    component: Name | None = Field(None, description="declared in its frontmatter, else its second folder")
    min_bytes: Bytes | None = Field(None, description="at least this large")
    max_bytes: Bytes | None = Field(None, description="at most this large")
    file_types: list[Name] = Field([], max_length=20, description="its file has one of these endings, such as .md")
    heading_levels: list[Annotated[int, Field(ge=0, le=6)]] = Field(
        [], max_length=7, description="hits begin under a heading of one of these levels, 0: none"
    )

    def stage(self) -> FilterDocuments | None:
        """The filters as a stage, None when no condition is set. Raises ConfigError for bad values."""
        values = {name: getattr(self, name) for name in SearchFilters.model_fields} | (self.model_extra or {})
        values = {name: value for name, value in values.items() if value not in (None, [])}
        return filters_of(values) if values else None


REQUESTS: list[JsonValue] = [
    {"query": "how do I rotate a key", "top_n": 3},
    {"query": "--max-lag", "mode": "keyword", "filters": {"tags": ["operations"], "modified_after": "2026-01-31"}},
]
"""Examples for the description of the service (`GET /openapi.json`)."""


class SearchRequest(Message):
    """A search. `request_type(limits)` gives the class with the limits of a service."""

    model_config = ConfigDict(json_schema_extra={"examples": REQUESTS})

    query: str = Field(description="what to search for, in natural language, or a code or name to look up")
    top_n: int = Field(description="how many hits at most")
    filters: SearchFilters | None = Field(None, description="search only among documents that meet these conditions")
    hypothesis: str | None = Field(
        None, description="a passage that might answer the query, for pipelines that embed one (HyDE)"
    )
    phrasings: list[Text] | None = Field(
        None, max_length=10, description="other phrasings of the query, instead of those a model would be asked for"
    )
    salient_terms: list[Name] = Field([], max_length=50, description="words and #tags of the query that matter most")
    after: Date | None = Field(None, description="the notes of this time, from this date on, are the whole answer")
    before: Date | None = Field(None, description="the same, up to this date, which is not included")
    mode: Mode | None = Field(None, description="lexical, dense, hybrid, or dense re-ranked by keywords")
    return_all: bool = Field(False, description="return all that is found, up to 100 hits")
    query_class: QueryClass | None = Field(None, description="the class of the query, for pipelines that classify")
    explain: bool = Field(False, description="say of every hit why it is where it is")
    format: Literal["json", "xml", "markdown"] = Field(
        "json", description="xml: also `context`, all hits as XML; markdown: only `context`, cited passages, no hits"
    )
    max_tokens: int | None = Field(
        None, ge=1, le=MAX_BUDGET, description="`context` contains the cited passages that fit into this many tokens"
    )

    @property
    def budget(self) -> int | None:
        """The token budget of the context in markdown, None without one. Raises ConfigError for one of XML."""
        if self.format == "xml" and self.max_tokens is not None:
            raise ConfigError("max_tokens cannot be used with format=xml: use format=markdown")
        return self.max_tokens or (DEFAULT_BUDGET if self.format == "markdown" else None)

    def options(self) -> SearchOptions:
        """The options of the search. Raises ConfigError for bad values."""
        names = [field.name for field in dataclasses.fields(SearchOptions)]
        return build(SearchOptions, {name: getattr(self, name) for name in names}, "")


def request_type(limits: MessageLimits) -> type[SearchRequest]:
    """The class of requests with the limits of a service, which its schema states."""
    fields = SearchRequest.model_fields
    text = Field(min_length=1, max_length=limits.max_query, description=fields["query"].description)
    passage = Field(min_length=1, max_length=limits.max_query)
    number = Field(min(10, limits.max_top), ge=1, le=limits.max_top, description=fields["top_n"].description)
    return create_model(
        "SearchRequest",
        __base__=SearchRequest,
        __doc__="A search.",
        query=(Annotated[str, text], ...),
        top_n=(int, number),
        hypothesis=(Annotated[str, passage] | None, Field(None, description=fields["hypothesis"].description)),
    )


class SearchAnswer(Message):
    """Hits: first the notes that the query names, `filter_results` of them, then the hits of the search, best first.

    `total` counts all hits, `filters_applied` are the conditions that documents had to meet. `notes` say in words what
    the steps of the pipeline decided. `context` has the hits as XML for a language model, where the request has
    `format=xml`: `filterResults` with `matchType`, `searchResults` with `modified`; or, with `max_tokens` or
    `format=markdown`, passages as markdown, each below a citation such as `[1] path#heading:12-40`. `bundle` names the
    configuration and `version` the content that answered.
    `stage_ms` are the milliseconds of each step, `took_ms` those of all steps, without the time that the
    request waited.
    """

    hits: list[Hit]
    filter_results: int
    total: int
    filters_applied: dict[str, Any]
    notes: list[str]
    context: str | None
    bundle: str
    version: str
    stage_ms: dict[str, float]
    took_ms: float


class Lines(Message):
    """Lines of a document's file, counted from 1, both included."""

    model_config = ConfigDict(strict=False)

    start_line: int = Field(1, ge=1, le=_INT64, description="the first line to return")
    end_line: int = Field(_INT64, ge=1, le=_INT64, description="the last line to return")


class DocumentRequest(Lines):
    """Which document to read, or which lines of its file."""

    docno: str = Field(min_length=1, max_length=2000, description="the id of a document, as hits and lists have it")


class DocumentAnswer(Message):
    """A document, and the version of the bundle's content."""

    document: StoredDocument
    version: str


class Health(Message):
    """What is being searched, and how.

    `generation` counts the refreshes of the documents since the export, `refreshed` is the time of the last one.
    `chunks_changed` is the share of chunks that differ from those measured, `golden_agreement` the share of the first
    hits of golden queries that are as measured, `kept_files` the number of files whose earlier version answers.
    """

    status: str
    bundle: str
    version: str
    documents: int
    chunks: int
    pipeline: str
    generation: int
    refreshed: str | None
    chunks_changed: float
    golden_agreement: float
    kept_files: int


class Problem(Message):
    """Return the reason for an empty answer, in one sentence."""

    error: str


def first_sentence(errors: Sequence[Any]) -> str:
    """A sentence on the first of pydantic's errors: where and what, without the value."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return "the request is not valid JSON"
    location = ".".join(map(str, first["loc"]))
    problem = "must be an object" if first["type"] in ("model_type", "model_attributes_type") else str(first["msg"])
    return f"{location or 'the request'}: {problem[0].lower()}{problem[1:]}"
