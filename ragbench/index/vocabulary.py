"""The concept vocabulary: the collection's own words and their vectors, for query expansion (P1)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragbench.base.options import Count, Validated, section
from ragbench.boundary.json import read_json_file
from ragbench.index.parts import StoredPart

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.models import Encoder

VERSION = 1
_TERMS, _VECTORS = "terms.json", "vectors.npy"
_WORD = re.compile(r"\b[a-zA-Z][a-zA-Z0-9_-]*\b")

# Function words of English; seed 000 lists these.
_FUNCTION_WORDS = """
a an the and or but in on at to for of with by from as is was are were been be have has had do does did will would could
should may might must shall can need this that these those it its they them their he she him her his hers we us our
you your i me my who what which where when how why all each every both few more most other some such no not only same so
than too very just also now here there then
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
FUNCTION_WORDS = _STOP_WORDS | {"am", "if"}
"""Words that say nothing about the subject of a query: those of the seed and two that it lacks."""


@section("index.vocabulary")
@dataclass(frozen=True)
class VocabularySpec(Validated):
    """The `size` (at least 1) most frequent terms of at least `min_length` (at least 1) characters. Seed 000, P1."""

    size: Count = 10_000  # most frequent terms
    min_length: Count = 3  # minimum characters of a term


def _extract_terms(text: str, min_length: int = 3) -> list[str]:
    """The lower-cased words of a text that are long enough and not function words, in order."""
    return [t for t in _WORD.findall(text.lower()) if len(t) >= min_length and t not in _STOP_WORDS]


def frequent_terms(texts: Iterable[str], spec: VocabularySpec) -> list[str]:
    """The terms by falling frequency, equals in alphabetical order."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_extract_terms(text, spec.min_length))
    return sorted(counts, key=lambda term: (-counts[term], term))[: spec.size]


def build_vocabulary(folder: Path, terms: list[str], encoder: Encoder) -> None:
    """Write the terms and their vectors; the embedding cache holds those of earlier builds, so only new ones cost."""
    (folder / _TERMS).write_text(json.dumps(terms, ensure_ascii=False), encoding="utf-8")
    np.save(folder / _VECTORS, encoder.encode_passages(terms), allow_pickle=False)


class Vocabulary:
    """Terms and their unit vectors, float32 (n, dim)."""

    def __init__(self, folder: Path) -> None:
        """Open the artefact in `folder`."""
        self._folder = folder
        self.vectors: NDArray[np.float32] = np.load(folder / _VECTORS, allow_pickle=False)

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def terms(self) -> list[str]:
        """The terms, most frequent first."""
        return [str(term) for term in read_json_file(self._folder / _TERMS, own=True)]

    def nearest(self, vector: NDArray[np.float32], top_k: int) -> list[tuple[str, float]]:
        """The `top_k` terms of highest cosine to a unit vector (dim,), by falling cosine, equals by frequency."""
        if not len(self):
            return []
        similarity = self.vectors @ vector
        count = min(top_k, len(similarity))
        # All terms that tie with the last place take part in the final sort.
        edge = np.partition(similarity, len(similarity) - count)[len(similarity) - count]
        near = np.flatnonzero(similarity >= edge)
        order = near[np.lexsort((near, -similarity[near]))][:count]
        return [(self.terms[i], float(similarity[i])) for i in order]


def _build(folder: Path, index: Index) -> None:
    texts = index.chunks.texts(0, index.chunks.n_retrievable)
    build_vocabulary(folder, frequent_terms(texts, index.spec.vocabulary), index.encoder)


PART = StoredPart(
    "vocabulary",
    inputs=lambda index: [*(index.fingerprint("chunks"), VERSION, index.spec.vocabulary, index.encoder.passage_digest)],
    build=_build,
    open=lambda folder, index: Vocabulary(folder),
)
