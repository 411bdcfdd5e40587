"""The only stage of a live arm: asks a search that runs elsewhere; the time of a query includes the network."""

from __future__ import annotations

import logging
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import MinLen
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from ragbench.base.fingerprint import digest
from ragbench.base.options import Constraint, Name, Natural, Positive, option
from ragbench.base.rankings import QueryState
from ragbench.base.types import Query, counted, names_secret
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.extras.remote.live import client
from ragbench.extras.remote.live.client import NO_FILTER, Ask, HitReading, RateLimitedClient, secret, sends_filter
from ragbench.extras.remote.live.external import ExternalSearch
from ragbench.extras.remote.live.hit_matching import HitMatcher, LiveHit
from ragbench.index.index import Index
from ragbench.models.chat import Endpoint

_LOG = logging.getLogger(__name__)


def _split(value: Any) -> Any:
    """A text as a list of words: split as a shell does, without doing anything else that a shell does."""
    try:
        return tuple(shlex.split(value)) if isinstance(value, str) else value
    except ValueError:
        raise PydanticCustomError("holds", "{words}", {"words": "must have its quotes closed"}) from None


Address = Endpoint


@dataclass(frozen=True, kw_only=True)
class Live(HitReading, ExternalSearch, ABC):
    """Base of all live searches; the fields of `HitReading` say where hits are in an answer.

    `timeout_s`, `retries` and `per_second` (requests, at most) bound every exchange; the arm fails when a query gets no
    answer.
    """

    timeout_s: Positive = 10.0  # time limit for the whole response
    retries: Natural = 2  # number of retries after a failure
    per_second: Positive = 5.0  # maximum number of requests per second

    @abstractmethod
    def asking(self) -> Ask:
        """A function that sends one query for a number of hits and returns the answer's JSON."""

    @property
    @abstractmethod
    def template(self) -> Any:
        """What is sent, with the places of query, depth and filter."""

    def answer(self, query: str, conditions: QueryFilter = NO_FILTER) -> Any:
        """The whole answer to one query with its filter. Raises LiveError when there is none."""
        return _asker(self)(query, self.depth, conditions)

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Ask for the hits of every state; a warning where queries have filters and nothing sends them."""
        filtered = sum(bool(state.query.filter) for state in states)
        if filtered and not sends_filter(self.template):
            _LOG.warning(
                f"{self.name} gets no filter of {counted(filtered, 'query')}, so its leaks are measured: send it with "
                "{filter}, or {filter.version} for one value"
            )
        return super().__call__(states, index)

    def hits_of(self, query: Query, places: HitMatcher) -> Sequence[LiveHit]:
        """What the answer holds."""
        return self.read(self.answer(query.text, query.filter), self.depth)

    def wait(self) -> None:
        """Wait until `per_second` allows another request; the time of a query does not include it."""
        _asker(self).wait()

    def describe(self) -> str:
        """The system that it asks."""
        return f"ask {self.name} for {self.depth} hits, end to end"


def _without_secrets(headers: Mapping[str, str]) -> bool:
    return all(value.startswith("env:") for name, value in headers.items() if names_secret(name))


@option(
    "live=ragbench",
    "A bundle served by `ragbench serve`, such as live.url=http://127.0.0.1:8080/search.",
    url="http://127.0.0.1:8765/search",
    method="POST",
    body={"query": "{query}", "top_n": "{depth}", "filters": "{filter}"},
    hits="hits",
    document="docno",
    section="header_path[-1]",
    text="text",
    score="score",
)
@option(
    "live=opensearch",
    "An index of OpenSearch or Elasticsearch, asked by its search endpoint.",
    method="POST",
    body={"size": "{depth}", "query": {"multi_match": {"query": "{query}", "fields": ["title", "text"]}}},
    hits="hits.hits",
    document="_source.path",
    text="_source.text",
    score="_score",
)
@option(
    "live=meilisearch",
    "An index of Meilisearch.",
    method="POST",
    body={"q": "{query}", "limit": "{depth}", "showRankingScore": True},
    hits="hits",
    document="url",
    text="content",
    score="_rankingScore",
)
@option(
    "live=http",
    "A search over HTTP, yours or any other that answers with JSON; its time is end to end.",
    hits="hits",
    document="path",
)
@dataclass(frozen=True, kw_only=True)
class LiveHttp(Live):
    """A search over HTTP.

    In `url` and the texts of `body` (sent as JSON), `{query}` and `{depth}` are replaced, and `{filter}` and
    `{filter.NAME}` by the filter of the query.
    `token_variable` names the environment variable with a token, which is sent as bearer token.
    """

    url: Address  # such as http://localhost:8080/search?q={query}&limit={depth}
    method: Literal["GET", "POST"] = "GET"  # or POST
    # JSON body, in which {query} and {depth} are replaced: {q: "{query}", limit: "{depth}"}
    body: Mapping[str, Any] | None = None
    # specify a token or key as env:NAME (environment variable)
    headers: Annotated[
        Mapping[str, str],
        Constraint(_without_secrets, "must hold no token or key: write env:NAME for an environment variable with it"),
    ] = field(default_factory=dict)
    token_variable: Name | None = None  # environment variable with a bearer token, if the server needs one

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{query}" not in f"{self.url} {self.body}":
            raise self.refused("url", "or body must hold {query} where the query belongs")

    @property
    def name(self) -> str:
        """The address, without its query."""
        return self.url.partition("?")[0]

    @property
    def template(self) -> Any:
        """Address and body."""
        return self.url, self.body

    def asking(self) -> Ask:
        """A client that keeps its connections."""
        token = secret(self.token_variable, self.name)
        headers = {
            key: secret(value.removeprefix("env:"), self.name) or "" if value.startswith("env:") else value
            for key, value in self.headers.items()
        }
        sent = {} if token is None else {"Authorization": f"Bearer {token}"}
        return client.asking_http(self.method, self.url, self.body, {**headers, **sent}, self.timeout_s)


@option(
    "live=command",
    "A program that prints its hits as JSON or JSON Lines; its time is end to end and includes starting it.",
    program=[],
    hits="@",
    document="path",
)
@dataclass(frozen=True, kw_only=True)
class LiveCommand(Live):
    """A search program, given as a line or a list of words with `{query}` and `{depth}`; it prints JSON or JSON Lines.

    The query is also on its standard input. No shell is used.
    """

    # command line: "./search.sh --top {depth} {query}"; the query is also on standard input
    program: Annotated[tuple[str, ...], MinLen(1), BeforeValidator(_split)]

    place: ClassVar[str] = "program"

    @property
    def name(self) -> str:
        """The program."""
        return f"the program {self.program[0]}"

    @property
    def template(self) -> Any:
        """The words."""
        return self.program

    def asking(self) -> Ask:
        """A new process for every query."""
        return client.asking_program(self.program, self.timeout_s)


@option("live=mcp", "A search tool of an MCP server; its time is end to end.", hits="hits", document="path")
@dataclass(frozen=True, kw_only=True)
class LiveMcp(Live):
    """A search tool of an MCP server: `url` of one over HTTP, or `program` of one over standard input and output."""

    tool: Name = "search"  # name of the tool
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"query": "{query}"})
    url: Address | None = None  # of a server over HTTP
    # or of one over standard input and output: [npx, some-server, notes]
    program: Annotated[tuple[str, ...], BeforeValidator(_split)] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.url is None) == (not self.program):
            raise self.refused("url", "or program must be given, and only one of them")

    @property
    def name(self) -> str:
        """The server."""
        return self.url or f"the MCP server {self.program[0]}"

    @property
    def template(self) -> Any:
        """The arguments of the tool."""
        return self.arguments

    def asking(self) -> Ask:
        """One session for all queries."""
        from ragbench.extras.remote.live import mcp

        return mcp.asking(self.url or self.program, self.tool, self.arguments, self.timeout_s)


def _asker(search: Live) -> RateLimitedClient:
    """The client of a search, one for this process: it limits the request rate and keeps connections open."""
    key = digest(search)
    if key not in _ASKERS:
        _ASKERS[key] = RateLimitedClient(search.name, search.asking(), search.per_second, search.retries)
    return _ASKERS[key]


_ASKERS: dict[str, RateLimitedClient] = {}
