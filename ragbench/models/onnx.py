"""Encoders and cross-encoders run by onnxruntime, one unpadded text per call.

int8 graphs round activations, so that the last bits of a CPU's float arithmetic change a vector by up to .013 in
a component. With `exact`, their matrix products are computed in float32 with the dequantised weights: the same on every
CPU to 1e-5, for 2.3 times the CPU time (docs/limits.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import ModelError
from ragbench.models.base import UnbatchedCrossEncoder, UnbatchedEncoder
from ragbench.models.exact_onnx import dequantised, is_quantised
from ragbench.models.folder import FolderSettings, ModelFolder, refuse_other_modules
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
        self._loading, self._reading = Lock(), Lock()
        self._loaded: InferenceSession | None = None
        self._read: Tokenizer | None = None

    def __call__(self, text: str, second: str | None = None) -> NDArray[Any]:
        """The output for one text, or for a pair of texts, without its batch axis."""
        encoding = self.tokenizer.encode(text, second)
        return self._run(encoding.ids, encoding.attention_mask, encoding.type_ids)

    @property
    def tokenizer(self) -> Tokenizer:
        """Cuts a text into at most `max_tokens` tokens, markers among them."""
        with self._reading:
            if self._read is None:
                _ = self.folder.weights  # refuses weights that differ from the pinned ones
                self._read = self.folder.load_tokenizer()
                self._read.enable_truncation(self.max_tokens)
            return self._read

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a whole text, without markers."""
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        return len(encoding.ids) + sum(len(rest.ids) for rest in encoding.overflowing)

    @cached_property
    def numerics(self) -> str:
        """How an int8 graph rounds on this CPU, as a digest of what it gives for a fixed text; else empty."""
        if self.exact or not is_quantised(self.folder.graph):
            return ""
        return f"int8 {hashlib.sha256(self(_PROBE).tobytes()).hexdigest()[:8]}"

    def _run(self, ids: list[int], mask: list[int], types: list[int]) -> NDArray[Any]:
        session = self._loaded or self._load()
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
        session = self._loaded or self._load()
        nodes = session.get_outputs()
        node = next((node for node in nodes if node.name == self._wanted), nodes[0])
        return node.name, node.shape

    def _load(self) -> InferenceSession:
        _ = self.tokenizer  # which compares the digests of all files
        with self._loading:
            if self._loaded is None:
                state = self.folder.graph.stat()
                self._loaded = _session(self.folder.graph, self.exact, (state.st_size, state.st_mtime_ns))
            return self._loaded


@lru_cache(maxsize=4)  # a server that follows new bundles keeps no more
def _session(path: Path, exact: bool, state: tuple[int, int]) -> InferenceSession:
    """The session of a graph, read once in a process while `state`, the size and time of the file, is the same."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        graph = dequantised(path.read_bytes()) if exact and is_quantised(path) else str(path)
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

    The vectors of a text's tokens are pooled into one (see `FolderSettings`), unless the graph does so itself.
    """

    def __init__(
        self,
        name: str,
        folder: ModelFolder,
        settings: FolderSettings,
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

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a whole text, without markers."""
        return self._graph.count_tokens(text)

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
        settings: FolderSettings,
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
