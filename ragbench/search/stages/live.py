"""The only stage of a live arm: asks a search that runs elsewhere and finds its hits among the chunks of the index.

So measures, verdicts, losses, hits side by side and latency work as for any arm. The time of a query is end to end: it
includes the network. A run file is such an arm without times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import MinLen

from ragbench.base.bounds import Checked, Count, Name, Natural, Positive, Share, SplitWords, Weight
from ragbench.base.errors import LiveError
from ragbench.base.fingerprint import digest
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.benchmark.documents import identifier
from ragbench.boundary.capabilities import Capability, Needs
from ragbench.models.chat import Endpoint, Secret
from ragbench.search.live import anserini, run_file
from ragbench.search.live.answers import LiveHit, Reading
from ragbench.search.live.asking import Asker, secret
from ragbench.search.live.places import Places
from ragbench.search.stages.stage import NOTHING, Fact

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.index import Index

SOURCE = "live"
Address = Endpoint


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
class Live(Reading, Elsewhere, ABC):
    """Base of all live searches; the fields of `Reading` say where hits are in an answer.

    `timeout_s`, `retries` and `per_second` (requests, at most) bound every exchange; the arm fails when a query gets no
    answer.
    """

    timeout_s: Positive = 10.0  # for the whole answer
    retries: Natural = 2  # further attempts after a failure
    per_second: Positive = 5.0  # requests, at most

    @abstractmethod
    def asking(self) -> Callable[[str, int], Any]:
        """A function that sends one query for a number of hits and returns the answer's JSON."""

    def answer(self, query: str) -> Any:
        """The whole answer to one query. Raises LiveError when there is none."""
        return _asker(self)(query, self.depth)

    def found(self, query: Query, places: Places) -> Sequence[LiveHit]:
        """What the answer holds."""
        return self.read(self.answer(query.text), self.depth)

    def wait(self) -> None:
        """Wait until `per_second` allows another request; the time of a query does not include it."""
        _asker(self).wait()

    def describe(self) -> str:
        """The system that it asks."""
        return f"ask {self.name} for {self.depth} hits, end to end"


@dataclass(frozen=True, kw_only=True)
class LiveHttp(Live):
    """A search over HTTP. In `url` and the texts of `body` (sent as JSON), `{query}` and `{depth}` are replaced.

    `token_variable` names the environment variable with a token, which is sent as `token_header`, after `token_prefix`.
    """

    url: Address  # such as http://localhost:8080/search?q={query}&limit={depth}
    method: Literal["GET", "POST"] = "GET"  # or POST
    # sent as JSON, {query} and {depth} replaced: {q: "{query}", limit: "{depth}"}
    body: Mapping[str, Any] | None = None
    headers: Annotated[Mapping[str, str], Needs(Capability.SENDS)] = field(default_factory=dict)
    token_variable: Secret | None = None  # the environment variable with a token, where the server wants one
    token_header: Name = "Authorization"
    token_prefix: str = "Bearer "

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{query}" not in f"{self.url} {self.body}":
            raise self.refused("url", "or body must hold {query} where the query belongs")

    @property
    def name(self) -> str:
        """The address, without its query."""
        return self.url.partition("?")[0]

    def asking(self) -> Callable[[str, int], Any]:
        """A client that keeps its connections."""
        from ragbench.search.live import http

        token = secret(self.token_variable, self.name)
        sent = {} if token is None else {self.token_header: f"{self.token_prefix}{token}"}
        return http.asking(self.method, self.url, self.body, {**self.headers, **sent}, self.timeout_s)


@dataclass(frozen=True, kw_only=True)
class LiveCommand(Live):
    """A search program, given as a line or a list of words with `{query}` and `{depth}`; it prints JSON or JSON Lines.

    The query is also on its standard input. No shell is used.
    """

    # its words, also in one line: "./search.sh --top {depth} {query}"; the query is also on standard input
    program: Annotated[tuple[str, ...], MinLen(1), Needs(Capability.EXECUTES), SplitWords()]

    @property
    def name(self) -> str:
        """The program."""
        return f"the program {self.program[0]}"

    def asking(self) -> Callable[[str, int], Any]:
        """A new process for every query."""
        from ragbench.search.live import command

        return command.asking(self.program, self.timeout_s)


@dataclass(frozen=True, kw_only=True)
class LiveMcp(Live):
    """A search tool of an MCP server: `url` of one over HTTP, or `program` of one over standard input and output."""

    tool: Name = "search"
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"query": "{query}"})
    url: Address | None = None  # of a server over HTTP
    # or of one over standard input and output: [npx, some-server, notes]
    program: Annotated[tuple[str, ...], Needs(Capability.EXECUTES), SplitWords()] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.url is None) == (not self.program):
            raise self.refused("url", "or program must be given, and only one of them")

    @property
    def name(self) -> str:
        """The server."""
        return self.url or f"the MCP server {self.program[0]}"

    def asking(self) -> Callable[[str, int], Any]:
        """One session for all queries."""
        from ragbench.search.live import mcp

        return mcp.asking(self.url or self.program, self.tool, self.arguments, self.timeout_s)


@dataclass(frozen=True, kw_only=True)
class LivePyserini(Elsewhere):
    """An index that Anserini or Pyserini built, a folder or a prebuilt one, searched as `LuceneSearcher` searches it.

    Hits are placed by their ids; a hit with an id that is no document's, or of a passage (`doc7#2`), also by the text
    that the index stores.
    """

    index: Annotated[Name, Needs(anserini.need)]  # a folder, or the name of a prebuilt index such as cacm
    depth: Count = 100
    k1: Weight = 0.9
    b: Share = 0.4
    # weights of the fields that are searched; none: the field contents
    fields: Mapping[str, Positive] = field(default_factory=dict)
    feedback: Literal["rm3", "rocchio"] | None = None  # pseudo-relevance feedback: rm3 or rocchio
    language: Name | None = None  # of the analyzer, such as de; English when null

    @property
    def name(self) -> str:
        """The index."""
        return f"the index {self.index}"

    def require_topics(self, qids: Sequence[str]) -> None:
        """Raise LiveError for an index that cannot be opened, before anything is measured."""
        _ = self._searcher

    def found(self, query: Query, places: Places) -> Sequence[LiveHit]:
        """The hits of `LuceneSearcher.search`."""
        return self._searcher.search(query.text, self.depth, places.knows)

    def sample(self, places: Places) -> Sequence[LiveHit] | None:
        """Some documents of the index; None where it holds one of the collection's."""
        searcher = self._searcher
        return None if searcher.holds(places.docnos[: anserini.SAMPLE]) else searcher.sample()

    def describe(self) -> str:
        """The index and how it is scored."""
        feedback = f" and {self.feedback}" if self.feedback else ""
        return f"search {self.name} with BM25 (k1={self.k1:g}, b={self.b:g}){feedback} for {self.depth} hits"

    @property
    def _searcher(self) -> anserini.Searcher:
        weights = tuple(sorted(self.fields.items()))
        scoring = anserini.Scoring(self.k1, self.b, weights, self.feedback, self.language)
        return anserini.opened(self.index, scoring)


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


def _asker(search: Live) -> Asker:
    """The `Asker` of a search, one for this process: it knows the time of the last request and keeps connections."""
    key = digest(search)
    if key not in _ASKERS:
        _ASKERS[key] = Asker(search.name, search.asking(), search.per_second, search.retries)
    return _ASKERS[key]


@lru_cache(maxsize=4)
def _places(table: ChunkTable, prefix: str) -> Places:
    return Places(table, prefix)


_ASKERS: dict[str, Asker] = {}
_FITTING: set[tuple[str, int]] = set()  # searches, and the places that know one of their documents
_NAME = 200  # characters of the name of a hit that was not placed
