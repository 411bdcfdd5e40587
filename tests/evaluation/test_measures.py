"""Measures are those of trec_eval, and unjudged hits are counted by hand."""

from __future__ import annotations

import itertools
import math
import random
import sys

import ir_measures
import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import ConfigError, Query
from ragbench.evaluation.measures import (
    FALSE_SILENCE,
    HITS,
    MEASURES,
    UNJUDGED,
    _parse,
    _parsed,
    decreasing,
    document_run,
    evaluate,
    if_useful,
    section_run,
    unjudged,
)
from ragbench.search.engine.pipeline import start
from tests.naming import naming

TREC_NAMES = {
    "nDCG@5": "ndcg_cut_5",
    "nDCG@10": "ndcg_cut_10",
    "RR": "recip_rank",
    "R@10": "recall_10",
    "R@100": "recall_100",
    "P@5": "P_5",
    "AP": "map",
    "Success@1": "success_1",
}


def random_case(seed: int, ties: bool) -> tuple[dict, dict]:
    """Runs of 0 to 60 documents and judgments of grade 0 to 3 for 20 queries; with ties, scores of one decimal."""
    chance = random.Random(seed)
    names = [f"d{number}" for number in range(80)]
    qrels, run = {}, {}
    for number in range(20):
        qid = f"q{number}"
        qrels[qid] = {name: chance.choice((0, 0, 1, 2, 3)) for name in chance.sample(names, chance.randint(2, 40))}
        qrels[qid][chance.choice(names)] = 1
        scored = [(name, chance.random()) for name in chance.sample(names, chance.randint(1, 60))]
        run[qid] = [(name, round(score, 1) if ties else score) for name, score in scored]
    return run, qrels


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_measures_agree_with_trec_eval_exactly(seed: int, ties: bool) -> None:
    """trec_eval orders ties by docno, descending; the same order given to us must give the same values."""
    import pytrec_eval

    run, qrels = random_case(seed, ties)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(TREC_NAMES.values()))
    reference = evaluator.evaluate({qid: dict(hits) for qid, hits in run.items()})
    as_trec = {
        qid: decreasing(sorted(sorted(hits, reverse=True), key=lambda hit: -hit[1])) for qid, hits in run.items()
    }
    frame = evaluate(as_trec, qrels, tuple(TREC_NAMES)).pivot(index="qid", columns="measure", values="value")
    for ours, theirs in TREC_NAMES.items():
        assert frame[ours].to_dict() == {qid: values[theirs] for qid, values in reference.items()}, ours


def test_measures_no_measure_depends_on_those_asked_for_beside_it() -> None:
    run, qrels = random_case(1, ties=False)
    as_trec = {qid: decreasing(sorted(hits, key=lambda hit: -hit[1])) for qid, hits in run.items()}
    variants = (
        "ERR@5",
        "nDCG(dcg='exp-log2')@5",
        "P(rel=2)@5",
        "AP(rel=2)",
        "RR(rel=3)",
        "RR@3",
        "SetF(beta=2.0)",
        "SetF",
        "nDCG",
        "R(rel=3)@10",
    )
    names = (*variants, *MEASURES)
    together = evaluate(as_trec, qrels, names).set_index(["measure", "qid"])["value"]
    for name in names:
        alone = evaluate(as_trec, qrels, (name,)).set_index(["measure", "qid"])["value"]
        assert together[name].to_dict() == alone[name].to_dict(), name


def test_measures_our_order_survives_trec_evals_ties() -> None:
    """Of equal scores trec_eval takes the last docno first, and it compares them in single precision."""
    import pytrec_eval

    tied = [("d1", 0.5), ("d9", 0.5), ("d5", 0.5 - 1e-12)]
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"d1": 1}}, {"recip_rank"})
    assert evaluator.evaluate({"q": dict(tied)})["q"]["recip_rank"] == 1 / 3
    assert evaluator.evaluate({"q": dict(decreasing(tied))})["q"]["recip_rank"] == 1.0


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_measures_scores_strictly_decrease_and_keep_the_order(scores: list[float]) -> None:
    given_order = sorted(scores, reverse=True)
    made = decreasing((str(folder), score) for folder, score in enumerate(given_order))
    assert [name for name, _ in made] == [str(folder) for folder in range(len(scores))]
    assert all(np.float32(a) > np.float32(b) for (_, a), (_, b) in itertools.pairwise(made))
    assert [score for _, score in made] == pytest.approx(given_order, rel=1e-5, abs=1e-30)


def test_ndcg_by_hand() -> None:
    # linear gain: 2/log2(2) + 0 + 1/log2(4) over 2/log2(2) + 1/log2(3)
    frame = evaluate({"q": decreasing([("a", 3), ("x", 2), ("b", 1)])}, {"q": {"a": 2, "b": 1}}, ["nDCG@10"])
    value = frame.set_index("measure")["value"]["nDCG@10"]
    assert value == pytest.approx((2 + 0.5) / (2 + 1 / math.log2(3)))


def test_measures_unjudged_hits_are_counted_over_ten_places_whether_filled_or_not() -> None:
    grades = {"a": 1, "b": 0}
    assert unjudged([("a", 3.0), ("b", 2.0), ("x", 1.0)], grades) == 0.1  # a grade of 0 is a judgment
    assert unjudged([("x", 3.0)], grades) == 0.1  # one hit, unjudged: not worse than ten hits with one unjudged
    assert unjudged([], grades) == 0.0
    assert unjudged([(f"x{n}", 1.0) for n in range(40)], grades) == 1.0
    full, short = [*((f"x{n}", 9.0 - n) for n in range(2)), ("a", 1.0), ("b", 0.5)], [("a", 1.0), ("b", 0.5)]
    frame = evaluate({"q": full}, {"q": grades}, ["Judged@10"]).set_index("measure")["value"]
    assert frame.to_dict() == {UNJUDGED: 0.2, "Judged@10": 0.5, "FalseSilence": 0.0, "Hits@10": 4.0}
    frame = evaluate({"q": short}, {"q": grades}, [UNJUDGED, "Judged@10"]).set_index("measure")["value"]
    assert frame.to_dict() == {UNJUDGED: 0.0, "Judged@10": 1.0, "FalseSilence": 0.0, "Hits@10": 2.0}


def test_measures_only_queries_known_to_have_no_answer_have_silence() -> None:
    run = {"q1": decreasing([("a", 1)]), "q2": [], "q3": decreasing([("a", 1)]), "q4": []}
    frame = evaluate(run, {"q1": {"a": 1}, "q2": {"a": 0}}, ["RR"], unanswerable={"q2", "q3"})
    assert {(row.qid, row.measure): row.value for row in frame.itertuples()} == {
        ("q1", UNJUDGED): 0.0,
        ("q1", "RR"): 1.0,
        ("q2", "Silence"): 1.0,
        ("q3", "Silence"): 0.0,
        ("q1", "FalseSilence"): 0.0,
        ("q1", "Hits@10"): 1.0,
        ("q2", "Hits@10"): 0.0,
        ("q3", "Hits@10"): 1.0,
        ("q4", "Hits@10"): 0.0,  # nobody judged it, so nobody knows
    }


def test_measures_nothing_where_there_is_an_answer_is_false_silence_and_ten_hits_are_counted() -> None:
    run = {"q1": [], "q2": decreasing([(f"d{n}", 30 - n) for n in range(12)])}
    frame = evaluate(run, {"q1": {"a": 1}, "q2": {"d0": 1}}, ["RR"])
    values = {(row.qid, row.measure): row.value for row in frame.itertuples()}
    assert [values[qid, "FalseSilence"] for qid in ("q1", "q2")] == [1.0, 0.0]
    assert [values[qid, "Hits@10"] for qid in ("q1", "q2")] == [0.0, 10.0]


def test_measures_known_items_nothing_is_said_of_unjudged_hits() -> None:
    run, qrels = {"q": [("a", 2.0), ("x", 1.0)]}, {"q": {"a": 1}}
    assert if_useful("nDCG@10") not in set(evaluate(run, qrels)["measure"])
    assert if_useful("nDCG@10") in set(evaluate(run, {"q": {"a": 1, "b": 0}})["measure"])


def test_measures_empty_answer_scores_nothing() -> None:
    frame = evaluate({"q": []}, {"q": {"a": 1, "b": 0}}, MEASURES)
    assert set(frame["measure"]) == {UNJUDGED, if_useful("nDCG@10"), *MEASURES, FALSE_SILENCE, HITS}
    # of no hits none lacks a judgment
    assert set(frame.loc[frame["value"] != 0, "measure"]) == {"Judged@10", FALSE_SILENCE}


def test_measures_unknown_is_named() -> None:
    with pytest.raises(ConfigError, check=naming("'nDGC@10'")):
        evaluate({"q": []}, {"q": {"a": 1}}, ["nDGC@10"])


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="ir_measures' parser needs ast.Num, which Python 3.14 removed")
@pytest.mark.filterwarnings("ignore:.*ast:DeprecationWarning", "ignore:Attribute [ns] is deprecated:DeprecationWarning")
def test_measures_are_parsed_as_ir_measures_parses_them() -> None:
    endings = (
        "",
        "@10",
        "@5.5",
        "(rel=2)",
        "(rel=2)@20",
        "(dcg='exp-log2')@10",
        "(gains={0: 0, 1: 3})@10",
        "(cutoff=5)@10",
    )
    for name in (f"{measure}{ending}" for measure in ir_measures.measures.registry for ending in endings):
        measure, theirs = _parsed(name), ir_measures.parse_measure(name)
        assert (type(measure), measure.params) == (type(theirs), theirs.params), name


@pytest.mark.parametrize(
    "name",
    [
        *("P", "P@0", "nDCG@-1", "P(foo=1)@5", "SetF(beta=2)", "alpha_nDCG", "nDCG(dcg='no')@10"),
        *("P(5)", "P@k", "P(**{'cutoff': 5})", "P@5; AP", "P@5 AP", "", "10", "ir_measures.P@5", "P@[5]"),
    ],
)
def test_measures_without_provider_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, check=naming(f"'{name}'", "ir_measures")):
        _parse(name)


def test_measures_of_other_programs_take_any_query_id() -> None:
    frame = evaluate({"any id": [("a", 2.0), ("b", 1.0)]}, {"any id": {"b": 1}}, ("ERR@10",))
    assert frame.set_index("measure")["value"]["ERR@10"] == pytest.approx((2**1 - 1) / 2**4 / 2, abs=1e-5)


def test_measures_documents_and_sections_by_their_best_chunk(index) -> None:
    table = index.chunks
    ranking = Ranking.ordered(range(table.n_retrievable), [float(-n) for n in range(table.n_retrievable)])
    states = [QueryState(start([Query("q", "text")])[0].query, fused=ranking), QueryState(Query("none", "x"))]
    documents, sections = document_run(states, table), section_run(states, table)
    assert documents["none"] == sections["none"] == []
    assert [docno for docno, _ in documents["q"]] == list(
        dict.fromkeys(table.docno(chunk) for chunk in range(table.n_retrievable))
    )
    assert [name for name, _ in sections["q"]] == list(
        dict.fromkeys(name for chunk in range(table.n_retrievable) for name in table.section_ids[chunk])
    )
