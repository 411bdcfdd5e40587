"""What holds for every cross-encoder, whatever runs it."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.models import CrossEncoder

QUERY = "how long are segments kept?"
PASSAGES = ["Segments are kept for seven days.", "Bananas are yellow.", "", "Segments seal. " * 40, "A token expires."]


@pytest.fixture(params=["onnx", "torch", "cached"])
def model(request: pytest.FixtureRequest, cross_encoders: dict[str, CrossEncoder]) -> CrossEncoder:
    return cross_encoders[request.param]


@pytest.mark.slow
def test_cross_encoder_keeps_the_protocol(model: CrossEncoder) -> None:
    assert isinstance(model, CrossEncoder)
    assert len(model.digest) == 64
    assert model.weights and all(len(digest) == 64 for digest in model.weights.values())
    assert repr(model)


def test_gives_one_finite_number_per_passage(model: CrossEncoder) -> None:
    scores = model.score(QUERY, PASSAGES)
    assert scores.shape == (len(PASSAGES),)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert len(set(scores.tolist())) == len(PASSAGES)


def test_cross_encoder_pair_does_not_see_its_neighbours(model: CrossEncoder) -> None:
    together = model.score(QUERY, PASSAGES)
    backwards = model.score(QUERY, PASSAGES[::-1])[::-1]
    alone = np.concatenate([model.score(QUERY, [passage]) for passage in PASSAGES])
    assert together.tobytes() == backwards.tobytes() == alone.tobytes()


def test_cross_encoder_no_passages_give_no_scores(model: CrossEncoder) -> None:
    assert model.score(QUERY, []).shape == (0,)
    assert model.score(QUERY, []).dtype == np.float32


def test_cross_encoder_empty_query_is_scored(model: CrossEncoder) -> None:
    assert np.isfinite(model.score("", PASSAGES)).all()


def test_cross_encoder_long_pair_is_cut_at_the_end_of_its_longer_text(model: CrossEncoder) -> None:
    # "a " is one token: the query of one and three markers leave this many to the passage.
    full = "a " * (model.max_length - 4)
    first, second, shorter = model.score("b", [full, full + "c " * 3000, full[:-2]])
    assert first == second != shorter
    # A query longer than half of the input gives way until both are equally long, and no longer.
    assert np.isfinite(model.score("b " * 3000, [full])).all()


@pytest.mark.parametrize("passages", ["one string", [None], ["fine", 3]])
def test_cross_encoder_anything_but_strings_is_refused(model: CrossEncoder, passages: object) -> None:
    with pytest.raises(TypeError, match="a model takes a sequence of strings, got"):
        model.score(QUERY, passages)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a model takes a sequence of strings, got"):
        model.score(None, PASSAGES)  # type: ignore[arg-type]


def test_raw_logits_of_the_bundled_model(reranker: CrossEncoder) -> None:
    relevant, unrelated = reranker.score(QUERY, PASSAGES[:2])
    assert relevant > 5 > -5 > unrelated, "a sigmoid would have kept both within 0 and 1"
