from __future__ import annotations

from ragbench.benchmark.phrases import Finder, words


def test_a_passage_is_found_by_its_words_whatever_stands_between_them() -> None:
    finder = Finder([words("Rotate the signing key daily")])
    text = "Do *rotate the\n  signing* **key**, daily. Rotate the signing key weekly."
    assert [text[start:end] for start, end in finder.spans(text)] == ["rotate the\n  signing* **key**, daily"]


def test_the_longest_passage_wins_and_none_reaches_into_the_next_paragraph_heading_or_fence() -> None:
    finder = Finder([("one", "two"), ("one", "two", "three"), ("four",)])
    text = "one two three. one two\n\nthree one\n# two\nfour"
    assert [text[start:end] for start, end in finder.spans(text)] == ["one two three", "one two", "four"]


def test_words_are_letters_and_digits_and_every_ideograph() -> None:
    assert words("Don't _use_ 鍵束 v2.1!") == ("don", "t", "use", "鍵", "束", "v2", "1")
