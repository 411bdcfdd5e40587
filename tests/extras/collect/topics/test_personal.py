from __future__ import annotations

import pytest

from ragbench.extras.collect.search_log import personal
from tests.tables import rows


@pytest.mark.parametrize(("text", "kind"), rows("collect_topics_personal", "personal_data_are_recognised"))
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
