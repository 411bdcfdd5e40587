"""Trigrams of every chunk, kept as sets of numbers so that no text is read at query time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragbench.index.artefacts import check_ranges, misfit
from ragbench.index.chunks import ChunkTable
from ragbench.index.parts import StoredPart

VERSION = 1
_Unit = Literal["character", "word"]


def _character_trigrams(text: str) -> set[str]:
    """The trigrams of the lower-cased text without spaces. Seed 000, P12."""
    packed = text.lower().replace(" ", "")
    return {packed[at : at + 3] for at in range(len(packed) - 2)}


def _word_trigrams(text: str) -> set[str]:
    """The trigrams of the lower-cased words. Seed 000, P8 stage 2."""
    words = text.lower().split()
    return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}


_OF = {"character": _character_trigrams, "word": _word_trigrams}


def build_trigrams(folder: Path, table: ChunkTable) -> None:
    """Write, for both units, the trigrams of every retrievable chunk as numbers.

    Those of chunk i are `values[starts[i] : starts[i + 1]]`.
    """
    texts = table.texts(0, table.n_retrievable)
    for unit, trigrams in _OF.items():
        starts, values = _as_numbers(trigrams(text) for text in texts)
        np.save(folder / f"{unit}-starts.npy", starts, allow_pickle=False)
        np.save(folder / f"{unit}-values.npy", values, allow_pickle=False)


def _as_numbers(sets: Iterable[set[str]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Starts and values; trigrams are numbered as they first occur, sorted, so that no hash seed changes the bytes."""
    number: dict[str, int] = {}
    rows = [
        np.sort(np.array([number.setdefault(gram, len(number)) for gram in sorted(grams)], dtype=np.int32))
        for grams in sets
    ]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return starts, np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)


class TrigramIndex:
    """Overlap of chunks."""

    def __init__(self, folder: Path) -> None:
        """Open the artefact in `folder`."""
        self._folder = folder
        self._trigrams = lru_cache(len(_OF))(self._load)

    def jaccard(self, chunks: NDArray[np.int32], unit: _Unit = "character") -> NDArray[np.float32]:
        """|A and B| / |A or B| of the trigrams of n chunks, float32 (n, n); 0 where a chunk has none."""
        starts, values = self._trigrams(unit)
        lengths = (starts[chunks + 1] - starts[chunks]).astype(np.int64)
        total = int(lengths.sum())
        if total == 0:
            return np.zeros((len(chunks), len(chunks)), dtype=np.float32)
        rows = np.repeat(np.arange(len(chunks)), lengths)
        offsets = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        grams = values[np.repeat(starts[chunks], lengths) + offsets]
        if grams.min() < 0 or grams.max() >= len(values):  # there are no more numbers than values
            raise misfit(self._folder)
        # A trigram that only one candidate holds is in no intersection.
        frequency = np.bincount(grams)
        shared = frequency[grams] > 1
        column = np.cumsum(frequency > 1) - 1
        member = np.zeros((len(chunks), int((frequency > 1).sum())), dtype=np.float32)
        member[rows[shared], column[grams[shared]]] = 1
        common = (member @ member.T).astype(np.int64)  # exact: no chunk has 2**24 trigrams
        np.fill_diagonal(common, lengths)
        union = lengths[:, None] + lengths[None, :] - common
        return np.where(union > 0, common / np.maximum(union, 1), 0.0).astype(np.float32)

    def _load(self, unit: _Unit) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        starts = np.load(self._folder / f"{unit}-starts.npy", allow_pickle=False)
        values = np.load(self._folder / f"{unit}-values.npy", mmap_mode="r", allow_pickle=False)
        check_ranges(starts, len(values), self._folder)
        return starts, values


PART = StoredPart(
    "trigrams",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda folder, index: build_trigrams(folder, index.chunks),
    open=lambda folder, index: TrigramIndex(folder),
)
