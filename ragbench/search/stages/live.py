"""The only stage of a live arm: asks a search that runs elsewhere and finds its hits among the chunks of the index.

So measures, verdicts, losses, hits side by side and latency work as for any arm. The time of a query is end to end: it
includes the network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import MinLen

from ragbench.base.bounds import Count, Name, Natural, Positive, SplitWords
from ragbench.base.fingerprint import digest
from ragbench.base.types import QueryState, Ranking
from ragbench.benchmark.documents import identifier
from ragbench.boundary.capabilities import Capability, Needs
from ragbench.models.chat import Endpoint, Secret
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
class Live(Reading, ABC):
    """Base of all live searches; the fields of `Reading` say where hits are in an answer.

    `depth`: hits that are requested and kept. `prefix` is removed from the paths of addresses (`docs` in
    `https://example.org/docs/keys`). `timeout_s`, `retries` and `per_second` (requests, at most) bound every exchange;
    the arm fails when a query gets no answer.
    """

    depth: Count = 10  # hits to request
    prefix: str = ""  # cut from the paths of addresses: docs in https://example.org/docs/keys
    timeout_s: Positive = 10.0  # for the whole answer
    retries: Natural = 2  # further attempts after a failure
    per_second: Positive = 5.0  # requests, at most

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
    def asking(self) -> Callable[[str, int], Any]:
        """A function that sends one query for a number of hits and returns the answer's JSON."""

    def answer(self, query: str) -> Any:
        """The whole answer to one query. Raises LiveError when there is none."""
        return _asker(self)(query, self.depth)

    def wait(self) -> None:
        """Wait until `per_second` allows another request; the time of a query does not include it."""
        _asker(self).wait()

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Ask the search for every state, one after the other. LiveError when one query has no answer."""
        places = _places(index.chunks, self.prefix)
        return [place_hits(state, self.read(self.answer(state.query.text), self.depth), places) for state in states]

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
_NAME = 200  # characters of the name of a hit that was not placed
