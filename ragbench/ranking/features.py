"""The features of a query's candidate documents; docs/ranking.md describes each.

A candidate is a document, represented by its first chunk in the fused ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ragbench.index.index import Index
    from ragbench.index.terms import TermIndex
    from ragbench.types import QueryState, Ranking

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]

WINDOW = 16  # terms within which matches count as near each other
_ABSENT_RANK = 1000.0  # of a document that a source did not return
_COVERED = ("title", "path", "anchors", "facts", "headings", "document")

BY_SOURCE = ("score", "norm", "rank")
WORDS = (
    *(f"cover.{field}" for field in (*_COVERED, "body")),
    *(f"share.{field}" for field in ("title", "path", "headings")),
    *("title.exact", "phrase.body", "phrase.run", "near.body", "near.idf"),
)
QUERY = ("query.terms", "query.known", "query.idf", "query.exact", "query.place")
DOCUMENT = (
    *("document.terms", "document.chunks", "document.hits", "document.depth", "chunk.terms", "chunk.place"),
    *("links.in", "links.out", "links.rank"),
)
RECENCY = "document.age"
"""The age of a document in days, from the newest of the collection; only on request."""


def names(sources: Sequence[str], recency: bool = False) -> tuple[str, ...]:
    """The features of these sources, in order."""
    of_sources = (f"{source}.{name}" for source in ("fused", *sorted(sources)) for name in BY_SOURCE)
    return (*of_sources, *WORDS, *QUERY, *DOCUMENT, *([RECENCY] if recency else []))


def sources_of(features: Sequence[str]) -> tuple[str, ...]:
    """The sources that the features use, without the fused ranking."""
    found = (name.rpartition(".")[0] for name in features if name.endswith(".norm"))
    return tuple(source for source in found if source != "fused")


@dataclass(frozen=True)
class Candidates:
    """The documents of a ranking's first hits, best first.

    `documents`: rows, shape (n,). `owner`: of every hit, which of them it belongs to, shape (h,). `first`: of every
    document, its first hit, shape (n,). `leads`: the chunk of that hit, through which it is seen, shape (n,).
    `norm`: the fused score of each lead, from 0 to 1 over the hits, shape (n,).
    """

    documents: Numbers
    owner: Numbers
    first: Numbers
    leads: Numbers
    norm: Values

    @staticmethod
    def of(hits: Ranking, index: Index) -> Candidates:
        """Those of a fused ranking with at least one hit."""
        owners = index.chunks.document[hits.chunks].tolist()
        firsts = _firsts(owners)
        number = {document: place for place, document in enumerate(firsts)}
        first = np.array(list(firsts.values()), dtype=np.int64)
        return Candidates(
            documents=np.array(list(firsts), dtype=np.int64),
            owner=np.array([number[owner] for owner in owners], dtype=np.int64),
            first=first,
            leads=hits.chunks[first].astype(np.int64),
            norm=_between(hits.scores.astype(np.float64))[first],
        )


def _firsts(owners: Sequence[int]) -> dict[int, int]:
    """Where each number occurs first, in the order in which they occur. Sorting a hundred numbers takes longer."""
    firsts: dict[int, int] = {}
    for place, owner in enumerate(owners):
        firsts.setdefault(owner, place)
    return firsts


def table(
    state: QueryState, hits: Ranking, found: Candidates, index: Index, wanted: Sequence[str], signals: tuple[bool, bool]
) -> Values:
    """The features `wanted` of every candidate, shape (n, f).

    `hits` is the part of the fused ranking that gave `found`; `signals` says whether the query names something exact,
    and whether it names a place.
    """
    terms: TermIndex = index.part("terms")
    columns: dict[str, Values] = {}
    _add_source(columns, "fused", hits, found, index)
    for source in sources_of(wanted):
        _add_source(columns, source, state.rankings[source], found, index)
    query = terms.of(state.query.text)
    unique = np.array(list(dict.fromkeys(query.tolist())), dtype=np.int64)
    idf = _idf(unique, terms)
    _add_words(columns, query, unique, idf, found, terms)
    n = len(found.documents)
    facts = (len(query), float((unique >= 0).mean()) if len(unique) else 0.0, float(idf.sum()), *map(float, signals))
    columns |= {name: np.full(n, value) for name, value in zip(QUERY, facts, strict=True)}
    _add_documents(columns, found, index, terms)
    if RECENCY in wanted:
        columns[RECENCY] = (index.modified.max() - index.modified[found.documents]) / 86400.0
    return np.stack([columns[name] for name in wanted], axis=1)


def _add_source(columns: dict[str, Values], source: str, ranking: Ranking, found: Candidates, index: Index) -> None:
    """The best score of any of a document's chunks, the same from 0 to 1 over the ranking, the document's rank."""
    if not len(ranking):
        _add_absent(columns, source, found)
        return
    scores = ranking.scores.astype(np.float64)
    firsts = _firsts(index.chunks.document[ranking.chunks].tolist())
    ranks = {document: rank for rank, document in enumerate(firsts, 1)}
    documents = found.documents.tolist()
    at = np.array([firsts.get(document, -1) for document in documents])
    columns[f"{source}.score"] = scores[at]  # an absent one has that of the last hit
    columns[f"{source}.norm"] = np.where(at >= 0, _between(scores)[at], 0.0)
    columns[f"{source}.rank"] = np.array([ranks.get(each, _ABSENT_RANK) for each in documents], dtype=np.float64)


def _add_absent(columns: dict[str, Values], source: str, found: Candidates) -> None:
    n = len(found.documents)
    columns |= {f"{source}.score": np.zeros(n), f"{source}.norm": np.zeros(n)}
    columns[f"{source}.rank"] = np.full(n, _ABSENT_RANK)


def _add_words(
    columns: dict[str, Values], query: Numbers, unique: Numbers, idf: Values, found: Candidates, terms: TermIndex
) -> None:
    """Coverage of the query by fields, weighed by idf, and how close together its terms stand in the lead's text."""
    n, total = len(found.documents), float(idf.sum()) or 1.0
    held: Mapping[str, NDArray[np.bool_]] = {
        field: terms.holds(field, found.leads if field == "headings" else found.documents, unique) for field in _COVERED
    }
    for field in _COVERED:
        columns[f"cover.{field}"] = held[field] @ idf / total
    for field in ("title", "path", "headings"):
        size = terms.size(field, found.leads if field == "headings" else found.documents)
        columns[f"share.{field}"] = held[field].sum(axis=1) / np.maximum(size, 1)
    columns["title.exact"] = np.asarray(
        (columns["share.title"] == 1) & held["title"].all(axis=1) & (len(unique) > 0), dtype=np.float64
    )
    columns |= {name: np.zeros(n) for name in ("cover.body", "phrase.body", "phrase.run", "near.body", "near.idf")}
    if not (unique >= 0).any():
        return
    body, starts = terms.bodies(found.leads)
    number = np.full(len(terms.idf) + 1, -1, dtype=np.int64)  # of each term, which of the query's it is
    number[unique[unique >= 0]] = np.flatnonzero(unique >= 0)
    matched = number[body]
    places = np.flatnonzero(matched >= 0)
    if not len(places):
        return
    which = matched[places]
    owner = np.searchsorted(starts, places, side="right") - 1
    covered = np.zeros((n, len(unique)), dtype=np.bool_)
    covered[owner, which] = True
    columns["cover.body"] = covered @ idf / total
    columns["phrase.body"], columns["phrase.run"] = _phrases(query, number, places, which, owner, n)
    columns["near.body"], columns["near.idf"] = _near(places + owner * WINDOW, which, owner, idf, n, len(unique))


def _phrases(
    query: Numbers, number: Numbers, places: Numbers, which: Numbers, owner: Numbers, n: int
) -> tuple[Values, Values]:
    """The share of the query's adjacent pairs that are adjacent in a text, and the longest such run in terms."""
    asked = np.where(query >= 0, number[query], -1)
    pairs, runs = np.zeros(n), np.zeros(n)
    np.maximum.at(runs, owner, 1.0)
    if len(asked) < 2:
        return pairs, runs / max(len(asked), 1)
    m = int(asked.max()) + 2
    wanted = np.zeros(m * m, dtype=np.bool_)
    wanted[(asked[:-1] * m + asked[1:])[(asked[:-1] >= 0) & (asked[1:] >= 0)]] = True
    codes = which[:-1] * m + which[1:]
    follows = (np.diff(places) == 1) & (owner[1:] == owner[:-1]) & wanted[codes]
    seen = np.unique(owner[1:][follows] * m * m + codes[follows])
    pairs += np.bincount(seen // (m * m), minlength=n) / (len(asked) - 1)
    # Steps since the last place that does not follow: the length of the run so far.
    steps = np.arange(1, len(follows) + 1)
    length = np.where(follows, steps - np.maximum.accumulate(np.where(follows, 0, steps)), 0)
    np.maximum.at(runs, owner[1:], length + 1.0)
    return pairs, runs / len(asked)


def _near(at: Numbers, which: Numbers, owner: Numbers, idf: Values, n: int, m: int) -> tuple[Values, Values]:
    """The largest part of the query, by number of terms and by idf, within WINDOW terms of a text.

    `at` are the places of matches; those of different texts lie at least WINDOW apart.
    """
    last = int(at[-1]) + 2 * WINDOW
    following = np.full((m, len(at)), last, dtype=np.int64)  # by term, the next place at or after each match
    following[which, np.arange(len(at))] = at
    following = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]
    inside = following < at + WINDOW
    number, weight = np.zeros(n), np.zeros(n)
    np.maximum.at(number, owner, inside.sum(axis=0) / m)
    np.maximum.at(weight, owner, idf @ inside / (float(idf.sum()) or 1.0))
    return number, weight


def _add_documents(columns: dict[str, Values], found: Candidates, index: Index, terms: TermIndex) -> None:
    rows, chunks = found.documents, index.chunks
    first, last = chunks.ranges
    columns["document.terms"] = terms.size("document", rows)
    columns["document.chunks"] = (last[rows] - first[rows]).astype(np.float64)
    columns["document.hits"] = np.bincount(found.owner, minlength=len(rows)).astype(np.float64)
    columns["document.depth"] = np.array([chunks.docnos[row].count("/") for row in rows.tolist()], dtype=np.float64)
    columns["chunk.terms"] = terms.length(found.leads)
    columns["chunk.place"] = (found.leads - first[rows]).astype(np.float64)
    columns["links.in"], columns["links.out"] = terms.links_in[rows], terms.links_out[rows]
    columns["links.rank"] = terms.pagerank[rows]


def _idf(unique: Numbers, terms: TermIndex) -> Values:
    """The idf of each term; a term that no document holds counts as the rarest."""
    if not len(terms.idf):
        return np.ones(len(unique))
    return np.where(unique >= 0, terms.idf[np.maximum(unique, 0)], terms.idf.max())


def _between(scores: Values) -> Values:
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
