"""Load a collection in TREC formats: topics (`<top>` or TSV), qrels, documents as JSONL or `<DOC>` text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from ragbench.base import files
from ragbench.base.options import option
from ragbench.base.types import BenchmarkError, Document
from ragbench.benchmark import judgments, lines
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.documents import collect, make_document
from ragbench.extras.collect.loaders.beir import QrelsOption, qrels_files, read_documents

_TopicField = Literal["title", "desc", "narr"]

_TAG = re.compile(r"<(/?)(num|title|desc|narr)\b[^>]*>", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(number|topic|description|narrative)\s*:", re.IGNORECASE)
_ELEMENT = re.compile(r"<(/?)([a-zA-Z][\w-]*)[^>]*>")
_DOCNO = {"docno"}
_TITLES = {"title", "headline", "head", "ti", "hl"}
_SKIPPED = {"docid", "docno", "dochdr", "date", "fileid", "parent", "doctype", "dateline"}


@option(
    "data=trec",
    "A collection in TREC formats:  data=trec data.corpus=PATH data.queries=FILE data.qrels=FILE",
    plain=True,
)
def load_trec(
    corpus: Path,  # file or folder of JSONL (id, text, title) or <DOC> files; may be packed (.gz)
    queries: Path,  # file of <top> topics, or of lines with qid, tab, text
    qrels: QrelsOption,  # file of judgments (the split test), or {train: FILE, test: FILE}
    name: str | None = None,  # the name of corpus when null
    field: _TopicField = "title",  # the part of a <top> topic that becomes the query: title, desc or narr
    encoding: str = "utf-8",  # encoding of documents and queries; old collections are latin-1
    grades: judgments.Grades
    | None = None,  # a new grade for each grade: '{1: 3, 2: 2, 3: 1, -1: null}' (null: unjudged)
    markdown: bool = False,  # read the texts as markdown: headings, code blocks, links
    # judgments of unknown queries: fail stops with the line number, warn skips them
    unknown_topics: judgments.UnknownTopics = "fail",
    topics: bool = True,
) -> Benchmark:
    """Read documents, topics and judgments.

    `corpus` is a file or a folder (all files below it, names in order): JSONL (id, text, title ...) or `<DOC>` text,
    recognised by the first character. `queries` is a `<top>` file, of which `field` becomes the query and the
    description its need, or a table of qid and text separated by a tab. `qrels`: one file is the split `test`, a
    mapping names splits. Everything may be packed (`.gz`). `encoding` holds for documents and topics. With
    `unknown_topics="warn"` judgments of unknown topics are excluded. Raises BenchmarkError with file and line.
    """
    name, grades = name or files.resolved(corpus).stem, judgments.check_grades(grades)
    located = _documents(corpus, markdown, encoding)
    documents, warnings = collect(located, str(corpus), markdown)
    if not topics:
        return Benchmark(name, documents, (), {}, warnings=warnings)
    listed = read_trec_topics(queries, field, encoding)
    paths = {"test": Path(qrels).expanduser()} if isinstance(qrels, str) else qrels_files(queries.parent, qrels)
    by_split = {split: judgments.read_judgments(path, grades) for split, path in paths.items()}
    judged_qids = {qid for judged in by_split.values() for qid in judged}
    # Early topics are numbered 051 where the judgments say 51.
    listed = [_number_as_judged(topic, judged_qids) for topic in listed]
    if unknown_topics == "fail":
        judgments.require_topics(
            {paths[split]: judged for split, judged in by_split.items()}, {topic.qid for topic in listed}
        )
    source = " and ".join(str(path) for path in paths.values())
    return judgments.assemble(name, documents, listed, by_split, grades, source, warnings)


def _documents(corpus: Path, markdown: bool, encoding: str) -> Iterator[tuple[str, Document]]:
    for file in _files(corpus):
        reader = read_documents if _starts_with(file, "{", encoding) else read_trectext
        yield from reader(file, markdown, encoding)


def read_trec_topics(path: Path, field: _TopicField = "title", encoding: str = "utf-8") -> list[Topic]:
    """The topics of a `<top>` file or of a table of qid and text."""
    rows = (
        _tagged_topics(path, field, encoding) if _starts_with(path, "<", encoding) else _listed_topics(path, encoding)
    )
    topics: dict[str, Topic] = {}
    for location, topic in rows:
        if not topic.qid:
            raise BenchmarkError(f"{location}: a topic has no number: give it a <num>")
        if not topic.text:
            raise BenchmarkError(
                f"{location}: query {topic.qid} is empty: give it a text, or choose another data.field"
            )
        if topic.qid in topics:
            raise BenchmarkError(f"{location} repeats topic '{topic.qid}': numbers must be unique")
        topics[topic.qid] = topic
    if not topics:
        raise BenchmarkError(f"{path} holds no topics")
    return list(topics.values())


def read_trectext(path: Path, markdown: bool = False, encoding: str = "utf-8") -> Iterator[tuple[str, Document]]:
    """(file:line, document) of every `<DOC>`; title is its TITLE, HEADLINE, HEAD or TI, text all else without tags.

    Header fields (DOCID, DATE, DOCHDR ...) are dropped. Raises BenchmarkError for a DOC without DOCNO or without an
    end.
    """
    block: list[str] = []
    opened, size = 0, 0
    for number, raw in lines.raw_lines(path, encoding):
        line = raw.rstrip("\r\n")
        start = line.strip()[:5].lower()
        if not opened and not start:
            continue
        if start == "<doc>":
            if opened:
                raise BenchmarkError(f"{path}:{opened} has a <DOC> that is not closed before line {number}: add </DOC>")
            opened, size, block = number, 0, [line.strip()[5:]]
        elif not opened:
            raise BenchmarkError(f"{path}:{number} stands outside <DOC>: expected <DOC>, or JSON objects one per line")
        else:
            block.append(line)
        size += len(line)
        if size > lines.MAX_LINE_BYTES:
            raise BenchmarkError(
                f"{path}:{opened} has a <DOC> longer than {lines.MAX_LINE_BYTES / 1e6:g} MB: add </DOC>"
            )
        if line.rstrip()[-6:].lower() == "</doc>":
            block[-1] = block[-1].rstrip()[:-6]
            yield f"{path}:{opened}", _trectext_document(f"{path}:{opened}", "\n".join(block), markdown)
            opened = 0
    if opened:
        raise BenchmarkError(f"{path}:{opened} has a <DOC> that is never closed: add </DOC>")


def _trectext_document(location: str, block: str, markdown: bool) -> Document:
    parts: dict[str, list[str]] = {"docno": [], "title": [], "text": [], "skipped": []}
    stack: list[str] = []
    end = 0
    for element in _ELEMENT.finditer(block):
        parts[_role(stack)].append(block[end : element.start()])
        name, end = element[2].lower(), element.end()
        if not element[1]:
            if name == "text":
                stack.clear()  # a header field that nobody closed must not swallow the text
            elif name in _DOCNO | _TITLES | _SKIPPED:
                stack.append(name)
        elif name in stack:
            while stack.pop() != name:
                pass
    parts[_role(stack)].append(block[end:])
    docno = lines.identifier("".join(parts["docno"]))
    if not docno:
        raise BenchmarkError(f"{location} has a <DOC> without <DOCNO>: give every document one")
    return make_document(docno, " ".join(parts["title"]), "".join(parts["text"]).strip("\n"), {}, markdown)


def _role(stack: list[str]) -> str:
    """The part that text inside these elements belongs to: `docno`, `title`, `text`, or `skipped`."""
    if not stack:
        return "text"
    return "docno" if stack[-1] in _DOCNO else "title" if stack[-1] in _TITLES else "skipped"


def _tagged_topics(path: Path, field: _TopicField, encoding: str) -> Iterator[tuple[str, Topic]]:
    parts: dict[str, str] | None = None
    current, opened = "", 0
    for number, line in lines.read_lines(path, encoding):
        lowered = line.strip().lower()
        if lowered.startswith("<top>"):
            if parts is not None:
                raise BenchmarkError(f"{path}:{opened} has a <top> that is not closed before line {number}: add </top>")
            parts, current, opened, line = {}, "", number, line.strip()[5:]
        if parts is None:
            continue
        closes = lowered.endswith("</top>")
        line, end = (line.rstrip()[:-6] if closes else line), 0
        for tag in _TAG.finditer(line):
            parts[current] = f"{parts.get(current, '')} {line[end : tag.start()]}"
            current, end = ("" if tag[1] else tag[2].lower()), tag.end()
        parts[current] = f"{parts.get(current, '')} {line[end:]}"
        if closes:
            yield f"{path}:{opened}", _tagged_topic(parts, field)
            parts = None
    if parts is not None:
        raise BenchmarkError(f"{path}:{opened} has a <top> that is never closed: add </top>")


def _tagged_topic(parts: dict[str, str], field: _TopicField) -> Topic:
    fields = {name: " ".join(_LABEL.sub("", text).split()) for name, text in parts.items()}
    return Topic(lines.identifier(fields.get("num", "")), fields.get(field, ""), need=fields.get("desc", ""))


def _listed_topics(path: Path, encoding: str) -> Iterator[tuple[str, Topic]]:
    for number, line in lines.read_lines(path, encoding):
        qid, tab, text = line.partition("\t")
        if not tab:
            raise BenchmarkError(
                f"{path}:{number} must be a qid and a text with a tab between them, or a file of <top>"
            )
        if number == 1 and qid.strip().lower() in ("qid", "query_id", "query-id", "id"):
            continue
        yield f"{path}:{number}", Topic(lines.identifier(qid), " ".join(text.split()))


def _number_as_judged(topic: Topic, judged: set[str]) -> Topic:
    short = topic.qid.lstrip("0")
    return Topic(short, topic.text, need=topic.need) if topic.qid not in judged and short in judged else topic


def _starts_with(path: Path, character: str, encoding: str) -> bool:
    first = next((line for _, line in lines.read_lines(path, encoding)), "")
    return first.lstrip().startswith(character)


def _files(corpus: Path) -> list[Path]:
    if not corpus.is_dir():
        return [corpus]
    paths = sorted(
        p for p in corpus.rglob("*") if p.is_file() and not any(part.startswith(".") for part in p.parts[-2:])
    )
    if not paths:
        raise BenchmarkError(f"the folder {corpus} holds no files: data.corpus must name JSONL or <DOC> files")
    return paths
