from __future__ import annotations

from ragbench.benchmark.phrases import Finder, words


def test_finder_finds_passage_by_words() -> None:
    finder = Finder([words("Rotate the signing key daily")])
    text = "Do *rotate the\n  signing* **key**, daily. Rotate the signing key weekly."
    assert [text[start:end] for start, end in finder.spans(text)] == ["rotate the\n  signing* **key**, daily"]


def test_finder_takes_longest_passage_of_a_paragraph() -> None:
    finder = Finder([("one", "two"), ("one", "two", "three"), ("four",)])
    text = "one two three. one two\n\nthree one\n# two\nfour"
    assert [text[start:end] for start, end in finder.spans(text)] == ["one two three", "one two", "four"]


def test_words_are_letters_digits_and_ideographs() -> None:
    assert words("Don't _use_ 鍵束 v2.1!") == ("don", "t", "use", "鍵", "束", "v2", "1")


def test_dot_between_kana_is_punctuation() -> None:
    assert words("データ・ベース") == words("データ ベース") == tuple("データベース")
