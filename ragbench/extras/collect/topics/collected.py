"""Queries that a command has collected: what it prints of them, and the file that `data.queries` reads."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ragbench.base import minimums
from ragbench.base.types import BenchmarkError
from ragbench.benchmark import lines, native
from ragbench.benchmark.benchmark import Benchmark, Qrels, Topic
from ragbench.benchmark.runs import file_names, new_name
from ragbench.config import project
from ragbench.config.overrides import section_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CollectedTopics:
    """New topics with their judgments; `dropped` counts what was not used, by reason."""

    topics: tuple[Topic, ...]
    document_qrels: Qrels
    section_qrels: Qrels
    dropped: Mapping[str, int]

    @property
    def as_json(self) -> dict[str, Any]:
        """The numbers that `--json` prints."""
        return {"topics": len(self.topics), "dropped": self.dropped}

    @property
    def sentences(self) -> list[str]:
        """What is printed below the counts by type."""
        return [counts_sentence("not used", self.dropped)] if self.dropped else []

    def by_file(self, benchmark: Benchmark) -> Self:
        """The same topics, whose documents have the names of their files where `benchmark` was read from a folder."""
        names = file_names(benchmark)

        def renamed(qrels: Qrels) -> Qrels:
            return {qid: {new_name(target, names): grade for target, grade in of.items()} for qid, of in qrels.items()}

        return replace(self, document_qrels=renamed(self.document_qrels), section_qrels=renamed(self.section_qrels))

    def write(self, path: Path, *, replace: bool = False, keep_same: bool = False) -> None:
        """Write topics with the sections, else the documents, that are relevant to them; grades are not kept.

        `keep_same`: a file that already has this content is left as it is. Raises BenchmarkError as `require_new` does.
        """
        rows = []
        for topic in self.topics:
            judged = self.section_qrels.get(topic.qid) or self.document_qrels.get(topic.qid, {})
            relevant = [target for target, grade in judged.items() if grade > 0]
            row = {name: value for name, value in native.topic_row(topic).items() if value}
            rows.append(row | {"relevant": relevant})
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        if keep_same and has_text(path, text):
            return
        require_new(path, replace=replace)
        lines.write_atomically(path, text)


def require_new(path: Path, *, replace: bool) -> None:
    """Raise BenchmarkError for a name that is not `.jsonl` and, unless `replace`, for an existing file."""
    if path.suffix != ".jsonl":
        raise BenchmarkError(f"{path} must be a .jsonl file: choose another name")
    if path.exists() and not replace:
        raise BenchmarkError(f"{path} exists already: rename it, or add --replace")


def counts_sentence(title: str, counts: Mapping[str, int]) -> str:
    """Counts by reason in one sentence."""
    return f"{title}: {', '.join(f'{count} {reason}' for reason, count in sorted(counts.items()))}"


def count_by_type(topics: Sequence[Topic]) -> pd.DataFrame:
    """One row for each type and source: topics in each split, and how many are missing to `minimums.PER_TYPE`."""
    import pandas as pd

    counts = Counter((topic.type, topic.provenance or "given", topic.split) for topic in topics)
    splits = sorted({split for _, _, split in counts})
    rows = []
    for kind in sorted({(kind, source) for kind, source, _ in counts}):
        row = [counts[*kind, split] for split in splits]
        missing = {split: minimums.PER_TYPE - n for split, n in zip(splits, row, strict=True)}
        short = [f"{n} in {split}" for split, n in missing.items() if n > 0]
        rows.append((*kind, *row, ", ".join(short)))
    return pd.DataFrame(rows, columns=["type", "provenance", *splits, "short by"])


def data_overrides(typed: Sequence[str], keys: Collection[str] = ("data", "links")) -> str:
    """The typed words that name the data, to be repeated in a shell; none where a project file names it."""
    if project.find() is not None:
        return ""
    return "".join(f" {shlex.quote(override)}" for override in typed if section_of(override) in keys)


def has_text(path: Path, text: str) -> bool:
    """Whether a file contains exactly this text, so that writing it again would lose nothing."""
    return path.is_file() and path.read_bytes() == text.encode()
