"""Vectors that come with ragbench: those of its benchmark, so that the first run on it embeds nothing.

`vectors.npz` next to the judgments has for every text the beginning of the key that the cache would give it, which is a
digest of the model's files, its settings, the libraries' versions and the text with its names (`VectorKey`). A changed
text, model or library has another key: it is not found, and is computed. `python -m tests.shipped` writes the file.

    keys     uint8 (n, 16)
    ends     int64 (k,): the groups of rows, one for each template, stop before these
    numerics the `OnnxGraph.numerics` of the CPUs that computed them (`unknown`: those of the first file)
    group-0  uint8 (4, dim, rows): exponents, then the three bytes of mantissa and sign, of float32; and so on

Nothing is rounded: the exponents of one dimension resemble each other, and deflate makes them small.
"""

from __future__ import annotations

import logging
import zipfile
import zlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import locations
from ragbench.base.types import BoundaryError
from ragbench.models.store import embedding_key

_KEY_BYTES = 16

_LOG = logging.getLogger(__name__)


class ShippedVectors:
    """Vectors by (digest, text) of an archive; one that is missing or damaged has none, which is logged once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._groups: dict[int, NDArray[np.float32]] = {}

    def present(self, digest: str, texts: Sequence[str]) -> set[str]:
        """The texts that have a vector, without reading it."""
        return {text for text in texts if _short_key(digest, text) in self._rows}

    def get_many(self, digest: str, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors found, by text."""
        keys = {text: _short_key(digest, text) for text in texts}
        try:
            return {text: self._vector(self._rows[key]) for text, key in keys.items() if key in self._rows}
        except BoundaryError as error:
            self._rows = _none(error)
            return {}

    @cached_property
    def numerics(self) -> str:
        """How the CPU that computed them rounds, as `OnnxGraph.numerics`; `unknown` if the file lacks it."""
        try:
            return str(_read_arrays(self.path, "numerics")[0])
        except BoundaryError:
            return "unknown"

    @cached_property
    def _rows(self) -> dict[bytes, tuple[int, int]]:
        """The group and the place in it of every key."""
        try:
            keys, ends = _read_arrays(self.path, "keys", "ends")
        except BoundaryError as error:
            return _none(error)
        places = [(group, row) for group, size in enumerate(np.diff(ends, prepend=0)) for row in range(size)]
        return {key.tobytes(): i for key, i in zip(keys, places, strict=True)}

    def _vector(self, shard_and_row: tuple[int, int]) -> NDArray[np.float32]:
        group, row = shard_and_row
        if group not in self._groups:
            self._groups[group] = _unpacked(*_read_arrays(self.path, f"group-{group}"))
        vector: NDArray[np.float32] = self._groups[group][row]
        return vector


def _none(error: BoundaryError) -> dict[bytes, tuple[int, int]]:
    _LOG.warning("%s: the vectors of the built-in benchmark are computed", error)
    return {}


@lru_cache(1)
def shipped() -> ShippedVectors:
    """Those of version 2 of the benchmark, read once."""
    return ShippedVectors(locations.builtin() / "qrels" / "v2" / "vectors.npz")


def packed(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Float32 (n, dim) as bytes (4, dim, n): the sign is put behind the mantissa, so that exponents are a byte."""
    bits = np.ascontiguousarray(vectors.T).view(np.uint32)
    turned = (bits << np.uint32(1)) | (bits >> np.uint32(31))
    return np.stack([(turned >> np.uint32(shift)).astype(np.uint8) for shift in (24, 16, 8, 0)])


def _unpacked(planes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The vectors of `packed`, bit by bit."""
    first, second, third, fourth = (plane.astype(np.uint32) for plane in planes)
    turned = first << np.uint32(24) | second << np.uint32(16) | third << np.uint32(8) | fourth
    return np.ascontiguousarray(((turned >> np.uint32(1)) | (turned << np.uint32(31))).view(np.float32).T)


def _short_key(digest: str, text: str) -> bytes:
    return embedding_key(digest, text)[:_KEY_BYTES]


def _read_arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """Arrays of an archive by name. Raises BoundaryError where one is missing, damaged or holds objects."""
    try:
        with path.open("rb") as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as archive:
            return [np.asarray(archive[name]) for name in names]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BoundaryError(f"{path} cannot be read ({' '.join(str(error).split())[:120]})") from None
