"""An encoder around another one, which answers for what it does not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ragbench.models import Encoder


class WrappedEncoder:
    """An encoder that gives what `encoder` gives; subclasses change a part of it."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @property
    def name(self) -> str:
        """As `encoder`."""
        return self.encoder.name

    @property
    def digest(self) -> str:
        """As `encoder`."""
        return self.encoder.digest

    @property
    def passage_digest(self) -> str:
        """As `encoder`."""
        return self.encoder.passage_digest

    @property
    def weights(self) -> Mapping[str, str]:
        """As `encoder`."""
        return self.encoder.weights

    @property
    def numerics(self) -> str:
        """How it rounds on this machine, empty if that is the same everywhere (`ragbench.models.onnx`)."""
        return getattr(self.encoder, "numerics", "")

    @property
    def dim(self) -> int:
        """As `encoder`."""
        return self.encoder.dim

    @property
    def max_tokens(self) -> int:
        """As `encoder`."""
        return self.encoder.max_tokens

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, without markers and uncut."""
        return self.encoder.count_tokens(text)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of queries, shape (n, dim)."""
        return self.encoder.encode_queries(texts)

    def encode_passages(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors of passages, shape (n, dim)."""
        return self.encoder.encode_passages(texts, progress)
