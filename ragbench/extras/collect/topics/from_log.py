"""Topics from a search log: real queries, sampled in proportion to their frequency, with a share of rare ones.

Weak judgments from clicks: a document is relevant if it is clicked at least as often as others at its ranks. COEC,
clicks over expected clicks (Zhang and Jones, WWW 2007): the expected clicks of a rank are the share of its showings
that were clicked, made monotone, so that a document gains nothing from being shown first.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.fingerprint import text_digest
from ragbench.base.options import Count, Share, Validated
from ragbench.base.types import BenchmarkError, Document, counted
from ragbench.benchmark.benchmark import Topic, with_splits
from ragbench.benchmark.names import Names
from ragbench.benchmark.phrases import words
from ragbench.extras.collect.search_log import Log, LoggedSearch, normal_form
from ragbench.extras.collect.similarity import near_duplicates
from ragbench.extras.collect.topics.collected import CollectedTopics, counts_sentence

_LOGGED = "log"
_PAGE = re.compile(r"(?:/?(?:index|_index|readme))?(?:\.html?)?$", re.IGNORECASE)
FREQUENT, RARE = "frequent", "rare"
_SEED = 13  # of the sample and the splits
_GROUPED = 0.7  # share of common words from which two queries stay on one side of the split


@dataclass(frozen=True)
class LogSpec(Validated):
    """How to sample: `limit` topics, a share `tail` of them among queries that were asked once.

    `train`: share of the topics for tuning; `least_sessions`: sessions that must have asked a query.
    """

    limit: Count = 100
    tail: Share = 0.25
    train: Annotated[float, Interval(gt=0, lt=1)] = 0.5
    least_sessions: Count = 1


@dataclass
class Clicks:
    """The clicks of one query: how often each document was clicked and how often that was expected, by its name."""

    clicked: Counter[str] = field(default_factory=Counter)
    expected: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, search: LoggedSearch, rates: NDArray[np.float64]) -> None:
        """Add a search."""
        self.clicked.update(dict.fromkeys(search.clicked, search.count))
        for rank, name in enumerate(search.shown):
            self.expected[name] += search.count * float(rates[rank])

    def relevant(self) -> list[str]:
        """The documents that were clicked `minimums.CLICKS` times or more, and as often as expected at their ranks."""
        return sorted(
            name
            for name, count in self.clicked.items()
            if count >= max(minimums.CLICKS, self.expected.get(name, 0.0) - 1e-9)
        )


@dataclass
class LoggedQuery:
    """A query with all its spellings: how often it was asked, by which sessions, and what was opened."""

    spellings: Counter[str] = field(default_factory=Counter)
    count: int = 0
    sessions: set[str] = field(default_factory=set)
    clicks: Clicks = field(default_factory=Clicks)

    @property
    def text(self) -> str:
        """The most frequent spelling."""
        return min(self.spellings, key=lambda spelling: (-self.spellings[spelling], spelling))


@dataclass(frozen=True)
class LogTopics(CollectedTopics):
    """Topics of a log with judgments from clicks.

    `queries`: distinct queries; `searches`: all searches; `rates`: the share of showings opened, one value a rank;
    `named`: documents that relevant clicks named; `in_collection`: how many of these are in the collection.
    """

    has_clicks: bool
    queries: int
    searches: int
    rates: NDArray[np.float64]
    named: int
    in_collection: int

    @property
    def as_json(self) -> dict[str, Any]:
        """The numbers that `--json` prints."""
        return {
            "searches": self.searches,
            "queries": self.queries,
            "topics": len(self.topics),
            "left_out": self.dropped,
            "judged_by_clicks": len(self.document_qrels),
            "opened_by_rank": [round(float(rate), 4) for rate in self.rates],
        }

    @property
    def sentences(self) -> list[str]:
        """What was excluded from the log, and how many topics have judgments from clicks."""
        left_out = [counts_sentence("excluded", self.dropped)] if self.dropped else []
        if not self.has_clicks:
            return left_out
        shares = ", ".join(f"{rate:.1%}" for rate in self.rates[:5])
        bias = f"opened by rank: {shares}" if shares else "the log lacks the results shown: expect position bias"
        return [*left_out, f"weak judgments from clicks: {counted(len(self.document_qrels), 'topic')} ({bias})"]


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
    queries = _distinct_queries(log.searches, by_rank)
    frequent = [query for query in queries if max(1, len(query.sessions)) >= spec.least_sessions]
    chosen = sample(frequent, spec)
    if not chosen:
        raise BenchmarkError(
            f"no query was asked by {spec.least_sessions} sessions or more: set --least-sessions lower"
        )
    qrels: dict[str, dict[str, int]] = {}
    topics, named, resolved = [], 0, 0
    for query, group in zip(chosen, _groups([query.text for query in chosen]), strict=True):
        qid = f"l-{text_digest(normal_form(query.text), 10)}"
        topic = Topic(qid, query.text, FREQUENT if query.count > 1 else RARE, group=group, provenance=_LOGGED)
        topics.append(topic)
        relevant = query.clicks.relevant()
        docnos = [docno for name in relevant if (docno := docno_of(name)) is not None]
        named, resolved = named + len(relevant), resolved + len(docnos)
        if docnos:
            qrels[topic.qid] = dict.fromkeys(docnos, 1)
    total = sum(search.count for search in log.searches)
    placed = with_splits(topics, qrels, _SEED, spec.train)
    return LogTopics(placed, qrels, {}, log.skipped, log.has_clicks, len(queries), total, by_rank, named, resolved)


def sample(queries: Sequence[LoggedQuery], spec: LogSpec) -> list[LoggedQuery]:
    """Up to `limit` queries, the most frequent first: a quota of those asked once, the rest in proportion to frequency.

    Systematic sampling with probabilities proportional to size (Madow 1949): a mean over the rest estimates the mean
    over searches. Places that one part cannot fill go to the other part.
    """
    rng = np.random.default_rng(_SEED)
    rare = [query for query in queries if query.count == 1]
    often = [query for query in queries if query.count > 1]
    n_rare = min(len(rare), max(round(spec.tail * spec.limit), spec.limit - len(often)))
    places = rng.permutation(len(rare))[:n_rare]
    chosen = [rare[i] for i in places]
    drawn = proportional(np.array([query.count for query in often], dtype=float), spec.limit - n_rare, rng)
    chosen += [often[i] for i in drawn]
    return sorted(chosen, key=lambda query: (-query.count, query.text))


def proportional(sizes: NDArray[np.float64], n: int, rng: np.random.Generator) -> list[int]:
    """`n` different places, each with a probability proportional to its size; all where there are no more.

    A place whose size exceeds an `n`-th of the rest is always drawn.
    """
    remaining = list(range(len(sizes)))
    if n >= len(remaining):
        return remaining
    certain: list[int] = []
    while n > len(certain):
        total = sizes[remaining].sum()
        always = [i for i in remaining if (n - len(certain)) * sizes[i] >= total]
        if not always:
            break
        certain += always
        remaining = [i for i in remaining if i not in set(always)]
    needed = n - len(certain)
    if needed <= 0:
        return sorted(certain)
    order = rng.permutation(remaining)
    edges = np.cumsum(sizes[order])
    step = edges[-1] / needed
    points = (rng.random() + np.arange(needed)) * step
    return sorted([*certain, *(int(i) for i in order[np.searchsorted(edges, points, side="right")])])


def _distinct_queries(searches: Sequence[LoggedSearch], by_rank: NDArray[np.float64]) -> list[LoggedQuery]:
    """Distinct queries sorted by their words; queries with the same words in any order are one.

    A session that asks a query again counts once; without sessions every search counts.
    """
    by_form: dict[tuple[str, ...], LoggedQuery] = defaultdict(LoggedQuery)
    for search in searches:
        key = tuple(sorted({*words(normal_form(search.query))})) or (normal_form(search.query),)
        query = by_form[key]
        query.clicks.add(search, by_rank)
        if search.session and search.session in query.sessions:
            continue
        query.sessions |= {search.session} if search.session else set()
        query.spellings[search.query] += search.count
        query.count += search.count
    return [by_form[key] for key in sorted(by_form)]


def _groups(texts: Sequence[str]) -> list[str]:
    """The name of its group for every text that shares most words with others, `""` for the rest."""
    first = list(range(len(texts)))
    pairs = [(one, second) for one, second, _ in near_duplicates(texts, _GROUPED)]
    for one, second in sorted(pairs):
        low, high = sorted((first[one], first[second]))
        first = [low if i == high else i for i in first]
    grouped = {i for pair in pairs for i in pair}
    return [f"l-{text_digest(texts[first[i]], 10)}" if i in grouped else "" for i in range(len(texts))]


def rates(searches: Iterable[LoggedSearch]) -> NDArray[np.float64]:
    """The share of showings that were clicked, one value a rank, never rising; empty where nothing was shown."""
    from scipy.optimize import isotonic_regression

    counted: list[Sequence[int]] = [
        (rank, search.count, search.count if name in search.clicked else 0)
        for search in searches
        for rank, name in enumerate(search.shown)
    ]
    if not counted:
        return np.zeros(0)
    ranks, shown, clicked = np.array(counted).T
    n = np.bincount(ranks, shown)
    return np.asarray(isotonic_regression(np.bincount(ranks, clicked) / n, weights=n, increasing=False).x)
