"""Encoders and cross-encoders run by onnxruntime, one unpadded text per call.

int8 graphs round activations, so that the last bits of a CPU's float arithmetic change a vector by up to .013 in
a component. With `exact`, their matrix products are computed in float32 with the dequantised weights: the same on every
CPU to 1e-5, for 2.3 times the CPU time (docs/limits.md).
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import ModelError
from ragbench.models.base import UnbatchedCrossEncoder, UnbatchedEncoder
from ragbench.models.folder import ModelFolder, Settings, refuse_other_modules
from ragbench.models.texts import minor_version, one_line

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

# Increase it when a change of this module changes vectors or scores: it is part of every digest.
_VERSION = 1

_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})

# Long enough that two processors that round differently give different outputs.
_PROBE = " ".join(map(str, range(1000, 1150)))

_POOL: Mapping[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "cls": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(axis=0, dtype=np.float64),
    "max": lambda tokens: tokens.max(axis=0),
    "lasttoken": lambda tokens: tokens[-1],
}


class OnnxGraph:
    """A tokenizer and an ONNX graph, read when first used; safe to call from several threads at once.

    Returns the graph's output called `output`, or the first output when none has that name. `exact` is described above.
    """

    def __init__(self, folder: ModelFolder, max_tokens: int, output: str, exact: bool = False) -> None:
        self.folder = folder
        self.max_tokens = max_tokens
        self.exact = exact
        self._wanted = output
        self._loading = Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    def __call__(self, text: str, second: str | None = None) -> NDArray[Any]:
        """The output for one text, or for a pair of texts, without its batch axis."""
        encoding = self.tokenizer.encode(text, second)
        return self._run(encoding.ids, encoding.attention_mask, encoding.type_ids)

    @property
    def tokenizer(self) -> Tokenizer:
        """Cuts a text into at most `max_tokens` tokens, markers among them."""
        return (self._loaded or self._load())[0]

    @cached_property
    def numerics(self) -> str:
        """How an int8 graph rounds on this CPU, as a digest of what it gives for a fixed text; else empty."""
        if self.exact or not _is_quantised(self.folder.graph):
            return ""
        return f"int8 {hashlib.sha256(self(_PROBE).tobytes()).hexdigest()[:8]}"

    def _run(self, ids: list[int], mask: list[int], types: list[int]) -> NDArray[Any]:
        _, session = self._loaded or self._load()
        arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        feed = {node.name: np.array([arrays[node.name]], dtype=np.int64) for node in session.get_inputs()}
        try:
            output: NDArray[Any] = session.run([self.output[0]], feed)[0][0]
        except Exception as reason:  # the library raises nothing narrower
            raise ModelError(
                f"model {self.folder.graph} fails on an input of {len(ids)} tokens ({one_line(reason)}): "
                "lower max_tokens to what the model was made for"
            ) from reason
        return output

    @cached_property
    def output(self) -> tuple[str, list[int | str | None]]:
        """Name and shape of the output; an axis of variable length has a name or None instead of a number."""
        _, session = self._loaded or self._load()
        nodes = session.get_outputs()
        node = next((node for node in nodes if node.name == self._wanted), nodes[0])
        return node.name, node.shape

    def _load(self) -> tuple[Tokenizer, InferenceSession]:
        with self._loading:
            if self._loaded is None:
                _ = self.folder.weights  # refuses weights that differ from the pinned ones
                tokenizer = self.folder.load_tokenizer()
                tokenizer.enable_truncation(self.max_tokens)
                self._loaded = tokenizer, self._session(self.folder.graph)
            return self._loaded

    def _session(self, path: Path) -> InferenceSession:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        exact = self.exact and _is_quantised(path)
        try:
            graph = _dequantised(path.read_bytes()) if exact else str(path)
            session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as reason:
            raise ModelError(f"model {path} cannot be loaded ({one_line(reason)}): replace the file") from reason
        names = {node.name for node in session.get_inputs()}
        if "input_ids" not in names or not names <= _KNOWN_INPUTS:
            raise ModelError(
                f"model {path} has the inputs {', '.join(sorted(names))}: "
                f"use one whose inputs are among {', '.join(sorted(_KNOWN_INPUTS))}"
            )
        return session


class OnnxEncoder(UnbatchedEncoder):
    """An encoder of a folder with `model.onnx` and `tokenizer.json`.

    The vectors of a text's tokens are pooled into one (see `Settings`), unless the graph does so itself.
    """

    def __init__(
        self,
        name: str,
        folder: ModelFolder,
        settings: Settings,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 512,
        threads: int = 1,
        exact: bool = False,
    ) -> None:
        super().__init__(name, folder, query_prefix=query_prefix, passage_prefix=passage_prefix, threads=threads)
        self.max_tokens = min(max_tokens, settings.max_tokens or max_tokens)
        self.pooling = settings.pooling
        """How the vectors of tokens become one."""
        self._graph = OnnxGraph(folder, self.max_tokens, "sentence_embedding", exact)

    def digest_inputs(self) -> list[object]:
        """The library, the pooling and the longest input."""
        return [*backend(), self.pooling, self.max_tokens, *(["exact"] if self._graph.exact else [])]

    @property
    def numerics(self) -> str:
        """As `OnnxGraph.numerics`."""
        return self._graph.numerics

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        length = self._checked_shape[-1]
        return length if isinstance(length, int) else len(self.pooled_vector(""))

    def pooled_vector(self, text: str) -> NDArray[Any]:
        """The vector of a text before it is scaled, shape (dim,)."""
        has_tokens = len(self._checked_shape) == 3
        output = self._graph(text)
        return _POOL[self.pooling](output) if has_tokens else output

    @cached_property
    def _checked_shape(self) -> list[int | str | None]:
        name, shape = self._graph.output
        if name == "logits" or len(shape) not in (2, 3):
            raise ModelError(
                f"model {self.name} gives {name} of shape {shape}, not vectors: use the ONNX file of an encoder"
            )
        if len(shape) == 3:
            refuse_other_modules(self.folder)
        return shape


class OnnxCrossEncoder(UnbatchedCrossEncoder):
    """A cross-encoder of a folder with `model.onnx` and `tokenizer.json`; the graph must give one logit per pair."""

    def __init__(
        self,
        name: str,
        folder: ModelFolder,
        settings: Settings,
        *,
        max_length: int = 512,
        threads: int = 1,
        exact: bool = False,
    ) -> None:
        super().__init__(name, folder, threads=threads)
        self.max_length = min(max_length, settings.max_tokens or max_length)
        self._graph = OnnxGraph(folder, self.max_length, "logits", exact)

    def digest_inputs(self) -> list[object]:
        """The library and the longest input."""
        return [*backend(), self.max_length, *(["exact"] if self._graph.exact else [])]

    @property
    def numerics(self) -> str:
        """As `OnnxGraph.numerics`."""
        return self._graph.numerics

    def logits(self, query: str, passage: str) -> NDArray[Any]:
        """The output of the graph for a pair."""
        return self._graph(query, passage)


def backend() -> list[object]:
    """Names and versions of the libraries: results can change between their minor versions."""
    return ["onnx", _VERSION, minor_version("onnxruntime"), minor_version("tokenizers")]


def _is_quantised(path: Path) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in (b"MatMulInteger", b"QuantizeLinear", b"QLinear"))


def _dequantised(model: bytes) -> bytes:
    """The bytes of an ONNX model with float32 products instead of int8 ones; onnxruntime then dequantises the weights.

    Only nodes change: a dynamic quantisation gives its input and the scale 1, and a product of integers becomes one of
    floats. Raises ValueError for graphs that are quantised in another way.
    """
    graph = b"".join(_dequantised_graph(next(body for number, body, _ in _fields(model) if number == 7)))
    return b"".join(_field(7, graph) if number == 7 else raw for number, _, raw in _fields(model))


def _dequantised_graph(graph: bytes) -> Iterator[bytes]:
    yield _field(5, b"\x10\x01" + _field(8, b"ragbench/one") + _field(9, b"\x00\x00\x80\x3f"))  # a float of 1
    for number, body, raw in _fields(graph):
        parts = [(key, value) for key, value, _ in _fields(body)] if number == 1 else []
        inputs, outputs = ([value for key, value in parts if key == field_number] for field_number in (1, 2))
        kind = next((value.decode() for key, value in parts if key == 4), "")
        if kind == "DynamicQuantizeLinear":
            yield _node("Identity", inputs, outputs[0])
            yield _node("Identity", [b"ragbench/one"], outputs[1])
        elif kind == "MatMulInteger":
            weights = outputs[0] + b"/weights"
            yield _node("Cast", inputs[1:2], weights, _TO_FLOAT)
            if len(inputs) == 4:
                yield _node("Cast", inputs[3:], weights + b"/zero", _TO_FLOAT)
                yield _node("Sub", [weights, weights + b"/zero"], weights + b"/centred")
                weights += b"/centred"
            yield _node("MatMul", [inputs[0], weights], outputs[0])
        elif any(word in kind for word in ("Quantize", "Integer", "QLinear")):
            raise ValueError(f"the int8 operator {kind} has no exact form: use numerics=fast")
        else:
            yield raw


# The wire format of protobuf: https://protobuf.dev/programming-guides/encoding, and onnx.proto for the numbers.
_TO_FLOAT = b"\x2a\x09\x0a\x02to\x18\x01\xa0\x01\x02"  # the attribute `to` of Cast


def _node(kind: str, inputs: Sequence[bytes], output: bytes, attribute: bytes = b"") -> bytes:
    named = b"".join(_field(1, name) for name in inputs)
    return _field(1, named + _field(2, output) + _field(4, kind.encode()) + attribute)


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + _varint(value >> 7) if value > 127 else bytes([value])


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, content and whole bytes of every field; only fields of bytes have a content."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        size = {1: 8, 5: 4}.get(tag & 7, 0)
        if tag & 7 == 0:
            _, at = _read_varint(data, at)
        elif tag & 7 == 2:
            size, at = _read_varint(data, at)
        yield tag >> 3, data[at : at + size] if tag & 7 == 2 else b"", data[start : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1
