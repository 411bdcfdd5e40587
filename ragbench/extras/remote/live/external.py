"""The only stage of an arm whose hits another system found: places them among the chunks of the index.

So measures, verdicts, losses and hits side by side work as for any arm. A run file is such an arm without times; arms
that ask another system while they are measured are in `ragbench.extras.remote`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

from ragbench.base.fingerprint import ASIDE, digest
from ragbench.base.options import Count, Name, Natural, Share, option
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import LiveError, Query
from ragbench.benchmark import lines
from ragbench.extras.remote.live import objects
from ragbench.extras.remote.live.hit_matching import HitMatcher, LiveHit, read_run_file, run_file_digest
from ragbench.index.chunks import ChunkTable
from ragbench.search.engine.hits import REPEATED
from ragbench.search.stages.stage import Index, Stage, StateProperty

_SOURCE = "live"


@dataclass(frozen=True, kw_only=True)
class ExternalSearch(Stage, ABC):
    """Base of all arms whose hits another system finds, each of which names a document or has a text.

    `depth`: hits that are requested and kept. `prefix` is removed from the paths of addresses (`docs` in
    `https://example.org/docs/keys`). If a larger share of the first ten hits than `max_unmatched` is in no document of
    the collection, the arm fails, because its score would be that of the names.
    """

    depth: Count = 10  # hits to request
    prefix: str = ""  # removed from URL paths: docs in https://example.org/docs/keys
    max_unmatched: Share = 0.5  # share of hits outside the collection above which the arm fails; 1 accepts them

    replaces: ClassVar[tuple[str, ...]] = ("*",)
    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.RANKINGS, StateProperty.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.RANKINGS: "a live search is an arm of its own"}
    outside: ClassVar[bool] = True
    place: ClassVar[str] = "url"
    """The field that says where it is: the PLACE of `source=KIND:PLACE`."""
    remedy: ClassVar[str] = "set live.document to the field with the path, and live.prefix to what its paths begin with"
    """What to do if none of its hits is in the collection."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in messages."""

    def ask(self, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
        """Search, and do not place the hits, which does not count as query latency."""
        places = _places(index.chunks, self.prefix)
        for state in states:
            self.hits_of(state.query, places)
        return states

    @abstractmethod
    def hits_of(self, query: Query, places: HitMatcher) -> Sequence[LiveHit]:
        """At most `depth` hits, best first. Raises LiveError when the query has no answer."""

    def sample(self, places: HitMatcher) -> Sequence[LiveHit] | None:
        """Documents that it may return, of which one at least must be in the collection; None: they are not known."""
        return None

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Ask for the hits of every state, one after the other.

        Raises LiveError when one query has no answer, and if none of several queries has a hit in the collection.
        """
        places = _places(index.chunks, self.prefix)
        self._require(places)
        return self._placed(states, [self.hits_of(state.query, places) for state in states], places)

    def _placed(
        self, states: Sequence[QueryState], hits_of_states: Sequence[Sequence[LiveHit]], places: HitMatcher
    ) -> list[QueryState]:
        """The states with their hits. Raises LiveError if too few hits of several queries are in the collection."""
        states_after = [_place_hits(state, hits, places) for state, hits in zip(states, hits_of_states, strict=True)]
        asked = sum(min(len(hits), _FIRST) for hits in hits_of_states)
        strangers = [name[:80] for state in states_after for _, name in state.unmatched]
        unmatched = sum(_unmatched(state) for state in states_after)
        if len(states) > 1 and unmatched and (unmatched == asked or unmatched > self.max_unmatched * asked):
            theirs, ours = (", ".join(names[:2]) for names in (strangers, places.docnos))
            none = unmatched == asked
            share = "no document" if none else f"{unmatched} of {asked} hits outside"
            accept = "" if none else "; live.max_unmatched=1 accepts them as not relevant"
            raise LiveError(
                f"{self.name} returned {share} of the collection: it names {theirs}, the collection {ours}; "
                f"{self.remedy}{accept}"
            )
        return states_after

    def _require(self, places: HitMatcher) -> None:
        """Raise LiveError when nothing of what it may return is in the collection; looked at once."""
        key = (digest(self), id(places))
        if key in _FITTING:
            return
        sample = self.sample(places)
        if sample is not None and all(places.chunk(hit) is None for hit in sample):
            theirs, ours = (", ".join(names) for names in ([hit.document for hit in sample[:2]], places.docnos[:2]))
            raise LiveError(
                f"{self.name} has none of the collection's documents: it names {theirs}, the collection {ours}; use "
                "the data that it was made of, or set live.prefix to what its ids begin with"
            )
        _FITTING.add(key)


@option(
    "live=trec",
    "A run file in TREC form, of any system: its hits are judged, and it has no times; also source=trec:...",
)
@dataclass(frozen=True, kw_only=True)
class LiveRun(ExternalSearch):
    """A run file in TREC form that any system wrote: its hits are judged as they are, and nothing is asked or timed."""

    path: Name  # lines of: qid Q0 id rank score tag; may be packed (.gz)
    depth: Count = 1000  # hits to read of each topic

    recorded: ClassVar[bool] = True
    place: ClassVar[str] = "path"

    @property
    def name(self) -> str:
        """The file."""
        return f"the run file {self.path}"

    @property
    def content(self) -> str:
        """A digest of the file: another run under its name is another arm."""
        return run_file_digest(self.path)

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError for a run of none of the topics, or a file that is not a run."""
        run = read_run_file(self.path)
        if not any(qid in run for qid in qids):
            theirs, ours = (", ".join(list(names)[:2]) for names in (run, qids))
            raise LiveError(
                f"{self.name} has no hits for any of the topics: it answers {theirs}, the topics are {ours}"
            )

    def hits_of(self, query: Query, places: HitMatcher) -> Sequence[LiveHit]:
        """The hits of the topic, in the order of trec_eval; none where the run has no such topic."""
        hits = read_run_file(self.path).get(query.qid, ())
        return [LiveHit(name, score=score) for name, score in hits[: self.depth]]

    def sample(self, places: HitMatcher) -> Sequence[LiveHit] | None:
        """The best hits of its topics."""
        return [LiveHit(name) for hits in read_run_file(self.path).values() for name, _ in hits[:10]]

    def describe(self) -> str:
        """The file."""
        return f"take the first {self.depth} hits of {self.name}"


@option(
    "live=python",
    "A function that @ragbench.retriever decorates, in a module that RAGBENCH_PLUGINS names; also source=python:...",
)
@dataclass(frozen=True, kw_only=True)
class LivePython(ExternalSearch):
    """A function or object of Python in this process, which may search in any way (`objects` of this package)."""

    retriever: Name  # the name of a function decorated with @ragbench.retriever
    # its parameters by name, such as {b: 0.4}
    parameters: Mapping[str, Any] = field(default_factory=dict)
    depth: Count = 100
    number: Natural = field(default=0, metadata=ASIDE)  # tells apart objects of one name that are not decorated

    in_process: ClassVar[bool] = True
    place: ClassVar[str] = "retriever"
    remedy: ClassVar[str] = "return the ids of the collection, or texts"

    @property
    def name(self) -> str:
        """The retriever."""
        return f"retriever '{self.retriever}'"

    @property
    def content(self) -> str:
        """A digest of what is known of the object."""
        return objects.find(self.retriever, self.number).content

    @property
    def lasting(self) -> bool:
        """Whether its results stay valid in another process: those of an object are known by its name alone."""
        return objects.find(self.retriever, self.number).decorated

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError or ConfigError for an object that is not there or lacks a parameter."""
        objects.find(self.retriever, self.number).require(self.parameters)

    def ask(self, states: Sequence[QueryState], index: Index) -> Sequence[QueryState]:
        """Ask the object; its answers are not read."""
        objects.find(self.retriever, self.number).ask([state.query for state in states], self.depth, self.parameters)
        return states

    def hits_of(self, query: Query, places: HitMatcher) -> Sequence[LiveHit]:
        """What it returns."""
        return self._hits_of_all([query], places)[0]

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Ask for the hits of all states. Raises LiveError if none of several queries has a hit in the collection."""
        places = _places(index.chunks, self.prefix)
        hits_of_states = self._hits_of_all([state.query for state in states], places)
        states_after = self._placed(states, hits_of_states, places)
        return [
            state.with_note(REPEATED)
            if len({h.document for h in hits if not h.text}) < sum(not h.text for h in hits)
            else state
            for state, hits in zip(states_after, hits_of_states, strict=True)
        ]

    def _hits_of_all(self, queries: Sequence[Query], places: HitMatcher) -> list[list[LiveHit]]:
        retriever = objects.find(self.retriever, self.number)
        answers = retriever.ask(queries, self.depth, self.parameters)
        pairs = zip(queries, answers, strict=True)
        return [retriever.hits(answer, query, self.depth, places) for query, answer in pairs]

    def describe(self) -> str:
        """The retriever and its parameters."""
        parameters = "".join(f" {name}={value}" for name, value in self.parameters.items())
        return f"ask {self.name}{parameters} for {self.depth} hits"


def _place_hits(state: QueryState, hits: Sequence[LiveHit], places: HitMatcher) -> QueryState:
    """The state with the found hits as its ranking; a hit in no document of the collection keeps its place by name.

    Scores are those of the search if every hit has one and they never increase, else 1 / rank.
    """
    chunks: dict[int, tuple[int, float | None]] = {}
    unmatched: list[tuple[int, str]] = []
    for rank, hit in enumerate(hits, start=1):
        chunk = places.chunk(hit)
        if chunk is None:
            unmatched.append((len(chunks), lines.identifier(hit.document or hit.text)[:_NAME]))
        else:
            chunks.setdefault(chunk, (rank, hit.score))
    scores = [score for _, score in chunks.values() if score is not None]
    falling = len(scores) == len(chunks) and all(one >= next_ for one, next_ in pairwise(scores))
    ranking = Ranking.ordered(list(chunks), scores if falling else [1 / rank for rank, _ in chunks.values()])
    if unmatched:
        names = ", ".join(name for _, name in unmatched[:3])
        state = state.with_note(f"{len(unmatched)} of {len(hits)} hits are in no document of the collection: {names}")
    return replace(state.with_ranking(_SOURCE, ranking), fused=ranking, unmatched=tuple(unmatched))


def _unmatched(state: QueryState) -> int:
    """How many of the first ten hits are in no document of the collection."""
    return sum(place + number < _FIRST for number, (place, _) in enumerate(state.unmatched))


@lru_cache(maxsize=4)
def _places(table: ChunkTable, prefix: str) -> HitMatcher:
    return HitMatcher(table, prefix)


_FITTING: set[tuple[str, int]] = set()  # searches, and the places that know one of their documents
_FIRST = 10  # hits of a query that count
_NAME = 200  # characters of the name of a hit that was not placed
