"""What holds for every encoder, whatever runs it."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.models import Encoder

TEXTS = [
    "Segments are sealed after seven days.",
    "A token expires when the clock drifts.",
    "x",
    "Segments are sealed after seven days. " * 6,
    "Überprüfung der Zertifikate 証明書 ✓",
    "",
]


@pytest.fixture(params=["onnx", pytest.param("torch", marks=pytest.mark.slow), "local", "cached"])
def encoder(request: pytest.FixtureRequest, encoders: dict[str, Encoder]) -> Encoder:
    return encoders[request.param]


def test_encoder_keeps_the_protocol(encoder: Encoder) -> None:
    assert isinstance(encoder, Encoder)
    assert len(encoder.digest) == len(encoder.passage_digest) == 64
    assert encoder.dim == 384
    assert encoder.weights and all(len(digest) == 64 for digest in encoder.weights.values())
    assert repr(encoder)


def test_encoder_gives_unit_vectors(encoder: Encoder) -> None:
    vectors = encoder.encode_passages(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_encoder_text_does_not_see_its_neighbours(encoder: Encoder) -> None:
    together = encoder.encode_passages(TEXTS)
    backwards = encoder.encode_passages(TEXTS[::-1])[::-1]
    alone = np.vstack([encoder.encode_passages([text]) for text in TEXTS])
    assert together.tobytes() == backwards.tobytes() == alone.tobytes()


def test_encoder_without_prefixes_queries_and_passages_are_alike(encoder: Encoder) -> None:
    assert encoder.encode_queries(TEXTS).tobytes() == encoder.encode_passages(TEXTS).tobytes()


def test_encoder_no_texts_give_no_vectors(encoder: Encoder) -> None:
    assert encoder.encode_queries([]).shape == (0, encoder.dim)
    assert encoder.encode_passages([]).dtype == np.float32


def test_similar_texts_are_near(encoder: Encoder) -> None:
    query, near, far = encoder.encode_passages(
        ["how long are segments kept", "Segments are kept for seven days.", "Bananas are yellow."]
    )
    assert query @ near > query @ far + 0.1


def test_encoder_long_text_is_cut_at_the_end(encoder: Encoder) -> None:
    # "a " is one token: markers take two, so this many fill the input exactly.
    full = "a " * (encoder.max_tokens - 2)
    vectors = encoder.encode_passages([full, full + "b " * 5000, full[:-2]])
    assert vectors[0].tobytes() == vectors[1].tobytes() != vectors[2].tobytes()


def test_progress_counts_every_text(encoder: Encoder) -> None:
    told: list[int] = []
    encoder.encode_passages([*TEXTS, "one more", "one more"], told.append)
    assert sum(told) == len(TEXTS) + 2


def test_encoder_half_a_surrogate_pair_becomes_the_replacement_character(encoder: Encoder) -> None:
    broken, replaced = encoder.encode_passages(["left \ud800 right", "left \ufffd right"])
    assert broken.tobytes() == replaced.tobytes()


@pytest.mark.parametrize("texts", ["one string", b"bytes", [None], ["fine", 3], [b"bytes"]])
def test_encoder_anything_but_strings_is_refused(encoder: Encoder, texts: object) -> None:
    with pytest.raises(TypeError, match="a model takes a sequence of strings, got"):
        encoder.encode_passages(texts)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a model takes a sequence of strings, got"):
        encoder.encode_queries(texts)  # type: ignore[arg-type]
