"""The prefixes that known families of models expect before queries and passages, found by the model's name.

They are from the model cards. Where `needed` is false the card calls the prefix optional: bge v1.5 is as good without
it in many collections, so it is added only with `EncoderSpec.instruction`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Prefixes:
    """The texts before queries and passages, and whether the model needs them."""

    query: str = ""
    passage: str = ""
    needed: bool = True


_SEARCHING = "Represent this sentence for searching relevant passages: "
_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

_FAMILIES: tuple[tuple[str, str, Prefixes], ...] = (
    ("bge, English", r"bge-(small|base|large|micro)-en", Prefixes(_SEARCHING, needed=False)),
    (
        "bge, Chinese",
        r"bge-(small|base|large)-zh",
        Prefixes("为这个句子生成表示以用于检索相关文章\uff1a", needed=False),
    ),
    ("e5 with instructions", r"e5-.*instruct", Prefixes(_TASK)),
    ("e5", r"(^|-)e5-", Prefixes("query: ", "passage: ")),
    ("gte with instructions", r"gte-qwen.*instruct", Prefixes(_TASK)),
    ("nomic", r"nomic-embed-text|modernbert-embed", Prefixes("search_query: ", "search_document: ")),
    ("arctic v2", r"arctic-embed-.*v2", Prefixes("query: ")),
    ("arctic", r"arctic-embed", Prefixes(_SEARCHING)),
    ("mxbai", r"mxbai-embed", Prefixes(_SEARCHING)),
    ("uae", r"uae-large", Prefixes(_SEARCHING)),
    ("qwen3", r"qwen3-embedding", Prefixes(_TASK)),
    ("gemma", r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
)
"""(family, pattern of the model's name in lower case without the owner, prefixes); the first match counts. gte, bge-m3,
MiniLM and mpnet need no prefixes."""


def family(name: str) -> tuple[str, Prefixes]:
    """The family of a model and its prefixes, by its name without the owner; `("", none)` for an unknown one."""
    model = name.rstrip("/").rpartition("/")[2].casefold()
    return next(((known, found) for known, pattern, found in _FAMILIES if re.search(pattern, model)), ("", Prefixes()))


def prefixes(name: str, instruction: bool) -> tuple[str, str]:
    """The texts before queries and passages; `instruction` adds optional ones, too."""
    found = family(name)[1]
    return (found.query, found.passage) if found.needed or instruction else ("", "")
