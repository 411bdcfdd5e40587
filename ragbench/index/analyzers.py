r"""Turns text into terms: four Lucene analyzers of English and code, and Lucene's own for other languages.

| name        | for                    | `C++ agents' getUserById`                    | stems | stop words |
|-------------|------------------------|----------------------------------------------|-------|------------|
| `english`   | prose                  | `c agent getuserbyid`                        | yes   | yes        |
| `standard`  | prose, as in seed 001  | `c agents getuserbyid`                       | no    | yes        |
| `technical` | prose about software   | `c++ agent getuserbyid get user id`          | yes   | yes        |
| `code`      | source code (P7)       | `c++ agents getuserbyid get user by id`      | no    | no         |

A language has the name of its analyzer in Lucene, with its stems and stop words: `german`, `french`, `cjk`, ...
(`LANGUAGES`). `technical` and `code` keep what punctuation distinguishes (C++, C#, Node.js, std::vector, STR-2031,
--max-lag, v3.1.2) and put its parts at the same position, those of camelCase too, so that `node` finds Node.js but `c`
does not find C++.
Both drop tokens of more than 255 characters: queries do not hold them, and Lucene refuses very long ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from ragbench.base.errors import ConfigError, JavaError
from ragbench.corpus.searched import normalised
from ragbench.index.jvm import java, java_errors

# Every repetition of a group is possessive and bounded: Java's backtracking would exhaust the stack on long lines.
_WORD = r"[\p{L}\p{N}\p{M}_&&[^\p{IsIdeographic}]]"
_FLAG = rf"(?<!{_WORD}|[-.])--?\p{{L}}{_WORD}*+(?:-{_WORD}++){{0,15}}+"
_DOTTED_START = r"""(?:(?<=^|[\s"'`(=/])\.(?=\p{L}))?"""  # .NET, .gitignore, but not the call in `f().g`


def _tokens(joiners: str) -> str:
    """The pattern of a token: an ideograph, a flag, or words connected by `joiners`, with ++ or # at the end."""
    words = rf"{_DOTTED_START}{_WORD}++(?:(?:{joiners}){_WORD}++){{0,15}}+(?:\+\+|#)?"
    return rf"\p{{IsIdeographic}}|{_FLAG}|{words}"


# The core of a token: a flag without its dashes, a version without its v.
_CORE = r"^--?(.+)|^[vV](\p{N}++(?:\.\p{N}++)++)$"
# The words of a token; versions and words with an apostrophe stay whole, single letters are left out.
_WHOLE = rf"^[vV]?\p{{N}}++(?:\.\p{{N}}++)++$|^{_WORD}++['\u2019]{_WORD}++$"
_WORD_PARTS = rf"{_WHOLE}|({_WORD}{{2,}}+|\p{{N}})"
_PROSE_PARTS = rf"{_WHOLE}|([\p{{L}}\p{{M}}\p{{N}}&&[^\p{{IsIdeographic}}]]{{2,}}+|\p{{N}})"
_CASE_PARTS = (
    r"(\p{Lu}{2,}(?!\p{Ll})|\p{Lu}[\p{Ll}\p{M}]++|[\p{L}\p{M}&&[^\p{Lu}]]{2,}+|(?<!\p{N}\.)\p{N}++(?!\.\p{N}))"
)
_PROSE_CASE_PARTS = rf"{_WHOLE}|{_CASE_PARTS}"


def _split(*patterns: str) -> list[tuple[str, ...]]:
    """Filters that add the groups of each pattern that match in a token, at the position of the token."""
    return [("patternCaptureGroup", "pattern", pattern, "preserve_original", "true") for pattern in patterns]


CUSTOM: Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "technical": (
            _tokens(r"::|[.'\u2019-]"),
            (
                ("length", "min", "1", "max", "255"),
                ("englishPossessive",),
                *_split(_CORE, _PROSE_PARTS, _PROSE_CASE_PARTS),
                ("lowercase",),
                ("stop",),
                ("keywordMarker", "pattern", r".*[^\p{L}'\u2019].*"),
                ("porterStem",),
                ("removeDuplicates",),
            ),
        ),
        "code": (
            _tokens(r"::|[.-]"),
            (
                ("length", "min", "1", "max", "255"),
                *_split(_CORE, _WORD_PARTS, _CASE_PARTS),
                ("lowercase",),
                ("removeDuplicates",),
            ),
        ),
    }
)
"""The analyzers that Lucene lacks: the pattern of a token, and Lucene's filters with their parameters, in order.

`technical` stems only terms of letters: Porter would turn `node.js` into `node.j`. `code`: `getUserById` gives
`getuserbyid get user by id`, `HTTPResponseError` gives `httpresponseerror http response error`, `std::vector` gives
`std::vector std vector`.
"""


LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "arabic": "ar.Arabic",
        "bulgarian": "bg.Bulgarian",
        "catalan": "ca.Catalan",
        "cjk": "cjk.CJK",  # Chinese, Japanese, Korean: pairs of characters
        "czech": "cz.Czech",
        "danish": "da.Danish",
        "dutch": "nl.Dutch",
        "finnish": "fi.Finnish",
        "french": "fr.French",
        "german": "de.German",
        "greek": "el.Greek",
        "hindi": "hi.Hindi",
        "hungarian": "hu.Hungarian",
        "indonesian": "id.Indonesian",
        "italian": "it.Italian",
        "norwegian": "no.Norwegian",
        "persian": "fa.Persian",
        "portuguese": "pt.Portuguese",
        "romanian": "ro.Romanian",
        "russian": "ru.Russian",
        "spanish": "es.Spanish",
        "swedish": "sv.Swedish",
        "turkish": "tr.Turkish",
    }
)
"""Lucene's analyzers of languages other than English, below its package of analysis."""


ANALYZERS = ("english", "standard", "technical", "code", *LANGUAGES)
_ENGLISH = "org.apache.lucene.analysis.en.EnglishAnalyzer"


@cache
def analyzer(name: str) -> Any:
    """The Lucene Analyzer of a name; `ConfigError` when there is none."""
    if name not in ANALYZERS:
        raise ConfigError(f"unknown analyzer {name!r}; choose one of {', '.join(ANALYZERS)}")
    if name in CUSTOM:
        return _custom(*CUSTOM[name])
    if name == "standard":
        return java("org.apache.lucene.analysis.standard.StandardAnalyzer")(java(_ENGLISH).ENGLISH_STOP_WORDS_SET)
    return java(f"org.apache.lucene.analysis.{LANGUAGES[name]}Analyzer" if name in LANGUAGES else _ENGLISH)()


def _custom(tokens: str, filters: Sequence[tuple[str, ...]]) -> Any:
    with java_errors(JavaError, lambda cause: f"Lucene refused an analyzer of ragbench ({cause}); reinstall pyserini"):
        builder = java("org.apache.lucene.analysis.custom.CustomAnalyzer").builder()
        builder.withTokenizer("pattern", "pattern", tokens, "group", "0")
        for component in filters:
            builder.addTokenFilter(*component)
        return builder.build()


def analyze(analyzer: Any, text: str) -> list[str]:
    """The terms of a text in order; terms at one position (a token and its parts) follow each other."""
    return [term for term, _ in _stream(analyzer, text, positions=False)]


def length(analyzer: Any, text: str) -> int:
    """The number of tokens of a text, their parts not counted, which BM25 takes for its length."""
    return sum(step > 0 for _, step in _stream(analyzer, text, positions=True))


def _stream(analyzer: Any, text: str, positions: bool) -> list[tuple[str, int]]:
    """The terms of a text with their steps from the position before (1 where `positions` are not asked for)."""
    with java_errors(JavaError, lambda cause: f"Lucene could not analyse a text ({cause})"):
        stream = analyzer.tokenStream("", java_text(text))
        try:
            term = stream.addAttribute(_attribute("CharTermAttribute"))
            step = _steps(stream) if positions else None
            stream.reset()
            terms = []
            while stream.incrementToken():
                terms.append((term.toString(), 1 if step is None else step.getPositionIncrement()))
            stream.end()
            return terms
        finally:
            stream.close()  # an analyzer reuses its stream and refuses the next text while one is open


def _steps(stream: Any) -> Any:
    import jnius

    name = "PositionIncrementAttribute"
    return jnius.cast(f"org.apache.lucene.analysis.tokenattributes.{name}", stream.addAttribute(_attribute(name)))


@cache
def _attribute(name: str) -> Any:
    return java("java.lang.Class").forName(f"org.apache.lucene.analysis.tokenattributes.{name}")


def java_text(text: str) -> str:
    """The text as it is indexed and asked: normalised, with `?` for half a surrogate pair, which Java refuses."""
    text = normalised(text)
    try:
        text.encode("utf-16-le")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "replace").decode("utf-16-le")
    return str(text)
