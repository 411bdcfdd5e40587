"""The encoder `draft`, here of a vocabulary of a few words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.errors import ModelError
from ragbench.extras.backends.draft import DraftEncoder, distil
from ragbench.models import bundled
from ragbench.models.access import Models
from ragbench.models.folder import find_model
from ragbench.models.resolve import EncoderSpec, check_name, load_encoder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused0]", "a", "the", "harbour", "ship", "##s", "tide"]


@pytest.fixture
def make(
    make_folder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., DraftEncoder]:
    """A function that makes the encoder of a few words; its tables lie below `tmp_path`."""
    monkeypatch.setenv("RAGBENCH_MODELS", str(tmp_path))
    root = make_folder()
    tokenizer = json.loads((root / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"] = {word: number for number, word in enumerate(WORDS)}
    tokenizer["added_tokens"] = [
        {**token, "id": WORDS.index(token["content"])}
        for token in tokenizer["added_tokens"]
        if token["content"] in WORDS
    ]
    for name, token in tokenizer["post_processor"]["special_tokens"].items():
        token["ids"] = [WORDS.index(name)]
    (root / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    folder = find_model(root)
    assert folder is not None
    return lambda **choices: DraftEncoder(folder, **choices)


def test_a_text_is_the_mean_of_its_tokens(make: Callable[..., DraftEncoder]) -> None:
    encoder = make()
    ship, tide, both, empty = encoder.encode_passages(["ship", "tide", "Tide, ship", ""])
    assert encoder.dim == 256 and np.linalg.norm(empty) == pytest.approx(1)
    lengths = [float(np.linalg.norm(encoder.pooled_vector(word).astype(float))) for word in ("ship", "tide")]
    unknown = encoder.pooled_vector(",").astype(float)
    mean = ship * lengths[0] + tide * lengths[1] + unknown
    assert both == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert encoder.encode_queries(["ship tide"]).tobytes() == encoder.encode_passages(["tide ship"]).tobytes()


def test_a_long_text_is_cut(make: Callable[..., DraftEncoder]) -> None:
    cut, short = make(max_tokens=4).encode_passages(["ship ship tide tide", "ship"])
    assert cut.tobytes() == short.tobytes()


def test_the_table_is_made_once_and_again_when_damaged(
    make: Callable[..., DraftEncoder], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = make().encode_passages(["the harbour"])
    assert make(threads=2).encode_passages(["the harbour"]).tobytes() == first.tobytes()
    assert caplog.text.count("making the encoder 'draft' from bge-small-en-v1.5, once") == 1
    (table,) = tmp_path.glob("draft/*/tokens.npy")
    before = table.read_bytes()
    table.write_bytes(before[:-1] + b"x")
    assert make().encode_passages(["the harbour"]).tobytes() == first.tobytes()
    assert table.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_named(
    make: Callable[..., DraftEncoder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAGBENCH_MODELS", str(tmp_path / "file"))
    with pytest.raises(ModelError, match=r"cannot keep its table in .*: set RAGBENCH_MODELS to a folder"):
        make().encode_passages(["ship"])


def test_tokens_are_weighed_by_their_place_among_the_words() -> None:
    rng = np.random.default_rng(0)
    embedded = rng.normal(size=(6, 3))
    table = distil(embedded, ["[CLS]", "!", "the", "of", "ship", "##s"])
    assert table.shape == (6, 3) and table.dtype == np.float16
    centred = embedded - embedded[1:].mean(axis=0)
    basis = np.linalg.svd(centred[1:])[2]
    total = sum(1 / n for n in range(1, 7))
    weights = [1e-4 / (1e-4 + 1 / place / total) for place in (1, 1, 1, 2, 3, 3)]
    expected = np.abs(centred @ basis.T) * np.array(weights)[:, None]
    assert np.abs(table) == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_draft_is_found_by_name() -> None:
    check_name("draft", "encoder")
    assert bundled.names("encoder")[-1] == "draft" and "draft" not in bundled.names("cross-encoder")
    encoder = load_encoder(EncoderSpec("draft"))
    assert isinstance(encoder, DraftEncoder) and "model.onnx" in encoder.weights
    assert encoder.digest not in {load_encoder(EncoderSpec()).digest, load_encoder(EncoderSpec("draft", "q: ")).digest}
    assert Models().encoder(EncoderSpec("draft")).digest == encoder.digest
    with pytest.raises(ModelError):
        check_name("draft", "cross-encoder")
