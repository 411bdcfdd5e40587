"""Ranking of candidates by terms and their beginnings: BM25+ over five fields, as in lexical search v3 (seed 002).

Every field keeps its terms in alphabetical order, so that the terms with a common beginning, and their postings, are
neighbours. Statistics (document frequency, mean length) are those of the candidates, which the seed indexes again for
every query. Lucene cannot compute this: its prefix queries give every match the same score.

score(chunk) = m * sum over fields, query terms t and terms u that begin with t of
    weight(field) * near(t, u) * idf(u) * (d + tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length)))
near = 1 for t itself, else 0.375 * |u| / (|u| + 0.3 * (|u| - |t|)); idf = ln(1 + (N - n + 0.5) / (n + 0.5)); m is the
number of query terms that match the chunk; a length counts distinct terms. k1 1.2, b 0.7, d 0.5 and near are those of
MiniSearch, which the seed ranks with; BM25+ is Lv and Zhai, CIKM 2011.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbench.base.rankings import Ranking
from ragbench.extras.systems.parts.scan import is_cjk, primitive_values
from ragbench.index import filters
from ragbench.index.artefacts import check_ranges
from ragbench.index.chunks import ChunkTable
from ragbench.index.parts import StoredPart

VERSION = 1
FIELDS = ("title", "tags", "heading", "path", "body")
K1, B, D = 1.2, 0.7, 0.5
PREFIX_WEIGHT, DISTANCE_WEIGHT = 0.375, 0.3

_TOKEN = re.compile(r"#\w[\w/-]*|\w+")
_LAST = "\U0010ffff"  # sorts behind every continuation of a term


def build_prefixes(folder: Path, table: ChunkTable) -> None:
    """Write, for every field, its terms, postings (chunk, frequency) and the chunks' lengths."""
    counted: dict[str, list[Counter[str]]] = {name: [] for name in FIELDS}
    shared = list(_document_terms(table))
    for number, text in enumerate(table.texts(0, table.n_retrievable)):
        fields, frontmatter = shared[int(table.document[number])]
        for name in ("title", "tags", "path"):
            counted[name].append(fields[name])
        counted["heading"].append(Counter(tokens(" ".join(table.header_path(number)))))
        counted["body"].append(Counter(tokens(f"{text} {frontmatter}")))
    for name, rows in counted.items():
        _write(folder, name, rows)


def _document_terms(table: ChunkTable) -> Iterator[tuple[dict[str, Counter[str]], str]]:
    """For every document, the terms that its chunks take from it, and the values of its frontmatter."""
    for title, path, tags, frontmatter in zip(
        table.titles, table.document_column("path"), table.document_column("tags"), table.frontmatter, strict=True
    ):
        fields = {
            "title": Counter(tokens(title)),
            "tags": Counter(dict.fromkeys(tag_forms(tags), 1)),
            "path": Counter(tokens(path.removesuffix(".md"))),
        }
        yield fields, " ".join(text for _, text in primitive_values(frontmatter))


def tokens(text: str) -> list[str]:
    """The terms of a text, lower-cased: words, pairs of neighbouring CJK characters, and `#tags` whole and in words."""
    result: list[str] = []
    for written in _TOKEN.findall(text.lower()):
        if written.startswith("#"):
            result.append(written)
        for word in re.findall(r"\w+", written):
            result += (
                [word[at : at + 2] for at in range(len(word) - 1)] if len(word) > 2 and is_cjk(word[0]) else [word]
            )
    return result


def tag_forms(tags: Iterable[str]) -> tuple[str, ...]:
    """With and without `#`: the tags, those above them, and their parts; `a/b` gives #a a #a/b a/b b."""
    forms: dict[str, None] = {}
    for tag in tags:
        for above in filters.tag_lineage(tag):
            forms.update(dict.fromkeys((f"#{above}", above)))
        forms.update(dict.fromkeys(tag.split("/")))
    return tuple(forms)


@dataclass(frozen=True)
class _Field:
    """Postings of one field: those of term number t stand at `indptr[t]` to `indptr[t + 1]`."""

    terms: list[str]
    indptr: NDArray[np.int64]
    chunks: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    lengths: NDArray[np.int32]
    sizes: NDArray[np.int32]  # characters of every term

    def range_of_prefix(self, term: str) -> tuple[int, int]:
        """The range of term numbers that begin with a term."""
        return bisect_left(self.terms, term), bisect_left(self.terms, term + _LAST)


class PrefixIndex:
    """Chunks by the terms of five fields and by their beginnings."""

    def __init__(self, folder: Path) -> None:
        """Open the artefact in `folder`."""
        self._fields = {name: _read(folder, name) for name in FIELDS}
        self._n_chunks = len(self._fields["body"].lengths)

    def __len__(self) -> int:
        return self._n_chunks

    def search(
        self, text: str, depth: int, weights: Mapping[str, float], candidates: NDArray[np.bool_] | None = None
    ) -> Ranking:
        """The `depth` best candidates that hold a term of the text, or one that begins with it, in a weighted field.

        `candidates`, shape (n_chunks,) or longer, are all chunks when None.
        """
        mask = np.ones(self._n_chunks, np.bool_) if candidates is None else candidates[: self._n_chunks]
        n_candidates = int(mask.sum())
        fields = [
            (weight, field, float(field.lengths[mask].mean()) or 1.0)
            for weight, field in ((weight, self._fields[name]) for name, weight in weights.items())
            if weight and n_candidates
        ]
        scores, matching = np.zeros(self._n_chunks), np.zeros(self._n_chunks)
        for term in dict.fromkeys(tokens(text)):
            parts = [_scores(field, mean, term, mask, n_candidates, weight) for weight, field, mean in fields]
            if parts:
                chunks = np.concatenate([each for each, _ in parts])
                of_term = np.bincount(
                    chunks, weights=np.concatenate([each for _, each in parts]), minlength=self._n_chunks
                )
                scores += of_term
                matching += of_term > 0
        scores *= matching
        positive = np.flatnonzero(scores > 0)
        return Ranking.of(positive, scores[positive], depth)

    def matches(self, text: str, chunk: int, weights: Mapping[str, float]) -> tuple[tuple[str, str, float], ...]:
        """(field, query term, weight) of every field of a chunk that a term of the text matches, heavy fields first."""
        heavy_first = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        alone = np.zeros(self._n_chunks, np.bool_)
        alone[chunk] = True
        return tuple(
            (name, term, weight)
            for term in dict.fromkeys(tokens(text))
            for name, weight in heavy_first
            if weight and len(self._chunks_holding(self._fields[name], term, alone))
        )

    def chunks_with_tag(self, text: str) -> NDArray[np.bool_]:
        """Which chunks have a tag that a term of the text matches, shape (n_chunks,)."""
        everywhere = np.ones(self._n_chunks, np.bool_)
        tags = self._fields["tags"]
        flags = np.zeros(self._n_chunks, np.bool_)
        for term in dict.fromkeys(tokens(text)):
            flags[self._chunks_holding(tags, term, everywhere)] = True
        return flags

    def _chunks_holding(self, field: _Field, term: str, mask: NDArray[np.bool_]) -> NDArray[np.int32]:
        first, last = field.range_of_prefix(term)
        chunks = field.chunks[int(field.indptr[first]) : int(field.indptr[last])]
        return chunks[mask[chunks]]


def _scores(
    field: _Field, mean: float, term: str, mask: NDArray[np.bool_], n_candidates: int, weight: float
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """(chunk, score) of all candidates whose field holds a term or terms that begin with it."""
    first, last = field.range_of_prefix(term)
    start, stop = int(field.indptr[first]), int(field.indptr[last])
    # Parallel arrays over the postings of all terms with this beginning.
    inside = np.flatnonzero(mask[field.chunks[start:stop]])
    of_term = np.repeat(np.arange(last - first), np.diff(field.indptr[first : last + 1]))[inside]
    chunks = field.chunks[start:stop][inside]
    frequency = field.frequencies[start:stop][inside]
    holding = np.bincount(of_term, minlength=last - first)
    idf = np.log(1 + (n_candidates - holding + 0.5) / (holding + 0.5))
    sizes = field.sizes[first:last]
    near = PREFIX_WEIGHT * sizes / (sizes + DISTANCE_WEIGHT * (sizes - len(term)))
    near[sizes == len(term)] = 1.0
    norm = K1 * (1 - B + B / mean * field.lengths[chunks])
    return chunks, weight * (near * idf)[of_term] * (D + frequency * (K1 + 1) / (frequency + norm))


def _write(folder: Path, name: str, rows: Sequence[Counter[str]]) -> None:
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, row in enumerate(rows):
        for term, count in row.items():
            postings.setdefault(term, []).append((number, count))
    terms = sorted(postings)
    flat = np.array([pair for term in terms for pair in postings[term]], dtype=np.int32).reshape(-1, 2)
    (folder / f"{name}.txt").write_text("\n".join(terms), encoding="utf-8", errors="replace")
    np.savez(
        folder / f"{name}.npz",
        indptr=np.cumsum([0, *(len(postings[term]) for term in terms)], dtype=np.int64),
        chunks=flat[:, 0],
        frequencies=flat[:, 1],
        lengths=np.array([len(row) for row in rows], dtype=np.int32),
    )


def _read(folder: Path, name: str) -> _Field:
    text = (folder / f"{name}.txt").read_text(encoding="utf-8")
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in ("indptr", "chunks", "frequencies", "lengths")}
    terms = text.split("\n") if text else []
    check_ranges(arrays["indptr"], len(arrays["chunks"]), folder)
    return _Field(terms, **arrays, sizes=np.array([len(term) for term in terms], dtype=np.int32))


PART = StoredPart(
    "prefixes",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda folder, index: build_prefixes(folder, index.chunks),
    open=lambda folder, index: PrefixIndex(folder),
)
