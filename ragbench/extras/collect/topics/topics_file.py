"""Topics as a file that `data.queries` reads: one JSON object a line, with the relevant documents or sections."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ragbench.base.errors import BenchmarkError
from ragbench.base.files import has_text
from ragbench.benchmark.benchmark import Qrels, Topic
from ragbench.benchmark.lines import write_atomically
from ragbench.benchmark.native import topic_row


def require_new(path: Path, *, replace: bool) -> None:
    """Raise BenchmarkError for a name that is not `.jsonl` and, unless `replace`, for an existing file."""
    if path.suffix != ".jsonl":
        raise BenchmarkError(f"{path} must be a .jsonl file: choose another name")
    if path.exists() and not replace:
        raise BenchmarkError(f"{path} exists already: rename it, or add --replace")


def write(
    path: Path,
    topics: Iterable[Topic],
    document_qrels: Qrels,
    section_qrels: Qrels | None = None,
    *,
    replace: bool = False,
    keep_same: bool = False,
) -> None:
    """Write topics with the sections, else the documents, that are relevant to them; grades are not kept.

    `keep_same`: a file that already has this content is left as it is. Raises BenchmarkError as `require_new` does.
    """
    rows = []
    for topic in topics:
        judged = (section_qrels or {}).get(topic.qid) or document_qrels.get(topic.qid, {})
        relevant = [target for target, grade in judged.items() if grade > 0]
        row = {name: value for name, value in topic_row(topic).items() if value}
        rows.append(row | {"relevant": relevant})
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if keep_same and has_text(path, text):
        return
    require_new(path, replace=replace)
    write_atomically(path, text)
