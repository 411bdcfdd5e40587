from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import ModelError
from ragbench.models import CrossEncoder, Encoder
from ragbench.models.exact_onnx import dequantised, field, node
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, load_cross_encoder, load_encoder
from tests.naming import naming

TEXT = "Segments are sealed after seven days, then compacted."


def plain_output(root: Path, text: str, second: str | None = None) -> np.ndarray:
    """What onnxruntime gives with its own default options, padded to nothing: shape (tokens, dim) or (1,)."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(root / "tokenizer.json"))
    tokenizer.no_padding()
    encoding = tokenizer.encode(text, second)
    session = onnxruntime.InferenceSession(str(root / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = {
        "input_ids": np.array([encoding.ids]),
        "attention_mask": np.ones((1, len(encoding.ids)), dtype=np.int64),
        "token_type_ids": np.array([encoding.type_ids]),
    }
    return session.run(None, feed)[0][0]


def scaled(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_onnx_bundled_encoder_takes_the_first_token(bge: Encoder, files_of: Callable[[str], Path]) -> None:
    expected = scaled(plain_output(files_of("bge-small-en-v1.5"), TEXT)[0])
    np.testing.assert_allclose(bge.encode_passages([TEXT])[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("files", "pool"),
    [
        ({}, lambda tokens: tokens.mean(axis=0)),
        ({"1_Pooling__config": {"pooling_mode_cls_token": True}}, lambda tokens: tokens[0]),
        ({"1_Pooling__config": {"pooling_mode": "max"}}, lambda tokens: tokens.max(axis=0)),
        ({"1_Pooling__config": {"pooling_mode": "lasttoken"}}, lambda tokens: tokens[-1]),
    ],
    ids=["mean", "cls", "max", "lasttoken"],
)
def test_onnx_local_folder_pools_as_its_files_say(
    make_folder: Callable[..., Path], files_of: Callable[[str], Path], files: dict, pool
) -> None:
    encoder = load_encoder(EncoderSpec(str(make_folder(**files))))
    expected = scaled(pool(plain_output(files_of("bge-small-en-v1.5"), TEXT)))
    np.testing.assert_allclose(encoder.encode_passages([TEXT])[0], expected, atol=1e-6)


def test_onnx_bundled_cross_encoder_gives_the_logit(reranker: CrossEncoder, files_of: Callable[[str], Path]) -> None:
    expected = plain_output(files_of("ms-marco-MiniLM-L-12-v2"), "when are segments sealed", TEXT)
    np.testing.assert_allclose(reranker.score("when are segments sealed", [TEXT]), expected, atol=1e-5)


@pytest.mark.slow
def test_onnx_threads_change_nothing(bge: Encoder, reranker: CrossEncoder) -> None:
    texts = [TEXT[:length] for length in range(1, 30)]
    for threads in (1, 3):
        assert (
            load_encoder(EncoderSpec(), threads).encode_passages(texts).tobytes()
            == bge.encode_passages(texts).tobytes()
        )
        other = load_cross_encoder(CrossEncoderSpec(), threads)
        assert other.score(TEXT, texts).tobytes() == reranker.score(TEXT, texts).tobytes()


def test_prefixes_go_before_the_text(bge: Encoder) -> None:
    encoder = load_encoder(EncoderSpec(query_prefix="Find: ", passage_prefix="Page: "))
    assert encoder.encode_queries([TEXT]).tobytes() == bge.encode_queries(["Find: " + TEXT]).tobytes()
    assert encoder.encode_passages([TEXT]).tobytes() == bge.encode_passages(["Page: " + TEXT]).tobytes()


def test_onnx_digest_names_everything_that_shapes_a_vector(bge: Encoder, make_folder: Callable[..., Path]) -> None:
    folder = make_folder()
    specs = [
        EncoderSpec(query_prefix="q"),
        EncoderSpec(passage_prefix="q"),
        EncoderSpec(max_tokens=64),
        EncoderSpec(str(folder)),
        EncoderSpec(str(make_folder(**{"1_Pooling__config": {"pooling_mode": "cls"}}))),
    ]
    digests = [bge.digest, *(load_encoder(spec).digest for spec in specs)]
    assert len(set(digests)) == len(digests)
    assert load_encoder(EncoderSpec("BAAI/bge-small-en-v1.5"), threads=5).digest == bge.digest
    # Passages do not see the prefix of queries: their vectors stay valid.
    assert load_encoder(specs[0]).passage_digest == bge.passage_digest
    assert load_encoder(specs[1]).passage_digest != bge.passage_digest
    scores = {load_cross_encoder(CrossEncoderSpec(max_length=length)).digest for length in (64, 128)}
    assert len(scores) == 2


def test_onnx_model_s_own_limit_holds(make_folder: Callable[..., Path]) -> None:
    folder = make_folder(config={"max_position_embeddings": 100}, sentence_bert_config={"max_seq_length": 60})
    assert load_encoder(EncoderSpec(str(folder))).max_tokens == 60
    assert load_encoder(EncoderSpec(str(folder), max_tokens=20)).max_tokens == 20
    roberta = make_folder(config={"max_position_embeddings": 514, "model_type": "roberta"})
    assert load_encoder(EncoderSpec(str(roberta), max_tokens=1000)).max_tokens == 512


def test_onnx_input_the_graph_cannot_take_is_one_sentence(make_folder: Callable[..., Path]) -> None:
    encoder = load_encoder(EncoderSpec(str(make_folder()), max_tokens=700))
    with pytest.raises(ModelError, check=naming("700 tokens", "max_tokens")):
        encoder.encode_passages(["word " * 900])


def test_encoder_and_cross_encoder_are_told_apart(make_folder: Callable[..., Path]) -> None:
    with pytest.raises(ModelError, match=r"gives logits of shape .*, not vectors"):
        _ = load_encoder(EncoderSpec(str(make_folder("ms-marco-MiniLM-L-12-v2")))).dim
    with pytest.raises(ModelError, match="numbers per pair, not one score"):
        load_cross_encoder(CrossEncoderSpec(str(make_folder()))).score("a", ["b"])


def test_layers_outside_the_graph_are_refused(make_folder: Callable[..., Path]) -> None:
    modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Dense"}]
    with pytest.raises(ModelError, check=naming("Dense", "model.onnx")):
        load_encoder(EncoderSpec(str(make_folder(modules=modules)))).encode_queries(["a"])


def test_onnx_damaged_files_are_one_sentence(make_folder: Callable[..., Path]) -> None:
    no_graph = make_folder()
    (no_graph / "model.onnx").unlink()
    (no_graph / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, check=naming(no_graph / "model.onnx")):
        load_encoder(EncoderSpec(str(no_graph))).encode_queries(["a"])
    with pytest.raises(ModelError, check=naming("tokenizer.json")):
        load_encoder(EncoderSpec(str(make_folder(tokenizer="{}")))).encode_queries(["a"])


def test_onnx_hub_s_layout_of_folders(make_folder: Callable[..., Path], bge: Encoder) -> None:
    root: Path = make_folder(graph="onnx/model.onnx", **{"1_Pooling__config": {"pooling_mode": "cls"}})
    encoder = load_encoder(EncoderSpec(str(root)))
    assert encoder.encode_queries([TEXT]).tobytes() == bge.encode_queries([TEXT]).tobytes()
    assert set(encoder.weights) == {"onnx/model.onnx", "tokenizer.json", "1_Pooling/config.json"}


def test_exact_numerics_do_not_round_activations(bge: Encoder, reranker: CrossEncoder) -> None:
    """An int8 graph scales activations over a whole batch, so that a neighbour changes a vector."""
    exact = load_encoder(EncoderSpec(numerics="exact"))
    assert (exact.digest != bge.digest, exact.numerics, bge.numerics[:5]) == (True, "", "int8 ")
    texts = ["Segments are sealed by the gate.", "A token expires."]
    cosines = (exact.encode_passages(texts) * bge.encode_passages(texts)).sum(axis=1)
    assert (cosines > 0.99).all() and (cosines < 0.9999).all()
    for encoder, most in ((exact, 1e-5), (bge, 1.0)):
        graph = encoder._graph
        ids = [graph.tokenizer.encode(text).ids for text in texts]
        batch = np.array([ids[0], ids[1] + [0] * (len(ids[0]) - len(ids[1]))])
        feed = {"input_ids": batch, "attention_mask": (batch > 0).astype(np.int64), "token_type_ids": 0 * batch}
        difference = np.abs(graph._loaded.run(None, feed)[0][1][0] - graph(texts[1])[0]).max()
        assert difference < most
    assert difference > 1e-3
    scored = load_cross_encoder(CrossEncoderSpec(numerics="exact"))
    assert scored.digest != reranker.digest
    assert scored.score("what expires", texts) == pytest.approx(reranker.score("what expires", texts), abs=1)


def test_onnx_graph_quantised_in_another_way_has_no_exact_form() -> None:
    scaled = node("QuantizeLinear", [b"x", b"scale"], b"whole") + node("DequantizeLinear", [b"whole", b"scale"], b"y")
    for nodes, kind in ((node("ConvInteger", [], b"y"), "ConvInteger"), (scaled, "DequantizeLinear")):
        with pytest.raises(ValueError, check=naming(kind, "numerics=fast")):
            dequantised(field(7, nodes))
