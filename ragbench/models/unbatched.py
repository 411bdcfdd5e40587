"""What all back ends share: each text goes through the model alone, in one of a few threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.errors import ModelError
from ragbench.fingerprint import digest
from ragbench.models.folder import ModelFolder
from ragbench.models.parallel import spread
from ragbench.models.texts import checked
from ragbench.models.vectors import finite, unit


class UnbatchedEncoder(ABC):
    """An `Encoder` whose back end says how one text becomes one vector, of any length, and what shapes that."""

    def __init__(self, name: str, folder: ModelFolder, *, query_prefix: str, passage_prefix: str, threads: int) -> None:
        self.name = name
        self.folder = folder
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._threads = threads

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @abstractmethod
    def pooled(self, text: str) -> NDArray[Any]:
        """The vector of a text before it is scaled, shape (dim,)."""

    @abstractmethod
    def shaped_by(self) -> list[object]:
        """What shapes vectors besides weights and prefixes."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def weights(self) -> Mapping[str, str]:
        """SHA-256 of the files; ModelError when a bundled file is not the expected one."""
        return self.folder.weights

    @cached_property
    def passage_digest(self) -> str:
        """Names everything that shapes the vectors of passages."""
        return digest(["encoder", self.shaped_by(), self.weights, "unit length", self._passage_prefix])

    @cached_property
    def digest(self) -> str:
        """Names everything that shapes the vectors."""
        return digest([self.passage_digest, self._query_prefix])

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, without markers and uncut."""
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
            return unit(self.pooled(prefix + text), self.name)

        vectors = spread(vector, checked(texts), self._threads, progress)
        return np.stack(vectors) if vectors else np.empty((0, self.dim), dtype=np.float32)


class UnbatchedCrossEncoder(ABC):
    """A `CrossEncoder` whose back end says how one pair becomes one logit, and what shapes that."""

    def __init__(self, name: str, folder: ModelFolder, *, threads: int) -> None:
        self.name = name
        self.folder = folder
        self._threads = threads

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @abstractmethod
    def logits(self, query: str, passage: str) -> NDArray[Any]:
        """What the model gives for a pair."""

    @abstractmethod
    def shaped_by(self) -> list[object]:
        """What shapes scores besides weights."""

    @property
    def weights(self) -> Mapping[str, str]:
        """SHA-256 of the files; ModelError when a bundled file is not the expected one."""
        return self.folder.weights

    @cached_property
    def digest(self) -> str:
        """Names everything that shapes the scores."""
        return digest(["cross-encoder", self.shaped_by(), self.weights])

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Raw logits, shape (n,), higher is better."""
        (question,) = checked([query])

        def logit(passage: str) -> float:
            given = self.logits(question, passage)
            if given.size != 1:
                raise ModelError(
                    f"model {self.name} gives {given.size} numbers per pair and not one score: "
                    "use a cross-encoder with a single logit"
                )
            return float(finite(given.reshape(1), self.name)[0])

        return np.array(spread(logit, checked(passages), self._threads), dtype=np.float32)
