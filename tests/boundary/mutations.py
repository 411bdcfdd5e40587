"""Structure-aware mutations of JSON and YAML: a value is taken apart and put together with one thing wrong.

A mutation knows the format: it replaces a value by one of another type, repeats a key, nests a value two hundred
thousand times, or writes a number that does not fit. Random bytes would hardly ever pass the first character.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

DEEP = 200_000
RAW = (
    "NaN",
    "-Infinity",
    "1e999",
    "-1e999",
    "9" * 5000,
    "-" + "9" * 30,
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    "[" * DEEP + "]" * DEEP,
    '{"a":' * 5000 + "1" + "}" * 5000,
    '{"a": 1, "a": 2}',
    "[1,]",
    "{'a': 1}",
    "01",
    '"\t"',
    "true",
    "null",
    "[]",
    "{}",
    "-1",
    "0",
    "0.5",
    '""',
    '"../../etc/passwd"',
    '"' + "x" * 10_000 + '"',
    "[null]",
    '[{"a": []}]',
)
"""Values as text, each of which some reader takes for something else."""


def json_texts(value: Any, chance: random.Random) -> Iterator[bytes]:
    """Endless texts, each the value with one thing wrong."""
    whole = json.dumps(value)
    places = list(_places(value))
    while True:
        kind = chance.randrange(10)
        if kind < 6 and places:
            yield _with_raw(value, chance.choice(places), chance.choice(RAW)).encode()
        elif kind == 6:
            yield _without(value, chance).encode()
        elif kind == 7:
            yield whole[: chance.randrange(len(whole))].encode()
        elif kind == 8:
            yield _flipped(whole.encode(), chance)
        else:
            yield chance.choice([b"", b"\xff\xfe", b"\xef\xbb\xbf" + whole.encode(), whole.encode("utf-16"), b"null"])


def yaml_texts(text: str, chance: random.Random) -> Iterator[bytes]:
    """Endless texts, each the file with one thing wrong."""
    lines = text.splitlines() or [""]
    raw = (
        "&a [*a]",
        "&a {b: *a}",
        "*nowhere",
        "!!python/object/apply:os.system ['true']",
        "!!bool x",
        "!!int",
        "2026-02-30",
        "9" * 6000,
        ".inf",
        ".nan",
        "[" * 3000 + "]" * 3000,
        '"\\ud800"',
        "'unclosed",
        "{a: 1, a: 2}",
        "? [a, b]\n: c",
        "\t",
        "%YAML 9.9",
        "- - - -",
        "${oc.env:HOME}",
        "1_000",
        "~",
    )
    changes: list[Callable[[list[str], int], None]] = [
        lambda now, at: now.insert(at, now[at]),  # the same key again
        lambda now, at: now.pop(at),
        lambda now, at: now.__setitem__(at, f"{now[at].partition(':')[0]}: {chance.choice(raw)}"),
        lambda now, at: now.__setitem__(at, f" {now[at]}"),
        lambda now, at: now.__setitem__(at, f"\t{now[at]}"),
        lambda now, at: now.insert(at, "---"),
        lambda now, at: now.insert(at, chance.choice(raw)),
        lambda now, at: now.append("  " * 60 + "deep: 1"),
    ]
    while True:
        now = list(lines)
        if chance.random() < 0.1:
            yield _flipped(text.encode(), chance)
            continue
        chance.choice(changes)(now, chance.randrange(len(now)))
        yield "\n".join(now).encode("utf-8", "surrogatepass")


def run_texts(text: str, chance: random.Random) -> Iterator[bytes]:
    """Endless run files in TREC form, each the file with one thing wrong."""
    rows = [line.split() for line in text.splitlines()]
    raw = (
        "nan",
        "inf",
        "-1e999",
        "1_000",
        "\uff11\uff12",
        "0x10",
        "1,5",
        "",
        "\x00",
        "\ufeff1",
        "9" * 5000,
        "a b",
        "a\u00a0b",
    )
    raw += (
        "\u2003",
        "\x1c",
        "\x85",
        "\t",
        "#",
        "x" * 10_000,
        "../../etc/passwd",
        "\u2028",
        "+.5",
        "1.",
        "\r",
        "\u202e",
    )
    while True:
        now = [list(row) for row in rows]
        at = chance.randrange(len(now))
        kind = chance.randrange(8)
        if kind < 4:
            now[at][chance.randrange(len(now[at]))] = chance.choice(raw)
        elif kind == 4:
            now.insert(at, list(now[at]))  # the same hit again
        elif kind == 5:
            del now[at][chance.randrange(len(now[at]))]
        content = "\n".join(chance.choice([" ", " ", "\t"]).join(row) for row in now).encode("utf-8", "surrogatepass")
        if kind == 6:
            content = _flipped(content, chance)
        elif kind == 7:
            content = chance.choice([b"", b"\xef\xbb\xbf" + content, content.decode().encode("utf-16"), content[:-9]])
        yield content


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, (*path, number))


def _with_raw(value: Any, path: tuple[Any, ...], raw: str) -> str:
    """The text of a value in which the part at `place` is this text."""
    if not path:
        return raw
    if isinstance(value, Mapping):
        items = (
            (key, _with_raw(inner, path[1:], raw) if key == path[0] else json.dumps(inner))
            for key, inner in value.items()
        )
        return "{" + ", ".join(f"{json.dumps(key)}: {inner}" for key, inner in items) + "}"
    parts = (_with_raw(v, path[1:], raw) if n == path[0] else json.dumps(v) for n, v in enumerate(value))
    return "[" + ", ".join(parts) + "]"


def _without(value: Any, chance: random.Random) -> str:
    """The text without one key or element anywhere."""
    places = [path for path in _places(value) if path]
    if not places:
        return "null"
    copy = json.loads(json.dumps(value))
    *above, last = chance.choice(places)
    parent = copy
    for part in above:
        parent = parent[part]
    del parent[last]
    return json.dumps(copy)


def _flipped(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return b"\x00"
    changed = bytearray(content)
    bit = chance.randrange(len(changed) * 8)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
