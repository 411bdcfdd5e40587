"""Base classes of all back ends: each text goes through the model alone, in one of a few threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.fingerprint import digest
from ragbench.base.progress import ticks
from ragbench.base.types import ModelError
from ragbench.models.folder import ModelFolder
from ragbench.models.parallel import map_in_threads
from ragbench.models.texts import check_finite, check_texts, unit_vector


class _FolderModel(ABC):
    """A model of a folder, used by up to `threads` threads at once."""

    def __init__(self, name: str, folder: ModelFolder, *, threads: int) -> None:
        self.name = name
        self.folder = folder
        self._threads = threads

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @abstractmethod
    def digest_inputs(self) -> list[object]:
        """What results depend on in addition to weights and prefixes."""

    @property
    def weights(self) -> Mapping[str, str]:
        """SHA-256 of the files; ModelError when a bundled file is not the expected one."""
        return self.folder.weights


class UnbatchedEncoder(_FolderModel):
    """An `Encoder` whose back end makes one vector, of any length, of one text."""

    def __init__(self, name: str, folder: ModelFolder, *, query_prefix: str, passage_prefix: str, threads: int) -> None:
        super().__init__(name, folder, threads=threads)
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix

    @abstractmethod
    def pooled_vector(self, text: str) -> NDArray[Any]:
        """The vector of a text before it is scaled, shape (dim,)."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a vector."""

    @cached_property
    def passage_digest(self) -> str:
        """A digest of everything that the vectors of passages depend on."""
        return digest(["encoder", self.digest_inputs(), self.weights, "unit length", self._passage_prefix])

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the vectors depend on."""
        return digest([self.passage_digest, self._query_prefix])

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a whole text, without markers."""
        return self.folder.count_tokens(text)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of queries, shape (n, dim)."""
        return self._encode(self._query_prefix, texts, None)

    def encode_passages(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors of passages, shape (n, dim)."""
        return self._encode(self._passage_prefix, texts, progress)

    def _encode(self, prefix: str, texts: Sequence[str], progress: Callable[[int], None] | None) -> NDArray[np.float32]:
        def vector(text: str) -> NDArray[np.float32]:
            return unit_vector(self.pooled_vector(prefix + text), self.name)

        checked_texts = check_texts(texts)
        vectors = map_in_threads(
            vector, checked_texts, self._threads, progress or ticks("embedding", len(checked_texts))
        )
        return np.stack(vectors) if vectors else np.empty((0, self.dim), dtype=np.float32)


class UnbatchedCrossEncoder(_FolderModel):
    """A `CrossEncoder` whose back end makes one logit of one pair."""

    @abstractmethod
    def logits(self, query: str, passage: str) -> NDArray[Any]:
        """The output of the model for a pair."""

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the scores depend on."""
        return digest(["cross-encoder", self.digest_inputs(), self.weights])

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Raw logits, shape (n,), higher is better."""
        (question,) = check_texts([query])

        def logit(passage: str) -> float:
            output = self.logits(question, passage)
            if output.size != 1:
                raise ModelError(
                    f"model {self.name} gives {output.size} numbers per pair, not one score: "
                    "use a cross-encoder with a single logit"
                )
            return float(check_finite(output.reshape(1), self.name)[0])

        return np.array(map_in_threads(logit, check_texts(passages), self._threads), dtype=np.float32)
