"""BM25F as rows that any database can add up: what Lucene computes, term by term.

score = sum over terms of n * idf * tf / (tf + k1 * (1 - b + b * length / mean)); tf and length add up those of the
fields by weight; length counts tokens without their parts, in Lucene's one byte, its mean all terms. idf is
ln(1 + (N - df + 0.5) / (df + 0.5)), df the largest number of units that hold the term in one field. See
`ragbench.index.lexical`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.index.lexical import Bm25F

if TYPE_CHECKING:
    from ragbench.extras.engines.words import Terms

_EXACT = 24  # lengths below it are kept as they are


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


def impacts(units: Sequence[Sequence[Posting]], scoring: Bm25F) -> list[list[float]]:
    """What every posting of every unit adds to a query that has its term, computed here and not by a database."""
    fields, k1 = scoring.scaled
    frequencies = [
        Counter(posting.term for postings in units for posting in postings if posting.fields >> bit & 1)
        for bit in range(len(fields))
    ]
    filled = [
        sum(any(posting.fields >> bit & 1 for posting in postings) for postings in units) for bit in range(len(fields))
    ]
    n_units, total = max(filled, default=0), sum(posting.tf for postings in units for posting in postings)
    mean, b = total / max(n_units, 1), scoring.b
    highest = {term: max(counter[term] for counter in frequencies) for term in set().union(*frequencies)}
    idf = {term: math.log1p((n_units - df + 0.5) / (df + 0.5)) for term, df in highest.items()}
    return [
        [
            idf[posting.term] * posting.tf / (posting.tf + k1 * (1 - b + b * posting.length / mean))
            for posting in postings
        ]
        for postings in units
    ]


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
