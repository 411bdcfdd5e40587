"""Load any collection of the ir_datasets catalogue (MacAvaney et al., SIGIR 2021); downloads missing data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ragbench.base.options import option
from ragbench.base.types import BenchmarkError, Document
from ragbench.benchmark import judgments, lines
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.documents import collect, make_document

_HOST = re.compile(r"https?://([^/\s'\"]+)|host=\\?'([^'\\]+)")
_REVERSED = {"cranfield": "{1: 4, 2: 3, 3: 2, 4: 1, -1: 4}"}
"""Collections in which grade 1 is the best, with the mapping that reverses their grades."""


@option(
    "data=ir_datasets",
    "Any dataset of the ir_datasets catalogue, downloaded when needed:  data=ir_datasets data.id=beir/scifact/test",
    plain=True,
)
def load_ir_datasets(
    id: str | Mapping[str, str],  # or by split: {train: beir/scifact/train, test: beir/scifact/test}
    name: str | None = None,  # the id when null
    grades: judgments.Grades
    | None = None,  # a new grade for each grade: '{1: 4, 2: 3, 3: 2, 4: 1, -1: null}' (null: unjudged)
    markdown: bool = False,  # read the texts as markdown: headings, code blocks, links
    # prepend the title to the text as a heading; false: only the title field of the index has it
    max_documents: int = 1_000_000,  # a larger collection is refused: documents are kept in memory
    topics: bool = True,
) -> Benchmark:
    """Load a dataset by id (`beir/scifact/test`), or by split (`{train: beir/scifact/train, test: beir/scifact/test}`).

    Documents come from the first id. A collection of more than `max_documents` is refused, before its download where
    the catalogue knows its size. Raises BenchmarkError in one sentence for an unknown id, a failed download, a missing
    extra package.
    """
    ids = {_split(id): id} if isinstance(id, str) else {str(split): str(dataset) for split, dataset in id.items()}
    if not ids:
        raise BenchmarkError("data.id is empty: name a dataset of ir_datasets")
    grades = judgments.check_grades(grades)
    datasets = {split: _dataset(dataset) for split, dataset in ids.items()}
    first, first_id = next(iter(datasets.values())), next(iter(ids.values()))
    located = _documents(first, first_id, markdown, max_documents)
    documents, warnings = collect(located, first_id, markdown)
    name = name or first_id
    if not topics:
        return Benchmark(name, documents, (), {}, warnings=warnings)
    listed: dict[str, Topic] = {}
    by_split = {}
    for split, dataset in datasets.items():
        listed.update((topic.qid, topic) for topic in _topics(dataset, ids[split]))
        by_split[split] = _judgments(dataset, ids[split], grades)
    reversal = _REVERSED.get(first_id.split("/")[0])
    if reversal and grades is None:
        warnings += (f"{first_id}: grade 1 is the best in this collection; set data.grades={reversal} to read it so",)
    return judgments.assemble(name, documents, listed.values(), by_split, grades, first_id, warnings)


def _dataset(id: str) -> Any:
    with _errors_in_one_sentence(id, "loaded"):
        import ir_datasets

        try:
            return ir_datasets.load(id)
        except KeyError:
            near = difflib.get_close_matches(id, list(ir_datasets.registry), n=3)
            hint = f"near it: {', '.join(near)}" if near else "its site lists the ids"
            raise BenchmarkError(f"ir_datasets has no dataset '{id}'; {hint}") from None


def _documents(dataset: Any, id: str, markdown: bool, max_documents: int) -> Iterator[tuple[str, Document]]:
    _require(dataset, id, "docs")
    too_many = f"{id} has more than {max_documents} documents, which are kept in memory: raise data.max_documents"
    with _errors_in_one_sentence(id, "read"):
        count = ((dataset.metadata() or {}).get("docs") or {}).get("count") if hasattr(dataset, "metadata") else None
        if count is not None and int(count) > max_documents:
            raise BenchmarkError(too_many)
        for number, record in enumerate(dataset.docs_iter()):
            if number >= max_documents:
                raise BenchmarkError(too_many)
            location = f"{id} document {number + 1}"
            docno = lines.identifier(record.doc_id)
            if not docno:
                raise BenchmarkError(f"{location} has no id")
            title, text, metadata = _parts(record)
            yield location, make_document(docno, title, text, metadata, markdown)


def _parts(record: Any) -> tuple[str, str, dict[str, Any]]:
    """Title, text and metadata: the fields of these names, else the text that ir_datasets itself would index."""
    fields = record._asdict() if hasattr(record, "_asdict") else {}
    title = fields.get("title") if isinstance(fields.get("title"), str) else ""
    text = next((fields[key] for key in ("text", "abstract", "body") if isinstance(fields.get(key), str)), None)
    if text is None:
        text, title = record.default_text(), ""
    known_fields = ("author", "authors", "date", "keywords", "tags", "description")
    return str(title or ""), text, {key: fields[key] for key in known_fields if isinstance(fields.get(key), str)}


def _topics(dataset: Any, id: str) -> Iterator[Topic]:
    _require(dataset, id, "queries")
    with _errors_in_one_sentence(id, "read"):
        for record in dataset.queries_iter():
            text = " ".join(str(record.default_text()).split())
            qid = lines.identifier(record.query_id)
            if not text:
                raise BenchmarkError(f"{id}: query {qid} is empty")
            need = getattr(record, "description", None)
            yield Topic(qid, text, need=need.strip() if isinstance(need, str) else "")


def _judgments(dataset: Any, id: str, grades: judgments.Grades | None) -> dict[str, dict[str, int]]:
    _require(dataset, id, "qrels")
    qrels: dict[str, dict[str, int]] = {}
    with _errors_in_one_sentence(id, "read"):
        for record in dataset.qrels_iter():
            qid, target = lines.identifier(record.query_id), lines.identifier(record.doc_id)
            grade = judgments.mapped_grade(
                judgments.parse_grade(str(record.relevance), f"{id} query {qid}"), grades, id
            )
            if grade is not None:
                judged = qrels.setdefault(qid, {})
                judged[target] = max(grade, judged.get(target, grade))
    return qrels


def _require(dataset: Any, id: str, noun: str) -> None:
    has: Callable[[str], bool] = dataset.has
    if not has(noun):
        raise BenchmarkError(
            f"ir_datasets '{id}' has no {noun}: choose an id below it that has documents, queries and qrels"
        )


@contextmanager
def _errors_in_one_sentence(id: str, task: str) -> Iterator[None]:
    """Turn what the library raises into one sentence that names the dataset and the remedy."""
    try:
        yield
    except BenchmarkError:
        raise
    except ImportError as error:
        raise BenchmarkError(f"ir_datasets '{id}' needs the package {error.name or error}: pip install it") from None
    # The library's readers and downloads raise many kinds of errors that have no common base.
    except Exception as error:
        raise BenchmarkError(
            f"ir_datasets '{id}' could not be {task} ({_cause(error)}): check the network, or fetch the collection "
            "by hand and use data=beir or data=trec"
        ) from None


def _cause(error: Exception) -> str:
    """The hosts that did not answer, when that is the cause; else what the error says, shortened."""
    text = " ".join(str(error).split())
    hosts = dict.fromkeys(host for pair in _HOST.findall(text) for host in pair if host)
    return f"no download from {' or '.join(hosts)}" if hosts else text[:200] or type(error).__name__


def _split(id: str) -> str:
    last = id.rstrip("/").split("/")[-1]
    return last if last in ("train", "dev", "test", "validation") else "test"
