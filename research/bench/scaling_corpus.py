"""Documents and vectors of any number, the same for the same number: what the scaling rows are measured on.

Words come from the built-in benchmark by how often they stand there, lengths, headings, lists, code and links in the
shares its documents have; every document adds identifiers of its own, so the vocabulary grows as real ones do.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbench.base import locations
from ragbench.base.query_cache import QueryCache
from ragbench.base.types import Document, Link
from ragbench.corpus.reader import parse_document
from ragbench.corpus.sections import Heading, build_sections

CHUNKS_PER_DOCUMENT = 7.8  # measured: the rows say how many chunks there really are
DIM = 384
SEED = 13


@cache
def _words() -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    """The benchmark's words and the running sum of their shares."""
    counts: Counter[str] = Counter()
    for path in sorted((locations.builtin() / "corpus" / "v2").rglob("*.md")):
        counts.update(re.findall(r"[a-z][a-z0-9_-]+", path.read_text(encoding="utf-8").lower()))
    words = sorted(counts)
    shares = np.array([counts[word] for word in words], dtype=np.float64)
    return np.array(words), np.cumsum(shares / shares.sum())


@dataclass(frozen=True)
class GeneratedDocuments(Sequence[Document]):
    """Documents made when they are asked for; a slice is as small as the whole, so worker processes make their own.

    `parsed`: from markdown, as files are read; else put together directly, which is what millions are measured with.
    """

    total: int
    parsed: bool = True
    start: int = 0
    stop: int = -1

    @cached_property
    def _range(self) -> range:
        return range(self.start, self.total if self.stop < 0 else self.stop)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, place):
        if isinstance(place, slice):
            part = self._range[place]
            return GeneratedDocuments(self.total, self.parsed, part.start, part.stop)
        return self._make(self._range[place])

    def __iter__(self) -> Iterator[Document]:
        return map(self._make, self._range)

    def _make(self, number: int) -> Document:
        chance = np.random.default_rng([SEED, number])
        words, shares = _words()
        length = int(np.clip(chance.lognormal(6.45, 0.5), 60, 6000))
        drawn = words[np.minimum(np.searchsorted(shares, chance.random(length)), len(words) - 1)].tolist()
        for place in chance.integers(0, length, size=3):
            drawn[place] = f"{words[number % len(words)]}-{number}"
        lines, headings, links = [], [], []
        length_so_far = 0

        def write(line: str) -> None:
            nonlocal length_so_far
            lines.append(line)
            length_so_far += len(line) + 1

        title = " ".join(drawn[:4]).capitalize()
        at = 4
        while at < length:
            level = 1 if at == 4 else int(chance.choice([2, 3], p=[0.7, 0.3]))
            text = title if level == 1 else " ".join(drawn[at : at + 3]).capitalize()
            start = length_so_far
            write(f"{'#' * level} {text}")
            headings.append(Heading(level, text, start))
            write("")
            for _ in range(int(chance.integers(1, 4))):
                size = int(chance.integers(18, 70))
                sentence = drawn[at : at + size]
                at += size
                if chance.random() < 0.25:
                    other = int(chance.integers(0, self.total))
                    target = f"part-{other // 1000}/note-{other}"
                    sentence.append(f"[[{target}]]")
                    links.append(Link("wikilink", f"[[{target}]]", target))
                if chance.random() < 0.08 and len(sentence) > 6:
                    code = [f"{a}({b})" for a, b in zip(sentence[::2], sentence[1::2], strict=False)]
                    for line in ["```python", *code[:6], "```"]:
                        write(line)
                else:
                    write(" ".join(sentence).capitalize() + ".")
                write("")
        docno, body = f"part-{number // 1000}/note-{number}", "\n".join(lines)
        if self.parsed:
            return parse_document(docno, f"{docno}.md", body.encode(), 0.0)[0]
        sections = build_sections(body, tuple(headings))
        raw = body.encode()
        digest = hashlib.sha256(raw).hexdigest()
        return Document(docno, f"{docno}.md", title, body, {}, sections, (), tuple(links), (), 0.0, len(raw), digest)


@dataclass(frozen=True)
class SyntheticEncoder:
    """Unit vectors with the shape of embeddings: clusters of about 30, spectrum falling as 1 / sqrt(rank).

    A text's vector depends on the text and the number of clusters alone. Needs no model.
    """

    clusters: int
    noise: float = 0.8
    name: str = "synthetic"
    dim: int = DIM
    max_tokens: int = 512

    @property
    def digest(self) -> str:
        """All that shapes the vectors."""
        return f"synthetic {self.clusters} {self.noise} {SEED}"

    passage_digest = digest

    @property
    def weights(self) -> dict[str, str]:
        """No files."""
        return {}

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def encode_passages(self, texts: Sequence[str], progress=None) -> NDArray[np.float32]:
        """Unit vectors, shape (n, dim)."""
        scale = (1 / np.sqrt(1 + np.arange(DIM))).astype(np.float32)
        centres = _centres(self.clusters)
        rows = np.empty((len(texts), DIM), dtype=np.float32)
        for row, text in enumerate(texts):
            key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
            own = np.random.Generator(np.random.SFC64(key)).standard_normal(DIM, dtype=np.float32)
            rows[row] = (centres[key % self.clusters] + self.noise * own) * scale
        rows[:, 0] += 2.0  # embeddings of one model share a direction
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    encode_queries = encode_passages


@cache
def _centres(clusters: int) -> NDArray[np.float32]:
    return np.random.default_rng(SEED).standard_normal((clusters, DIM), dtype=np.float32)


@dataclass(frozen=True)
class SyntheticModels:
    """Stands where `ragbench.models.resolve.Models` does, with one encoder for every specification."""

    made: SyntheticEncoder
    cache: Path | None = None
    threads: int | None = None
    memory: QueryCache = field(default_factory=QueryCache)

    def encoder(self, spec: object) -> SyntheticEncoder:
        """The encoder."""
        return self.made
