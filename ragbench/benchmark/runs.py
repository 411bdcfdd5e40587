"""Runs in TREC form: by query, the ids that a search returned with their scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.lines import read_lines

Run = Mapping[str, Sequence[tuple[str, float]]]
"""By qid, (section id, score), best first."""

_SCORE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?", re.IGNORECASE)
"""Numbers as trec_eval reads them; Python alone would take 1_000 for a thousand."""


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    """A run in TREC form (qid Q0 id rank score tag): by qid, decreasing scores, equal ones in the order of the file."""
    run: dict[str, dict[str, float]] = {}
    for number, line in read_lines(path):
        parts = line.split()
        if len(parts) != 6:
            raise BenchmarkError(f"{path}:{number} must have six fields (qid Q0 id rank score tag), got {len(parts)}")
        qid, _, target, _, score, _ = parts
        if not _SCORE.fullmatch(score):
            raise BenchmarkError(f"{path}:{number}: score '{score}' is not a number")
        value = float(score)
        scored = run.setdefault(qid, {})
        if target in scored:
            raise BenchmarkError(f"{path}:{number} returns {target} for {qid} again: a run names each once")
        scored[target] = value
    return {qid: sorted(scored.items(), key=lambda item: -item[1]) for qid, scored in run.items()}


def renamed(run: Run, names: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    """The run with other names of its documents, also of those of sections (`docno#anchor`)."""
    return {qid: [(new_name(target, names), score) for target, score in hits] for qid, hits in run.items()}


def new_name(target: str, names: Mapping[str, str]) -> str:
    """Another name of a document, or of a section by that of its document; the same where there is none."""
    if target in names:
        return names[target]
    docno, separator, anchor = target.rpartition("#")
    return f"{names[docno]}#{anchor}" if separator and docno in names else target


def trec_eval_order(hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The hits of a query in the order of trec_eval: by score in single precision, equal scores by descending id."""
    by_id = sorted(hits, key=lambda hit: hit[0], reverse=True)
    return sorted(by_id, key=lambda hit: -float(np.float32(hit[1])))
