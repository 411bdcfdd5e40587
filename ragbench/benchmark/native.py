"""Load and write ragbench's own format: a folder of markdown, `topics.jsonl` and judgments in TREC form.

qrels/topics.jsonl      one JSON object a line: qid, text, type, split, need, hypothesis, group,
                        provenance, masked, filter
qrels/sections.qrels    qid 0 docno#anchor grade
qrels/documents.qrels   qid 0 docno grade        (the best grade of a document's sections)
qrels/documents.txt     paths of the documents that belong to the collection, one a line; all of the folder without it
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from ragbench.base.fingerprint import plain
from ragbench.base.options import option
from ragbench.base.types import BenchmarkError
from ragbench.benchmark.benchmark import Benchmark, Qrels, Topic, best_sections, docno_of_section
from ragbench.benchmark.judgments import UnknownTopics, read_judgments, require_topics, unknown_names
from ragbench.benchmark.lines import read_lines, read_objects, write_atomically
from ragbench.benchmark.query_filter import read_filter
from ragbench.benchmark.runs import file_names, new_name
from ragbench.corpus.links import Dialect

TOPICS, SECTIONS, DOCUMENTS = "topics.jsonl", "sections.qrels", "documents.qrels"
_COLLECTION = "documents.txt"
FILE_NAMES = "documents.csv"
_TEXTS = ("qid", "text", "type", "split", "need", "hypothesis", "group", "provenance", "masked", "salient_terms")
_FIELDS = (*_TEXTS, "filter")


@option(
    "data=native",
    "A collection in ragbench's own format:  data=native data.corpus=DIR data.qrels=DIR",
    plain=True,
    dialect="${links.dialect}",
)
def load_native(
    corpus: Path,  # folder of markdown files
    qrels: Path,  # folder with topics.jsonl, sections.qrels and documents.qrels
    name: str = "benchmark",
    # judgments of unknown queries: fail stops with the line number, warn skips them
    unknown_topics: UnknownTopics = "fail",
    dialect: Dialect = "auto",
    topics: bool = True,
) -> Benchmark:
    """Read a benchmark from its two folders; with `topics=False` only its documents.

    A list of documents next to the judgments defines the collection. A folder without judgments gives a warning: they
    are made later, by pooling runs and judging the pool. Judgments of unknown documents
    or headings are kept and counted in a warning, with `unknown_topics="warn"` also those of unknown topics. Raises
    BenchmarkError for topics or judgments that cannot be read, CorpusError for documents.
    """
    return read_benchmark(corpus, qrels, name, unknown_topics, dialect, topics, listed_documents(qrels))


def read_benchmark(
    corpus: Path,
    qrels: Path,
    name: str,
    unknown_topics: UnknownTopics,
    dialect: Dialect,
    topics: bool,
    only: Collection[str] | None,
    earlier: Path | None = None,
) -> Benchmark:
    """As `load_native`; `only` lists the paths of the collection, None takes the whole folder.

    The judgments of sections in the folder `earlier` hold where `qrels` has none, as far as topic and document exist.
    """
    from ragbench.corpus.reader import read_vault

    vault = read_vault(corpus, dialect=dialect, only=only)
    warnings = [str(warning) for warning in vault.warnings]
    if not topics:
        return Benchmark(name, vault.documents, (), {}, warnings=tuple(warnings))
    listed = read_topics(qrels / TOPICS)
    document_qrels, section_qrels = read_judgment_folder(qrels)
    if not document_qrels:
        warnings.append(
            f"{qrels} holds no judgments: pool the results of some runs and judge them (ragbench data pool, judge)"
        )
    qids = {topic.qid for topic in listed}
    if unknown_topics == "fail":
        require_topics(judgment_files(qrels, (document_qrels, section_qrels)), qids)
    docnos = {document.docno for document in vault.documents}
    if earlier is not None:
        section_qrels = _with_earlier(section_qrels, read_judgments(earlier / SECTIONS), qids, docnos)
        document_qrels = best_sections(section_qrels)
    sections = {f"{document.docno}#{section.anchor}" for document in vault.documents for section in document.sections}
    warnings += unknown_names(str(qrels / DOCUMENTS), document_qrels, qids, docnos, "documents")
    warnings += unknown_names(str(qrels / SECTIONS), section_qrels, qids, sections, "sections")
    return Benchmark(name, vault.documents, listed, document_qrels, section_qrels, tuple(warnings))


def listed_documents(qrels: Path) -> frozenset[str] | None:
    """The paths of the documents that judgments are about, None where no file lists them."""
    path = qrels / _COLLECTION
    return frozenset(line for _, line in read_lines(path)) if path.exists() else None


def read_judgment_folder(folder: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Judgments of documents and of sections; without a file for documents, those that follow from the sections."""
    section_qrels = read_judgments(folder / SECTIONS) if (folder / SECTIONS).exists() else {}
    if (folder / DOCUMENTS).exists():
        return read_judgments(folder / DOCUMENTS), section_qrels
    return best_sections(section_qrels), section_qrels


def judgment_files(folder: Path, read: tuple[Qrels, Qrels]) -> dict[Path, Qrels]:
    """The existing files of a folder, with the judgments that `read_judgment_folder` has read from them."""
    files = {folder / name: qrels for name, qrels in zip((DOCUMENTS, SECTIONS), read, strict=True)}
    return {path: qrels for path, qrels in files.items() if path.exists()}


def read_topics(path: Path) -> tuple[Topic, ...]:
    """The topics of a JSONL file, in its order."""
    topics: dict[str, Topic] = {}
    for number, row in read_objects(path):
        unknown = sorted(set(row) - set(_FIELDS))
        if unknown:
            raise BenchmarkError(f"{path}:{number} has an unknown field '{unknown[0]}'; fields: {', '.join(_FIELDS)}")
        for name in _TEXTS:
            required = name in ("qid", "text")
            if required and (not isinstance(row.get(name), str) or not row[name].strip()):
                raise BenchmarkError(f"{path}:{number} needs a non-empty text in field '{name}'")
            if not isinstance(row.get(name, ""), str) and not (name == "hypothesis" and row[name] is None):
                raise BenchmarkError(
                    f"{path}:{number}: field '{name}' must be a text, got {json.dumps(row[name])[:60]}"
                )
        if any(c.isspace() for c in row["qid"]):
            raise BenchmarkError(f"{path}:{number}: qid '{row['qid']}' must not contain white space")
        if row["qid"] in topics:
            raise BenchmarkError(f"{path}:{number} repeats topic '{row['qid']}': give every topic its own qid")
        topics[row["qid"]] = Topic(**row | {"filter": read_filter(row.get("filter"), f"{path}:{number}")})
    if not topics:
        raise BenchmarkError(f"{path} holds no topics")
    return tuple(topics.values())


def save_benchmark(benchmark: Benchmark, folder: str | Path) -> Benchmark:
    """Write a benchmark as markdown files, queries and judgments into a new folder.

    Commands can export and re-time runs on a saved benchmark, but not on one that exists only in memory. Quotes are
    not saved.

    Args:
        benchmark: The benchmark to write.
        folder: A folder that does not exist or is empty.

    Returns:
        The benchmark as read from the folder.

    Raises:
        BenchmarkError: The folder has files, or a document cannot be written as a markdown file.

    Example:
        >>> import tempfile
        >>> from ragbench import Benchmark, save_benchmark
        >>> pages = [{"docno": "keys", "text": "Rotate an API key."}]
        >>> benchmark = Benchmark.from_frames(pages, {"q1": "rotate a key"}, {"q1": {"keys": 1}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_benchmark(benchmark, f"{folder}/keys").documents[0].docno
        'keys'
    """
    import yaml

    folder = Path(folder).expanduser()
    if folder.exists() and any(folder.iterdir()):
        raise BenchmarkError(f"{folder} has files: specify a new folder")
    corpus, qrels = folder / "corpus", folder / "qrels"
    for document in benchmark.documents:
        path = (corpus / f"{document.docno}.md").resolve()
        if not path.is_relative_to(corpus.resolve()) or path.exists():
            raise BenchmarkError(
                f"document '{document.docno}' of '{benchmark.name}' cannot be saved as a file: rename it"
            )
        fields = {**document.frontmatter, "title": document.title}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"---\n{yaml.safe_dump(plain(fields), allow_unicode=True)}---\n{document.text}", encoding="utf-8"
        )
        os.utime(path, (document.modified, document.modified))
    write_topics(qrels / TOPICS, benchmark.topics)
    write_qrels(qrels / DOCUMENTS, benchmark.document_qrels)
    write_qrels(qrels / SECTIONS, benchmark.section_qrels)
    saved = load_native(corpus, qrels, benchmark.name)
    texts = {document.docno: document.text for document in saved.documents}
    changed = next(
        (document.docno for document in benchmark.documents if texts.get(document.docno) != document.text), None
    )
    if changed is not None:
        raise BenchmarkError(f"document '{changed}' of '{benchmark.name}' cannot be kept as a markdown file: rename it")
    data = {"loader": "native", "corpus": str(corpus), "qrels": str(qrels), "name": benchmark.name}
    return saved.read_from({"data": data})


def write_qrels(path: Path, qrels: Qrels) -> None:
    """Write judgments in TREC form, whole or not at all."""
    write_atomically(path, qrels_text(qrels))


def qrels_text(qrels: Qrels) -> str:
    """Judgments in TREC form (`qid 0 id grade`), sorted, so that equal judgments give equal bytes."""
    lines = [f"{qid} 0 {target} {grade}\n" for qid in sorted(qrels) for target, grade in sorted(qrels[qid].items())]
    return "".join(lines)


def files_of_judged(benchmark: Benchmark, topics: Iterable[Topic]) -> dict[str, str]:
    """What is judged of the topics in TREC form, by file name; and the paths that stand for docnos in it."""
    names, contents = file_names(benchmark), {}
    qids = [topic.qid for topic in topics]
    for file, qrels in ((DOCUMENTS, benchmark.document_qrels), (SECTIONS, benchmark.section_qrels)):
        judged = {qid: qrels[qid].items() for qid in qids if qid in qrels}
        contents[file] = qrels_text({q: {new_name(name, names): grade for name, grade in judged[q]} for q in judged})
    if names:
        rows = io.StringIO(newline="")
        csv.writer(rows, lineterminator="\n").writerows([("docno", "path"), *names.items()])
        contents[FILE_NAMES] = rows.getvalue()
    return contents


def write_topics(path: Path, topics: Iterable[Topic]) -> None:
    """Write topics as JSONL, one line each, in the order given."""
    write_atomically(path, "".join(json.dumps(topic_row(topic), ensure_ascii=False) + "\n" for topic in topics))


def topic_row(topic: Topic) -> dict[str, Any]:
    """A topic as a row of a file; provenance and source only where it has them."""
    row = {name: getattr(topic, name) for name in ("qid", "text", "type", "split", "group", "need", "hypothesis")}
    return row | {
        name: getattr(topic, name)
        for name in ("provenance", "masked", "salient_terms", "filter")
        if getattr(topic, name)
    }


def _with_earlier(
    own: Qrels, earlier: Qrels, qids: Collection[str], docnos: Collection[str]
) -> dict[str, dict[str, int]]:
    """Judgments of sections with those of an earlier version, of the same topics and documents, added below them."""
    merged: dict[str, dict[str, int]] = {}
    for qrels in (earlier, own):
        for qid, grades in qrels.items():
            if qid in qids:
                grades_of_docno = {
                    target: grade for target, grade in grades.items() if docno_of_section(target) in docnos
                }
                merged.setdefault(qid, {}).update(grades_of_docno)
    return merged
