"""Confidence knows how many lists were asked: the numbers of seed 001 for two lists, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ragbench.base.rankings import Ranking
from ragbench.config import composition
from ragbench.index.background import BackgroundSimilarity
from ragbench.search.stages import agreement
from ragbench.search.stages.calibrate import Calibrate, CalibrateByCurve
from ragbench.search.stages.fuse import Fuse

NOISE = {"dense": "noise"}


@pytest.fixture
def index(handmade, page, tmp_path):
    """Two chunks; everyday questions come as near as 0.4 to 0.6, 0.5 +- 0.1."""
    made = handmade([page("a"), page("b")], [[1, 0], [0, 1]])
    np.save(tmp_path / "best.npy", np.array([0.4, 0.6], dtype=np.float32))
    made.noise = BackgroundSimilarity(tmp_path, made.dense)
    return made


def meaning(state, cosine: float):
    """A state in which vectors found both chunks, the first at this cosine, and words found nothing."""
    vector = np.array([cosine, 0.0], dtype=np.float32)
    return state(dense=[0, 1], lexical=[]).with_ranking(
        "dense", replace(Ranking.ordered([0, 1], [cosine, 0.0]), query_vector=vector)
    )


@pytest.mark.parametrize(
    ("sources", "unanimous", "factor"),
    [
        ({"dense": [0], "lexical": [0]}, 2 / 61, 1.0),
        ({"dense": [0]}, 1 / 61, 2.0),  # one was asked
        ({"lexical": [0], "graph": [1]}, 1 / 61, 2.0),  # links repeat what words found
        ({"dense": [0], "lexical": [0], "code": [0]}, 3 / 61, 1.0),  # more than two are more sure
    ],
)
def test_votes_make_one_list_comparable_with_two(state, index, sources, unanimous: float, factor: float) -> None:
    (fused,) = Fuse()([state(**sources)], index)
    assert fused.unanimous == pytest.approx(unanimous)
    assert agreement.scale_factor(fused, index, 2, {}) == pytest.approx(factor)


def test_votes_weights_of_one_list_do_not_make_it_two(state, index) -> None:
    # P3 makes the only list 1.3/61: its first hit is as sure as without P3
    (fused,) = Fuse()([state(dense=[0]).with_weight("dense", 1.3)], index)
    assert agreement.scale_factor(fused, index, 2, {}) * fused.fused.scores[0] == pytest.approx(2 / 61)


# the median is 0.5, the median absolute deviation 0.1, and 0.5 + 3 * 1.4826 * 0.1 = 0.9448
@pytest.mark.parametrize(("cosine", "factor"), [(0.94, 1.0), (0.95, 2.0)])
def test_votes_vectors_alone_count_where_they_stand_out_from_noise(state, index, cosine: float, factor: float) -> None:
    (fused,) = Fuse()([meaning(state, cosine)], index)
    assert agreement.scale_factor(fused, index, 2, NOISE) == pytest.approx(factor)
    (calibrated,) = CalibrateByCurve((0.0, 0.0328), (0.0, 0.6), lists=2, noise=NOISE)([fused], index)
    assert calibrated.fused.scores[0] == pytest.approx(0.3 * factor, abs=1e-3)
    # the formula: 1 / (1 + exp(150 * (0.035 - 0.0328))) = 0.418, and 0.058 for half of it
    (calibrated,) = Calibrate(noise=NOISE)([fused], index)
    assert calibrated.fused.scores[0] == pytest.approx({1.0: 0.0579, 2.0: 0.4180}[factor], abs=1e-3)


@pytest.mark.parametrize(("cosine", "first"), [(0.94, 1 / 61), (0.95, 2 / 61)])
def test_votes_weights_links_and_boosts_add_nothing_to_one_list(state, index, cosine: float, first: float) -> None:
    # P3 gives vectors 1.3, links and a recent date add more: the first hit is as sure as without them
    weighted = meaning(state, cosine).with_weight("dense", 1.3).with_ranking("graph", Ranking.ordered([1, 0], [1, 0.5]))
    (fused,) = Fuse()([weighted], index)
    boosted = replace(fused, fused=Ranking.ordered(fused.fused.chunks, fused.fused.scores * 1.2))
    assert agreement.scale_factor(boosted, index, 2, NOISE) * boosted.fused.scores[0] == pytest.approx(first)


def test_votes_two_lists_are_absolute_whatever_links_add(state, index) -> None:
    (fused,) = Fuse()([state(dense=[0, 1], lexical=[1], graph=[0]).with_weight("dense", 1.3)], index)
    assert agreement.scale_factor(fused, index, 2, NOISE) == 1.0


def test_votes_leave_fused_scores_unchanged(state, index) -> None:
    (fused,) = Fuse(method="convex")([state(dense=[0, 1])], index)
    assert (fused.unanimous, agreement.scale_factor(fused, index, 2, NOISE)) == (0.0, 1.0)


def test_votes_noise_is_read_only_where_another_source_could_find_nothing() -> None:
    def parts(*words: str) -> frozenset[str]:
        return dict(composition.compose([*words, "calibration=table"]).pipeline)["calibration"].needs

    assert parts() == {"noise", "encoder"}
    assert parts("lexical=null") == parts("dense=null") == parts("calibration.lists=0") == frozenset()
    own = "sources={mini: {kind: dense, index: {encoder: {name: all-MiniLM-L6-v2}}}}"
    assert parts(own) == {"noise", "encoder", "noise:mini", "encoder:mini"}


def test_votes_noise_of_a_real_index(make_index) -> None:
    index = make_index(composition.compose([]).index)
    vectors = index.encoder.encode_queries(["how many schedules may an account have", "zzz qqq"])
    every = np.arange(index.chunks.n_retrievable, dtype=np.int32)
    near, far = (index.noise.robust_z_score(vector, every) for vector in vectors)
    assert near > 2.0 > far
