"""P7: retrieve code blocks by their identifiers."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ragbench.base.bounds import Count, Name, Share
from ragbench.base.errors import ConfigError
from ragbench.base.types import QueryState, Ranking
from ragbench.index.code import common_name
from ragbench.search.stages.signals import names_code
from ragbench.search.stages.stage import Retriever

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class RetrieveCode(Retriever):
    """Take the chunks of the `depth` (at least 1) best code blocks, by BM25 over identifiers and their parts.

    Seeds 000 and 001, P7. A chunk has the score of its best block. `route`: `content` searches code only for queries
    that hold a name as in a program (seed 000, Q3), `always` for every query. `min_match` (0 to 1) is the share of the
    query's terms, without function words, that a block must hold; the parts of a name are terms, too. `language`
    restricts the search to blocks of one fence language, by any of its names (`py` is `python`).
    """

    depth: Count = 50
    route: Literal["content", "always"] = "content"  # only queries with a name from a program; always: every query
    min_match: Share = 0.5  # share of the query's terms that a block must hold
    language: Name | None = None  # only blocks of this fence language

    by: ClassVar[str] = "words"
    source: ClassVar[str] = "code"
    needs: ClassVar[frozenset[str]] = frozenset({"chunks", "code"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language is not None and not _is_language(self.language):
            raise self.refused(
                "language", f"must be a language of code that Pygments knows{_language_hint(self.language)}"
            )

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """Best chunks of every state's text. ConfigError for a language that no block of the collection has."""
        if states and self.language is not None and common_name(self.language) not in index.code.languages:
            known = ", ".join(sorted(name for name in index.code.languages if name)) or "none"
            raise ConfigError(f"p7.language is {self.language}, but the collection's code blocks are in: {known}")
        return [self._chunks(state, index) for state in states]

    def _chunks(self, state: QueryState, index: Index) -> Ranking:
        text = state.text_for(self.source)
        if self.route == "content" and not names_code(text):
            return Ranking.empty()
        allowed = index.allowed(state.filters)
        mask = None if allowed is None else allowed[index.chunks.chunk_of_block]
        blocks = index.code.search(text, self.depth, self.language, mask, self.min_match)
        chunks = index.chunks.chunk_of_block[blocks.chunks]
        first = np.unique(chunks, return_index=True)[1]
        return Ranking.of(chunks[first], blocks.scores[first])

    def describe(self) -> str:
        return f"retrieve {self.depth} code blocks{' of ' + self.language if self.language else ''}"


def _is_language(name: str) -> bool:
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        find_lexer_class_by_name(name.strip())
    except ClassNotFound:
        return False
    return True


def _language_hint(name: str) -> str:
    from pygments.lexers import get_all_lexers

    known = [alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f", got '{name}'; did you mean {near[0]}?" if near else f" such as python, json or bash, got '{name}'"
