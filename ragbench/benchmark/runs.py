"""Runs in TREC form: by query, the ids that a search returned with their scores."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ragbench.base.types import BenchmarkError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.lines import identifier, read_lines

_LOG = logging.getLogger(__name__)

Run = Mapping[str, Sequence[tuple[str, float]]]
"""By qid, (id, score), best first; a measured one has strictly decreasing scores."""

_SCORE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?", re.IGNORECASE)
"""Numbers as trec_eval reads them; Python alone would take 1_000 for a thousand."""


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    """A run in TREC form (qid Q0 id rank score tag): by qid, decreasing scores, equal ones in the order of the file.

    Blanks in the ids of a file with tabs become `%20`.
    """
    run: dict[str, dict[str, float]] = {}
    ranks: dict[str, list[int]] = {}
    for number, line in read_lines(path):
        parts = list(map(identifier, line.split("\t"))) if line.count("\t") == 5 else line.split()
        if len(parts) != 6:
            raise BenchmarkError(f"{path}:{number} must have six fields (qid Q0 id rank score tag), got {len(parts)}")
        qid, _, target, rank, score, _ = parts
        if not _SCORE.fullmatch(score):
            raise BenchmarkError(f"{path}:{number}: score '{score}' is not a number")
        value = float(score)
        scored = run.setdefault(qid, {})
        if target in scored:
            raise BenchmarkError(f"{path}:{number} returns {target} for {qid} again: a run names each once")
        scored[target] = value
        ranks.setdefault(qid, []).append(int(rank) if rank.isdecimal() and rank.isascii() else 0)
    by_rank = (np.array(list(run[qid].values()))[np.argsort(ranks[qid], kind="stable")].tolist() for qid in run)
    warn_of_distances(by_rank, str(path))
    return {qid: sorted(scored.items(), key=lambda item: -item[1]) for qid, scored in run.items()}


def warn_of_distances(by_query: Iterable[Sequence[float]], label: str) -> None:
    """Warn if in most queries the scores grow in the order in which they were given, or are all equal."""
    by_query = [scores for scores in by_query if len(scores) > 1]
    differing = [scores for scores in by_query if len(set(scores)) > 1]
    growing = sum(all(one <= other for one, other in pairwise(scores)) for scores in differing)
    if 2 * growing > len(differing):
        _LOG.warning(
            f"{label}: in {growing} of {len(differing)} queries the scores grow in the order given, as distances do, "
            "and the last hit counts as the best: give lists of pairs, best first, or negate the scores"
        )
    if 2 * len(differing) < len(by_query):
        _LOG.warning(
            f"{label}: in {len(by_query) - len(differing)} of {len(by_query)} queries all scores are equal, and ids "
            "order the hits, as in trec_eval: give scores that differ, such as 1/rank"
        )


def file_names(benchmark: Benchmark) -> dict[str, str]:
    """By docno, the path that stands for it in run files and judgments, where a folder of files was read.

    Empty for other collections: their docnos are the ids that people know.
    """
    source = (benchmark.documents_source or {}).get("data", {})
    if source.get("loader") != "vault":
        return {}
    return {document.docno: identifier(document.path) for document in benchmark.documents}


def renamed(run: Run, names: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    """The run with other names of its documents, also of those of sections (`docno#anchor`)."""
    if not names:
        return {qid: list(hits) for qid, hits in run.items()}
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
