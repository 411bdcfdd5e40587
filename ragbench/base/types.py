"""The values that flow through ragbench; this module imports nothing from ragbench.

| value            | is                                                | made by              | read by              |
|------------------|---------------------------------------------------|----------------------|----------------------|
| `Document`       | one markdown file: text, sections, code, links    | `corpus`             | `index`, `benchmark` |
| `Section`        | a heading and the text below it                   | `corpus`             | qrels, chunkers      |
| `CodeBlock`      | a fenced block with language and lines            | `corpus`             | the code index (P7)  |
| `Chunk`          | the unit of retrieval, a span of one document     | `index.chunking`     | `index`              |
| `Query`          | `qid` and text, with the benchmark's annotations  | `benchmark`          | `search.stages`      |
| `Filters`        | which documents may be found at all               | `search.stages`      | `index`              |
| `Ranking`        | chunk numbers and scores, best first              | `search.stages`      | `search`             |
| `QueryState`     | a query on its way through the pipeline           | `search.engine`      | `search.stages`      |
| `Hit`            | one result for display                            | `search.engine`      | `commands`, extras   |
| `StoredDocument` | a document as an index keeps it                   | `index`              | extras               |

Everything here is immutable: a stage answers with new values and never changes those it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

_Fact = TypeVar("_Fact")
_ORIGINAL_COUNT = "original_count"

QueryClass = Literal["factual", "navigational", "exploratory"]
"""What kind of query it is, by its form (P3)."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text under it up to the next heading of any level.

    `number` counts from 0 in document order; the text before the first heading is a section of level 0 with an empty
    path, present only when it is not blank. `path` holds the headings from the outermost to this one. `anchor` names
    the section inside its document: the slugs of `path` joined by `/`, made unique by `-1`, `-2` ... where headings
    repeat under the same parent; `""` for the text before the first heading. `start`/`end` are character offsets into
    `Document.text`, heading line included. `ids` are the names that the author gave to places in it, such as
    `{#limits}` or `<a id="limits">`.
    """

    number: int
    level: int
    path: tuple[str, ...]
    anchor: str
    start: int
    end: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced code block. `language` is lower-case, `""` when the fence names none.

    `start_line`/`end_line` are 1-based lines of the file, fences included; `start`/`end` are offsets into
    `Document.text`.
    """

    number: int
    language: str
    code: str
    start_line: int
    end_line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link out of a document. `kind` is `wikilink`, `transclusion`, `markdown` or `related`.

    `target` is the docno it resolves to, or None when no document of the collection answers to it; `text` is what was
    written. `label` is what a reader sees instead of the target, `""` when that is the target's own name.
    """

    kind: str
    text: str
    target: str | None
    heading: str | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One markdown file.

    `docno` is the path below the collection's root without the extension, `/`-separated, white space percent-encoded.
    `text` is the body without frontmatter (`first_line` is the 1-based line of the file at which it starts);
    `frontmatter` is the parsed YAML mapping (`{}` when absent). `modified` is in seconds since the epoch:
    frontmatter `modified`, `date` or `created`, else the file's mtime. `digest` is a SHA-256 over the file's bytes.
    `tags` are without `#`, lower-case, from frontmatter and text, with hierarchy kept (`auth/tokens`).
    """

    docno: str
    path: str
    title: str
    text: str
    frontmatter: Mapping[str, Any]
    sections: tuple[Section, ...]
    code_blocks: tuple[CodeBlock, ...]
    links: tuple[Link, ...]
    tags: tuple[str, ...]
    modified: float
    size_bytes: int
    digest: str
    first_line: int = 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document, the unit of retrieval.

    `chunk_id` is `docno#n`. `header_path` holds the headings above its first character. `sections` are the numbers of
    the sections it overlaps, in order. `parent` is the `chunk_id` of the parent chunk (P13), None without one;
    `is_parent` marks chunks that are returned but never retrieved.
    """

    chunk_id: str
    docno: str
    text: str
    header_path: tuple[str, ...]
    sections: tuple[int, ...]
    start: int
    end: int
    parent: str | None = None
    is_parent: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A search request. `hypothesis` is a passage that might answer it (HyDE); `kind` is the benchmark's query type.

    `phrasings` are other phrasings that the caller gives, None when a model may be asked for some; `salient_terms` are
    the words and #tags that the caller finds important. `filter` has the conditions that documents must meet, by name.
    """

    qid: str
    text: str
    hypothesis: str | None = None
    kind: str | None = None
    phrasings: tuple[str, ...] | None = None
    salient_terms: tuple[str, ...] = ()
    filter: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents may be found: those that meet every condition given; None and `()` set no condition.

    Seed 000, P9, and seed 004, feature 3. `category`, `author`, `doc_type`, `product` and `component` ignore letter
    case; `author` may be any author of the document. `tags`: the document has at least one of them, or a tag below one
    (`auth` admits `auth/tokens`). `modified_after` and `modified_before` (both inclusive) are in seconds since
    the epoch. `min_bytes` and `max_bytes` (both inclusive) bound the size of the file. `file_types` are endings of the
    file such as `.md`, in lower case. `heading_levels` is a condition on chunks: a chunk begins under a heading of one
    of these levels (0: under no heading). `frontmatter` has other columns: a document has one of the values in each.
    """

    category: str | None = None
    author: str | None = None
    tags: tuple[str, ...] = ()
    modified_after: float | None = None
    modified_before: float | None = None
    doc_type: str | None = None
    product: str | None = None
    component: str | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    file_types: tuple[str, ...] = ()
    heading_levels: tuple[int, ...] = ()
    frontmatter: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Chunk numbers (int32, shape (n,)) and their scores (float32, shape (n,)), best first, no chunk twice.

    Scores never increase. Build one with `Ranking.of`, which sorts and breaks ties by chunk number, or with
    `Ranking.ordered`, which keeps an order that is already decided. `of_documents`: documents were ranked, and each
    stands here with all of its chunks, which have its score and share its rank. `query_vector`, shape (dim,), is that
    of the query in a ranking by vectors: any other chunk can be scored with it.
    """

    chunks: NDArray[np.int32]
    scores: NDArray[np.float32]
    of_documents: bool = False
    query_vector: NDArray[np.float32] | None = None

    @staticmethod
    def of(
        chunks: Sequence[int] | NDArray[Any], scores: Sequence[float] | NDArray[Any], depth: int | None = None
    ) -> Ranking:
        """Sort by score, ties by chunk number, and keep the first `depth`."""
        numbers = np.asarray(chunks, dtype=np.int32)
        values = np.asarray(scores, dtype=np.float32)
        order = np.lexsort((numbers, -values))[:depth]
        return Ranking.ordered(numbers[order], values[order])

    @staticmethod
    def ordered(
        chunks: Sequence[int] | NDArray[Any], scores: Sequence[float] | NDArray[Any], of_documents: bool = False
    ) -> Ranking:
        """Take chunks and scores in the order given, which must not increase in score."""
        numbers = np.array(chunks, dtype=np.int32)
        values = np.array(scores, dtype=np.float32)
        numbers.flags.writeable = values.flags.writeable = False
        return Ranking(numbers, values, of_documents)

    @staticmethod
    def empty() -> Ranking:
        """No hits."""
        return Ranking.ordered((), ())

    def __len__(self) -> int:
        return len(self.chunks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return np.array_equal(self.chunks, other.chunks) and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]

    def keep(self, mask: NDArray[np.bool_]) -> Ranking:
        """The hits where `mask` (bool, shape (n,)) holds, order and scores unchanged."""
        return Ranking.ordered(self.chunks[mask], self.scores[mask], self.of_documents)

    def head(self, depth: int) -> Ranking:
        """The first `depth` hits."""
        if len(self) <= depth:
            return self
        return Ranking.ordered(self.chunks[:depth], self.scores[:depth], self.of_documents)


@dataclass(frozen=True, slots=True)
class QueryState:
    """A query on its way through the pipeline; a source is a retriever by name."""

    query: Query
    filters: Filters | None = None
    """Which documents every source may find; None: all."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """By source, the text to send to it where that differs from the query's own (`text_for`)."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By source, a factor that fusion multiplies with its own weight; 1 when absent."""
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    """One ranking by source."""
    fused: Ranking | None = None
    """The ranking after fusion and every later stage; None before it."""
    unanimous: float = 0.0
    """The fused score of a hit that every source with hits ranks first; 0 where scores were fused, not ranks."""
    query_class: QueryClass | None = None
    """What kind of query it is, if a stage has asked."""
    counts: tuple[tuple[str, int], ...] = ()
    """(filter, hits left) in the order applied; the first is `original_count`, the hits before any filter."""
    clusters_merged: int = 0
    """The hits that semantic deduplication merged."""
    guaranteed: Mapping[int, str] = field(default_factory=dict)
    """Hits that no later stage may drop, each with how the query named it (`title-match`)."""
    notes: tuple[str, ...] = ()
    """What stages decided, in words, for explanations."""
    facts: Mapping[type, Any] = field(default_factory=dict)
    """By its class, what a stage found out for later ones that know the class (`fact`)."""
    contexts: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By hit, the chunks whose texts are returned for it, in text order, the hit itself included."""
    unmatched: tuple[tuple[int, str], ...] = ()
    """Hits of a live search in no document of the collection: the number of hits of `fused` before each, its name."""

    def hits_with_unmatched(self) -> list[tuple[int, float, str]]:
        """(chunk number, score, name) of all hits in order; unmatched ones have the number -1, others an empty name."""
        ranking = self.fused or Ranking.empty()
        hits = list(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))
        merged: list[tuple[int, float, str]] = [(chunk, score, "") for chunk, score in hits]
        for position, name in reversed(self.unmatched):
            merged.insert(position, (-1, hits[position][1] if position < len(hits) else 0.0, name))
        return merged

    def text_for(self, source: str) -> str:
        """The text to send to a source."""
        return self.texts.get(source, self.query.text)

    def with_text(self, source: str, text: str) -> QueryState:
        """The same state with another text for one source."""
        return replace(self, texts={**self.texts, source: text})

    def with_weight(self, source: str, factor: float) -> QueryState:
        """The same state with the weight of one source multiplied by `factor`."""
        return replace(self, weights={**self.weights, source: self.weights.get(source, 1.0) * factor})

    def with_ranking(self, source: str, ranking: Ranking) -> QueryState:
        """The same state with the ranking of one source."""
        return replace(self, rankings={**self.rankings, source: ranking})

    def fact(self, kind: type[_Fact]) -> _Fact | None:
        """What an earlier stage found out of this kind; None without one."""
        return self.facts.get(kind)

    def with_fact(self, fact: object) -> QueryState:
        """The same state with a fact, which replaces one of its class."""
        return replace(self, facts={**self.facts, type(fact): fact})

    def with_note(self, note: str) -> QueryState:
        """The same state with one more note."""
        return replace(self, notes=(*self.notes, note))

    def filtered(self, stage: str, ranking: Ranking) -> QueryState:
        """The same state with the fused ranking replaced and its new length counted under the filter's name."""
        count_before = 0 if self.fused is None else len(self.fused)
        counts = self.counts or ((_ORIGINAL_COUNT, count_before),)
        return replace(self, fused=ranking, counts=(*counts, (stage, len(ranking))))


@dataclass(frozen=True, slots=True)
class CompressionStats:
    """How many hits each filter left, under the names of seed 000, P8; a filter that is off repeats the number before.

    `original_count` counts the hits of fusion, `clusters_merged` those that semantic deduplication merged with others.
    """

    original_count: int
    after_threshold: int
    after_content_dedup: int
    after_ngram_dedup: int
    after_dedup: int
    after_doc_limit: int
    clusters_merged: int

    @staticmethod
    def of(state: QueryState) -> CompressionStats:
        """The numbers of a state at the end of its pipeline."""
        counted = dict(state.counts)
        remaining = counted.get(_ORIGINAL_COUNT, 0 if state.fused is None else len(state.fused))
        values = {_ORIGINAL_COUNT: remaining}
        for name in ("after_threshold", "after_content_dedup", "after_ngram_dedup", "after_dedup", "after_doc_limit"):
            values[name] = remaining = counted.get(name, remaining)
        return CompressionStats(**values, clusters_merged=state.clusters_merged)


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
    """What is known about a document in addition to its text (seed 004, feature 3).

    `last_modified` is in ISO 8601, UTC; `file_size` in bytes; `product` and `component` are the first two folders of
    its path, `""` when it has fewer; `chunk_method` says how it was cut into several chunks, `""` if it is one.
    """

    last_modified: str
    file_size: int
    tags: tuple[str, ...]
    doc_type: str
    product: str
    component: str
    is_chunked: bool
    chunk_method: str


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a ranking: `rank` from 1, and the score there."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit is where it is: its place in every source's ranking, and after every later stage.

    `reasons` are the fields of seed 002's `SearchExplanation`: `base_score` is the score of the source that found it
    (of lexical search, if that did), `final_score` the last one; stages with an `explain` add others
    (`lexical_matches`, `folder_boost`, `graph_boost`, `source`).
    """

    sources: Mapping[str, Place]
    stages: Mapping[str, Place]
    reasons: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    """One result, the same in Python, over HTTP, over MCP and in JSON on the command line.

    `rank` counts from 1. `docno` is the path of the document without extension, `path` that of its file below the root
    of the collection, where the text stands in the lines `start_line` to `end_line` (from 1, both included); `start`
    and `end` are offsets into the document's text without frontmatter. `header_path` holds the headings above the text,
    outermost first, and `heading_level` is the level of the heading it begins under, 0 without one. `context` is the
    text with what the pipeline returns around it, null when it adds nothing. `matches` says how it was found: the names
    of sources, and `title-match`, `tag-match` or `time-filtered` for a `guaranteed` hit (the query names it, so no
    stage may drop it). `explanation` is null unless it was requested. The first `lead` characters of the text repeat
    what it continues, such as the header of a table; `start` and `start_line` are those of what follows them.
    """

    rank: int
    score: float
    chunk_id: str
    docno: str
    path: str
    title: str
    header_path: tuple[str, ...]
    heading_level: int
    start: int
    end: int
    start_line: int
    end_line: int
    text: str
    context: str | None
    matches: tuple[str, ...]
    guaranteed: bool
    metadata: DocumentMetadata
    explanation: Explanation | None = None
    lead: int = 0

    @property
    def passage(self) -> str:
        """The text to read: with its context where the pipeline returns one."""
        return self.text if self.context is None else self.context
