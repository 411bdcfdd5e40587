"""Grades by a language model, kept separate from judgments: they count only together with blind grades of annotators.

The prompt follows UMBRELA (Upadhyay et al. 2024; Thomas et al., SIGIR 2024) in other words. A pool
gives two files: one with the model's grades, which no command merges into judgments, and one with all pairs of some
topics, drawn by a seed and without the model's grades, for an annotator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ragbench.base import progress
from ragbench.base.fingerprint import shuffle_key
from ragbench.base.types import BenchmarkError
from ragbench.extras.collect.judge import GRADES
from ragbench.extras.collect.pool import read_pool

_JUDGE = "judge"
"""The column that names the model; a pool that has it is not merged."""

PROMPT = """You judge search results of a documentation. Grade how useful the text is to the person who typed the query:

{grades}

First think of what this person wants to find out or to do. Then ask how much of it the text gives, and whether the \
reader can rely on it. A text that only shares words with the query is 0. Answer with one digit, the grade, and \
nothing else.

Query: {query}
{need}
Heading: {heading}
Text: {text}

Grade:"""
_SEED = 13  # of the topics for an annotator
_GRADE = re.compile(r"(?<![\d.])[0-3](?!\.?\d)")


@dataclass(frozen=True)
class ModelGraded:
    """How many of the pairs a model graded, the two files, and the topics that an annotator should judge."""

    graded: int
    pairs: int
    grades: Path
    sample: Path
    sampled: tuple[str, ...]


def grade_pool(
    path: Path,
    ask: Callable[[str], str],
    model: str,
    n_topics: int,
    *,
    replace: bool = False,
) -> ModelGraded:
    """Let a model grade every pair of a pool, into a file next to it, and draw the topics for an annotator.

    Raises BenchmarkError for an empty pool or, unless `replace`, when one of the two files exists; ModelError where the
    model fails.
    """
    pool = read_pool(path)
    grades, sample = (path.with_name(f"{path.stem}.{name}.csv") for name in ("model", "sample"))
    for file in (grades, sample):
        if file.exists() and not replace:
            raise BenchmarkError(f"{file} exists already: move it away, or add --replace")
    qids = sorted({row["qid"] for row in pool.rows}, key=lambda qid: shuffle_key(_SEED, qid))
    if not qids:
        raise BenchmarkError(f"{path} holds no pairs: write a pool with ragbench data pool")
    sampled = tuple(sorted(qids[:n_topics]))
    rows = []
    for row in progress.steps("grading", pool.rows):
        match = _GRADE.search(ask(_prompt(row)))
        rows.append({**row, "grade": match[0] if match else "", _JUDGE: model})
    pool.write(grades, rows, [_JUDGE])
    pool.write(sample, [{**row, "grade": "", "note": ""} for row in pool.rows if row["qid"] in sampled])
    return ModelGraded(sum(bool(row["grade"]) for row in rows), len(rows), grades, sample, sampled)


def _prompt(row: dict[str, str]) -> str:
    return PROMPT.format(
        grades="\n".join(f"{grade}: {meaning}" for grade, meaning in GRADES.items()),
        query=row["query"],
        need=f"What is meant: {row['need']}" if row["need"] else "",
        heading=row["heading"],
        text=row["text"],
    )
