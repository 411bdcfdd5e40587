"""Functions as encoders and cross-encoders.

    @ragbench.encoder
    def lengths(texts):                 # one vector for each text
        return [[len(text), text.count(" ")] for text in texts]

    @ragbench.reranker
    def shared_words(query, passages):  # one score for each passage, higher is better
        return [len(set(query.split()) & set(passage.split())) for passage in passages]

`index.encoder.name=lengths` and `p6.model=shared_words` then use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragbench.base import foreign, registry
from ragbench.base.fingerprint import digest
from ragbench.base.types import ModelError
from ragbench.models.bundled import Kind
from ragbench.models.texts import WORD_OR_SIGN, check_texts, unit_vector

_Embed = Callable[[list[str]], Any]
_Score = Callable[[str, list[str]], Any]
F = TypeVar("F", bound=Callable[..., Any])


def encoder(function: F) -> F:
    """Register a function as an encoder under its name, for `index.encoder.name=NAME`.

    Args:
        function: Takes a list of texts and returns an array of shape (texts, dimension).

    Returns:
        The function.

    Example:
        >>> import ragbench
        >>> @ragbench.encoder
        ... def lengths(texts):
        ...     return [[len(text), 1.0] for text in texts]
    """
    registry.register("encoder", function.__name__, function)
    return function


def reranker(function: F) -> F:
    """Register a function as a cross-encoder under its name, for `p6.model=NAME`.

    Args:
        function: Takes a query and a list of passages and returns a score per passage, higher for better ones.

    Returns:
        The function.

    Example:
        >>> import ragbench
        >>> @ragbench.reranker
        ... def overlap(query, passages):
        ...     return [len(set(query.split()) & set(passage.split())) for passage in passages]
    """
    registry.register("reranker", function.__name__, function)
    return function


_ENDPOINTS = {"encoder": ("openai", "ollama"), "cross-encoder": ("rerank", "chat")}
"""The kinds of models behind endpoints, which an entry point `model.NAME` makes."""


def is_endpoint(name: str, kind: Kind | None = None) -> bool:
    """Whether a name is of a model behind an endpoint, such as `openai:MODEL` or `rerank:URL`, of a kind or of any."""
    kinds = _ENDPOINTS[kind] if kind else tuple(chain.from_iterable(_ENDPOINTS.values()))
    form, colon, model = name.partition(":")
    return form in kinds and bool(colon and model.strip())


def endpoint(kind: str, name: str) -> Any:
    """What makes a model of a kind behind an endpoint. ConfigError where no installed extra has it."""
    return registry.required("model", kind, f"the model {name[:80]}")


def cut_words(text: str, limit: int) -> str:
    """The beginning of a text, at most so many words and signs."""
    for number, token in enumerate(WORD_OR_SIGN.finditer(text)):
        if number == limit:
            return text[: token.start()].rstrip()
    return text


class FunctionEncoder:
    """An encoder that calls a function for its vectors and scales them to length 1. Words count as tokens."""

    weights: Mapping[str, str] = {}

    def __init__(
        self,
        name: str,
        embed: _Embed,
        code: str,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 512,
    ) -> None:
        """`code` identifies what `embed` does: it is part of the keys of the caches."""
        self.name = name
        self.max_tokens = max_tokens
        self._embed = embed
        self._length = 0  # of a vector, once there is one
        self._prefixes = query_prefix, passage_prefix
        self.passage_digest = digest(["function", name, code, passage_prefix, max_tokens])
        self.digest = digest([self.passage_digest, query_prefix])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @cached_property
    def dim(self) -> int:
        """The length of a vector, found by embedding one word."""
        return int(self._vectors(["word"]).shape[1])

    def count_tokens(self, text: str) -> int:
        """The number of words and signs of a text."""
        return len(WORD_OR_SIGN.findall(text))

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of queries, shape (n, dim)."""
        return self._encode(texts, self._prefixes[0], None)

    def encode_passages(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors of passages, shape (n, dim)."""
        return self._encode(texts, self._prefixes[1], progress)

    def _encode(self, texts: Sequence[str], prefix: str, progress: Callable[[int], None] | None) -> NDArray[np.float32]:
        prefixed = [prefix + cut_words(text, self.max_tokens) for text in check_texts(texts)]
        if not prefixed:
            return np.empty((0, self.dim), dtype=np.float32)
        vectors = self._vectors(prefixed)
        if progress is not None:
            progress(len(prefixed))
        return np.stack([unit_vector(vector, self.name) for vector in vectors])

    def _vectors(self, texts: list[str]) -> NDArray[np.float64]:
        label = f"encoder '{self.name}'"
        vectors = as_array(label, foreign.call(label, self._embed, texts), len(texts), 2)
        self._length = self._length or vectors.shape[1]
        if vectors.shape[1] != self._length:
            raise ModelError(f"{label} gives vectors of length {self._length} and of length {vectors.shape[1]}")
        return vectors


class FunctionCrossEncoder:
    """A cross-encoder that calls a function for its scores. Texts are not cut."""

    weights: Mapping[str, str] = {}

    def __init__(self, name: str, score: _Score, code: str, max_length: int = 512) -> None:
        """`code` identifies what `score` does: it is part of the keys of the caches."""
        self.name = name
        self.max_length = max_length
        self.digest = digest(["function", name, code])
        self._score = score

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Scores, shape (n,), higher is better."""
        (question,), texts = check_texts([query]), check_texts(passages)
        if not texts:
            return np.empty(0, dtype=np.float32)
        label = f"re-ranker '{self.name}'"
        return in_32_bits(as_array(label, foreign.call(label, self._score, question, texts), len(texts), 1), label)


def in_32_bits(numbers: NDArray[np.float64], label: str) -> NDArray[np.float32]:
    """Return the numbers in 32 bits. Raises ModelError for one that is not finite or too large."""
    with np.errstate(over="ignore"):
        small = numbers.astype(np.float32)
    if not np.isfinite(small).all():
        raise ModelError(f"{label} gave a number that is not finite or beyond 3.4e38: scale it")
    return small


def as_array(label: str, values: Any, n: int, dimensions: int) -> NDArray[np.float64]:
    """The result of a function for n texts as an array. Raises ModelError for any other shape."""
    expected = f"{n} {'vectors of one length' if dimensions == 2 else 'numbers'}"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{label} must give {expected} for {n} texts, got {type(values).__name__}") from None
    if array.ndim != dimensions or len(array) != n or (n and not array.size):
        raise ModelError(f"{label} must give {expected} for {n} texts, got an array of shape {array.shape}")
    return array
