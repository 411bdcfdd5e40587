"""The only stage of an arm whose hits another system found: places them among the chunks of the index.

So measures, verdicts, losses and hits side by side work as for any arm. A run file is such an arm without times; arms
that ask another system while they are measured are in `ragbench.extras.remote`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar

from ragbench.base.bounds import Checked, Count, Name
from ragbench.base.errors import LiveError
from ragbench.base.fingerprint import digest
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.benchmark.documents import identifier
from ragbench.boundary.capabilities import Capability, Needs
from ragbench.search.live import run_file
from ragbench.search.live.places import LiveHit, Places
from ragbench.search.stages.stage import NOTHING, Fact

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.index import Index

SOURCE = "live"


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Checked, ABC):
    """Base of all arms whose hits another system finds, each of which names a document or has a text.

    `depth`: hits that are requested and kept. `prefix` is removed from the paths of addresses (`docs` in
    `https://example.org/docs/keys`).
    """

    depth: Count = 10  # hits to request
    prefix: str = ""  # cut from the paths of addresses: docs in https://example.org/docs/keys

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({Fact.RANKINGS, Fact.FUSED})
    forbids: ClassVar[Mapping[str, str]] = {Fact.RANKINGS: "a live search is an arm of its own"}
    outside: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in messages."""

    @abstractmethod
    def found(self, query: Query, places: Places) -> Sequence[LiveHit]:
        """At most `depth` hits, best first. Raises LiveError when the query has no answer."""

    def sample(self, places: Places) -> Sequence[LiveHit] | None:
        """Documents that it may return, of which one at least must be in the collection; None: they are not known."""
        return None

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Ask for the hits of every state, one after the other. LiveError when one query has no answer."""
        places = _places(index.chunks, self.prefix)
        self._require(places)
        return [place_hits(state, self.found(state.query, places), places) for state in states]

    def _require(self, places: Places) -> None:
        """Raise LiveError when nothing of what it may return is in the collection; looked at once."""
        key = (digest(self), id(places))
        if key in _FITTING:
            return
        sample = self.sample(places)
        if sample is not None and all(places.chunk(each) is None for each in sample):
            theirs, ours = (", ".join(names) for names in ([each.document for each in sample[:2]], places.docnos[:2]))
            raise LiveError(
                f"{self.name} has none of the collection's documents: it names {theirs}, the collection {ours}; use "
                "the data that it was made of, or set live.prefix to what its ids begin with"
            )
        _FITTING.add(key)


@dataclass(frozen=True, kw_only=True)
class LiveRun(Elsewhere):
    """A run file in TREC form that any system wrote: its hits are judged as they are, and nothing is asked or timed."""

    path: Annotated[Name, Needs(Capability.READS)]  # lines of: qid Q0 id rank score tag; may be packed (.gz)
    depth: Count = 1000  # hits to read of each topic

    recorded: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The file."""
        return f"the run file {self.path}"

    @property
    def content(self) -> str:
        """A digest of the file: another run under its name is another arm."""
        return run_file.content(self.path)

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError for a run of none of the topics, or a file that is no run."""
        run = run_file.read(self.path)
        if not any(qid in run for qid in qids):
            theirs, ours = (", ".join(list(names)[:2]) for names in (run, qids))
            raise LiveError(
                f"{self.name} has no hits for any of the topics: it answers {theirs}, the topics are {ours}"
            )

    def found(self, query: Query, places: Places) -> Sequence[LiveHit]:
        """The hits of the topic, in the order of trec_eval; none where the run has no such topic."""
        found = run_file.read(self.path).get(query.qid, ())
        return [LiveHit(name, score=score) for name, score in found[: self.depth]]

    def sample(self, places: Places) -> Sequence[LiveHit] | None:
        """The best hits of its topics."""
        return [LiveHit(name) for hits in run_file.read(self.path).values() for name, _ in hits[:10]]

    def describe(self) -> str:
        """The file."""
        return f"take the first {self.depth} hits of {self.name}"


def place_hits(state: QueryState, found: Sequence[LiveHit], places: Places) -> QueryState:
    """The state with the found hits as its ranking; a hit in no document of the collection keeps its place by name.

    Scores are those of the search if every hit has one and they never increase, else 1 / rank.
    """
    chunks: dict[int, tuple[int, float | None]] = {}
    strangers: list[tuple[int, str]] = []
    for rank, each in enumerate(found, start=1):
        chunk = places.chunk(each)
        if chunk is None:
            strangers.append((len(chunks), identifier(each.document or each.text)[:_NAME]))
        else:
            chunks.setdefault(chunk, (rank, each.score))
    given = [score for _, score in chunks.values() if score is not None]
    falling = len(given) == len(chunks) and all(one >= next_ for one, next_ in pairwise(given))
    ranking = Ranking.ordered(list(chunks), given if falling else [1 / rank for rank, _ in chunks.values()])
    if strangers:
        names = ", ".join(name for _, name in strangers[:3])
        state = state.with_note(f"{len(strangers)} of {len(found)} hits are in no document of the collection: {names}")
    return replace(state.with_ranking(SOURCE, ranking), fused=ranking, strangers=tuple(strangers))


@lru_cache(maxsize=4)
def _places(table: ChunkTable, prefix: str) -> Places:
    return Places(table, prefix)


_FITTING: set[tuple[str, int]] = set()  # searches, and the places that know one of their documents
_NAME = 200  # characters of the name of a hit that was not placed
