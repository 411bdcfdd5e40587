r"""How the words of every language are analysed: its stop words and stems, with the tokens of texts about software.

An analyzer of a language is `technical` with another language in it, so that `--max-lag`, `v3.1.2`, `std::vector` and
the parts of `getUserById` are found in its pages as in English ones. Its filters are those of Lucene's own analyzer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

Filter = tuple[str, ...]
"""A token filter of Lucene by name, with the names and values of its parameters."""

# Every repetition of a group is possessive and bounded: Java's backtracking would exhaust the stack on long lines.
WORD = r"[\p{L}\p{N}\p{M}_&&[^\p{IsIdeographic}]]"
_PAIRED = r"[\p{IsIdeographic}\p{IsHiragana}\p{IsKatakana}\p{IsHangul}\x{30fc}\x{ff70}]"
_DOTTED_START = r"""(?:(?<=^|[\s"'`(=/])\.(?=\p{L}))?"""  # .NET, .gitignore, but not the call in `f().g`


@dataclass(frozen=True)
class Recipe:
    """An analyzer: the pattern of a token (the group with this number of it), and the filters of Lucene in order."""

    tokens: str
    filters: tuple[Filter, ...]
    group: int = 0


def words(joiners: str, word: str = WORD) -> str:
    """The pattern of a flag, or of words connected by `joiners`, with ++ or # at the end."""
    flag = rf"(?<!{word}|[-.])--?(?=\p{{L}}){word}++(?:-{word}++){{0,15}}+"
    return rf"{flag}|{_DOTTED_START}{word}++(?:(?:{joiners}){word}++){{0,15}}+(?:\+\+|#)?"


JOINERS = r"::|[.'\u2019-]"
PROSE = rf"\p{{IsIdeographic}}|{words(JOINERS)}"
"""A token of prose about software: an ideograph, a flag, or words that punctuation connects."""


def _pairs() -> str:
    """As `PROSE`, in group 1: of each two neighbours of Chinese, Japanese or Korean characters a pair, or one alone."""
    other = words(JOINERS, WORD.replace(r"\p{IsIdeographic}", _PAIRED))
    return rf"(?=({_PAIRED}{{2}}|(?<!{_PAIRED}){_PAIRED}|{other}))(?:{_PAIRED}|\1)"


# The core of a token: a flag without its dashes, a version without its v.
CORE = r"^--?(.+)|^[vV](\p{N}++(?:\.\p{N}++)++)$"
# The words of a token; versions and words with an apostrophe stay whole, single letters are left out.
WHOLE = rf"^[vV]?\p{{N}}++(?:\.\p{{N}}++)++$|^{WORD}++['\u2019]{WORD}++$"
_PARTS = rf"{WHOLE}|([\p{{L}}\p{{M}}\p{{N}}&&[^\p{{IsIdeographic}}]]{{2,}}+|\p{{N}})"
CASE_PARTS = r"(\p{Lu}{2,}(?!\p{Ll})|\p{Lu}[\p{Ll}\p{M}]++|[\p{L}\p{M}&&[^\p{Lu}]]{2,}+|(?<!\p{N}\.)\p{N}++(?!\.\p{N}))"
LENGTH: Filter = ("length", "min", "1", "max", "255")


def split(*patterns: str) -> list[Filter]:
    """Filters that add the groups of each pattern that match in a token, at the position of the token."""
    return [("patternCaptureGroup", "pattern", pattern, "preserve_original", "true") for pattern in patterns]


def prose(
    before: Sequence[Filter], after: Sequence[Filter], *stem: Filter, tokens: str = PROSE, group: int = 0
) -> Recipe:
    """Prose about software: filters of tokens, those of the tokens and their parts, and the stem of terms of letters.

    Terms with other characters keep their form: Porter would turn `node.js` into `node.j`.
    """
    parts = split(CORE, _PARTS, rf"{WHOLE}|{CASE_PARTS}")
    letters: Filter = ("keywordMarker", "pattern", r".*[^\p{L}\p{M}'\u2019].*")
    return Recipe(tokens, (LENGTH, *before, *parts, *after, letters, *stem, ("removeDuplicates",)), group)


def _stop(place: str) -> Filter:
    format_ = ("format", "snowball") if place.startswith("snowball/") else ()
    return ("stop", "words", f"org/apache/lucene/analysis/{place}.txt", *format_)


def _snowball(language: str, stop_words: str = "", before: Sequence[Filter] = ()) -> Recipe:
    """Stem and stop words of the Snowball project."""
    stops = _stop(stop_words or f"snowball/{language}_stop")
    return prose(before, (_LOWER, stops), ("snowballPorter", "language", language.title()))


def _light(language: str, *normal: Filter, before: Sequence[Filter] = ()) -> Recipe:
    """Lucene's light stem, and stop words of the Snowball project."""
    return prose(before, (_LOWER, _stop(f"snowball/{language}_stop"), *normal), (f"{language}LightStem",))


def _elision(articles: str) -> Filter:
    return ("patternReplace", "pattern", rf"(?i)^(?:{articles})['\u2019](?=.)", "replacement", "")


_LOWER: Filter = ("lowercase",)
_DIGITS: Filter = ("decimalDigit",)
_ARABIC: Filter = ("arabicNormalization",)
_FRENCH = _elision("[ltmnsjdc]|qu|jusqu|quoiqu|lorsqu|puisqu")
_ITALIAN = _elision("[cltmsvd]|all|dall|dell|nell|sull|coll|pell|gl|agl|dagl|degl|negl|sugl|un")

LANGUAGES: Mapping[str, Recipe] = MappingProxyType(
    {
        "arabic": prose((), (_LOWER, _DIGITS, _stop("ar/stopwords"), _ARABIC), ("arabicStem",)),
        "bulgarian": prose((), (_LOWER, _stop("bg/stopwords")), ("bulgarianStem",)),
        "catalan": _snowball("catalan", "ca/stopwords", [_elision("[dlmnst]")]),
        # Chinese, Japanese, Korean: pairs of characters, and English words
        "cjk": prose([("cjkWidth",)], (_LOWER, _stop("cjk/stopwords")), ("porterStem",), tokens=_pairs(), group=1),
        "czech": prose((), (_LOWER, _stop("cz/stopwords")), ("czechStem",)),
        "danish": _snowball("danish"),
        "dutch": _snowball("dutch"),
        "finnish": _snowball("finnish"),
        "french": _light("french", before=[_FRENCH]),
        "german": _light("german", ("germanNormalization",)),
        "greek": prose((), (("greekLowercase",), _stop("el/stopwords")), ("greekStem",)),
        "hindi": prose(
            (),
            (_LOWER, _DIGITS, ("indicNormalization",), ("hindiNormalization",), _stop("hi/stopwords")),
            ("hindiStem",),
        ),
        "hungarian": _snowball("hungarian"),
        "indonesian": prose((), (_LOWER, _stop("id/stopwords")), ("indonesianStem",)),
        "italian": _light("italian", before=[_ITALIAN]),
        "norwegian": _snowball("norwegian"),
        "persian": prose(
            (),
            (_LOWER, _DIGITS, _ARABIC, ("persianNormalization",), _stop("fa/stopwords")),
        ),
        "portuguese": _light("portuguese"),
        "romanian": _snowball("romanian", "ro/stopwords"),
        "russian": _snowball("russian"),
        "spanish": _light("spanish"),
        "swedish": _snowball("swedish"),
        "turkish": prose(
            [("apostrophe",)], (("turkishLowercase",), _stop("tr/stopwords")), ("snowballPorter", "language", "Turkish")
        ),
    }
)
"""The analyzers of languages other than English, each with the filters of Lucene's analyzer of that language."""

_ENGLISH = ("technical", "english", "standard", "code")
_SPOKEN = MappingProxyType({"English": _ENGLISH, "Chinese": ("cjk",), "Japanese": ("cjk",), "Korean": ("cjk",)})


def analyzers_for(language: str) -> tuple[str, ...]:
    """The analyzers that suit a language of `language_detection`, the best one first; none for most languages."""
    name = language.lower()
    return _SPOKEN.get(language, (name,) if name in LANGUAGES else ())
