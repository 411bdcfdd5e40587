from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import ModelError
from ragbench.models import CrossEncoder, Encoder
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, load_cross_encoder, load_encoder

TEXTS = ["Segments are sealed after seven days.", "A token expires.", "word " * 400]


@pytest.mark.slow
def test_agrees_with_sentence_transformers_in_batches(minilm: Encoder, files_of: Callable[[str], Path]) -> None:
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(files_of("all-MiniLM-L6-v2")), device="cpu", local_files_only=True)
    expected = reference.encode(TEXTS, batch_size=3, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(minilm.encode_passages(TEXTS), expected, atol=1e-6)


def test_torch_model_model_s_own_limit_holds(minilm: Encoder) -> None:
    assert minilm.max_tokens == 256
    assert load_encoder(EncoderSpec("all-MiniLM-L6-v2", max_tokens=30)).max_tokens == 30


def test_torch_model_threads_change_nothing(minilm: Encoder) -> None:
    import torch

    expected = minilm.encode_passages(TEXTS).tobytes()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        assert load_encoder(EncoderSpec("all-MiniLM-L6-v2"), threads).encode_passages(TEXTS).tobytes() == expected


def test_prefixes_go_before_the_text_and_into_the_digest(minilm: Encoder) -> None:
    prefixed = load_encoder(EncoderSpec("all-MiniLM-L6-v2", query_prefix="Find: "))
    assert prefixed.encode_queries(["a token"]).tobytes() == minilm.encode_queries(["Find: a token"]).tobytes()
    assert prefixed.digest != minilm.digest
    assert prefixed.passage_digest == minilm.passage_digest


def test_scores_agree_with_sentence_transformers(
    torch_cross_folder: Path, cross_encoders: dict[str, CrossEncoder]
) -> None:
    import torch
    from sentence_transformers import CrossEncoder as Reference

    reference = Reference(str(torch_cross_folder), device="cpu", max_length=48, local_files_only=True)
    pairs = [("what is sealed", text) for text in TEXTS]
    expected = reference.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    np.testing.assert_allclose(cross_encoders["torch"].score("what is sealed", TEXTS), expected, atol=1e-5)
    assert load_cross_encoder(CrossEncoderSpec(str(torch_cross_folder), max_length=128)).max_length == 64


def test_encoder_and_cross_encoder_are_told_apart(torch_cross_folder: Path, files_of: Callable[[str], Path]) -> None:
    with pytest.raises(ModelError, match=r"holds a cross-encoder .*: use an encoder here"):
        load_encoder(EncoderSpec(str(torch_cross_folder))).encode_queries(["a"])
    with pytest.raises(ModelError, match=r"holds .*, not a cross-encoder: use a cross-encoder"):
        load_cross_encoder(CrossEncoderSpec(str(files_of("all-MiniLM-L6-v2")))).score("a", ["b"])


def test_torch_model_several_labels_are_no_score(torch_cross_folder: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    shutil.copytree(torch_cross_folder, tmp_path / "three")
    config = BertConfig.from_pretrained(tmp_path / "three", num_labels=3)
    BertForSequenceClassification(config).save_pretrained(tmp_path / "three")
    with pytest.raises(ModelError, match="gives 3 numbers per pair"):
        load_cross_encoder(CrossEncoderSpec(str(tmp_path / "three"))).score("a", ["b"])


def test_damaged_weights_are_one_sentence(torch_cross_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(torch_cross_folder, tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"damaged cannot be loaded .*: replace the folder"):
        load_cross_encoder(CrossEncoderSpec(str(tmp_path / "damaged"))).score("a", ["b"])
