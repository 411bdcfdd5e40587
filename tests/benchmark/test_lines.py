from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.lines import raw_lines, read_lines, read_objects, read_rows, write_atomically
from tests.naming import naming


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\u2028\x85\r\n\n \ntwo".encode())
    assert list(read_lines(path)) == [(1, "one\u2028\x85"), (4, "two")]


def test_lines_up_to_the_limit_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 9 + b"\n" + b"y" * 10 + b"\n")
    lines = raw_lines(path, max_bytes=10)
    assert next(lines) == (1, "x" * 9 + "\n")
    with pytest.raises(BenchmarkError, check=naming("a.txt:2")):
        next(lines)


def test_lines_are_decoded_by_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xe9\n")
    assert list(read_lines(path, "latin-1")) == [(1, "café")]
    with pytest.raises(ConfigError):
        list(read_lines(path, "klingon"))
    with pytest.raises(ConfigError):
        list(read_lines(path, "utf-16"))
    with pytest.raises(BenchmarkError):
        list(read_lines(tmp_path))


@given(
    rows=st.lists(
        st.lists(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])), min_size=2, max_size=2)
    ),
    separator=st.sampled_from(",;\t"),
    mark=st.booleans(),
)
def test_tables_are_read_as_spreadsheets_save_them(
    rows: list[list[str]], separator: str, mark: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.csv"
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\r\n").writerows([["Text", " note "], *rows])
    path.write_bytes((b"\xef\xbb\xbf" if mark else b"") + buffer.getvalue().encode())
    texts = [[row["text"], row["note"]] for _, row in read_rows(path)]
    assert texts == [row for row in rows if any(cell.strip() for cell in row)]


def test_line_numbers_count_the_lines_inside_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,note\n"one\ntwo",x\n\nthree,y\n')
    assert [number for number, _ in read_rows(path)] == [2, 5]


@given(raw=st.binary(max_size=200))
def test_read_rows_survives_any_bytes(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("t")
    for read, name in ((read_objects, "a.jsonl"), (read_rows, "a.csv"), (read_judgments, "a.tsv")):
        path = folder / name
        path.write_bytes(raw)
        try:
            list(read(path))  # type: ignore[operator]
        except BenchmarkError as error:
            assert str(path) in str(error)


def test_write_atomically_replaces_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "a.txt"
    write_atomically(path, "old\n")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BenchmarkError):
        write_atomically(path, "new\n")
    assert path.read_text() == "old\n"
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


def test_write_atomically_keeps_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, "old\n")
    path.chmod(0o600)
    write_atomically(path, "new\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_reader_refuses_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queries.csv")
    with pytest.raises(BenchmarkError, check=naming("pipe")):
        list(read_rows(tmp_path / "queries.csv"))
