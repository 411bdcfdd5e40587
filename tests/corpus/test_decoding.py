"""Encodings of files."""

import pytest

from ragbench.corpus.reader import decoded


def names(raw: bytes) -> list[str]:
    return [warning.name for warning in decoded("a.md", raw)[1]]


def test_decoding_utf8_is_read_without_a_warning() -> None:
    assert decoded("a.md", "Größe, 10 µs".encode()) == ("Größe, 10 µs", [])


def test_decoding_byte_order_mark_is_dropped() -> None:
    assert decoded("a.md", b"\xef\xbb\xbf# A") == ("# A", [])


@pytest.mark.parametrize("raw", [b"a\r\nb\r\n", b"a\rb\r", b"a\nb\n"])
def test_decoding_line_ends_become_lf(raw: bytes) -> None:
    assert decoded("a.md", raw) == ("a\nb\n", [])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_decoding_other_unicode_encodings_are_read_by_their_mark(encoding: str) -> None:
    text, warnings = decoded("a.md", "# Größe\r\n".encode(encoding))
    assert text == "# Größe\n"
    assert [warning.name for warning in warnings] == ["encoding"]
    assert encoding in warnings[0].message


def test_decoding_windows_1252_is_guessed() -> None:
    text, warnings = decoded("a.md", "Größe €".encode("cp1252"))
    assert text == "Größe €"
    assert str(warnings[0]) == ("a.md: encoding: read as cp1252 because line 1 is not UTF-8; save the file as UTF-8.")


def test_decoding_keeps_utf8_around_other_bytes() -> None:
    text, warnings = decoded("a.md", "# Größe\n\n".encode() + "naïve € \u2013 ".encode("cp1252") + "日本".encode())
    assert text == "# Größe\n\nnaïve € \u2013 日本"
    assert "line 3" in warnings[0].message


def test_decoding_nul_bytes_keep_their_place() -> None:
    text, warnings = decoded("a.md", b"a\0b\0")
    assert text == "a\ufffdb\ufffd"
    assert [warning.name for warning in warnings] == ["nul-bytes"]
    assert warnings[0].message == "2 NUL bytes in the text; remove them."


def test_decoding_several_faults_are_several_warnings() -> None:
    assert names(b"\xff\0") == ["encoding", "nul-bytes"]
