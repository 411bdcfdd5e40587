"""An encoder whose vectors of queries are moved by a low-rank map that was learned from judged topics.

q' = q + up (down q), scaled to length 1, with `down` of shape (rank, dim) and `up` of shape (dim, rank). Vectors of
passages stay as they are, so nothing is embedded again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base import pinned_text
from ragbench.base.errors import ConfigError, ModelError
from ragbench.base.fingerprint import digest
from ragbench.boundary.json import read_json
from ragbench.models.cache import WrappedEncoder

if TYPE_CHECKING:
    from ragbench.models import Encoder
    from ragbench.models.resolve import EncoderSpec

GROUP = "adapter"
"""The folder of conf/ with the texts of adapters."""
KEY = "index.encoder.adapter"
_FORM = 1

_Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Adapter:
    """The map, for the encoder of one digest; float32, shapes (rank, dim) and (dim, rank)."""

    encoder: str
    down: _Vectors
    up: _Vectors

    def __call__(self, queries: _Vectors) -> _Vectors:
        """Unit vectors moved, shape (n, dim); each row by itself, so that it never depends on the others."""
        moved = [query + self.up @ (self.down @ query) for query in queries.astype(np.float64)]
        units = [vector / (np.sqrt(vector @ vector) or 1.0) for vector in moved]
        return np.array(units, dtype=np.float32).reshape(queries.shape)

    @property
    def text(self) -> str:
        """The adapter as one line of JSON; `read` gives the same numbers."""
        arrays = {"down": self.down, "up": self.up}
        parts = {name: base64.b64encode(array.astype("<f4").tobytes()).decode() for name, array in arrays.items()}
        return json.dumps({"form": _FORM, "encoder": self.encoder, "rank": len(self.down), **parts}) + "\n"


@lru_cache(16)
def read(value: str) -> Adapter:
    """The adapter that a text holds, or the file that `NAME@DIGEST` names. ConfigError for anything else."""
    text = pinned_text.text_of(GROUP, KEY, value, "numbers")
    try:
        parsed = read_json(text)
        if parsed["form"] != _FORM:
            raise ValueError
        down, up = (np.frombuffer(base64.b64decode(parsed[name], validate=True), "<f4") for name in ("down", "up"))
        rank = int(parsed["rank"])
        adapter = Adapter(str(parsed["encoder"]), down.reshape(rank, -1), up.reshape(-1, rank))
        if adapter.down.shape != adapter.up.shape[::-1] or not np.isfinite([*down, *up]).all():
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{KEY} is {value[:40]!r}, which is not an adapter: let `ragbench fit adapter --write NAME` write one, and "
            "copy the word that it prints"
        ) from None
    return adapter


class AdaptedEncoder(WrappedEncoder):
    """An encoder with an adapter on the vectors of its queries."""

    def __init__(self, encoder: Encoder, adapter: Adapter) -> None:
        super().__init__(encoder)
        self.adapter = adapter
        if adapter.encoder != encoder.digest:
            raise ModelError(
                f"{KEY} was learned for another model or prefix than {encoder.name} as configured: learn it again with "
                "`ragbench fit adapter`, or remove it"
            )

    def __repr__(self) -> str:
        return f"AdaptedEncoder({self.encoder!r})"

    @cached_property
    def digest(self) -> str:
        """A digest of everything that vectors of queries depend on."""
        return digest([self.encoder.digest, self.adapter.text])

    def encode_queries(self, texts: Sequence[str]) -> _Vectors:
        """Unit vectors of queries, moved, shape (n, dim)."""
        return self.adapter(self.encoder.encode_queries(texts))

    @property
    def of_passages(self) -> Encoder:
        """The encoder under the adapter, which gives the same vectors of passages."""
        return self.encoder


def adapted(encoder: Encoder, spec: EncoderSpec) -> Encoder:
    """The encoder with the adapter of a specification on its queries."""
    return AdaptedEncoder(encoder, read(spec.adapter))


def text_of(value: str) -> str:
    """The text of the adapter that a configuration names."""
    return read(value).text
