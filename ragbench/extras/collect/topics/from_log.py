"""Topics from a search log: real queries, sampled in proportion to their frequency, with a share of rare ones."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated
from urllib.parse import unquote, urlsplit

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.bounds import Checked, Count, Natural, Share
from ragbench.base.errors import BenchmarkError
from ragbench.base.fingerprint import text_digest
from ragbench.base.types import Document
from ragbench.benchmark.benchmark import Qrels, Topic
from ragbench.benchmark.documents import Names
from ragbench.benchmark.search_log import Log, Search, normal_form
from ragbench.benchmark.split import split
from ragbench.corpus.masking import words
from ragbench.extras.collect.similarity import near_duplicates
from ragbench.extras.collect.topics.clicks import Clicks, rates

_LOGGED = "log"
_PAGE = re.compile(r"(?:/?(?:index|_index|readme))?(?:\.html?)?$", re.IGNORECASE)
FREQUENT, RARE = "frequent", "rare"
_GROUPED = 0.7  # share of common words from which two queries stay on one side of the split


@dataclass(frozen=True)
class LogSpec(Checked):
    """How to sample: `limit` topics, a share `tail` of them among queries that were asked once.

    `train`: share of the topics for tuning; `least_sessions`: sessions that must have asked a query; `least_clicks`:
    searches that must have led to a document before it is relevant.
    """

    limit: Count = 100
    tail: Share = 0.25
    train: Annotated[float, Interval(gt=0, lt=1)] = 0.5
    least_sessions: Count = 1
    least_clicks: Count = minimums.CLICKS
    seed: Natural = 13


@dataclass
class AskedQuery:
    """A query with all its spellings: how often it was asked, by which sessions, and what was opened."""

    spellings: Counter[str] = field(default_factory=Counter)
    count: int = 0
    sessions: set[str] = field(default_factory=set)
    clicks: Clicks = field(default_factory=Clicks)

    @property
    def text(self) -> str:
        """The most frequent spelling."""
        return min(self.spellings, key=lambda each: (-self.spellings[each], each))


@dataclass(frozen=True)
class LogTopics:
    """Topics of a log with judgments from clicks.

    `asked`: distinct queries; `searches`: all searches; `rates`: the share of showings opened, one value a rank;
    `named`: documents that relevant clicks named; `found`: how many of these are in the collection.
    """

    topics: tuple[Topic, ...]
    document_qrels: Qrels
    section_qrels: Qrels
    asked: int
    searches: int
    rates: NDArray[np.float64]
    named: int
    found: int


def finder(documents: Sequence[Document]) -> Callable[[str], str | None]:
    """A function that gives the docno for a docno, path, file name or address in a log, None without a document."""
    names = Names(documents)

    def docno_of(name: str) -> str | None:
        path = urlsplit(name).path if "://" in name else name.partition("#")[0]
        return names.document(name) or names.document(_PAGE.sub("", unquote(path).strip("/")))

    return docno_of


def choose(log: Log, spec: LogSpec, docno_of: Callable[[str], str | None]) -> LogTopics:
    """Sample topics; `docno_of` finds the document that the log names. BenchmarkError when no query is left."""
    by_rank = rates(log.searches)
    asked = _distinct_queries(log.searches, by_rank)
    kept = [each for each in asked if max(1, len(each.sessions)) >= spec.least_sessions]
    chosen = sample(kept, spec)
    if not chosen:
        raise BenchmarkError(
            f"no query was asked by {spec.least_sessions} sessions or more: set --least-sessions lower"
        )
    qrels: dict[str, dict[str, int]] = {}
    topics, named, found = [], 0, 0
    for each, group in zip(chosen, _groups([each.text for each in chosen]), strict=True):
        topic = Topic(_qid(each), each.text, FREQUENT if each.count > 1 else RARE, group=group, provenance=_LOGGED)
        topics.append(topic)
        relevant = each.clicks.relevant(spec.least_clicks)
        docnos = [docno for name in relevant if (docno := docno_of(name)) is not None]
        named, found = named + len(relevant), found + len(docnos)
        if docnos:
            qrels[topic.qid] = dict.fromkeys(docnos, 1)
    sides = split(topics, qrels, spec.seed, spec.train)
    placed = tuple(replace(topic, split=sides[topic.qid]) for topic in topics)
    total = sum(search.count for search in log.searches)
    return LogTopics(placed, qrels, {}, len(asked), total, by_rank, named, found)


def sample(asked: Sequence[AskedQuery], spec: LogSpec) -> list[AskedQuery]:
    """Up to `limit` queries, the most frequent first: a quota of those asked once, the rest in proportion to frequency.

    Systematic sampling with probabilities proportional to size (Madow 1949): a mean over the rest estimates the mean
    over searches. Places that one part cannot fill go to the other part.
    """
    rng = np.random.default_rng(spec.seed)
    rare = [each for each in asked if each.count == 1]
    often = [each for each in asked if each.count > 1]
    n_rare = min(len(rare), max(round(spec.tail * spec.limit), spec.limit - len(often)))
    places = rng.permutation(len(rare))[:n_rare]
    chosen = [rare[place] for place in places]
    drawn = proportional(np.array([each.count for each in often], dtype=float), spec.limit - n_rare, rng)
    chosen += [often[place] for place in drawn]
    return sorted(chosen, key=lambda each: (-each.count, each.text))


def proportional(sizes: NDArray[np.float64], n: int, rng: np.random.Generator) -> list[int]:
    """`n` different places, each with a probability proportional to its size; all where there are no more.

    A place whose size exceeds an `n`-th of the rest is always drawn.
    """
    left = list(range(len(sizes)))
    if n >= len(left):
        return left
    certain: list[int] = []
    while n > len(certain):
        total = sizes[left].sum()
        sure = [place for place in left if (n - len(certain)) * sizes[place] >= total]
        if not sure:
            break
        certain += sure
        left = [place for place in left if place not in set(sure)]
    wanted = n - len(certain)
    if wanted <= 0:
        return sorted(certain)
    order = rng.permutation(left)
    edges = np.cumsum(sizes[order])
    step = edges[-1] / wanted
    points = (rng.random() + np.arange(wanted)) * step
    return sorted([*certain, *(int(place) for place in order[np.searchsorted(edges, points, side="right")])])


def _distinct_queries(searches: Sequence[Search], by_rank: NDArray[np.float64]) -> list[AskedQuery]:
    """Distinct queries sorted by their words; queries with the same words in any order are one.

    A session that asks a query again counts once; without sessions every search counts.
    """
    found: dict[tuple[str, ...], AskedQuery] = defaultdict(AskedQuery)
    for search in searches:
        key = tuple(sorted({*words(normal_form(search.query))})) or (normal_form(search.query),)
        each = found[key]
        each.clicks.add(search, by_rank)
        if search.session and search.session in each.sessions:
            continue
        each.sessions |= {search.session} if search.session else set()
        each.spellings[search.query] += search.count
        each.count += search.count
    return [found[key] for key in sorted(found)]


def _groups(texts: Sequence[str]) -> list[str]:
    """The name of its group for every text that shares most words with others, `""` for the rest."""
    first = list(range(len(texts)))
    pairs = [(one, other) for one, other, _ in near_duplicates(texts, _GROUPED)]
    for one, other in sorted(pairs):
        low, high = sorted((first[one], first[other]))
        first = [low if place == high else place for place in first]
    grouped = {place for pair in pairs for place in pair}
    return [f"l-{text_digest(texts[first[place]], 10)}" if place in grouped else "" for place in range(len(texts))]


def _qid(asked: AskedQuery) -> str:
    return f"l-{text_digest(normal_form(asked.text), 10)}"
