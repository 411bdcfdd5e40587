"""JSON from outside: read within limits, and only what has one meaning.

Refused are repeated keys, NaN and Infinity, numbers that do not fit 64 bits, half of a surrogate pair (nothing can
write it) and deep nesting (it would exhaust the stack of whatever walks the value).

Sealed files hold a digest of their own content, so that a flipped bit or a cut is noticed, and the digests of other
files that must not change unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragbench.base.files import write_text
from ragbench.base.types import BoundaryError, Damaged, why_unreadable

_MAX_BYTES = 2**30
"""Of a file that ragbench wrote itself; what others send has smaller limits."""

SEAL = "seal"
MAX_DEPTH = 64
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SHOWN = 40


def read_json(
    content: bytes | str,
    *,
    max_bytes: int = _MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    own: bool = False,
) -> Any:
    """The value of a text of JSON. Raises BoundaryError, a ValueError.

    `own`: Python wrote it, where NaN, Infinity and halves of characters are values; what is done with them is up to the
    caller.
    """
    if len(content) > max_bytes:
        raise BoundaryError(f"larger than {size_in_words(max_bytes)}")
    text = decoded(content) if isinstance(content, bytes) else content
    try:
        value = (_OWN if own else _DECODER).decode(text)
        too_deep = _depth_of(value) > max_depth
    except json.JSONDecodeError as error:
        raise BoundaryError(f"invalid JSON at line {error.lineno}") from None
    except RecursionError:
        too_deep = True
    if too_deep:
        raise BoundaryError(f"nested deeper than {max_depth} levels")
    if not own and (_SURROGATE.search(text) or not isinstance(content, bytes)):
        _check_characters(value)
    return value


def read_json_file(path: Path, *, own: bool = False) -> Any:
    """The value of a JSON file. Raises BoundaryError, and OSError for a file that cannot be read."""
    return read_json(read_bytes(path), own=own)


def read_json_lines(content: bytes | str, *, max_bytes: int = _MAX_BYTES) -> Iterator[Any]:
    """The value of each line that is not blank. Raises BoundaryError with the number of the line."""
    text = decoded(content) if isinstance(content, bytes) else content
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield read_json(line, max_bytes=max_bytes)
            except BoundaryError as error:
                raise BoundaryError(f"{str(error).partition(' at line ')[0]} at line {number}") from None


def read_bytes(path: Path, max_bytes: int = _MAX_BYTES) -> bytes:
    """The content of a regular file. Raises BoundaryError for a larger one and for a pipe, device or folder."""
    status = path.stat()
    if path.is_dir():
        raise BoundaryError("a folder, not a file")
    if not path.is_file():
        raise BoundaryError("not a regular file")
    if status.st_size > max_bytes:
        raise BoundaryError(f"larger than {size_in_words(max_bytes)}")
    with path.open("rb") as stream:
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise BoundaryError(f"larger than {size_in_words(max_bytes)}")
    return content


def read_text(path: Path) -> str:
    """The text of a regular UTF-8 file. Raises BoundaryError as `read_bytes`, and OSError."""
    return decoded(read_bytes(path))


def decoded(content: bytes) -> str:
    """UTF-8 as text, without a byte order mark. Raises BoundaryError with the line of the first wrong byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BoundaryError(f"not valid UTF-8 at line {line}") from None


def _depth_of(value: Any) -> int:
    """How deep lists and mappings are nested. Raises RecursionError for what Python cannot walk."""
    if not isinstance(value, (dict, list)):
        return 0
    children = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth_of(child) for child in children if isinstance(child, (dict, list))), default=0)


def size_in_words(n_bytes: int) -> str:
    """A number of bytes with its unit: `20 MB`."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes // size} {unit}"
    return f"{n_bytes} bytes"


def _check_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BoundaryError("it holds half of a character (a lone surrogate)") from None


def _one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BoundaryError(f"the key '{excerpt(repeated)}' stands twice")
    return value


def _whole_number(digits: str) -> int:
    # Python refuses more than 4,300 digits with an error of its own.
    if len(digits) > 20 or not -(2**64) < (number := int(digits)) < 2**64:
        raise BoundaryError(f"the number {excerpt(digits)} does not fit in 64 bits")
    return number


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise BoundaryError(f"the number {excerpt(digits)} does not fit in 64 bits")
    return number


def _no_constant(name: str) -> float:
    raise BoundaryError(f"{name} is not a number of JSON")


def excerpt(value: object) -> str:
    """The beginning of a value as text that can be written, for a message."""
    text = str(value).encode("utf-8", "replace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_OWN = json.JSONDecoder(object_pairs_hook=_one_of_each, parse_int=_whole_number, parse_float=_number)
_DECODER = json.JSONDecoder(
    object_pairs_hook=_one_of_each, parse_int=_whole_number, parse_float=_number, parse_constant=_no_constant
)


def checksummed_json(value: Mapping[str, Any]) -> str:
    """A mapping as sealed JSON; values that JSON cannot hold become text."""
    text = json.dumps(value, indent=1, default=str)
    return json.dumps({**read_json(text, own=True), SEAL: _digest_of_text(text)}, indent=1)


def write_checksummed(path: Path, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write a mapping as sealed JSON; returns the mapping as it will be read."""
    text = checksummed_json(value)
    write_text(path, text)
    written = read_json(text, own=True)
    del written[SEAL]
    return dict(written)


def read_checksummed(path: Path) -> dict[str, Any]:
    """The mapping that `write_checksummed` wrote. Raises Damaged for a changed file, FileNotFoundError without one."""
    try:
        value = read_json_file(path, own=True)
        seal = value.pop(SEAL)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise Damaged(f"{path.name} cannot be read ({why_unreadable(error)})") from None
    if seal != _digest_of_text(json.dumps(value, indent=1)):
        raise Damaged(f"{path.name} has changed since it was written")
    return dict(value)


def _digest_of_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
