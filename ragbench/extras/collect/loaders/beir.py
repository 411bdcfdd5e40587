"""Load a folder in the form of BEIR (Thakur et al., NeurIPS 2021): corpus.jsonl, queries.jsonl, qrels/<split>.tsv."""

from __future__ import annotations

from pathlib import Path

from ragbench.base.errors import BenchmarkError
from ragbench.base.files import resolved
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.documents import IDS, Collector, Form, identifier, read_documents
from ragbench.benchmark.judgments import (
    Grades,
    QrelsOption,
    UnknownTopics,
    assemble,
    check_grades,
    qrels_files,
    read_judgments,
    require_topics,
)
from ragbench.benchmark.lines import read_objects


def load_beir(
    folder: Path,  # holds corpus.jsonl, queries.jsonl and qrels/*.tsv; each may be packed (.gz)
    name: str | None = None,  # the folder's name when null
    # all files of qrels/, each a split; or one file, a list of files, or {train: FILE, test: FILE}
    qrels: QrelsOption = None,
    # a new grade for each grade, where 1 is the best: '{1: 4, 2: 3, 3: 2, 4: 1, -1: null}' (null: unjudged)
    grades: Grades | None = None,
    markdown: bool = False,  # read the texts as markdown: headings, code blocks, links
    # the title opens the text as its heading; false: it is only the title field of the index
    title_in_text: bool = True,
    # judgments of topics that are not there: fail names the line; warn skips them
    unknown_topics: UnknownTopics = "fail",
    topics: bool = True,
) -> Benchmark:
    """Read a BEIR folder; files may be packed (`.jsonl.gz`, `.tsv.gz`).

    `qrels` names the files in `qrels/` (or paths) to use; each is a split named as the file up to its first dot, or as
    the mapping's key says; where none is named, a file that judges none of the topics is skipped. `grades` maps the
    collection's grades where they mean something else (such as 1 for the best). `markdown` and `title_in_text`: see
    `Form`. With `unknown_topics="warn"` judgments of unknown topics are excluded. With `topics=False` only the
    documents are read. Raises BenchmarkError with file and line.
    """
    if not folder.is_dir():
        raise BenchmarkError(f"{folder} is not a folder: data.folder must hold corpus.jsonl, queries.jsonl and qrels/")
    name, grades = name or resolved(folder).name, check_grades(grades)
    # Topics and judgments come first: they are small, and most mistakes are there.
    listed = read_queries(_plain_or_packed(folder / "queries.jsonl")) if topics else []
    files = qrels_files(folder / "qrels", qrels) if topics else {}
    by_split = {split: read_judgments(path, grades) for split, path in files.items()}
    known_qids = {topic.qid for topic in listed}
    foreign = [
        split for split, judged in by_split.items() if qrels is None and judged and not known_qids & judged.keys()
    ]
    if len(foreign) < len(by_split):  # a copy with the queries of one split often has the judgments of all
        by_split = {split: judged for split, judged in by_split.items() if split not in foreign}
    else:
        foreign = []
    if unknown_topics == "fail":
        require_topics({files[split]: judged for split, judged in by_split.items()}, known_qids)
    collected = Collector(Form(markdown, title_in_text))
    corpus = _plain_or_packed(folder / "corpus.jsonl")
    for location, document in read_documents(corpus, collected.form):
        collected.add(location, document)
    documents, warnings = collected.finish(str(corpus))
    if not topics:
        return Benchmark(name, documents, (), {}, warnings=warnings)
    warnings += tuple(f"{files[split]} is excluded: none of its topics is in queries.jsonl" for split in foreign)
    return assemble(name, documents, listed, by_split, grades, str(folder / "qrels"), warnings)


def read_queries(path: Path) -> list[Topic]:
    """The topics of a queries file: `_id`, `text`, optionally type, need, hypothesis, group; others are ignored."""
    topics: dict[str, Topic] = {}
    for number, row in read_objects(path):
        location = f"{path}:{number}"
        key = next((key for key in (*IDS, "qid", "query_id") if key in row), None)
        qid = identifier(row[key]) if key and isinstance(row[key], (str, int)) else ""
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
        topics[qid] = Topic(qid, text.strip(), **optional)
    if not topics:
        raise BenchmarkError(f"{path} holds no queries")
    return list(topics.values())


def _plain_or_packed(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if not path.exists() and packed.exists() else path
