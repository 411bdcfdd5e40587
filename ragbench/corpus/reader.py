"""Reads a folder of markdown files into documents, with a named warning for everything that is wrong with a file."""

from __future__ import annotations

import datetime
import hashlib
import os
import posixpath
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import yaml

from ragbench.base import progress
from ragbench.base.types import CorpusError, Document
from ragbench.boundary.json import read_json
from ragbench.boundary.yaml import read_frontmatter
from ragbench.corpus.file_warning import FAILURES, LEFT_OUT, FileWarning
from ragbench.corpus.folder import MARKDOWN, SourceFile, find_files, other_files, printable
from ragbench.corpus.links import Dialect, related_links, resolve_links
from ragbench.corpus.markdown import Markup, is_mdx, parse_markdown
from ragbench.corpus.metadata import Metadata, home_texts, normalise_tags, read_metadata, unpublished
from ragbench.corpus.sections import build_sections
from ragbench.corpus.visible import visible


def _title_block(block: str) -> dict[str, str]:
    return dict(zip(("title", "author", "date"), (line.lstrip("% \t") for line in block.splitlines()), strict=False))


def _pairs(block: str) -> dict[str, str]:
    pairs = (re.split(r"::?[ \t]", entry, maxsplit=1) for entry in re.split(r"\n(?=\S)", block))
    return {key.strip(): " ".join(value.split()) for key, value in pairs}


_LINES = re.DOTALL | re.MULTILINE
_METADATA = re.compile(
    r"(?i)(?=(?:\S.*\n)*?(?:title:|(?:tags|alias)::))((?:[a-z][\w -]*::?[ \t].*\n(?:[ \t]+\S.*\n)*)+)"
    r"(?=[ \t]*(?:\n|- |\Z))"
)
_FORMS: tuple[tuple[str, re.Pattern[str], Callable[[str], Any]], ...] = (
    ("YAML", re.compile(r"---(?:ya?ml|json|js)?[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", _LINES), read_frontmatter),
    ("TOML", re.compile(r"(?:\+{3}|---toml)[ \t]*\n(.*?)^(?:\+{3}|---)[ \t]*(?:\n|\Z)", _LINES), tomllib.loads),
    ("JSON", re.compile(r";;;[ \t]*\n(.*?)^;;;[ \t]*(?:\n|\Z)", _LINES), read_json),  # of GitLab
    ("JSON", re.compile(r"(?=\{\s*\")(\{.*?\})[ \t]*(?:\n|\Z)(?=\s*^[^\s,}\]]|\s*\Z)", _LINES), read_json),
    ("title block", re.compile(r"((?:%[ \t]+\S.*\n){1,3})(?=[ \t]*\n|\Z)"), _title_block),
    ("metadata", _METADATA, _pairs),
)
"""Forms of front matter: what surrounds it, and what reads it. The last are Pandoc's, MultiMarkdown's and Logseq's."""

_UNCLOSED = re.compile(r"---[ \t]*\n\s*[\w\"'][\w \"'.-]*:(?:\s|\Z)|\+{3}[ \t]*\n\s*[\w\"'.-]+\s*=")

_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")  # YAML escapes can make them; no file or terminal takes them

# PyYAML lets the errors of int(), date() and dict lookups through: `d: 2026-02-30`, `b: !!bool x`, `n: !!int`.
_YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)

_MAX_BYTES = 5_000_000  # of a file

_MAX_CHARS = 65_536  # a longer text takes seconds in PyYAML

_MAX_VALUES = 10_000
_MAX_ENTRIES = 200  # of YAML with an error

_MAX_DEPTH = 20

_WIDE = re.compile(
    rb"(?P<utf_32>\xff\xfe\0\0|\0\0\xfe\xff)|(?P<utf_16>\xff\xfe|\xfe\xff)"
    rb"|(?P<utf_16_be>(?:\0[^\0]){8})|(?P<utf_16_le>(?:[^\0]\0){8})"  # without a byte order mark
)
_NOT_UTF8 = re.compile("[\udc80-\udcff]+")  # how Python decodes such bytes

# White space would break TREC files; control characters and bytes that are not UTF-8 would break all output.
_NOT_IN_DOCNO = re.compile(r"[\s\x00-\x1f\x7f-\x9f\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Vault:
    """The documents of a folder, sorted by docno, links resolved; what was wrong or excluded, sorted by path."""

    documents: tuple[Document, ...]
    warnings: tuple[FileWarning, ...]
    left_out: tuple[FileWarning, ...] = ()


class ReadFile(NamedTuple):
    """A file's document with links unresolved, what was wrong with it, and the mtime it was read with."""

    document: Document
    warnings: list[FileWarning]
    mtime: float


def read_vault(
    root: Path,
    *,
    include: Sequence[str] = MARKDOWN,
    exclude: Sequence[str] = (),
    drafts: bool = False,
    only: Collection[str] | None = None,
    memory: MutableMapping[tuple[str, str], ReadFile] | None = None,
    dialect: Dialect = "auto",
) -> Vault:
    """Read every markdown file below `root`, and other texts that `include` names.

    `include` holds globs over the path below the root (`**/` any folders, letter case ignored), `only` the paths
    themselves: a file must match both; `find_files` says what is excluded, with `exclude`. Pages that are not published
    or searched (`ragbench.corpus.metadata.unpublished`) are read with `drafts` only. Symbolic links
    to files inside the root are read, others not; linked folders are not entered. Files of over 5 MB are
    skipped. `memory` keeps read files by path and content, for a folder that is read again. A file with a warning named
    in `FAILURES` may be lost, all others are read. `dialect` is how wikilinks are read (`ragbench.corpus.links`).
    Raises CorpusError when the folder is missing or no document can be read, ConfigError for an unreadable glob.
    """
    if not root.is_dir():
        problem = "is not a folder" if root.exists() else "does not exist"
        raise CorpusError(f"The corpus folder {root} {problem}; give the path of a folder with markdown files.")
    files, warnings, left_out = find_files(root, include, exclude)
    if only is not None:
        if missing := sorted(set(only) - {file.path for file in files}):
            raise CorpusError(f"{root / missing[0]} is listed as a document of the collection but does not exist.")
        files = [file for file in files if file.path in only]
        warnings = [warning for warning in warnings if warning.path in only]
    documents: dict[str, Document] = {}
    folded: dict[str, str] = {}
    # `.md` before `.markdown`: the first file of a docno stays.
    files = sorted(files, key=lambda file: (docno_of(file.path), not file.path.endswith(".md"), file.path))
    for file in progress.steps("reading", files):
        docno, path = docno_of(file.path), printable(file.path)
        if docno in documents:
            message = f"its document id {docno} is that of {documents[docno].path}; rename one of them."
            warnings.append(FileWarning(path, "duplicate-docno", message))
            continue
        document, links = _read_file(file, docno, path, {} if memory is None else memory)
        if document is not None and not drafts and (reason := unpublished(document.frontmatter, path, document.text)):
            left_out.append(FileWarning(path, "unpublished", reason))
            continue
        warnings.extend(warning for warning in links if warning.name not in LEFT_OUT)
        left_out.extend(warning for warning in links if warning.name in LEFT_OUT)
        if document is None:
            continue
        documents[docno] = document
        if (other_docno := folded.setdefault(docno.casefold(), docno)) != docno:
            message = f"its document id differs from {other_docno} in letter case only; links may go to either."
            warnings.append(FileWarning(path, "case-duplicate", message))
    resolved, links = resolve_links([documents[docno] for docno in sorted(documents)], dialect)
    warnings = sorted([*warnings, *links], key=lambda warning: (warning.path, warning.name))
    failures = [warning for warning in warnings if warning.name in FAILURES]
    if not resolved:
        raise CorpusError(f"No document to read below {root}: {_why_none(root, include, failures)}.")
    return Vault(resolved, tuple(warnings), tuple(sorted(left_out, key=lambda warning: warning.path)))


def parse_document(docno: str, path: str, raw: bytes, modified: float) -> tuple[Document, list[FileWarning]]:
    """The document of one file, with links still unresolved (`resolve_links`); never raises, whatever the bytes.

    `path` is the path below the root, `modified` the file's mtime in seconds, used when the frontmatter has no date.
    """
    text, warnings = decoded(path, raw)
    if path.lower().endswith(".canvas"):
        text, problems = _text_of_canvas(path, text)
        warnings += problems
    frontmatter = _split_frontmatter(text)
    written = text[frontmatter.body :]
    first_line = text.count("\n", 0, frontmatter.body) + 1
    if home := home_texts(frontmatter.fields):
        joint, breaks = ("\n", len(home) - 1) if len(home) < first_line else (" ", 0)
        written, first_line = joint.join(home) + "\n" * (first_line - 1 - breaks) + written, 1
    page = visible(written, is_mdx(path))
    body = page.text
    for kind, left in page.left_out:
        shown = f"{' '.join(left[:60].split())}{' ...' * (len(left) > 60)}"
        message = f"{len(left)} characters are excluded: {shown}" if kind == "bytes" else shown
        warnings.append(FileWarning(path, kind, message))
    if frontmatter.problem is not None:
        warnings.append(FileWarning(path, *frontmatter.problem))
    if not body.strip() and not any(warning.name == "unreadable" for warning in warnings):
        name, message = "empty-file", "it holds no text; write some or delete the file."
        if frontmatter.fields:
            name, message = "no-text", "it has frontmatter only: its title and description are used as its text."
        warnings.append(FileWarning(path, name, message))
    has_modules = any(kind == "module" for kind, _ in page.left_out)
    markup = parse_markdown(body, first_line, is_mdx(path), written)
    if markup.unclosed:
        lines = ", ".join(map(str, markup.unclosed[:5])) + (" ..." if len(markup.unclosed) > 5 else "")
        message = f"the code fence opened in line {lines} is never closed; close it."
        warnings.append(FileWarning(path, "unclosed-fence", message))
    metadata = read_metadata(frontmatter.fields)
    document = Document(
        docno=docno,
        path=path,
        title=title_of(metadata, markup, docno),
        text=body,
        frontmatter=frontmatter.fields,
        sections=build_sections(body, markup.headings, page.ids, "" if has_modules else written),
        code_blocks=markup.code_blocks,
        links=markup.links + related_links(metadata.related),
        tags=normalise_tags((*metadata.tags, *markup.tags)),
        modified=modified if metadata.modified is None else metadata.modified,
        size_bytes=len(raw),
        digest=hashlib.sha256(raw).hexdigest(),
        first_line=first_line,
    )
    return document, warnings


def docno_of(path: str) -> str:
    """The document id of a `/`-separated path: without extension, white space and unprintable characters as `%XX`."""
    stem = posixpath.splitext(path)[0]
    return _NOT_IN_DOCNO.sub(lambda m: quote(m[0].encode("utf-8", "surrogateescape")), stem)


def _read_file(
    file: SourceFile, docno: str, path: str, memory: MutableMapping[tuple[str, str], ReadFile]
) -> tuple[Document | None, list[FileWarning]]:
    try:
        with open(file.location, "rb", opener=_open_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None, [FileWarning(path, "unreadable", "it is not a regular file; remove it of the folder.")]
            raw = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return None, [FileWarning(path, "unreadable", f"{reason}; correct the file or its permissions.")]
    if len(raw) > _MAX_BYTES:
        message = f"{status.st_size:,} bytes, over the limit of {_MAX_BYTES:,}; split the file."
        return None, [FileWarning(path, "too-large", message)]
    key = path, hashlib.sha256(raw).hexdigest()
    if key not in memory:
        memory[key] = ReadFile(*parse_document(docno, path, raw, status.st_mtime), status.st_mtime)
    document, warnings, mtime = memory[key]
    if any(warning.name in ("empty-file", "unreadable") for warning in warnings):
        return None, warnings
    # A date in the frontmatter stays; without one the file's time of change counts.
    return replace(document, modified=status.st_mtime) if document.modified == mtime else document, warnings


def _open_without_waiting(path: str, flags: int) -> int:
    # A named pipe called x.md would block open() for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def title_of(metadata: Metadata, markup: Markup, docno: str) -> str:
    """The title that the metadata give, else the first heading of level 1, else the name of the file."""
    first = next((heading.text for heading in markup.headings if heading.level == 1 and heading.text), "")
    name = unquote(posixpath.basename(docno), errors="replace")
    return metadata.title or first or re.sub(r"(?<=\S) [0-9a-f]{32}$", "", name)  # an id of Notion


def _why_none(root: Path, include: Sequence[str], failures: Sequence[FileWarning]) -> str:
    if not failures:
        others = other_files(root)
        remedy = f" (it holds {others}); name the files with data.include" if others else ", it is empty"
        return f"no file matches {', '.join(include)}{remedy}"
    listed = "; ".join(str(warning).rstrip(".") for warning in failures[:5])
    more = f"; and {len(failures) - 5} more" if len(failures) > 5 else ""
    count = "one problem" if len(failures) == 1 else f"{len(failures)} problems"
    return f"{count} in files below {root}: {listed}{more}"


def decoded(path: str, raw: bytes) -> tuple[str, list[FileWarning]]:
    """The text of a file: what its byte order mark says, else UTF-8 with other bytes as Windows-1252. Never raises.

    A byte order mark is dropped, CRLF and CR become LF, NUL becomes U+FFFD (as CommonMark 2.3 asks), so a character
    offset into the result is valid everywhere downstream.
    """
    warnings: list[FileWarning] = []
    wide = _WIDE.match(raw)
    encoding = (wide.lastgroup or "").replace("_", "-") if wide else None
    reason = "because its first bytes are so"
    text = raw.decode(encoding or "utf-8", "replace" if encoding else "surrogateescape")
    if encoding is None and (other := _NOT_UTF8.search(text)):
        encoding, reason = "cp1252", f"because line {text.count(chr(10), 0, other.start()) + 1} is not UTF-8"
        text = _NOT_UTF8.sub(lambda m: m[0].encode("utf-8", "surrogateescape").decode("cp1252", "replace"), text)
    if encoding is not None:
        warnings.append(FileWarning(path, "encoding", f"read as {encoding} {reason}; save the file as UTF-8."))
    if "\0" in text:
        warnings.append(FileWarning(path, "nul-bytes", f"{text.count(chr(0))} NUL bytes in the text; remove them."))
        text = text.replace("\0", "\ufffd")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), warnings


def _text_of_canvas(path: str, text: str) -> tuple[str, list[FileWarning]]:
    """The cards of an Obsidian canvas from the top down as markdown (texts, names, files), and labels of arrows."""
    try:
        value = read_json(text) if text.strip() else {}
        nodes = sorted(value.get("nodes", ()), key=lambda node: (float(node.get("y", 0)), float(node.get("x", 0))))
        nodes += value.get("edges", ())
        cards = (n.get("text") or n.get("label") or f"[[{n.get('file', '')}]]" for n in nodes)
        return "\n\n".join(str(card) for card in cards if card != "[[]]"), []
    except (ValueError, TypeError, AttributeError):
        message = "it is not a canvas (JSON with `nodes`); correct it, or name it in data.exclude."
        return "", [FileWarning(path, "unreadable", message)]


@dataclass(frozen=True, slots=True)
class _Frontmatter:
    """The parsed mapping (`{}` when absent or malformed) and the offset at which the body starts.

    `problem` is (warning name, message) when something was wrong, else None.
    """

    fields: Mapping[str, Any]
    body: int
    problem: tuple[str, str] | None = None


def _split_frontmatter(text: str) -> _Frontmatter:
    """Read the frontmatter at the very start of `text` (LF line ends); never raises.

    Blank lines may precede it. It stands between lines `---` (YAML; `...` ends it, too) or `+++` (TOML), or is an
    object of JSON. A block that cannot be read is removed from the body; of YAML its entries count if one says that
    the page is not published. A block that is not a mapping (prose between two rules) and one without a closing line
    stay in the body.
    """
    start = len(text) - len(text.lstrip("\n"))
    found = ((form, block, read) for form, pattern, read in _FORMS if (block := pattern.match(text, start)))
    form, block, read = next(found, ("", None, read_json))
    if block is None:
        if _UNCLOSED.match(text, start):
            message = f"the frontmatter opened in line {start + 1} is never closed; add a line `{text[start] * 3}`."
            return _Frontmatter({}, 0, ("frontmatter-unclosed", message))
        return _Frontmatter({}, 0)  # a thematic break
    try:
        if len(block[1]) > _MAX_CHARS:
            raise ValueError(f"the frontmatter is longer than {_MAX_CHARS:,} characters")
        value = _plain(read(block[1]))
    except _YAML_ERRORS as error:
        fields = _entries_of_draft(block[1][:_MAX_CHARS]) if form == "YAML" else {}
        return _Frontmatter(fields, block.end(), ("frontmatter-malformed", f"{_reason(error)}; correct the {form}."))
    if value is not None and not isinstance(value, dict):
        message = f"the frontmatter is a {type(value).__name__}, not a mapping; write `key: value` lines."
        return _Frontmatter({}, 0, ("frontmatter-malformed", message))
    return _Frontmatter(value or {}, block.end())


def _entries_of_draft(block: str) -> dict[str, Any]:
    """What can be read of YAML with an error, each entry alone, if it says that the page is not published."""
    fields: dict[str, Any] = {}
    for entry in re.split(r"\n(?=[\w\"'])", block)[:_MAX_ENTRIES]:
        try:
            fields |= _plain(read_frontmatter(entry.expandtabs(2)))
        except _YAML_ERRORS:
            fields |= re.findall(r"\A([\w-]+):[ \t]+(\S.*?)\s*\Z", entry)
    return fields if unpublished(fields) else {}


def _plain(value: Any) -> Any:
    """The value as str, int, float, bool, None, date, list and dict with str keys only.

    Raises ValueError on more than 10,000 values, 20 levels (aliases can make a few bytes endless) or integers over 64
    bits, which Python refuses to print from 4,300 digits on.
    """
    left = _MAX_VALUES

    def convert(item: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > _MAX_DEPTH:
            raise ValueError("the frontmatter is nested too deep or too large")
        if isinstance(item, dict):
            return {str(convert(key, depth + 1)): convert(entry, depth + 1) for key, entry in item.items()}
        if isinstance(item, list | tuple | set):
            return [convert(entry, depth + 1) for entry in (sorted(map(str, item)) if isinstance(item, set) else item)]
        if isinstance(item, bytes):
            return item.decode("utf-8", errors="replace")
        if isinstance(item, int) and item.bit_length() > 64:
            raise ValueError("the frontmatter holds an integer of more than 64 bits")
        if isinstance(item, str):
            return _UNPRINTABLE.sub("\ufffd", item)
        if item is None or isinstance(item, int | float | datetime.date | datetime.time):
            return item
        raise ValueError(f"the frontmatter holds a {type(item).__name__}")

    return convert(value, 0)


def _reason(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        # Line 1 of the YAML is line 2 of the file.
        return f"line {error.problem_mark.line + 2}: {error.problem or error.context}"
    if isinstance(error, RecursionError):
        return "the frontmatter is nested too deep or too large"
    return " ".join(str(error).split()) or type(error).__name__
