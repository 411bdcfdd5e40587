"""Passages as they are returned: gains, the ideal order and the cost of context, worked by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.quotes import Quote
from ragbench.evaluation import measures
from ragbench.evaluation.measures import ndcg, ndcg_if_useful, typical_gains
from ragbench.evaluation.passages import _BUDGETS, TOKENS, Passages, _ideal_gains, evaluate, recall_within

LOG2 = math.log2


class Table:
    """Chunks that cover sections as written: `units` by chunk number, in one document; `parents` of chunks."""

    def __init__(self, units: list[str], parents: list[int] | None = None, retrievable: int | None = None) -> None:
        self.section_ids = [tuple(f"d#{name}" for name in unit) for unit in units]
        self.parent = np.array(parents or [-1] * len(units), dtype=np.int32)
        self.document_number = {"d": 0}
        self.retrievable = len(units) if retrievable is None else retrievable

    def chunks_of(self, document: int) -> tuple[int, int]:
        return 0, self.retrievable

    def text(self, chunk: int) -> str:
        return "word " * (100 * (chunk + 1))  # 100, 200, 300 ... tokens

    def docno(self, chunk: int) -> str:
        return "d"

    def span(self, chunk: int) -> tuple[int, int]:
        return 10 * chunk, 10 * chunk + 10


def measured(
    table: Table,
    grades: dict[str, int],
    hits: list[int],
    budget: int = 2000,
    contexts=None,
    quotes=(),
    primary="nDCG@10",
    level="passage",
):
    qrels = {"q": {f"d#{name}": grade for name, grade in grades.items()}} if grades else {}
    passages = Passages(table, lambda text: len(text.split()), _Judged(qrels, {"q": quotes} if quotes else {}))
    ranking = Ranking.ordered(hits, [float(-n) for n in range(len(hits))])
    state = QueryState(Query("q", "x"), fused=ranking, contexts=contexts or {})
    frame = evaluate([state], passages, budget, primary)
    frame = frame[frame["level"] == level]
    return dict(zip(frame["measure"], frame["value"], strict=True))


class _Judged:
    """The part of a benchmark that is read: judged sections, and quotes."""

    def __init__(self, section_qrels, quotes) -> None:
        self.section_qrels, self.quotes_by_topic = section_qrels, quotes
        self.document_qrels = {qid: {"d": max(grades.values())} for qid, grades in section_qrels.items()}


@pytest.mark.parametrize(
    ("measure", "value"),
    [("P@2", 1 / 2), ("R@2", 1 / 3), ("R@3", 2 / 3), ("RR", 1.0), ("AP", (1 + 2 / 3) / 3), ("Success@1", 1.0)],
)
def test_passages_are_measured_by_any_primary_measure(measure: str, value: float) -> None:
    """Hits AB, B, C gain 3, 0 (B is covered), 1: two of the three gains that the units allow."""
    table, grades = Table(["AB", "B", "C"]), {"A": 3, "B": 2, "C": 1}
    result = measured(table, grades, [0, 1, 2], primary=measure)
    assert result[measure] == pytest.approx(value)
    same = measured(table, grades, [0, 1, 2], primary="nDCG@20")["nDCG@20"]
    assert same == pytest.approx(result["nDCG@10"], abs=0.03)


def test_passages_recall_within_tokens_is_measured_of_documents_too() -> None:
    """Hits of 100, 200 and 300 tokens: the document is reached within 100 tokens, section C within 600."""
    table, grades = Table(["AB", "B", "C"]), {"A": 3, "B": 2, "C": 1}
    assert measured(table, grades, [0, 1, 2], primary="Recall@350tokens")["Recall@350tokens"] == pytest.approx(5 / 6)
    documents = measured(table, grades, [0, 1, 2], primary="Recall@350tokens", level="document")
    assert documents == {"Recall@350tokens": 1.0}
    assert measured(table, grades, [2, 1, 0], primary="Recall@50tokens", level="document") == {"Recall@50tokens": 0.0}


def test_passages_hit_gains_the_best_grade_that_no_earlier_hit_covered():
    """Chunks: AB, B, C. Grades A 3, B 2, C 1. Hits AB, B, C gain 3, 0 (B is covered), 1."""
    result = measured(Table(["AB", "B", "C"]), {"A": 3, "B": 2, "C": 1}, [0, 1, 2])
    # Three units can gain A, B and C.
    ideal = 3 + 2 / LOG2(3) + 1 / LOG2(4)
    assert result["nDCG@10"] == pytest.approx((3 + 1 / LOG2(4)) / ideal)


def test_passages_parent_takes_one_place_and_gains_once():
    """Children A, B, C of one parent that covers all three; the unit of this arm is the parent, its ideal one gain."""
    table = Table(["A", "B", "C", "ABC"], parents=[3, 3, 3, -1], retrievable=3)
    frame = measured(table, {"A": 3, "B": 3, "C": 3}, [3])
    assert frame["nDCG@10"] == 1.0
    assert frame[TOKENS] == 400
    # Sections in a row, as if the reader got three hits, would have said the same of an arm that returns children.
    children = Table(["A", "B", "C"])
    assert measured(children, {"A": 3, "B": 3, "C": 3}, [0])["nDCG@10"] == pytest.approx(3 / (3 + 3 / LOG2(3) + 1.5))


def test_passages_equal_pytrec_eval_on_sections():
    generator = np.random.default_rng(1)
    for _ in range(50):
        names = "ABCDEFGHIJKLMNO"
        grades = {name: int(generator.integers(0, 4)) for name in names[:12]}
        if not any(grades.values()):
            continue
        hits = generator.permutation(15)[: int(generator.integers(1, 15))].tolist()
        result = measured(Table(list(names)), grades, hits)
        run = {"q": measures.decreasing([(names[hit], -float(n)) for n, hit in enumerate(hits)])}
        reference = measures.evaluate(run, {"q": grades}, ["nDCG@10"])
        value = reference.loc[reference["measure"] == "nDCG@10", "value"].item()
        assert result["nDCG@10"] == pytest.approx(value, abs=1e-9)


def brute_force(units: list[frozenset[str]], relevant: dict[str, int]) -> float:
    """The best DCG over all orders of all units."""
    best = 0.0
    for order in itertools.permutations(units):
        covered: set[str] = set()
        total = 0.0
        for rank, unit in enumerate(order, start=1):
            total += max((relevant.get(part, 0) for part in unit - covered), default=0) / LOG2(rank + 1)
            covered |= unit
        best = max(best, total)
    return best


@given(
    st.lists(st.frozensets(st.sampled_from("ABCD"), max_size=3), min_size=1, max_size=5),
    st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 3), min_size=1),
)
@settings(max_examples=150, deadline=None)
def test_passages_no_order_of_the_units_gains_more_than_the_ideal(units, relevant):
    ideal = sum(gain / LOG2(rank + 1) for rank, gain in enumerate(_ideal_gains(units, relevant), start=1))
    best = brute_force(units, relevant)
    assert best <= ideal + 1e-9
    if all(len(unit & set(relevant)) <= 1 for unit in units):
        assert best == pytest.approx(ideal)


def test_passages_ideal_order_by_hand():
    """AB can gain A or B; with B alone beside it both are gained, without it the better one."""
    assert _ideal_gains([frozenset("AB"), frozenset("B")], {"A": 2, "B": 3}) == [3.0, 2.0]
    assert _ideal_gains([frozenset("AB")], {"A": 2, "B": 3}) == [3.0]
    assert _ideal_gains([frozenset("X")], {"A": 2}) == []


def test_passages_nothing_that_is_relevant_can_be_returned():
    assert measured(Table(["X"]), {"A": 2}, [0])["nDCG@10"] == 0.0


def test_passages_context_cost_by_hand():
    """Hits of 100, 300 and 200 tokens; a budget of 400 holds the first two, which cover A (3) of A and B (1)."""
    table = Table(["A", "B", "X"])
    frame = measured(table, {"A": 3, "B": 1}, [0, 2, 1], budget=400)
    assert frame[TOKENS] == 600
    assert frame[recall_within(400)] == pytest.approx(3 / 4)
    assert [frame[recall_within(tokens)] for tokens in _BUDGETS] == [3 / 4, 1.0, 1.0, 1.0]
    assert measured(table, {"A": 3, "B": 1}, [0, 2, 1], budget=600)[recall_within(600)] == 1.0
    assert measured(table, {"A": 3, "B": 1}, [0, 2, 1], budget=99)[recall_within(99)] == 0.0


def test_passages_only_ten_hits_are_read_and_a_budget_may_hold_more():
    table = Table([*["X"] * 10, "A"])
    frame = measured(table, {"A": 3, "X": 0}, list(range(11)), budget=100_000)
    assert frame["nDCG@10"] == 0.0
    assert frame[TOKENS] == 100 * sum(range(1, 11))
    assert frame[recall_within(100_000)] == 1.0


def test_passages_hit_is_read_with_its_context():
    table = Table(["X", "A", "Y"])
    frame = measured(table, {"A": 3}, [0], contexts={0: (0, 1)})
    assert frame["nDCG@10"] == 1.0
    assert frame[TOKENS] == 300


def test_passages_unjudged_hits_could_be_as_useful_as_judged_ones_at_their_rank():
    """Hits X (unjudged), A (2). Judged hits at rank 1: none, so the mean of all, 2."""
    result = measured(Table(["X", "A"]), {"A": 2, "Z": 0}, [0, 1])
    assert result["nDCG@10"] == pytest.approx(2 / LOG2(3) / 2)
    assert result["Unjudged@10"] == 0.1
    assert result["nDCG@10 if useful"] == 1.0  # 2, 2 against the ideal 2, 2


def test_passages_typical_gains_by_hand():
    gains = [[3.0, None], [1.0, 0.0], [None, 2.0]]
    assert typical_gains(gains)[:3] == [2.0, 1.0, 1.5]  # third: nothing there, so the mean of 3, 1, 0 and 2
    assert typical_gains([])[0] == 0.0
    assert ndcg([None, 1.0], [1.0]) == pytest.approx(1 / LOG2(3))
    assert ndcg_if_useful([None, 1.0], [1.0], [0.5] * 10) == pytest.approx((0.5 + 1 / LOG2(3)) / (1 + 0.5 / LOG2(3)))


def test_passages_quotes_stand_for_sections_where_none_are_judged():
    quotes = (Quote("q", "", "d", 0, 8), Quote("q", "", "d", 22, 28))
    result = measured(Table(["X", "Y", "Z"]), {}, [0, 1, 2], quotes=quotes)
    assert result["nDCG@10"] == pytest.approx((1 + 1 / LOG2(4)) / (1 + 1 / LOG2(3)))


def test_passages_topics_without_a_relevant_part_take_no_part():
    assert measured(Table(["A"]), {"A": 0}, [0]) == {}
    assert measured(Table(["A"]), {}, [0]) == {}


def test_passages_a_real_run_every_value_is_between_0_and_1(index, benchmark_small: Benchmark):
    n = len(index.chunks)
    states = [
        QueryState(topic.query(), fused=Ranking.ordered(list(range(n)), [float(-item) for item in range(n)]))
        for topic in benchmark_small.topics
    ]
    passages = Passages(index.chunks, index.encoder.count_tokens, benchmark_small)
    frame = evaluate(states, passages, 300).set_index(["qid", "measure"])["value"]
    assert {qid for qid, _ in frame.index} == {"t1", "t2", "t3", "t4"}
    shares = frame[[name for name in frame.index if name[1] != TOKENS]]
    assert ((shares >= 0) & (shares <= 1)).all()
    text = " ".join(index.chunks.text(chunk) for chunk in range(min(n, 10)))
    assert frame["t1", TOKENS] == pytest.approx(index.encoder.count_tokens(text), rel=0.02)
    assert passages.tokens([0]) == index.encoder.count_tokens(index.chunks.text(0))
