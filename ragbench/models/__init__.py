"""Models that turn text into vectors and pairs of texts into scores.

`resolve.load_encoder` and `resolve.load_cross_encoder` make them from a specification; `cache` wraps them.
Importing this package loads no weights and none of the libraries that run them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Model(Protocol):
    """What every model has.

    `digest` names everything that shapes its results: weights, settings, prefixes, library version. `weights` maps each
    file that it is read from to its SHA-256.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 -- described above, like the rest
    @property
    def digest(self) -> str: ...  # noqa: D102
    @property
    def weights(self) -> Mapping[str, str]: ...  # noqa: D102


@runtime_checkable
class Encoder(Model, Protocol):
    """Turns texts into unit vectors; a text's vector depends on that text alone, never on its neighbours or on threads.

    `passage_digest` is the digest without the query prefix: equal values give equal `encode_passages`. `dim` is the
    length of a vector. Texts are cut after `max_tokens` tokens, markers such as [CLS] included: the beginning is kept.
    An empty text has a vector, too.

    Both methods raise TypeError for anything but a sequence of strings, ModelError when the weights cannot be used.
    """

    @property
    def passage_digest(self) -> str: ...  # noqa: D102
    @property
    def dim(self) -> int: ...  # noqa: D102
    @property
    def max_tokens(self) -> int: ...  # noqa: D102

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, without markers and uncut."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of queries, shape (n, dim)."""
        ...

    def encode_passages(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors of passages, shape (n, dim). `progress` is called with the number of texts just finished."""
        ...


@runtime_checkable
class CrossEncoder(Model, Protocol):
    """Scores a query and a passage read together; a pair's score depends on that pair alone.

    A pair is cut to `max_length` tokens, from the end of the longer text.
    """

    @property
    def max_length(self) -> int: ...  # noqa: D102

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Raw logits, shape (n,), higher is better. Raises as `Encoder.encode_passages` does."""
        ...
