"""Values of both levels are those of trec_eval: from hits with ties to values, and from the run files that we write."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.evaluation.measures import document_run, evaluate, section_run
from ragbench.index.chunks import ChunkTable
from ragbench.results.measurements import trec

CUTOFFS = (1, 3, 5, 10, 20, 100)
BY_CUTOFF = {"nDCG": "ndcg_cut", "R": "recall", "P": "P", "Success": "success", "AP": "map_cut"}
NAMES = {f"{ours}@{cutoff}": f"{theirs}_{cutoff}" for ours, theirs in BY_CUTOFF.items() for cutoff in CUTOFFS}
NAMES |= {"nDCG": "ndcg", "RR": "recip_rank", "AP": "map", "Rprec": "Rprec", "Bpref": "bpref"}


def trec_eval(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    """The values of pytrec_eval by our names."""
    import pytrec_eval

    result = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values())).evaluate(run)
    return {ours: {qid: values[theirs] for qid, values in result.items()} for ours, theirs in NAMES.items()}


def values(run, qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    frame = evaluate(run, qrels, tuple(NAMES))
    return {name: dict(zip(rows["qid"], rows["value"], strict=True)) for name, rows in frame.groupby("measure")}


def judgments(names: list[str], chance: random.Random) -> dict[str, dict[str, int]]:
    """Grades 0 to 3 of some of the names, the others unjudged; at least one is relevant."""
    result = {}
    for number in range(12):
        judged = chance.sample(names, chance.randint(1, min(20, len(names))))
        result[f"q{number}"] = {name: chance.choice((0, 0, 1, 2, 3)) for name in judged} | {judged[0]: 1}
    return result


@pytest.mark.parametrize("seed", range(3))
def test_trec_eval_hits_with_equal_scores_are_ordered_as_by_trec_eval(seed: int) -> None:
    """As they are, without an order of ours before."""
    chance = random.Random(seed)
    names = [f"d{number}" for number in range(150)]
    qrels = judgments(names, chance)
    run = {qid: {name: round(chance.random(), 1) for name in chance.sample(names, 120)} for qid in qrels}
    result = values({qid: list(hits.items()) for qid, hits in run.items()}, qrels)
    for name, reference in trec_eval(run, qrels).items():
        assert result[name] == pytest.approx(reference, abs=1e-9), name


@pytest.mark.parametrize("level", ["document", "section"])
@pytest.mark.parametrize("seed", range(2))
def test_trec_eval_from_chunks_with_equal_scores_to_the_file_that_trec_eval_reads(level: str, seed: int, index) -> None:
    chance, table = random.Random(seed), index.chunks
    names = sorted(known(table, level))
    qrels = judgments(names, chance)
    states = [state(qid, table, chance) for qid in qrels]
    run = document_run(states, table) if level == "document" else section_run(states, table)
    result = values(run, qrels)
    read: dict[str, dict[str, float]] = {qid: {} for qid in qrels}
    for line in trec(run, "arm").splitlines():
        qid, _, name, _, score, _ = line.split(" ")
        read[qid][name] = float(score)
    for name, reference in trec_eval(read, qrels).items():
        assert result[name] == pytest.approx(reference, abs=1e-9), name


def known(table: ChunkTable, level: str) -> set[str]:
    chunks = range(table.n_retrievable)
    if level == "document":
        return {table.docno(chunk) for chunk in chunks}
    return {name for chunk in chunks for name in table.section_ids[chunk]}


def state(qid: str, table: ChunkTable, chance: random.Random) -> QueryState:
    """Some chunks in an order of chance, several to a score."""
    chunks = chance.sample(range(table.n_retrievable), table.n_retrievable // 2)
    scores = np.sort([round(chance.random(), 1) for _ in chunks])[::-1]
    return QueryState(Query(qid, "text"), fused=Ranking.ordered(chunks, scores))
