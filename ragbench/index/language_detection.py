"""The language of a text, by its script and its function words."""

# ruff: noqa: RUF001 (letters of other scripts)

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ragbench.base import minimums
from ragbench.corpus.searched import HANGUL, IDEOGRAPHS, KANA
from ragbench.index.texts import without_destinations

VERSION = 1
_FUNCTION_WORDS = {
    "English": "the and of to is in that for with you this are",
    "German": "der die und das ist nicht mit ein eine den auf für",
    "French": "le les des est une dans pour pas que avec sur du",
    "Spanish": "el los las una que por con para del como se es",
    "Italian": "il che di per una con non gli della sono del si",
    "Portuguese": "o os uma que não com para por do da em ao",
    "Catalan": "el els les amb per una que és del dels aquest això",
    "Dutch": "het een van en niet dat met voor zijn op te de",
    "Swedish": "och att det som en är för av inte med den om",
    "Danish": "og at det er til på ikke af for med der den",
    "Norwegian": "og at det er til på ikke av for med som den",
    "Finnish": "ja on ei se että oli myös mutta tai kun joka ovat",
    "Czech": "je se na že to pro jako nebo která jsou ve být",
    "Polish": "w nie się na jest że do to jak oraz lub dla",
    "Romanian": "și în la cu care nu este sunt pentru din mai sau",
    "Hungarian": "az és hogy nem is egy meg van vagy ez csak mint",
    "Turkish": "ve bir bu için ile de da olarak çok veya değil olan",
    "Indonesian": "yang dan di untuk dengan dari ini pada adalah atau tidak ke",
    "Russian": "и в не на что это для с по как или если",
    "Ukrainian": "і в не на що це для та з як або якщо",
    "Bulgarian": "и в не на че това за с от да са се",
    "Arabic": "في من على إلى أن هذا هذه التي أو مع عن لا",
    "Persian": "و در به از که این را با است برای یا می",
}
_SCRIPTS = (
    # A page of Japanese has many Chinese characters, one of Chinese no kana.
    (re.compile(f"[{KANA}]"), 1 / 8, ("Japanese",)),
    (re.compile(f"[{IDEOGRAPHS}]"), 1 / 4, ("Chinese",)),
    (re.compile(f"[{HANGUL}]"), 1 / 4, ("Korean",)),
    # Letters that the other languages of these three lack: enough of them where a quarter of a text is in the language.
    (re.compile(r"[іїєґІЇЄҐ]"), 1 / 100, ("Ukrainian",)),
    (re.compile(r"[ыэёЫЭЁ]"), 1 / 200, ("Russian",)),
    (re.compile(r"[\u0400-\u04ff]"), 1 / 3, ("Russian", "Ukrainian", "Bulgarian")),
    (re.compile(r"[\u0370-\u03ff]"), 1 / 3, ("Greek",)),
    (re.compile(r"[\u0600-\u06ff]"), 1 / 3, ("Arabic", "Persian")),
    (re.compile(r"[\u0900-\u097f]"), 1 / 3, ("Hindi",)),
)
"""Letters of a script, their share of all letters from which a text counts as written in it, and its languages."""
_LATIN = tuple(name for name in _FUNCTION_WORDS if not any(name in names for _, _, names in _SCRIPTS))
_CODE = re.compile(r"^( {0,3})(`{3,}|~{3,}).*?(?:^\1\2|\Z)|`[^`\n]+`|https?://[!-~]+", re.DOTALL | re.MULTILINE)
"""Code and addresses."""
_SAMPLE = 20_000


def language(text: str) -> str:
    """The English name of the language of a markdown text; "" where too few function words tell.

    >>> language("Der Zuteiler wartet auf die Antwort und das Ergebnis der `get and set`.")
    'German'
    """
    sample = _CODE.sub(" ", without_destinations(text[:_SAMPLE]))
    letters = sum(map(str.isalpha, sample)) or 1
    for pattern, share, names in _SCRIPTS:
        if len(pattern.findall(sample)) > letters * share:
            return _most_frequent(sample, names)[0]
    name, count = _most_frequent(sample, _LATIN)
    return name if count >= minimums.FUNCTION_WORDS else ""


def _most_frequent(text: str, names: Iterable[str]) -> tuple[str, int]:
    """The language with the most function words in a text, the first of equal ones, and their number.

    In the number a word counts twice at most: one that a text repeats may be a name.
    """
    words = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    found = {name: [words[word] for word in _FUNCTION_WORDS.get(name, "").split()] for name in names}
    best = max(found, key=lambda name: sum(found[name]))
    return best, sum(min(count, 2) for count in found[best])
