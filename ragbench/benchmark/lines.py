"""Lines of text files, streamed, with errors that name file and line."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from ragbench.base import files
from ragbench.base.types import BenchmarkError, BoundaryError, ConfigError, shown, why_unreadable
from ragbench.boundary.json import read_json, read_json_file
from ragbench.boundary.yaml import read_yaml_file

MAX_LINE_BYTES = 10_000_000
"""The longest line that is read; a longer one is a damaged file or not a file of lines."""

QUERY = ("query", "question", "q", "text")
_EXPECTED = "relevant expected_ids expected docno docs documents sources doc_id docid url path"
EXPECTED = tuple(_EXPECTED.split(" "))
"""The fields of a query and of its answers, by preference; `name_of_field` reads similar names as the first."""

_OF_PAGES = re.compile(
    r"(?:expected|relevant|gold(?:en)?|ground_?truth)(?:_?(?:doc(?:ument)?|page|source|path|file|url|id)s?)+"
)
_NOT_IN_ID = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXCEL_HINT = re.compile(r"\s*\"?sep=.\"?\s*")  # which separator follows
_SUFFIXES = {".csv": "", ".tsv": "\t", ".txt": "\t"}
_OF_ROWS, _OF_CASES = (".jsonl", ".ndjson", ".gz", *_SUFFIXES), (".json", ".yaml", ".yml")


def identifier(name: Any) -> str:
    """An id as a TREC file can hold it: white space and unprintable characters as `%XX`, outer blanks dropped."""
    return _NOT_IN_ID.sub(lambda m: quote(m[0].encode("utf-8", "surrogatepass")), str(name).strip())


def raw_lines(
    path: Path, encoding: str = "utf-8", max_bytes: int = MAX_LINE_BYTES
) -> Generator[tuple[int, str], None, None]:
    """(number from 1, text with its line end) of every line; files named `.gz` are unpacked.

    Lines end at LF only: a U+2028 inside a JSON text is not a line end. A UTF-8 byte order mark is dropped. Raises
    BenchmarkError for a missing or damaged file, bytes that do not fit `encoding` and lines over `max_bytes`;
    ConfigError for an unknown encoding.
    """
    try:
        suits = "\n".encode(encoding) == b"\n"
    except LookupError:
        raise ConfigError(
            f"encoding '{encoding}' is unknown: use utf-8, latin-1 or another of Python's names"
        ) from None
    if not suits:
        raise ConfigError(f"encoding '{encoding}' cannot be read by lines: save {path} as UTF-8")
    try:
        with _open(path) as stream:
            number = 0
            while raw := stream.readline(max_bytes + 1):
                number += 1
                if len(raw) > max_bytes:
                    size = f"{max_bytes / 1e6:g} MB"
                    raise BenchmarkError(f"{path}:{number} is longer than {size}: one record per line is expected")
                if number == 1:
                    raw = raw.removeprefix(_BYTE_ORDER_MARK)
                yield number, _decode(path, number, raw, encoding)
    except FileNotFoundError:
        raise BenchmarkError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise BenchmarkError(f"{path} is a folder: name a file") from None
    except EOFError:
        raise BenchmarkError(f"{path} ends in the middle of its compressed data: fetch it again") from None
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from None


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """(number from 1, text without its line end) of every line that is not blank."""
    for number, line in raw_lines(path, encoding):
        if line.strip():
            yield number, line.rstrip("\r\n")


def read_objects(
    path: Path, encoding: str = "utf-8", broken: list[int] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every line of a JSONL file; lone surrogates in its texts become U+FFFD.

    The numbers of lines that are not JSON are added to `broken`; BenchmarkError without that list.
    """
    for number, line in read_lines(path, encoding):
        if is_comment(line):
            continue
        try:
            row = read_json(line, own=True)
        except BoundaryError as error:
            if broken is not None:
                broken.append(number)
                continue
            raise BenchmarkError(f"{path}:{number} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise BenchmarkError(f"{path}:{number} must be a JSON object, got {shown(row)}")
        yield number, {key: _storable(value) for key, value in row.items()}


def is_comment(line: str) -> bool:
    """Whether a line of a JSONL file is a comment, as some tools allow."""
    return line.lstrip().startswith("//")


def name_of_field(written: object) -> str:
    """A name of a field in lower case; `relevant` for one such as `expectedDocs` or `relevant_page_ids`."""
    name = str(written).strip().lower()
    return EXPECTED[0] if _OF_PAGES.fullmatch(name) else name


def read_rows(path: Path, broken: list[int] | None = None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number, row by column name) of a JSONL, CSV or TSV file with a header; names are lower-case.

    The separator of a CSV is the one of `,`, `;` and tab that its header has most often. Cells missing at the end of a
    row are absent. A row with more cells than the header raises BenchmarkError: a text with commas needs quotes.
    `broken` is that of `read_objects`.
    """
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1].lower() if suffixes else ""
    if kind in (".jsonl", ".json", ".ndjson"):
        for number, row in read_objects(path, broken=broken):
            yield number, {key.strip().lower(): value for key, value in row.items()}
        return
    if kind not in _SUFFIXES:
        raise BenchmarkError(f"{path} must be a .jsonl, .csv or .tsv file, got '{path.suffix}'")
    header, _, rows = read_table(path)
    names = [name.strip().lower() for name in header]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise BenchmarkError(f"{path} has the column '{twice}' twice: name every column once")
    for number, cells in rows:
        yield number, dict(zip(names, cells, strict=False))


def read_rows_of_cases(path: Path) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(place, fields) of every query in a table (`read_rows`), or in JSON or YAML, with fields by `name_of_field`.

    JSON and YAML have a list of objects, such lists under any keys, or the expected pages by query.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_OF_CASES, *_OF_ROWS):
        raise BenchmarkError(f"{path} must be a .json, .jsonl, .yaml, .csv or .tsv file")
    if suffix in _OF_ROWS:
        return _rows_of_table(path)
    try:
        value = read_json_file(path) if suffix == ".json" else read_yaml_file(path)
    except BoundaryError as error:
        if suffix == ".json" and sum(line.lstrip().startswith("{") for _, line in read_lines(path)) > 1:
            return _rows_of_table(path)
        raise BenchmarkError(f"{path} cannot be read: {error}") from None
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {why_unreadable(error)}") from None
    cases = cases_in(value)
    if not cases and isinstance(value, Mapping):
        cases = [{"query": str(query), "expected": pages} for query, pages in value.items()]
    if not cases and value != []:
        raise BenchmarkError(f"{path} must have a list of objects with query and expected, got {shown(value)}")
    return ((f"{path}: case {number}", _named(row)) for number, row in enumerate(cases, start=1))


def _rows_of_table(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((f"{path}:{number}", _named(row)) for number, row in read_rows(path))


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name_of_field(key): cell for key, cell in row.items()}


def cases_in(value: Any) -> list[Mapping[str, Any]]:
    """The objects of every list in which one has a query, at any depth of objects."""
    if isinstance(value, Mapping):
        if any(isinstance(cell, str) and name_of_field(name) in QUERY for name, cell in value.items()):
            return [value]
        return [case for item in value.values() if isinstance(item, Mapping | list) for case in cases_in(item)]
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return []
    return value if any(name_of_field(name) in QUERY for item in value for name in item) else []


def read_table(path: Path) -> tuple[list[str], str, Iterator[tuple[int, list[str]]]]:
    """The header of a CSV file, its separator, and (line number, cells) of its rows."""
    with closing(_lines_of_table(path)) as lines:
        first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise BenchmarkError(f"{path} is empty: its first line must name the columns")
    separator = max(",;\t", key=first.count)
    records = _records(path, separator)
    _, header = next(records)
    return header, separator, _rows(path, header, records)


def _lines_of_table(path: Path) -> Generator[str, None, None]:
    """The lines of a CSV file, also those that end at CR; that of Excel's `sep=;` is blank."""
    for number, line in raw_lines(path):
        if number == 1 and _EXCEL_HINT.fullmatch(line):
            yield "\n"
        else:
            yield from re.split(r"(?<=\r)(?=[^\n])", line)


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_lines_of_table(path), delimiter=separator, strict=True)
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BenchmarkError(f"{path}:{start} is not CSV: {error}") from None
        if any(cell.strip() for cell in cells):
            yield start, cells
        start = reader.line_num + 1


def _rows(
    path: Path, header: Sequence[str], records: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    for number, cells in records:
        while len(cells) > len(header) and not cells[-1].strip():
            cells.pop()
        if len(cells) > len(header):
            raise BenchmarkError(
                f"{path}:{number} has {len(cells)} cells but the header {len(header)}: quote texts with separators"
            )
        yield number, cells


def write_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically: at any moment, even after a power cut, it holds the old text or the new one."""
    try:
        files.write_text(path, text)
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be written: {error.strerror or error}") from None


def _open(path: Path) -> BinaryIO:
    if path.is_fifo():  # reading it may never end, and some files are read twice
        raise BenchmarkError(f"{path} is a pipe: write its content into a file and name that")
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _decode(path: Path, number: int, raw: bytes, encoding: str) -> str:
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        guess = "UTF-16" if number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "another encoding"
        raise BenchmarkError(
            f"{path}:{number} is not {encoding.upper()} (byte {error.start + 1}; possibly {guess}): save it as UTF-8"
        ) from None
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _storable(value: Any) -> Any:
    """The value without lone surrogates and NUL: JSON can escape them, but neither UTF-8 nor an index can hold them."""
    if isinstance(value, str):
        if value.isascii():
            return value.replace("\0", "\ufffd") if "\0" in value else value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value
