"""The language of a text."""

import pytest

from ragbench.index.language_detection import language, languages
from tests.tables import rows


@pytest.mark.parametrize(("text", "name"), rows("index_language_detection", "language_is_recognised"))
def test_language_is_recognised(text: str, name: str) -> None:
    assert language(text) == name


def test_languages_of_few_texts_are_not_named() -> None:
    texts = ["The lamp and the house of it."] * 39 + ["Die Kette ist nicht mit der Kette."]
    assert languages(texts) == [("English", 39)]
    assert languages(texts[20:]) == [("English", 19), ("German", 1)]
