"""Recall by substring: which files hold a term in their path or content (seed 002, "Candidate recall").

A term without white space lies inside a word, and a collection has far fewer distinct words than characters. So a
buffer that holds each word once is scanned (`bytes.find`), with a list of files for each word. A term with white space
is searched in the files that hold all its words. The results equal those of scanning every file.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.query_cache import QueryCache
from ragbench.base.types import Document
from ragbench.index.artefacts import check_ranges
from ragbench.index.parts import StoredPart

VERSION = 1
_PATHS, _TEXTS, _WORDS, _FILES = "paths", "texts", "words", "files.npz"
_TERMS_KEPT = 512  # results, each of one byte per file
_BREAK = b"\n"  # between rows; a term never holds it


def build_scan(folder: Path, documents: Sequence[Document]) -> None:
    """Write lower-cased paths, contents (frontmatter and text) and distinct words, one row for every document."""
    texts = [content(document) for document in documents]
    files: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        for word in set(text.split()):
            files.setdefault(word, []).append(number)
    words = sorted(files)
    _write(folder, _PATHS, (_one_line(document.path.lower()) for document in documents))
    _write(folder, _TEXTS, texts)
    _write(folder, _WORDS, words)
    np.savez(
        folder / _FILES,
        indptr=np.cumsum([0, *(len(files[word]) for word in words)], dtype=np.int64),
        files=np.array([number for word in words for number in files[word]], dtype=np.int32),
    )


def content(document: Document) -> str:
    """The scanned text of a document: its frontmatter values and text, lower-cased, white space as one space."""
    frontmatter = (f"{key}: {value}" for key, value in primitive_values(document.frontmatter))
    return _one_line(" ".join([*frontmatter, document.text]).lower())


def primitive_values(frontmatter: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(key, text) of every string, number, truth value or date of a frontmatter, those in lists included."""
    for key, value in frontmatter.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not isinstance(item, (list, dict)):
                yield key, item if isinstance(item, str) else json.dumps(item, default=str).strip('"')


def searchable(term: str) -> bool:
    """Whether a term is long enough: 3 characters, 2 when it holds a Chinese, Japanese or Korean one."""
    return len(term) >= (2 if any(is_cjk(character) for character in term) else 3)


def is_cjk(character: str) -> bool:
    """Whether a character is an ideograph, kana or hangul."""
    return any(first <= character <= last for first, last in _CJK)


_CJK = (("\u3040", "\u30ff"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7af"), ("\uf900", "\ufaff"))


class ScanIndex:
    """Files by substrings of their paths and contents."""

    def __init__(self, folder: Path, memory: QueryCache | None = None) -> None:
        """Open the artefact in `folder`; `memory` keeps the files of the latest terms."""
        self._paths, self._texts, self._words = (_Rows(folder, name) for name in (_PATHS, _TEXTS, _WORDS))
        with np.load(folder / _FILES, allow_pickle=False) as stored:
            self._indptr, self._files = stored["indptr"], stored["files"]
        check_ranges(self._indptr, len(self._files), folder)
        memory = memory or QueryCache()
        self.in_path = memory.keep(self._in_path, _TERMS_KEPT)
        self.in_content = memory.keep(self._in_content, _TERMS_KEPT)

    def __len__(self) -> int:
        return len(self._paths)

    def recall(
        self, terms: Iterable[str], limit: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[tuple[int, ...], int]:
        """The first `limit` files that hold a term, and how many of them were found by their path.

        Files found by their path come first, then those found by their content; both by the number of terms they hold,
        ties in the order of rows. `allowed`, shape (n_documents,), excludes files before counting. Terms that are too
        short are ignored.
        """
        searched = [term for term in dict.fromkeys(map(_one_line, (t.lower() for t in terms))) if searchable(term)]
        passes = np.ones(len(self), dtype=np.bool_) if allowed is None else allowed
        by_path = self._rows_by_count(searched, self.in_path, passes)[:limit]
        passes = passes.copy()
        passes[by_path] = False
        remaining = limit - len(by_path)
        by_content = self._rows_by_count(searched, self.in_content, passes)[:remaining] if remaining else by_path[:0]
        return (*by_path.tolist(), *by_content.tolist()), len(by_path)

    def _rows_by_count(self, terms: Sequence[str], holds: Any, passes: NDArray[np.bool_]) -> NDArray[np.intp]:
        counts = np.zeros(len(self), dtype=np.int32)
        for term in terms:
            counts += holds(term)
        matching = np.flatnonzero((counts > 0) & passes)
        return matching[np.argsort(-counts[matching], kind="stable")]

    def _in_path(self, term: str) -> NDArray[np.bool_]:
        """Whether each file's path holds a lower-cased term."""
        return self._flags(self._paths.holding(term.encode()))

    def _in_content(self, term: str) -> NDArray[np.bool_]:
        """Whether each file's content holds a lower-cased term."""
        parts = term.split(" ")
        holds = reduce(np.logical_and, (self._files_of_words_with(part) for part in parts))
        if len(parts) == 1:
            return holds
        needle = term.encode()
        return self._flags([row for row in np.flatnonzero(holds).tolist() if needle in self._texts[row]])

    def _files_of_words_with(self, term: str) -> NDArray[np.bool_]:
        word_rows = np.asarray(self._words.holding(term.encode()), dtype=np.int64)
        flags = np.zeros(len(self), dtype=np.bool_)
        starts, lengths = self._indptr[word_rows], self._indptr[word_rows + 1] - self._indptr[word_rows]
        # The postings of all words: a running number within each word, plus the start of the word.
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flags[self._files[np.repeat(starts, lengths) + within]] = True
        return flags

    def _flags(self, rows: Sequence[int]) -> NDArray[np.bool_]:
        flags = np.zeros(len(self), dtype=np.bool_)
        flags[list(rows)] = True
        return flags


class _Rows:
    """Lines of one buffer."""

    def __init__(self, folder: Path, name: str) -> None:
        self._buffer = (folder / f"{name}.txt").read_bytes()
        self._starts: list[int] = np.load(folder / f"{name}.npy", allow_pickle=False).tolist()

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, row: int) -> bytes:
        return self._buffer[self._starts[row] : self._starts[row + 1]]

    def holding(self, needle: bytes) -> list[int]:
        """The numbers of the lines that hold a needle without a line break."""
        rows: list[int] = []
        find, starts = self._buffer.find, self._starts
        at = find(needle)
        while at >= 0:
            row = bisect_right(starts, at) - 1
            rows.append(row)
            at = find(needle, starts[row + 1])
        return rows


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _write(folder: Path, name: str, lines: Iterable[str]) -> None:
    rows = [line.encode("utf-8", "replace") + _BREAK for line in lines]
    (folder / f"{name}.txt").write_bytes(b"".join(rows))
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    np.save(folder / f"{name}.npy", starts, allow_pickle=False)


PART = StoredPart(
    "scan",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda folder, index: build_scan(folder, index.documents),
    open=lambda folder, index: ScanIndex(folder, index.memory),
)
