"""Bytes of a file -> text with `\n` line ends, whatever the encoding."""

from __future__ import annotations

import codecs

from ragbench.corpus.file_warning import FileWarning

_BYTE_ORDER_MARKS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(path: str, raw: bytes) -> tuple[str, list[FileWarning]]:
    """The text of a file: UTF-8, else what its byte order mark says, else Windows-1252. Never raises.

    A byte order mark is dropped, CRLF and CR become LF, NUL becomes U+FFFD (as CommonMark 2.3 asks), so a character
    offset into the result is valid everywhere downstream.
    """
    warnings: list[FileWarning] = []
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if raw.startswith(mark)), None)
    if encoding is None:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            encoding = "cp1252"
            where = f"byte {error.start} is not UTF-8"
        else:
            where = ""
    else:
        where = "according to its byte order mark"
    if encoding is not None:
        text = raw.decode(encoding, errors="replace")
        warnings.append(FileWarning(path, "encoding", f"read as {encoding} because {where}; save the file as UTF-8."))
    if "\0" in text:
        warnings.append(FileWarning(path, "nul-bytes", f"{text.count(chr(0))} NUL bytes in the text; remove them."))
        text = text.replace("\0", "\ufffd")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), warnings
