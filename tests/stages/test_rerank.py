"""P6: sigmoid, tail and blend by hand on chosen logits; relevance with the real cross-encoder."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.models.resolve import CrossEncoderSpec
from ragbench.search.stages.rerank import Rerank

LOGITS = {"five": 0.0, "six": 2.0, "seven": -1.0, "eight": 9.0, "deep": 200.0, "deeper": 100.0}


class Fixed:
    """Knows the logits of the test and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.specs: list[CrossEncoderSpec] = []

    def score(self, query, passages):
        self.asked += passages
        return np.array([LOGITS[p.rpartition("\n\n")[2]] for p in passages], dtype=np.float32)


@pytest.fixture
def fixed() -> Fixed:
    return Fixed()


@pytest.fixture
def index(handmade, page, fixed):
    made = handmade([page("a", tuple(LOGITS))])

    def cross_encoder(spec):
        fixed.specs.append(spec)
        return fixed

    made.models = SimpleNamespace(cross_encoder=cross_encoder)
    return made


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def pairs(ranking) -> list[tuple[int, float]]:
    return list(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


def test_rerank_orders_the_first_by_sigmoid(state, index, fixed) -> None:
    (after,) = Rerank(depth=3, max_length=64, headings=False)([state(fused=[(0, 0.9), (1, 0.8), (2, 0.7)])], index)
    assert pairs(after.fused) == [
        (1, pytest.approx(sigmoid(2))),
        (0, pytest.approx(0.5)),
        (2, pytest.approx(sigmoid(-1))),
    ]
    assert fixed.specs == [CrossEncoderSpec("ms-marco-MiniLM-L-12-v2", 64)]


def test_rerank_keeps_the_rest_below(state, index, fixed) -> None:
    # tail .4 and .2 times the last re-ranked score, sigmoid(-1) = .2689
    hits = [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.4), (4, 0.2)]
    (after,) = Rerank(depth=3, headings=False)([state(fused=hits)], index)
    assert pairs(after.fused)[3:] == [(3, pytest.approx(0.4 * sigmoid(-1))), (4, pytest.approx(0.2 * sigmoid(-1)))]
    assert fixed.asked == ["five", "six", "seven"]


def test_rerank_drops_the_rest_as_the_seed(state, index) -> None:
    hits = [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.4)]
    (after,) = Rerank(depth=2, tail="drop")([state(fused=hits)], index)
    assert pairs(after.fused) == [(1, pytest.approx(sigmoid(2))), (0, pytest.approx(0.5))]


def test_rerank_reads_title_and_headings_before_the_passage(state, index, fixed) -> None:
    Rerank(depth=2)([state(fused=[(1, 0.9), (0, 0.8)])], index)
    assert fixed.asked == ["a\n\nsix", "a\n\nfive"]


def test_rerank_scales_down_scores_above_one(state, index) -> None:
    (after,) = Rerank(depth=1)([state(fused=[(0, 9.0), (1, 4.0), (2, 2.0)])], index)
    assert [score for _, score in pairs(after.fused)] == pytest.approx([0.5, 0.5, 0.25])


def test_rerank_keeps_the_order_of_large_logits(state, index) -> None:
    (after,) = Rerank()([state(fused=[(5, 0.9), (4, 0.8), (3, 0.7)])], index)
    assert after.fused.chunks.tolist() == [4, 5, 3]


def test_rerank_blend_fuses_the_orders_before_and_after(state, index) -> None:
    # before 5, 6, 7 (chunks 0, 1, 2), after 1, 0, 2. 61/2 * (1/61 + 1/62) = .99194 for both, 61/2 * 2/63 = .96825
    (after,) = Rerank(depth=3, blend=True)([state(fused=[(0, 0.9), (1, 0.8), (2, 0.7)])], index)
    assert pairs(after.fused) == [
        (0, pytest.approx(30.5 * (1 / 61 + 1 / 62))),
        (1, pytest.approx(30.5 * (1 / 61 + 1 / 62))),
        (2, pytest.approx(61 / 63)),
    ]


def test_rerank_blend_gives_one_to_what_is_first_in_both(state, index) -> None:
    (after,) = Rerank(depth=2, blend=True, k=0)([state(fused=[(1, 0.9), (0, 0.8)])], index)
    assert pairs(after.fused) == [(1, pytest.approx(1.0)), (0, pytest.approx(0.5))]


def test_rerank_without_hits_loads_no_model(state, handmade, page) -> None:
    (after,) = Rerank()([state(fused=[])], handmade([page("a")]))  # an index without cross_encoder
    assert len(after.fused) == 0


def test_rerank_has_the_decided_defaults() -> None:
    assert (Rerank().depth, Rerank().max_length) == (10, 256)


def test_rerank_real_model_puts_the_answer_first(state, index_with_models) -> None:
    texts = index_with_models.chunks.texts()
    right = next(n for n, text in enumerate(texts) if "locked for fifteen minutes" in text)
    others = [n for n in range(len(texts)) if n != right][:4]
    hits = [(chunk, 0.9 - 0.1 * rank) for rank, chunk in enumerate([*others, right])]
    (after,) = Rerank()([state("when is an account locked after failed sign-ins", fused=hits)], index_with_models)
    assert after.fused.chunks[0] == right
    assert np.all((after.fused.scores >= 0) & (after.fused.scores <= 1))
    assert np.all(np.diff(after.fused.scores) <= 0)


@pytest.fixture
def index_with_models(make_index):
    return make_index()


def test_rerank_skips_a_clear_lead(state, index, fixed) -> None:
    stage = Rerank(depth=3, headings=False, gap=0.1)
    close, clear, single = stage(
        [state(fused=[(0, 0.9), (1, 0.82)]), state(fused=[(0, 0.9), (1, 0.8)]), state(fused=[(0, 0.9)])], index
    )
    assert [chunk for chunk, _ in pairs(close.fused)] == [1, 0] and close.notes == ()
    assert pairs(clear.fused) == [(0, pytest.approx(0.9)), (1, pytest.approx(0.8))]
    assert clear.notes == ("the first hit leads by more than 10%: not re-ranked",)
    assert single.fused.chunks.tolist() == [0] and single.notes == ()
    assert len(fixed.asked) == 3
