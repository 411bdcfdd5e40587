from __future__ import annotations

import pytest

from ragbench.extras.collect.search_log import personal


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mail jane.doe+x@example.co.uk", "a mail address"),
        ("why is ghp_0123456789abcdefABCD refused", "a token"),
        ("AKIAABCDEFGHIJKLMNOP", "a token"),
        ("Authorization: Bearer abc.def-ghi_jkl", "a token"),
        ("password=hunter22", "a token"),
        ("9f86d081884c7d659a2feaa0c55ad015", "a token"),
        ("clone https://me:secret@intranet/x", "a token"),
        ("ssh 81.23.4.5", "an IP address"),
        ("call +49 (30) 1234 5678", "a long number"),
        ("4111 1111 1111 1111", "a long number"),
    ],
)
def test_personal_data_are_recognised(text: str, kind: str) -> None:
    assert personal(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "how do I reset a password",
        "error 0x80070005 in version 1.25.3",
        "127.0.0.1 refused",
        "getUserByIdAndOrganizationName",
        "docs/getting-started/installation-on-windows.md",
        "between 2024-01-01 12:30 and 2024",
        "token bucket rate limits",
        "@property decorator",
    ],
)
def test_usual_queries_are_no_personal_data(text: str) -> None:
    assert personal(text) == ""
