"""The code artefact (P7): a Lucene index of code blocks by their identifiers and the parts of identifiers.

Seed 000, P7; seed 001, code block search. The analyzer is `ragbench.index.analyzers.code`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ragbench.base.query_cache import QueryCache
from ragbench.base.rankings import Ranking
from ragbench.boundary.json import read_json
from ragbench.index import lexical
from ragbench.index.lexical import Bm25F, LexicalIndex, LexicalSpec
from ragbench.index.parts import StoredPart
from ragbench.index.vocabulary import FUNCTION_WORDS

VERSION = lexical.VERSION * 100 + 1
_SPEC = LexicalSpec(fields=("code",), analyzer="code")

_LANGUAGES = "languages"
_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        "c#": "csharp",
        "c++": "cpp",
        "cs": "csharp",
        "golang": "go",
        "js": "javascript",
        "py": "python",
        "rs": "rust",
        "sh": "bash",
        "shell": "bash",
        "ts": "typescript",
        "yml": "yaml",
    }
)


def build_code(folder: Path, blocks: Sequence[Mapping[str, str]]) -> None:
    """Write the index of code blocks with `code` and `language` into `folder`."""
    languages = [common_name(block["language"]) for block in blocks]
    lexical.build_lexical(folder, _SPEC, blocks, {_LANGUAGES: json.dumps(languages)})


def common_name(language: str) -> str:
    """The common name of a language with several spellings: `py` and `Python` are `python`."""
    language = language.strip().lower()
    return _SPELLINGS.get(language, language)


class CodeIndex:
    """Code blocks by their identifiers; equal scores are in the order of block numbers."""

    def __init__(self, folder: Path, memory: QueryCache | None = None) -> None:
        """Open the artefact in `folder`; `IndexError_` when it is missing, damaged or foreign."""
        self._index = LexicalIndex(folder, _SPEC, Bm25F((("code", 1.0),)), memory)
        self._languages = np.array(read_json(self._index.notes[_LANGUAGES]), dtype=np.str_)
        self._in_language = lru_cache(64)(lambda language: self._languages == language)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def languages(self) -> Mapping[str, int]:
        """How many blocks there are of each language; `""` for fences that name none."""
        return Counter(self._languages.tolist())

    def search(
        self,
        text: str,
        depth: int,
        language: str | None = None,
        allowed: NDArray[np.bool_] | None = None,
        share: float = 0.0,
    ) -> Ranking:
        """The `depth` (at least 1) best blocks that hold any identifier of the text, or any part of one.

        Function words only count when the text has no other words. A block must hold at least the `share` (0 to 1) of
        the distinct terms that count. `language` and `allowed`, shape (n_blocks,), restrict the search itself.
        """
        if language is not None:
            in_language = self._in_language(common_name(language))
            allowed = in_language if allowed is None else in_language & allowed
        terms = Counter(self._index.terms(text))
        content = {term: float(n) for term, n in terms.items() if term not in FUNCTION_WORDS} or terms
        return self._index.search_terms(content, depth, allowed, max(1, math.ceil(share * len(content) - 1e-9)))

    def check(self) -> None:
        """Compare every file with its checksum; `IndexError_` names the first damaged one."""
        self._index.check()

    def close(self) -> None:
        """Close the files; later searches fail."""
        self._index.close()


PART = StoredPart(
    "code",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda folder, index: build_code(folder, index.chunks.blocks.select(["code", "language"]).to_pylist()),
    open=lambda folder, index: CodeIndex(folder, index.memory),
)
