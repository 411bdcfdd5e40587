"""The language of a text."""

import pytest

from ragbench.index.language_detection import language
from tests.tables import rows


@pytest.mark.parametrize(("text", "name"), rows("index_language_detection", "language_is_recognised"))
def test_language_is_recognised(text: str, name: str) -> None:
    assert language(text) == name
