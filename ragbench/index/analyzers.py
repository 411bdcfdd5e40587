r"""Turns text into terms: four analyzers of English and code, and one for each of other languages.

| name        | for                    | `C++ agents' getUserById`                    | stems | stop words |
|-------------|------------------------|----------------------------------------------|-------|------------|
| `english`   | prose                  | `c agent getuserbyid`                        | yes   | yes        |
| `standard`  | prose, as in seed 001  | `c agents getuserbyid`                       | no    | yes        |
| `technical` | prose about software   | `c++ agent getuserbyid get user id`          | yes   | yes        |
| `code`      | source code (P7)       | `c++ agents getuserbyid get user by id`      | no    | no         |

A language has the name of Lucene's analyzer (`german`, `french`, `cjk`, ...), with its stems and stop words; in all
else it is as `technical` (`ragbench.index.languages`). `technical`, `code` and languages keep what punctuation
distinguishes (C++, C#, Node.js, std::vector, STR-2031, --max-lag, v3.1.2) and put its parts at the same position,
those of camelCase too, so that `node` finds Node.js but `c` does not find C++.
Several names, as in `german+technical`, are for a collection in several languages: a document has the analyzer of its
language, or the first one, and a query has all.
They drop tokens of more than 255 characters: queries do not hold them, and Lucene refuses very long ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from ragbench.base.types import ConfigError, JavaError
from ragbench.corpus.searched import normalised
from ragbench.index import language_detection
from ragbench.index.chunks import ChunkTable
from ragbench.index.jvm import java, java_errors
from ragbench.index.languages import (
    CASE_PARTS,
    CORE,
    LANGUAGES,
    LENGTH,
    WHOLE,
    WORD,
    Recipe,
    analyzers_for,
    prose,
    split,
    words,
)

_CODE_PARTS = rf"{WHOLE}|({WORD}{{2,}}+|\p{{N}})"

CUSTOM: Mapping[str, Recipe] = MappingProxyType(
    {
        "technical": prose([("englishPossessive",)], (("lowercase",), ("stop",)), ("porterStem",)),
        "code": Recipe(
            rf"\p{{IsIdeographic}}|{words(r'::|[.-]')}",
            (LENGTH, *split(CORE, _CODE_PARTS, CASE_PARTS), ("lowercase",), ("removeDuplicates",)),
        ),
        **LANGUAGES,
    }
)
"""The analyzers that Lucene lacks. `code`: `getUserById` gives `getuserbyid get user by id`, `HTTPResponseError` gives
`httpresponseerror http response error`, `std::vector` gives `std::vector std vector`.
"""

ANALYZERS = ("english", "standard", "technical", "code", *LANGUAGES)
_ENGLISH = "org.apache.lucene.analysis.en.EnglishAnalyzer"


@cache
def analyzer(name: str, purpose: str = "") -> Any:
    """The Lucene Analyzer of a name; `ConfigError` when there is none.

    It has one stream at a time; another `purpose` has its own.
    """
    if name not in ANALYZERS:
        raise ConfigError(f"unknown analyzer {name!r}; choose one of {', '.join(ANALYZERS)}")
    if name in CUSTOM:
        return _custom(CUSTOM[name])
    if name == "standard":
        return java("org.apache.lucene.analysis.standard.StandardAnalyzer")(java(_ENGLISH).ENGLISH_STOP_WORDS_SET)
    return java(_ENGLISH)()


def _custom(recipe: Recipe) -> Any:
    with java_errors(JavaError, lambda cause: f"Lucene refused an analyzer of ragbench ({cause}); reinstall pyserini"):
        builder = java("org.apache.lucene.analysis.custom.CustomAnalyzer").builder()
        builder.withTokenizer("pattern", "pattern", recipe.tokens, "group", str(recipe.group))
        for component in recipe.filters:
            builder.addTokenFilter(*component)
        return builder.build()


def analyzers(name: str) -> tuple[str, ...]:
    """The analyzers in a name.

    >>> analyzers("german+technical")
    ('german', 'technical')
    """
    return tuple(name.split("+"))


def is_analyzer(name: str) -> bool:
    """Whether a name is that of one analyzer, or of several with `+` between them."""
    names = analyzers(name)
    return len(set(names)) == len(names) and set(names) <= set(ANALYZERS)


def document_analyzers(name: str, table: ChunkTable) -> list[str]:
    """The analyzer of every document: that of its language if the name has one for it, else the first one."""
    first, *others = analyzers(name)
    if not others:
        return [first] * table.n_documents
    suited = map(analyzers_for, table.languages)
    return [next((each for each in (first, *others) if each in those), first) for those in suited]


def detection(name: str) -> list[int]:
    """What the analyzers of documents depend on besides a name of several, for the inputs of a part."""
    return [language_detection.VERSION] if len(analyzers(name)) > 1 else []


def query_terms(name: str, text: str) -> list[str]:
    """The terms of a query by all analyzers in a name; a stop word of one of them has no terms."""
    named = [analyzer(each) for each in analyzers(name)]
    if len(named) == 1:
        return analyze(named[0], text)
    words = [[analyze(each, word) for each in named] for word in text.split()]
    return [term for terms in words if all(terms) for term in dict.fromkeys(chain.from_iterable(terms))]


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
