"""The values and errors that all packages share; this module imports nothing from ragbench.

| value              | is                                                | made by              | read by              |
|--------------------|---------------------------------------------------|----------------------|----------------------|
| `Document`         | one markdown file: text, sections, code, links    | `corpus`             | `index`, `benchmark` |
| `Section`          | a heading and the text below it                   | `corpus`             | qrels, chunkers      |
| `CodeBlock`        | a fenced block with language and lines            | `corpus`             | the code index (P7)  |
| `Chunk`            | the unit of retrieval, a span of one document     | `index.chunking`     | `index`              |
| `Query`            | `qid` and text, with the benchmark's annotations  | `benchmark`          | `search.stages`      |
| `Filters`          | which documents may be found at all               | `search.stages`      | `index`              |
| `Hit`              | one result for display                            | `search.engine`      | `commands`, extras   |
| `DocumentMetadata` | what an index keeps of a document                 | `index`              | extras               |

Rankings and the states of queries are in `ragbench.base.rankings`. All values are immutable: a stage answers with new
ones and never changes those it was given.

Each message of an error is one sentence that names the thing and the remedy. The command line prints it and exits with
code 2; no traceback is shown for these. No message contains a password. `did_you_mean` ends a message about a mistyped
name; `counted`, `interval`, `shown` and `short_path` are the words for numbers, intervals, values and paths in it.
"""

from __future__ import annotations

import difflib
import math
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

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


FAILED = 1
"""A check did not pass (`data check`, `verify`, `gate`), or arms of an experiment failed."""

BAD_INPUT = 2
"""Bad input, or a part that is missing; one sentence on stderr names it."""

NOT_CHECKED = 3
"""Nothing failed, but there are too few topics, or too uncertain times, to show what `gate` was asked to show."""

INTERRUPTED = 130
"""Stopped with Ctrl-C or SIGTERM; what was finished is kept."""

FAILURES = (Exception, SystemExit)
"""What code of others may raise: anything but what ends the command, such as Ctrl-C."""

_SECRET_NAME = (
    r"(?:[\w-]*[-_])?(?:authorization|cookie|password|passwd|pwd|secret|token|auth|sig|signature"
    r"|(?:api|access|auth|private|subscription)[-_]?key)|key"
)

_SECRETS = (
    (re.compile(r"(?<=://)([^\s/?#'\"@:]*):[^\s/?#'\"]*@"), r"\1:***@"),
    (re.compile(r"(?<=http://|ttps://)[^\s/?#'\"]+@"), "***@"),
    (re.compile(rf"([?&](?:{_SECRET_NAME})=)(?!{{query}})[^&\s'\"]+", re.IGNORECASE), r"\1***"),
)


def redacted(text: str) -> str:
    """Return a text in which `***` replaces the passwords, tokens and keys of addresses."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def without_secret(text: str) -> bool:
    """Return True if an address contains no password, token or key."""
    return redacted(text) == text


def names_secret(name: str) -> bool:
    """Return True for the name of a header or parameter that carries a password, token or key."""
    return re.fullmatch(_SECRET_NAME, name, re.IGNORECASE) is not None


class RagbenchError(Exception):
    """Base of every error that ragbench raises on purpose."""

    def __str__(self) -> str:
        """Return the message, without passwords."""
        return redacted(super().__str__())


class BoundaryError(RagbenchError, ValueError):
    """Content from outside that cannot be used; the message is the reason alone, such as `invalid JSON at line 3`."""


class ConfigError(RagbenchError):
    """A configuration key or value that cannot be used."""


class CorpusError(RagbenchError):
    """Documents that cannot be read."""


class BenchmarkError(RagbenchError):
    """Topics, judgments or splits that cannot be used."""


class IndexError_(RagbenchError):  # noqa: N801 -- stays apart from Python's own
    """An index artefact that is missing, foreign or damaged."""


class ModelError(RagbenchError):
    """A model that cannot be found, verified or loaded."""


class JavaError(RagbenchError):
    """No usable Java runtime."""


class LiveError(RagbenchError):
    """A search that runs elsewhere and gives no usable answer."""


class ArmsFailed(RagbenchError):
    """Arms of an experiment that failed; all other arms are complete. The command line exits with code 1."""


class TrackingError(RagbenchError):
    """The MLflow store cannot be used."""


class ResultsError(RagbenchError):
    """A results folder that is missing or unreadable."""


class BundleError(RagbenchError):
    """An exported bundle that is missing, damaged, or made for other documents or another version."""


class Damaged(ValueError):
    """A file that is not as it was written; the message says how it differs."""


def why_unreadable(error: Exception) -> str:
    """Why a file cannot be read, in words: the message of the system, or what is wrong with its content."""
    if isinstance(error, OSError):
        return _reason(error)
    if isinstance(error, BoundaryError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    if isinstance(error, Damaged):
        return str(error).partition(" ")[2]
    return f"{error} is missing" if isinstance(error, KeyError) else "unexpected structure"


def unusable(error: OSError) -> str:
    """What the system refuses, in a sentence with the remedy: a full disk, a missing permission."""
    name = error.filename or "a file"
    return f"{name} cannot be used ({_reason(error)}): check the path, its permissions and free space"


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1]).lower()  # the first of several files that could not be copied
    return (error.strerror or str(error) or "the system refuses").lower()


def failure(error: BaseException) -> str:
    """The kind, the message and the line of an error in code of others; in a library, the line that called it."""
    import traceback
    from pathlib import Path

    reason = " ".join(str(error).split())[:200]
    package_folder = str(Path(__file__).parents[1])
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(package_folder)
    ]
    user_frames = [
        frame for frame in frames if "site-packages" not in frame.filename and "asyncio" not in frame.filename
    ]
    line = ""
    if last := (user_frames or frames)[-1:]:
        cell = "ipykernel" in last[0].filename or last[0].filename.startswith("<")
        line = f" (line {last[0].lineno} of {last[0].name if cell else Path(last[0].filename).name})"
    return f"{type(error).__name__}{f': {reason}' if reason else ''}{line}"


_LEAST_LIKENESS = 0.6  # similarity from 0 to 1 from which a name is suggested
_MOST_LISTED = 12
_MOST_SUGGESTED = 4
_SHOWN_CHARS = 60  # characters of a text in a message


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known names whose last part is the word; if there are none, the most similar names (several if equal)."""
    names = list(dict.fromkeys(known))
    ends = [name for name in names if name.rpartition(".")[2].casefold() == word.casefold()]
    matcher = difflib.SequenceMatcher(b=word.casefold())
    likeness = {}
    for name in names:
        matcher.set_seq1(name.casefold())
        likeness[name] = matcher.ratio()
    best = max(likeness.values(), default=0.0)
    return ends or [name for name in names if likeness[name] == best >= _LEAST_LIKENESS]


def did_you_mean(word: str, known: Iterable[str], kind: str = "options") -> str:
    """The end of a sentence about an unknown word: the most similar names, else all of them."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)[:_MOST_SUGGESTED]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    listed = ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
    return f"; the {kind} are {listed}" if names else ""


def options_hint(name: str, options: Sequence[str]) -> str:
    """The end of a message for an unknown option: all of a few options, the nearest of many."""
    return f": the options are {', '.join(options)}" if len(options) <= 6 else did_you_mean(name, options)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 query`, `2,044 queries`, `0 topics`."""
    plural = f"{noun[:-1]}ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def too_few(number: int, noun: str) -> str:
    """`1 query is too few`, `8 queries are too few`."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'} too few"


def short_path(path: Path | str) -> str:
    """A path as short as it can be typed: relative to the working directory if it is below it. A text stays."""
    if isinstance(path, str):
        return path
    current_folder = path.cwd()
    return str(path.relative_to(current_folder) if path.is_relative_to(current_folder) else path)


def shown(value: Any) -> str:
    """A value as in a configuration file, in one short line."""
    if isinstance(value, str):
        value = redacted(" ".join(value.split()) if value.strip() else value)
        return f"'{value if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + '...'}'"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value[:5]))}{', ...' if len(value) > 5 else ''}]"
    if isinstance(value, Mapping):
        items = list(value.items())[:5]
        inside = (f"{key}: {'***' if names_secret(str(key)) else shown(item)}" for key, item in items)
        return "{" + ", ".join(inside) + "}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)


def interval(low: float, high: float, digits: int = 3) -> str:
    """`[+0.036, +0.074]`."""
    return f"[{low:+.{digits}f}, {high:+.{digits}f}]"


def with_interval(effect: float, low: float, high: float, digits: int = 3) -> str:
    """`+0.055 [+0.036, +0.074]`; the effect alone where there are too few queries for an interval (NaN)."""
    return f"{effect:+.{digits}f} {interval(low, high, digits)}" if not math.isnan(low) else f"{effect:+.{digits}f}"


def probability(share: float) -> str:
    """`0.87`; `> 0.99` above that, because no prediction is certain."""
    return f"{share:.2f}" if share < 0.995 else "> 0.99"
