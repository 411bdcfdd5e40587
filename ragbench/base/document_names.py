"""The words in the names of documents, and which names hold none.

A path is cut at separators and where letter case changes: `adr/0007-useOpaqueTokens` gives `adr 0007 useOpaqueTokens
use Opaque Tokens`. Names of folder pages (`index`, `_index`, `README`) are excluded, and so are ids, which
users do not type from memory: UUIDs, numbers of eight digits or more, hexadecimal words of seven letters or more that
hold a digit, and words of ten characters or more in which letter case or digits change at about every second character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote

_FOLDER_PAGES = frozenset({"index", "_index", "readme"})
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s/_.\-~+,;:()\[\]{}]+")
_HEXADECIMAL = re.compile(r"(?=.*\d)[0-9a-f]{7,}", re.IGNORECASE)
_NUMBER = re.compile(r"\d{8,}")
_LONG = 10
_KEPT = 65_536  # paths: several parts of an index ask for the same ones, and so does every refresh
_SHORT_PIECES = 2.1  # characters to a piece, on average


def readable(docno: str) -> str:
    """The name of a document as a reader sees it: `my notes/a b` for `my%20notes/a%20b`."""
    return unquote(docno, errors="replace")


@lru_cache(_KEPT)
def words_of_path(docno: str, path: str) -> str:
    """The words of folders and file name; a word that changes case is followed by its parts of two letters or more.

    Empty when `path` is the docno itself, without folders: such a path is the id of a record.
    """
    if path == docno and "/" not in docno:
        return ""
    folders, _, name = readable(docno).rpartition("/")
    words: list[str] = []
    for word in _words(folders if name.casefold() in _FOLDER_PAGES else f"{folders}/{name}"):
        pieces = _split_at_case(word)
        words += [word, *(piece for piece in pieces if len(pieces) > 1 and (len(piece) > 1 or piece.isdigit()))]
    return " ".join(words)


def is_untitled(title: str, path: str) -> bool:
    """Whether a record of a test collection has no title or its id as title; a file's title is never its whole path."""
    return not title or title == path


def has_words(title: str) -> bool:
    """Whether a title holds any word that a user could search for."""
    return any(_words(title))


def _words(text: str) -> Iterator[str]:
    return (word for word in _SEPARATORS.split(_UUID.sub(" ", text)) if word and not _is_id(word))


def _is_id(word: str) -> bool:
    """Whether a word looks machine-made: `a3f9c21`, `20250611093000`, `pCz3Ms8GNvRy`."""
    if _NUMBER.fullmatch(word) or _HEXADECIMAL.fullmatch(word):
        return True
    return len(word) >= _LONG and len(word) < _SHORT_PIECES * len(_split_at_case(word))


def _split_at_case(word: str) -> list[str]:
    """`HTTPServer2` -> `HTTP`, `Server`, `2`: cut before a capital that begins a word, and at digits."""
    starts = [0]
    for position, (one, second) in enumerate(pairwise(word), start=1):
        begins = second.isupper() and (not one.isupper() or word[position + 1 : position + 2].islower())
        if begins or one.isdigit() != second.isdigit():
            starts.append(position)
    return [word[start:stop] for start, stop in zip(starts, [*starts[1:], len(word)], strict=True)]
