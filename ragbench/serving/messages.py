"""What goes over the wire: the same over HTTP and MCP, described by the same JSON schemas."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, create_model

from ragbench.configuration import build
from ragbench.corpus.doc_type import DOC_TYPES
from ragbench.serving.limits import Limits
from ragbench.stages.filters import FilterDocuments
from ragbench.types import Hit

_INT64 = 2**63 - 1

Name = Annotated[str, Field(min_length=1, max_length=200)]
Date = Annotated[str, Field(min_length=1, max_length=40, examples=["2026-01-31"])]
Bytes = Annotated[int, Field(ge=0, le=_INT64)]


class Message(BaseModel):
    """A message whose fields are known and never converted: "10" is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SearchFilters(Message):
    """Conditions that a document must meet, all of them; the parameters of the stage `filters`."""

    category: Name | None = Field(None, description="its category, without regard to case")
    author: Name | None = Field(None, description="one of its authors, without regard to case")
    tags: list[Name] = Field([], max_length=50, description="at least one of these tags, or a tag below one")
    modified_after: Date | None = Field(None, description="modified at this date or later")
    modified_before: Date | None = Field(None, description="modified before this date")
    doc_type: Name | None = Field(None, description=f"its type: {', '.join(DOC_TYPES)}")
    product: Name | None = Field(None, description="its first folder")
    component: Name | None = Field(None, description="its second folder")
    min_bytes: Bytes | None = Field(None, description="at least this large")
    max_bytes: Bytes | None = Field(None, description="at most this large")
    heading_levels: list[Annotated[int, Field(ge=0, le=6)]] = Field(
        [], max_length=7, description="hits begin under a heading of one of these levels, 0: none"
    )

    def stage(self) -> FilterDocuments | None:
        """The filters as the pipeline has them, None when no condition is set. Raises ConfigError for bad values."""
        given = {name: value for name, value in self if value not in (None, [])}
        return build(FilterDocuments, given, "filters") if given else None


class SearchRequest(Message):
    """A search. Build one with `request_type(limits)`, which knows the limits of a service."""

    query: str = Field(description="what to search for, in natural language, or a code or name to look up")
    top_n: int = Field(description="how many hits at most")
    filters: SearchFilters | None = Field(None, description="search only among documents that meet these conditions")
    hypothesis: str | None = Field(
        None, description="a passage that might answer the query, for pipelines that embed one (HyDE)"
    )


def request_type(limits: Limits) -> type[SearchRequest]:
    """The request with the bounds of a service, which its schema states."""
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


class FoundHit(Message):
    """One hit; `rank` counts from 1; `docno` is the path of the document in its collection without extension."""

    rank: int
    score: float
    chunk_id: str
    docno: str
    title: str
    header_path: list[str]
    text: str

    @staticmethod
    def of(hit: Hit) -> FoundHit:
        """A hit as it is sent."""
        return FoundHit.model_construct(
            rank=hit.rank,
            score=hit.score,
            chunk_id=hit.chunk_id,
            docno=hit.docno,
            title=hit.title,
            header_path=list(hit.header_path),
            text=hit.text,
        )


class SearchAnswer(Message):
    """Hits, best first; `version` names the content of the bundle that found them; `took_ms` is for the pipeline."""

    hits: list[FoundHit]
    bundle: str
    version: str
    took_ms: float


class Health(Message):
    """What is being searched, and how."""

    status: str
    bundle: str
    version: str
    documents: int
    chunks: int
    pipeline: str
    waiting: int


class Problem(Message):
    """Why there is no answer, in one sentence."""

    error: str
