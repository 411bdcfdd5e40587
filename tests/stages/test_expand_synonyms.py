"""P5: WordNet's synonyms in the words of the query; the expected ones were looked up in WordNet 3.0 by hand."""

import pytest

from ragbench.search.stages.expand import ExpandSynonyms


def expanded(state, index, text: str, **parameters) -> str:
    (after,) = ExpandSynonyms(**parameters)([state(text)], index)
    return after.text_for("lexical")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # car.n.01 begins car, auto; car.n.02 car, railcar
        ("car", "car auto railcar"),
        # authenticate has no synonym; user.n.01 is user alone, the second meaning begins exploiter, user.
        # Seed 000 shows "authenticate user verify credential" here, which WordNet does not give.
        ("authenticate user", "authenticate user exploiter"),
        # irregular plural: mouse.n.01 is mouse alone, the second begins shiner, black_eye
        ("mice", "mice mouse shiner"),
        # error.n.01 begins mistake, error; the second erroneousness, error
        ("Error?", "Error? mistake erroneousness"),
        ("error of an error", "error mistake erroneousness of an error mistake erroneousness"),
    ],
)
def test_expand_synonyms_adds_them_after_their_word(state, index, text: str, expected: str) -> None:
    assert expanded(state, index, text) == expected


@pytest.mark.parametrize("text", ["xyzzy", "KIT-5204", "C++", "", "   "])
def test_expand_synonyms_keeps_unknown_words(state, index, text: str) -> None:
    (after,) = ExpandSynonyms()([state(text)], index)
    assert after == state(text)


def test_expand_synonyms_skips_function_words_by_default(state, index) -> None:
    # WordNet's first meanings of "in" are the inch and the chemical element indium
    assert expanded(state, index, "in") == "in"
    assert expanded(state, index, "in", function_words=True) == "in inch indium"


def test_expand_synonyms_limits_their_number(state, index) -> None:
    assert expanded(state, index, "car", max_synonyms=1) == "car"  # the first word of both meanings is car itself
    assert expanded(state, index, "car", synsets=1) == "car auto"
    assert expanded(state, index, "car", max_synonyms=3, synsets=1) == "car auto automobile"


def test_expand_synonyms_other_sources_and_notes(state, index) -> None:
    (after,) = ExpandSynonyms(sources=("lexical", "code"))([state("car").with_text("code", "Car()")], index)
    assert after.text_for("code") == "Car()"  # the word as written there is another one
    assert after.text_for("dense") == "car"
    assert after.notes == ("synonyms: car: auto, railcar",)
