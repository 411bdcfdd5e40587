"""The words of texts as terms, and a table from which any program can analyse a query without Lucene.

An analyzer never joins words across white space, so every run of other characters is analysed once, however often it
occurs. The table has the terms of each form of a run: as it stands, without outer punctuation, in lower case, of its
parts, and of two neighbours of Chinese, Japanese or Korean, which write sentences without white space; and endings that
English adds to the words of the collection.

BM25F is rows that any database can add up, what Lucene computes term by term: score = sum over terms of
n * idf * tf / (tf + k1 * (1 - b + b * length / mean)); tf and length add up those of the fields by weight; length
counts tokens without their parts, in Lucene's one byte, its mean all terms. idf is ln(1 + (N - df + 0.5) / (df + 0.5)),
df the largest number of units that hold the term in one field. See `ragbench.index.lexical`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ragbench.corpus import searched
from ragbench.index import analyzers
from ragbench.index.lexical import Bm25F

OUTER = "()[]{}<>\"'`.,;:!?*_~|/\\=\u201c\u201d\u2018\u2019\u2026"
"""The punctuation around a word that does not belong to it."""
# With half-width kana and compatibility forms.
CJK = rf"{searched.KANA}\uff66-\uff9f{searched.IDEOGRAPHS}\uf900-\ufaff{searched.HANGUL}"
"""The letters of Chinese, Japanese and Korean, for a class of a regular expression."""
_PART = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_PAIR = re.compile(rf"(?=([{CJK}]{{2}}))")
_NAMES = re.compile(r"[\w+#.:'\u2019-]+")
_ENDINGS = ("s", "es", "d", "ed", "ing", "er", "ly")
_EXACT = 24  # lengths below it are kept as they are


class Terms:
    """Analyses texts by one analyzer of `ragbench.index.analyzers`, and collects the forms it has seen."""

    def __init__(self, name: str) -> None:
        self._analyzer = analyzers.analyzer(name)
        self._runs: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        return [term for run in text.split() for term in self._run(run)]

    def length(self, text: str) -> int:
        """The number of tokens of a text, their parts not counted."""
        return sum(self._length(run) for run in text.split())

    def forms(self) -> dict[str, tuple[str, ...]]:
        """The terms of every form of the runs seen so far, and of further endings whose term occurs."""
        terms_of_form: dict[str, tuple[str, ...]] = {}
        for run in self._runs:
            names = {bare(run), *map(bare, _NAMES.findall(run))}
            for form in (*names, *map(str.lower, [*names, *parts(run)])):
                if form and form not in terms_of_form:
                    terms_of_form[form] = self._analyse(form)
        for pair in {pair for run in self._runs for pair in pairs(run)}:
            if len(terms := self._analyse(pair)) == 1:
                terms_of_form.setdefault(pair, terms)
        bases: dict[str, str] = {}
        for form, terms in terms_of_form.items():
            if len(terms) == 1 and form.isascii() and form.isalpha() and form.islower() and len(form) > 2:
                bases[terms[0]] = min(bases.get(terms[0], form), form, key=lambda form: (len(form), form))
        for term, base in bases.items():
            for stem in {base, base.removesuffix("e")}:
                for ending in _ENDINGS:
                    form = stem + ending
                    if form not in terms_of_form and self._analyse(form) == (term,):
                        terms_of_form[form] = (term,)
        return terms_of_form

    def _run(self, run: str) -> tuple[str, ...]:
        if run not in self._runs:
            self._runs[run] = self._analyse(run)
        return self._runs[run]

    def _length(self, run: str) -> int:
        if run not in self._lengths:
            self._lengths[run] = (
                analyzers.length(self._analyzer, run) if len(self._run(run)) > 1 else len(self._run(run))
            )
        return self._lengths[run]

    def _analyse(self, text: str) -> tuple[str, ...]:
        if text not in self._known:
            self._known[text] = tuple(analyzers.analyze(self._analyzer, text))
        return self._known[text]


def bare(run: str) -> str:
    """A run without the punctuation around it."""
    return run.strip(OUTER)


def parts(run: str) -> list[str]:
    """The runs of letters and digits in it, those of Chinese, Japanese and Korean apart."""
    return _PART.findall(run)


def pairs(run: str) -> list[str]:
    """The pairs of neighbours of Chinese, Japanese and Korean in it."""
    return _PAIR.findall(run)


def query_terms(text: str, look_up: Callable[[Iterable[str]], Mapping[str, str]]) -> Counter[str]:
    """The terms of a query with their numbers; `look_up` gives the terms (joined by blanks) of the forms that it knows.

    The text is normalised as documents are.
    A run is known as it stands, in lower case, by its parts, or by their pairs; what is not occurs in no document.
    """
    runs = [bare(run) for run in searched.normalised(text).split()]
    wanted = {form for run in runs for form in (run, run.lower(), *map(str.lower, parts(run)), *pairs(run))}
    known = look_up(wanted)
    forms = (form for run in runs for form in _known_forms(run, known))
    return Counter(term for form in forms for term in known.get(form, "").split())


def _known_forms(run: str, known: Container[str]) -> Iterator[str]:
    whole = next((form for form in (run, run.lower()) if form in known), None)
    if whole is not None:
        yield whole
        return
    for part in map(str.lower, parts(run)):
        yield from (part,) if part in known else pairs(part)


@dataclass(frozen=True)
class Posting:
    """A term in a unit: its weighted number, the unit's weighted length, the fields (bits) that hold it."""

    term: str
    tf: float
    length: int
    fields: int


def postings(texts: Mapping[str, str], scoring: Bm25F, terms: Terms) -> list[Posting]:
    """The terms of a chunk's or a document's fields."""
    weights, _ = scoring.scaled
    tf: Counter[str] = Counter()
    fields: Counter[str] = Counter()
    size = 0.0
    for bit, (name, weight) in enumerate(weights):
        counts = Counter(terms.of(texts[name]))
        size += weight * _in_a_byte(terms.length(texts[name]))
        for term, count in counts.items():
            tf[term] += weight * count  # type: ignore[assignment]
            fields[term] |= 1 << bit
    rounded_size = _in_a_byte(int(size + 0.5))
    return [Posting(term, float(value), rounded_size, fields[term]) for term, value in sorted(tf.items())]


def score(term: str, unit: str, scoring: Bm25F) -> str:
    """The part of a term in a unit's score, in SQL; `term` and `unit` are the rows of a term and a posting."""
    _, k1 = scoring.scaled
    b = scoring.b
    return f"{term}.idf * {unit}.tf / ({unit}.tf + {k1:g} * ({1 - b:g} + {b:g} * {unit}.length / {term}.mean))"


def _in_a_byte(length: int) -> int:
    """A length as Lucene keeps it (`SmallFloat.intToByte4`): exact up to 40, above rounded down by less than 1/8."""
    if length < _EXACT:
        return length
    above = length - _EXACT
    shift = max(0, above.bit_length() - 4)
    return _EXACT + (above >> shift << shift)
