"""The features of a query's candidate documents; docs/research/recommended.md describes each.

A candidate is a document, represented by its first chunk in the fused ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragbench.base.rankings import QueryState, Ranking
from ragbench.index.index import Index
from ragbench.index.terms import FIELDS, TermIndex

_Values = NDArray[np.float64]
_Numbers = NDArray[np.int64]

_WINDOW = 16  # terms within which matches count as near each other
_ABSENT_RANK = 1000.0  # of a document that a source did not return
_SHORT = ("title", "path", "headings")  # fields of which a query may hold most

BY_SOURCE = ("score", "norm", "rank")
WORDS = (
    *(f"cover.{field}" for field in (*FIELDS, "body")),
    *(f"share.{field}" for field in _SHORT),
    *("title.exact", "phrase.body", "phrase.run", "near.body", "near.idf"),
)
QUERY = ("query.terms", "query.known", "query.idf", "query.exact", "query.place")
DOCUMENT = (
    *("document.terms", "document.chunks", "document.hits", "document.depth", "chunk.terms", "chunk.place"),
    *("links.in", "links.out", "links.rank"),
)
AMONG = ("document.share", "links.near", "links.votes")
"""Of a document among the candidates: its hits' share of the fused score of all hits, from 0 to 1; how many of the
candidates link to it; the sum of their fused scores, from 0 to 1. Read by orders for several collections."""
PERCENTILE, GAP = "percentile", "gap"
"""Last parts of the names of relative features: where a value stands among those of the query's candidates, as the
share of the others that are lower (equal ones count half); how far it is from the greatest of them."""


def names(sources: Sequence[str]) -> tuple[str, ...]:
    """The features of these sources, in order."""
    of_sources = (f"{source}.{name}" for source in ("fused", *sorted(sources)) for name in BY_SOURCE)
    return (*of_sources, *WORDS, *QUERY, *DOCUMENT)


def everything(sources: Sequence[str]) -> tuple[str, ...]:
    """Every absolute feature of these sources, in order."""
    return (*names(sources), *AMONG)


def absolute(name: str) -> str:
    """The feature that a relative feature is made from; any other feature itself."""
    base, _, last = name.rpartition(".")
    return base if last in (PERCENTILE, GAP) else name


@lru_cache(8)
def sources_of(features: tuple[str, ...]) -> tuple[str, ...]:
    """The sources that the features use, sorted, without the fused ranking."""
    of_sources = set(map(absolute, features)).difference(WORDS, QUERY, DOCUMENT, AMONG)
    pairs = (name.rpartition(".")[::2] for name in of_sources)
    return tuple(sorted({source for source, name in pairs if name in BY_SOURCE} - {"fused"}))


@lru_cache(8)
def _places(feature_names: tuple[str, ...]) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers]:
    """Among all features of their sources, the rows of the wanted ones as they are, as percentiles and as gaps.

    The last array has for each wanted feature its row among those three together.
    """
    all_names = everything(sources_of(feature_names))
    kinds = ("", PERCENTILE, GAP)
    kind = [kinds.index(name.rpartition(".")[2]) if absolute(name) != name else 0 for name in feature_names]
    rows = [
        [all_names.index(absolute(name)) for name, of in zip(feature_names, kind, strict=True) if of == group]
        for group in range(3)
    ]
    order = np.argsort(np.argsort(kind, kind="stable"), kind="stable")
    plain, percentiles, gaps = (np.array(group, dtype=np.int64) for group in rows)
    return plain, percentiles, gaps, order


@dataclass(frozen=True)
class Candidates:
    """The documents of a ranking's first hits, best first.

    `documents`: rows, shape (n,). `owner`: for every hit the number of its document among these, shape (h,). `first`:
    for every document its first hit, shape (n,). `leads`: the chunk of that hit, which represents the document, shape
    (n,). `norm`: the fused score of each lead, from 0 to 1 over the hits, shape (n,).
    """

    documents: _Numbers
    owner: _Numbers
    first: _Numbers
    leads: _Numbers
    norm: _Values

    @staticmethod
    def of(hits: Ranking, index: Index) -> Candidates:
        """The candidates of a fused ranking with at least one hit."""
        owners = index.chunks.document[hits.chunks]
        firsts = _firsts(owners, index)
        leading = firsts == np.arange(len(owners))
        first = leading.nonzero()[0]
        return Candidates(
            documents=owners[first].astype(np.int64),
            owner=(leading.cumsum() - 1)[firsts],
            first=first,
            leads=hits.chunks[first].astype(np.int64),
            norm=_between(hits.scores[first].astype(np.float64), hits),
        )


def _firsts(documents: NDArray[np.integer], index: Index) -> _Numbers:
    """The place at which each document occurs first, shape (n,)."""
    places = np.arange(len(documents))
    first = np.empty(index.chunks.n_documents, dtype=np.int64)  # read only where it is written
    first[documents[::-1]] = places[::-1]  # of several values for a document, the last one stays
    return np.asarray(first[documents])


def table(
    state: QueryState,
    hits: Ranking,
    candidates: Candidates,
    index: Index,
    feature_names: tuple[str, ...],
    signals: tuple[bool, bool],
) -> _Values:
    """The features `feature_names` of every candidate, shape (n, f).

    `hits` is the part of the fused ranking that gave `candidates`; `signals`: whether the query names an identifier,
    and whether it names a folder.
    """
    terms: TermIndex = index.part("terms")
    query = terms.of(state.query.text)
    unique = np.array(list(dict.fromkeys(query.tolist())), dtype=np.int64)
    idf = terms.idf(unique)
    known_share = np.count_nonzero(unique >= 0) / max(len(unique), 1)
    of_query = np.array([len(query), known_share, idf.sum(), *signals], dtype=np.float64)
    n = len(candidates.documents)
    blocks = [
        np.array([hits.scores[candidates.first], candidates.norm, np.arange(1, n + 1)]),
        *(
            _of_source(state.rankings.get(source, Ranking.empty()), candidates, index)
            for source in sources_of(feature_names)
        ),
        _of_words(query, unique, idf, candidates, terms),
        of_query[:, None].repeat(n, axis=1),
        _of_documents(candidates, index, terms),
        _among(hits, candidates, terms),
    ]
    values = np.concatenate(blocks)
    plain, percentiles, gaps, order = _places(feature_names)
    ahead = values[gaps] - values[gaps].max(axis=1, keepdims=True)
    return np.concatenate([values[plain], _percentiles(values[percentiles]), ahead])[order].T


def _percentiles(values: _Values) -> _Values:
    """Of every value of (f, n) the share of the others in its row that are lower; equal ones count half."""
    ones, others = values[:, :, None], values[:, None, :]
    lower = np.count_nonzero(ones > others, axis=2) + 0.5 * (np.count_nonzero(ones == others, axis=2) - 1)
    return np.asarray(lower / max(values.shape[1] - 1, 1), dtype=np.float64)


def _of_source(ranking: Ranking, candidates: Candidates, index: Index) -> _Values:
    """BY_SOURCE: the best score of any of a document's chunks, from 0 to 1 over the ranking, the document's rank."""
    h, n = len(ranking), len(candidates.documents)
    if not h:
        return np.array([np.zeros(n), np.zeros(n), np.full(n, _ABSENT_RANK)])
    owners = index.chunks.document[ranking.chunks]
    firsts = _firsts(np.concatenate([owners, candidates.documents]), index)
    ranks = (firsts[:h] == np.arange(h)).cumsum()
    at = np.minimum(firsts[h:], h - 1)  # an absent one has the score of the last hit
    present = at == firsts[h:]
    scores = ranking.scores[at].astype(np.float64)
    return np.array(
        [scores, np.where(present, _between(scores, ranking), 0.0), np.where(present, ranks[at], _ABSENT_RANK)]
    )


def _of_words(query: _Numbers, unique: _Numbers, idf: _Values, candidates: Candidates, terms: TermIndex) -> _Values:
    """WORDS: coverage of the query by fields, weighed by idf, and how close together its terms are in the lead."""
    n, m, total = len(candidates.documents), len(unique), float(idf.sum()) or 1.0
    frequencies, sizes = terms.fields(candidates.documents, candidates.leads, unique)
    cover = frequencies @ idf / total
    short = [FIELDS.index(field) for field in _SHORT]
    counts = frequencies[short].sum(axis=2)
    shares = counts / np.maximum(sizes[short], 1)
    exact = (shares[0] == 1) & (counts[0] == m) & (m > 0)
    body, pairs, runs, near, near_idf = np.zeros((5, n))
    owner, places, which = terms.matches(candidates.leads, unique, apart=_WINDOW)
    if len(places):
        covered = np.zeros((n, m), dtype=np.bool_)
        covered[owner, which] = True
        body = covered @ idf / total
        pairs, runs = _phrases(query, unique, places, which, owner, n)
        near, near_idf = _near(places, which, owner, idf, n)
    return np.array([*cover, body, *shares, exact, pairs, runs, near, near_idf])


def _phrases(
    query: _Numbers, unique: _Numbers, places: _Numbers, which: _Numbers, owner: _Numbers, n: int
) -> tuple[_Values, _Values]:
    """The share of the query's adjacent pairs that are adjacent in a text, and the longest such run in terms."""
    m, number = len(unique), {term: column for column, term in enumerate(unique.tolist())}
    known = (pair for pair in pairwise(query.tolist()) if min(pair) >= 0)
    bigrams = [number[first] * m + number[second] for first, second in known]
    runs = np.zeros(n)
    runs[owner] = 1.0
    if not bigrams:
        return np.zeros(n), runs / len(query)
    pair_of = np.full(m * m, -1)
    pair_of[bigrams] = np.arange(len(bigrams))
    pair = pair_of[which[:-1] * m + which[1:]]
    follows = (places[1:] - places[:-1] == 1) & (pair >= 0)
    present = np.zeros((n, len(bigrams)), dtype=np.bool_)
    present[owner[1:][follows], pair[follows]] = True
    # Steps since the last place that does not follow: the length of the run so far.
    steps = np.arange(1, len(follows) + 1)
    length = np.where(follows, steps - np.maximum.accumulate(np.where(follows, 0, steps)), 0)
    np.maximum.at(runs, owner[1:], length + 1.0)
    return present.sum(axis=1) / (len(query) - 1), runs / len(query)


def _near(places: _Numbers, which: _Numbers, owner: _Numbers, idf: _Values, n: int) -> tuple[_Values, _Values]:
    """The largest part of the query, by number of terms and by idf, within WINDOW terms of a text."""
    beyond = int(places[-1]) + 2 * _WINDOW
    following = np.full((len(idf), len(places)), beyond)  # by term, the next place at or after each match
    following[which, np.arange(len(places))] = places
    following = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]
    inside = following < places + _WINDOW
    number, weight = np.zeros(n), np.zeros(n)
    np.maximum.at(number, owner, inside.sum(axis=0) / len(idf))
    np.maximum.at(weight, owner, idf @ inside / (float(idf.sum()) or 1.0))
    return number, weight


def _of_documents(candidates: Candidates, index: Index, terms: TermIndex) -> _Values:
    """DOCUMENT: properties that do not depend on the query, and the number of the document's hits."""
    rows = candidates.documents
    size, chunks, depth, *links = terms.standing[:, rows]
    hits = np.bincount(candidates.owner, minlength=len(rows))
    position = candidates.leads - index.chunks.ranges[0][rows]
    return np.array([size, chunks, hits, depth, terms.length(candidates.leads), position, *links])


def _among(hits: Ranking, candidates: Candidates, terms: TermIndex) -> _Values:
    """AMONG: what the candidates say about each other."""
    n = len(candidates.documents)
    scaled = _between(hits.scores.astype(np.float64), hits)
    share = np.bincount(candidates.owner, scaled, minlength=n) / scaled.sum()
    source, target = terms.links_among(candidates.documents)
    return np.array(
        [share, np.bincount(target, minlength=n), np.bincount(target, candidates.norm[source], minlength=n)]
    )


def _between(scores: _Values, ranking: Ranking) -> _Values:
    """Scores of a ranking's hits, from 0 for its last one to 1 for its first."""
    low, high = float(ranking.scores[-1]), float(ranking.scores[0])
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
