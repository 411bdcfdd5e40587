"""Load a folder in BEIR format (Thakur et al., NeurIPS 2021): corpus.jsonl, queries.jsonl, qrels/<split>.tsv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.fingerprint import canonical
from ragbench.base.options import option
from ragbench.base.types import BenchmarkError, Document, shown
from ragbench.benchmark import judgments, lines
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.documents import IDS, TEXTS, collect, make_document
from ragbench.benchmark.query_filter import read_filter

QrelsOption = str | Sequence[str] | Mapping[str, str] | None
"""Files of judgments: one name, several, or names by split; None takes all files."""


@option("data=beir", "A folder in BEIR format:  data=beir data.folder=DIR", plain=True)
def load_beir(
    folder: Path,  # folder with corpus.jsonl, queries.jsonl and qrels/*.tsv, also compressed (.gz)
    name: str | None = None,  # the folder's name when null
    # all files of qrels/, each a split; or one file, a list of files, or {train: FILE, test: FILE}
    qrels: QrelsOption = None,
    # mapping to new grades, if 1 is the best: '{1: 4, 2: 3, 3: 2, 4: 1, -1: null}' (null: unjudged)
    grades: judgments.Grades | None = None,
    markdown: bool = False,  # read the texts as markdown: headings, code blocks, links
    # judgments of unknown queries: fail stops with the line number, warn skips them
    unknown_topics: judgments.UnknownTopics = "fail",
    topics: bool = True,
) -> Benchmark:
    """Read a BEIR folder; files may be packed (`.jsonl.gz`, `.tsv.gz`).

    `qrels` names the files in `qrels/` (or paths) to use; each is a split named as the file up to its first dot, or as
    the mapping's key says; where none is named, a file that judges none of the topics is skipped. `grades` maps the
    collection's grades where they mean something else (such as 1 for the best). With `unknown_topics="warn"`
    judgments of unknown topics are excluded. With `topics=False` only the documents are read. Raises BenchmarkError
    with file and line.
    """
    if not folder.is_dir():
        raise BenchmarkError(f"{folder} is not a folder: data.folder must hold corpus.jsonl, queries.jsonl and qrels/")
    name, grades = name or files.resolved(folder).name, judgments.check_grades(grades)
    # Topics and judgments come first: they are small, and most mistakes are there.
    listed = read_queries(_plain_or_packed(folder / "queries.jsonl")) if topics else []
    paths = qrels_files(folder / "qrels", qrels) if topics else {}
    by_split = {split: judgments.read_judgments(path, grades) for split, path in paths.items()}
    known_qids = {topic.qid for topic in listed}
    foreign = [
        split for split, judged in by_split.items() if qrels is None and judged and not known_qids & judged.keys()
    ]
    if len(foreign) < len(by_split):  # a copy with the queries of one split often has the judgments of all
        by_split = {split: judged for split, judged in by_split.items() if split not in foreign}
    else:
        foreign = []
    if unknown_topics == "fail":
        judgments.require_topics({paths[split]: judged for split, judged in by_split.items()}, known_qids)
    corpus = _plain_or_packed(folder / "corpus.jsonl")
    documents, warnings = collect(read_documents(corpus, markdown), str(corpus), markdown)
    if not topics:
        return Benchmark(name, documents, (), {}, warnings=warnings)
    warnings += tuple(f"{paths[split]} is excluded: none of its topics is in queries.jsonl" for split in foreign)
    return judgments.assemble(name, documents, listed, by_split, grades, str(folder / "qrels"), warnings)


def read_queries(path: Path) -> list[Topic]:
    """The topics of a queries file: `_id`, `text`, optionally type, need, hypothesis, group, filter."""
    topics: dict[str, Topic] = {}
    for number, row in lines.read_objects(path):
        location = f"{path}:{number}"
        key = next((key for key in (*IDS, "qid", "query_id") if key in row), None)
        qid = lines.identifier(row[key]) if key and isinstance(row[key], (str, int)) else ""
        if not qid:
            raise BenchmarkError(f"{location} has no query id: give every record a non-empty '_id'")
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            raise BenchmarkError(f"{location}: query {qid} is empty: give it a text or remove it")
        if qid in topics:
            raise BenchmarkError(f"{location} repeats query id '{qid}': ids must be unique")
        optional = {
            k: row[k] for k in ("type", "need", "hypothesis", "group") if isinstance(row.get(k), str) and row[k]
        }
        topics[qid] = Topic(qid, text.strip(), **optional, filter=read_filter(row.get("filter"), location))
    if not topics:
        raise BenchmarkError(f"{path} holds no queries")
    return list(topics.values())


def _plain_or_packed(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if not path.exists() and packed.exists() else path


def read_documents(path: Path, markdown: bool = False, encoding: str = "utf-8") -> Iterator[tuple[str, Document]]:
    """(file:line, document) of every line of a JSONL file with an id, a text, and optionally `title` and `metadata`.

    The id may be called _id, id, docno, doc_id or docid; the text text, contents, content or body. Other fields of
    simple values become metadata. Raises BenchmarkError with the line.
    """
    for number, row in lines.read_objects(path, encoding):
        location = f"{path}:{number}"
        name = next((key for key in IDS if key in row), None)
        docno = lines.identifier(row[name]) if name and isinstance(row[name], (str, int)) else ""
        if not docno:
            raise BenchmarkError(f"{location} has no document id: give every record a non-empty '_id'")
        key = next((key for key in TEXTS if key in row), None)
        if key is None or not isinstance(row[key], str):
            raise BenchmarkError(f"{location}: document {docno} has no text: give every record a text in field 'text'")
        title = row.get("title") or ""
        if not isinstance(title, str):
            raise BenchmarkError(f"{location}: the title of document {docno} must be a text, got {shown(title)}")
        extra = {k: v for k, v in row.items() if k not in {name, key, "title", "metadata"} and _simple(v)}
        metadata = row.get("metadata")
        fields = {**extra, **metadata} if isinstance(metadata, dict) else extra
        yield location, make_document(docno, title, row[key], _finite(fields, location), markdown)


def _simple(value: Any) -> bool:
    """Whether a field can be metadata: a text, a number or a list of texts; an embedding cannot."""
    return isinstance(value, (str, int, float)) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


def _finite(fields: Mapping[str, Any], location: str) -> Mapping[str, Any]:
    try:
        canonical(fields)
    except ValueError:
        raise BenchmarkError(
            f"{location}: its metadata holds NaN or an infinite number, which JSON cannot hold"
        ) from None
    return fields


def qrels_files(folder: Path, option: QrelsOption) -> dict[str, Path]:
    """The files of judgments by split; a name that is not an existing path is looked up in `folder`."""
    if option in (None, [], ()):
        paths = sorted(path for path in folder.glob("*") if path.name.endswith((".tsv", ".tsv.gz", ".qrels", ".txt")))
        if not paths:
            raise BenchmarkError(f"{folder} holds no judgments (*.tsv): name the file with data.qrels=FILE")
        pairs = [(_split(path), path) for path in paths]
    elif isinstance(option, Mapping):
        pairs = [(str(split), _existing(folder, str(file))) for split, file in option.items()]
    else:
        given_names = [option] if isinstance(option, str) else [str(name) for name in option]
        pairs = [(_split(path), path) for path in (_existing(folder, name) for name in given_names)]
    by_split: dict[str, Path] = {}
    for split, path in pairs:
        if split in by_split:
            names = f"{by_split[split].name} and {path.name}"
            raise BenchmarkError(
                f"{folder}: {names} are both the split '{split}': name one with data.qrels={path.name}"
            )
        by_split[split] = path
    return by_split


def _split(path: Path) -> str:
    return path.name.split(".", 1)[0] or path.name


def _existing(folder: Path, name: str) -> Path:
    for path in (folder / name, Path(name).expanduser(), folder / f"{name}.tsv"):
        if path.is_file():
            return path
    existing = ", ".join(sorted(path.name for path in folder.glob("*"))) or "nothing"
    raise BenchmarkError(f"data.qrels names {name}, which is neither a file nor in {folder} (which holds {existing})")
