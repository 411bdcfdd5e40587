"""Vectors and scores kept on disk between runs: the slow and pure part of an experiment. Never used to measure latency.

The key of a value is what it was computed from (the model's digest and the texts), so it is never out of date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragbench.models import CrossEncoder, Encoder, Model
from ragbench.models.bundled_vectors import ShippedVectors
from ragbench.models.store import Recorded, Store, embedding_key, key_of
from ragbench.models.texts import check_texts

_M = TypeVar("_M", bound=Model)


class _Wrapper(Generic[_M]):
    """A model with the name, the digest and the weights of the one that it wraps."""

    def __init__(self, wrapped: _M) -> None:
        self.wrapped = wrapped

    @property
    def name(self) -> str:
        """As the wrapped model."""
        return self.wrapped.name

    @property
    def digest(self) -> str:
        """As the wrapped model."""
        return self.wrapped.digest

    @property
    def weights(self) -> Mapping[str, str]:
        """As the wrapped model."""
        return self.wrapped.weights

    @cached_property
    def numerics(self) -> str:
        """How it rounds on this machine, empty if that is the same everywhere (`ragbench.models.onnx`)."""
        return getattr(self.wrapped, "numerics", "")


TABLES = ("embeddings", "scores", "answers")
"""The caches; each is a file of this name in the folder of the caches."""

# Vectors computed between two writes: a killed run loses at most these.
_BETWEEN_WRITES = 256

# Texts whose tokens are counted once: the arms of a run return mostly the same passages.
_COUNTS_KEPT = 1 << 14


class CachedEncoder(_Wrapper[Encoder]):
    """An encoder that computes no vector twice and counts few texts twice: it asks `wrapped` for the rest.

    Vectors that come with ragbench (`shipped`) are not computed either. `origins` counts where vectors came from: the
    `cache`, `shipped`, or `computed`.
    """

    def __init__(self, encoder: Encoder, cache: Store | Recorded, shipped: ShippedVectors | None = None) -> None:
        super().__init__(encoder)
        self.cache = cache
        self.shipped = shipped
        self.origins: Counter[str] = Counter()
        self._counted = lru_cache(_COUNTS_KEPT)(encoder.count_tokens)

    def __repr__(self) -> str:
        return f"CachedEncoder({self.wrapped!r}, {self.cache!r})"

    @property
    def passage_digest(self) -> str:
        """As the wrapped model."""
        return self.wrapped.passage_digest

    @property
    def dim(self) -> int:
        """As the wrapped model."""
        return self.wrapped.dim

    @property
    def max_tokens(self) -> int:
        """As the wrapped model."""
        return self.wrapped.max_tokens

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, without markers and uncut."""
        return self._counted(text)

    def _keys(self, digest: str, texts: Sequence[str]) -> dict[bytes, str]:
        """Texts by their keys in the cache, where vectors of a CPU that rounds differently have others."""
        if texts and not isinstance(self.cache, Recorded):
            digest += self.numerics  # computed by the model
        return {embedding_key(digest, text): text for text in texts}

    def missing(self, passages: Sequence[str]) -> list[str]:
        """The passages that must be computed, each once."""
        texts = check_texts(passages)
        came = self.shipped.present(self.passage_digest, texts) if self.shipped else ()
        keys = self._keys(self.passage_digest, [text for text in texts if text not in came])
        present = self.cache.present(list(keys)) if keys else ()
        return [text for key, text in keys.items() if key not in present]

    def keep(self, passages: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Put vectors of passages, shape (n, dim), that another machine computed into the cache."""
        texts = check_texts(passages)
        keys = self._keys(self.passage_digest, texts)
        by_text = dict(zip(texts, vectors, strict=True))
        self.cache.write({key: by_text[text].astype("<f4").tobytes() for key, text in keys.items()})

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of queries, shape (n, dim)."""
        return self._encode(self.digest, texts, self.wrapped.encode_queries, None)

    def encode_passages(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors of passages, shape (n, dim); `progress` counts those that are there first, then others."""
        return self._encode(
            self.passage_digest, texts, lambda missing: self.wrapped.encode_passages(missing, progress), progress
        )

    def _encode(
        self,
        digest: str,
        texts: Sequence[str],
        compute: Callable[[list[str]], NDArray[np.float32]],
        progress: Callable[[int], None] | None,
    ) -> NDArray[np.float32]:
        checked_texts = check_texts(texts)
        vectors = self.shipped.get_many(digest, checked_texts) if self.shipped else {}
        came = len(vectors)
        keys = self._keys(digest, [text for text in checked_texts if text not in vectors])
        stored = self.cache.read(list(keys)) if keys else {}
        vectors |= {keys[key]: np.frombuffer(value, "<f4") for key, value in stored.items()}
        missing = [key for key in keys if key not in stored]
        self.origins.update(cache=len(vectors) - came, shipped=came, computed=len(missing))
        if progress is not None and len(missing) < len(checked_texts):
            progress(len(checked_texts) - len(missing))
        for start in range(0, len(missing), _BETWEEN_WRITES):
            batch = missing[start : start + _BETWEEN_WRITES]
            computed = dict(zip(batch, compute([keys[key] for key in batch]), strict=True))
            self.cache.write({key: vector.astype("<f4").tobytes() for key, vector in computed.items()})
            vectors |= {keys[key]: vector for key, vector in computed.items()}
        return (
            np.stack([vectors[text] for text in checked_texts])
            if checked_texts
            else np.empty((0, self.dim), dtype=np.float32)
        )


class CachedCrossEncoder(_Wrapper[CrossEncoder]):
    """A cross-encoder that scores no pair twice: it asks `wrapped` for those that the cache lacks."""

    def __init__(self, cross_encoder: CrossEncoder, cache: Store | Recorded) -> None:
        super().__init__(cross_encoder)
        self.cache = cache

    def __repr__(self) -> str:
        return f"CachedCrossEncoder({self.wrapped!r}, {self.cache!r})"

    @property
    def max_length(self) -> int:
        """As the wrapped model."""
        return self.wrapped.max_length

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Raw logits, shape (n,), higher is better."""
        (question,) = check_texts([query])
        checked_texts = check_texts(passages)
        digest = self.digest if isinstance(self.cache, Recorded) else self.digest + self.numerics
        keys = {key_of("score", digest, question, passage): passage for passage in checked_texts}
        stored = self.cache.read(list(keys))
        missing = [key for key in keys if key not in stored]
        if missing:
            computed = self.wrapped.score(question, [keys[key] for key in missing])
            new = {key: score.astype("<f4").tobytes() for key, score in zip(missing, computed, strict=True)}
            self.cache.write(new)
            stored |= new
        scores = {keys[key]: np.frombuffer(value, "<f4")[0] for key, value in stored.items()}
        return np.array([scores[passage] for passage in checked_texts], dtype=np.float32)
