"""Where hits and their fields stand in an answer of unknown shape: proposed from one answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ragbench.base.types import LiveError

_DEEPEST = 5
_NAMES: Mapping[str, tuple[str, ...]] = {
    "document": ("path", "url", "href", "link", "file", "filename", "uri", "permalink", "slug", "docno", "id", "title"),
    "text": ("text", "content", "snippet", "body", "excerpt", "summary", "highlight", "description"),
    "section": ("anchor", "section", "heading", "fragment"),
    "score": ("score", "_score", "relevance", "_rankingScore", "similarity", "rank_score"),
}


@dataclass(frozen=True)
class ResponseMapping:
    """The keys of `live` by name, and how many of the hits name a document of the collection."""

    keys: Mapping[str, str]
    hits: int
    matched: int


def infer_mapping(answer: Any, is_known: Callable[[str], bool]) -> ResponseMapping:
    """The list of objects or names with most documents (`is_known`), and of its fields the one that names most.

    A list inside the objects of another one counts where the outer names no document. If none names any, it is
    the list with most usual fields. Raises LiveError for an answer without such a list.
    """
    lists = [(hits, _mapping(path, hits, is_known)) for path, hits in _lists(answer, "")]
    if not lists:
        raise LiveError(
            f"the answer has no list of hits (it begins {str(answer)[:80]!r}): ask for a query that finds something, "
            "or write the arm as docs/measure-existing-search.md shows"
        )
    hits, mapping = max(lists, key=lambda pair: _preference(pair[1]))
    if not _is_usable(mapping):
        raise LiveError(
            f"a hit names no document and has no text ({str(hits[0])[:80]!r}): see docs/measure-existing-search.md"
        )
    return mapping


def _preference(mapping: ResponseMapping) -> tuple[bool, bool, int, int, int, int]:
    nested = mapping.keys["hits"].count("[]")
    return mapping.matched > 0, _is_usable(mapping), -nested, mapping.matched, len(mapping.keys), mapping.hits


def _is_usable(mapping: ResponseMapping) -> bool:
    return "document" in mapping.keys or "text" in mapping.keys


def _mapping(path: str, hits: Sequence[Any], is_known: Callable[[str], bool]) -> ResponseMapping:
    listed = [dict([("@", hit)] if isinstance(hit, str) else _fields(hit, "")) for hit in hits]
    names = dict.fromkeys(name for hit in listed for name in hit)
    fields = {name: [hit[name] for hit in listed if name in hit] for name in names}
    complete = {name: values for name, values in fields.items() if len(values) == len(hits)}
    numbers = [name for name, values in complete.items() if all(map(_is_number, values))]
    texts = {name: values for name, values in complete.items() if all(isinstance(value, str) for value in values)}
    document, prefix, named = _document(texts, is_known)
    others = [name for name in texts if name != document]
    keys = {
        "hits": path or "@",
        "document": document,
        "prefix": prefix,
        "text": _usual("text", others),
        "section": _usual("section", others),
        "score": _usual("score", numbers),
    }
    return ResponseMapping({name: value for name, value in keys.items() if value}, len(hits), named)


def _document(texts: Mapping[str, list[str]], is_known: Callable[[str], bool]) -> tuple[str, str, int]:
    """The field that names documents, what usually stands before their names, and how many hits it names.

    Empty where no field does and none has a usual name.
    """
    prefixes = {name: [_prefix(value, is_known) for value in values] for name, values in texts.items()}
    counted = {name: sum(chunk is not None for chunk in chunks) for name, chunks in prefixes.items()}
    best = max(texts, key=lambda name: (counted[name], -_place("document", name)), default="")
    if not best or not (counted[best] or best == "@" or _is_usual("document", best)):
        return "", "", 0
    usual_prefix = Counter(prefix for prefix in prefixes[best] if prefix is not None).most_common(1)
    return best, usual_prefix[0][0] if usual_prefix else "", counted[best]


def _usual(kind: str, names: Iterable[str]) -> str:
    """The field that most usually holds something, empty where none does."""
    return min((name for name in names if _is_usual(kind, name)), key=lambda name: _place(kind, name), default="")


def _is_usual(kind: str, name: str) -> bool:
    return _place(kind, name) < len(_NAMES[kind])


def _prefix(name: str, is_known: Callable[[str], bool]) -> str | None:
    """The folders before the part of a path or address that names a document; None where no part does."""
    parts = urlsplit(name).path.strip("/").split("/") if "/" in name else [name]
    return next(("/".join(parts[:i]) for i in range(len(parts)) if is_known("/".join(parts[i:]))), None)


def _lists(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Every list of objects or texts in an answer, with its expression; those inside of objects of a list joined."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for key, inner in value.items():
            yield from _lists(inner, _below(path, key), depth + 1)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        yield path, value
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        yield path, value
        for key in dict.fromkeys(key for item in value for key in item) if depth < _DEEPEST else ():
            inside = [item[key] for item in value if isinstance(item.get(key), list)]
            yield from _lists([hit for hits in inside for hit in hits], _below(f"{path}[]", f"{key}") + "[]", depth + 1)


def _fields(hit: Mapping[str, Any], path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in hit.items():
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from _fields(value, _below(path, key), depth + 1)
        elif isinstance(value, (str, int, float)):
            yield _below(path, key), value


def _below(path: str, key: object) -> str:
    name = str(key) if re.fullmatch(r"[A-Za-z_]\w*", str(key)) else '"' + str(key).replace('"', '\\"') + '"'
    return f"{path}.{name}" if path else name


def _place(kind: str, name: str) -> int:
    """The place of a field's last part among the usual names, their number where it is not one of them."""
    last = name.rpartition(".")[2].strip('"')
    return _NAMES[kind].index(last) if last in _NAMES[kind] else len(_NAMES[kind])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
