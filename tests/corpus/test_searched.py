"""Text is Unicode: what is indexed and asked is normalised, what is shown is not."""

import unicodedata

import pytest

from ragbench.benchmark.phrases import Finder, words
from ragbench.corpus.searched import normalised
from ragbench.index.texts import without_destinations


@pytest.mark.parametrize(
    ("written", "searched"),
    [
        ("plain", "plain"),
        (unicodedata.normalize("NFD", "Fähre Tromsø"), "Fähre Tromsø"),
        ("har\u00adbour", "harbour"),
        ("har\u200bbour\u2060", "harbour"),
        ("\u202eright\u202c", "right"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
    ],
)
def test_searched_text_is_normalised(written: str, searched: str) -> None:
    assert normalised(written) == searched


def test_passage_in_decomposed_letters_has_its_offsets() -> None:
    text = unicodedata.normalize("NFD", "Die Fähre fährt täg\u00adlich ab.")
    ((start, end),) = Finder([words("Fähre fährt täglich")]).spans(text)
    assert normalised(text[start:end]) == "Fähre fährt täglich"


@pytest.mark.parametrize(
    ("written", "searched"),
    [
        ('[tide tables](sea/tides.md "Tides") and ![map](m.png)', "[tide tables] and ![map]"),
        ("[a](b_(c).md) [d](e.md)", "[a] [d]"),
        ("[tides]: https://example.org/sea 'The sea'\n[^1]: Pilots", "\n[^1]: Pilots"),
        ("[[sea/tides|Tides]] [[ebb]]", "Tides [[ebb]]"),
        ("`a[i](x)` and ```` b ` [i](y) ````", "`a[i](x)` and ```` b ` [i](y) ````"),
        ("```js\nrun[i](x)\n```\n[a](b)\n~~~\n[c](d)\n~~~", "```js\nrun[i](x)\n```\n[a]\n~~~\n[c](d)\n~~~"),
        ("<https://example.org/sea>", "<https://example.org/sea>"),
    ],
)
def test_searched_text_has_no_destinations_of_links(written: str, searched: str) -> None:
    assert without_destinations(written) == searched
