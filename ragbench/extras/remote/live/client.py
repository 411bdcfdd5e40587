"""Ask a live search over HTTP or by a program, and read the hits in its JSON by JMESPath expressions.

Requests are sent at a limited rate, and a few times more when they fail.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Protocol
from urllib.parse import quote

from ragbench.base.options import Constraint, Validated
from ragbench.base.processes import SAFE_PATH
from ragbench.base.types import BoundaryError, LiveError
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.boundary.json import read_json, read_json_lines
from ragbench.extras.remote.http import Client, HttpError
from ragbench.extras.remote.live.hit_matching import LiveHit
from ragbench.index import filters

_MOST_PAUSE_S = 30.0
"""The longest wait before another attempt, even if the search asks for more."""
_LARGEST_ANSWER = 20_000_000


def _readable(expression: str) -> bool:
    import jmespath

    try:
        jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError:
        return False
    return True


Expression = Annotated[str, Constraint(_readable, "must be a JMESPath expression")]


@dataclass(frozen=True)
class HitReading(Validated):
    """JMESPath expressions: `hits` finds the list of hits in an answer, the others find fields in a hit (null: none).

    `document` gives a path, an address or a title. One of `document` and `text` is needed.
    """

    hits: Expression  # where the list of hits is in the answer (JMESPath); then fields of a hit:
    document: Expression | None = None  # path, URL or title of the document
    section: Expression | None = None  # heading or anchor
    text: Expression | None = None  # field with the text, which also identifies the chunk without `document`
    score: Expression | None = None  # field with the score

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.document is None and self.text is None:
            raise self.refused("document", "must name the field of a hit's document, or text the field of its text")

    def read(self, answer: Any, depth: int) -> list[LiveHit]:
        """The first `depth` hits. LiveError when it has no list of them, or a hit has neither document nor text."""
        return [self._hit(hit, rank) for rank, hit in enumerate(self.values(answer)[:depth], start=1)]

    def values(self, answer: Any) -> list[Any]:
        """The hits as they are in the answer. LiveError when it has no list of them."""
        hits = _search(self.hits, answer)
        if not isinstance(hits, list):
            raise LiveError(f"the answer has no list of hits at '{self.hits}' (it begins {str(answer)[:80]!r})")
        return hits

    def _hit(self, hit: Any, rank: int) -> LiveHit:
        values = {
            name: _text(_search(expression, hit))
            for name in ("document", "section", "text")
            if (expression := getattr(self, name)) is not None
        }
        if not any(values.get(name) for name in ("document", "text")):
            raise LiveError(f"hit {rank} has nothing at '{self.document or self.text}' (it is {str(hit)[:80]!r})")
        score = _search(self.score, hit) if self.score is not None else None
        number = float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None
        return LiveHit(**{"document": "", **values}, score=number)


def _search(expression: str, value: Any) -> Any:
    import jmespath

    try:
        return _compile(expression).search(value)
    except jmespath.exceptions.JMESPathError as error:
        raise LiveError(f"'{expression}' cannot be applied to the answer: {error}") from None


@cache
def _compile(expression: str) -> Any:
    import jmespath

    return jmespath.compile(expression)


def _text(value: Any) -> str:
    """A value as text: the parts of a list joined by blanks, `""` for a value that is neither text nor number."""
    if isinstance(value, list):
        return " ".join(filter(None, map(_text, value)))
    return str(value) if isinstance(value, (str, int, float)) else ""


class Ask(Protocol):
    """Sends one query for a number of hits, with its filter, and gives the answer."""

    def __call__(self, query: str, depth: int, conditions: QueryFilter = ..., /) -> Any:
        """The answer. RequestFailed when there is none."""


NO_FILTER: QueryFilter = {}
_FILTER = "{filter}"
_PLACE = re.compile(r"\{(query|depth|filter(?:\.([\w-]+))?)\}")


def fill_in(template: Any, query: str, depth: int, conditions: QueryFilter = NO_FILTER) -> Any:
    """A template with `{query}`, `{depth}`, `{filter}` (JSON) and `{filter.NAME}` replaced in all its texts.

    The text `{depth}` becomes a number and `{filter}` an object; a query without a filter omits its key.
    """
    if isinstance(template, str):
        if template in ("{depth}", _FILTER):
            return depth if template == "{depth}" else dict(conditions)
        return filled_text(template, query, depth, conditions)
    if isinstance(template, Mapping):
        kept = {key: value for key, value in template.items() if conditions or value != _FILTER}
        return {str(key): fill_in(value, query, depth, conditions) for key, value in kept.items()}
    if isinstance(template, (list, tuple)):
        return [fill_in(value, query, depth, conditions) for value in template]
    return template


def filled_text(
    text: str, query: str, depth: int, conditions: QueryFilter, escape: Callable[[str], str] = lambda value: value
) -> str:
    """A text with its places filled in; several values of a filter are separated by commas, one it lacks is empty."""
    values = {"query": query, "depth": str(depth), "filter": json.dumps(conditions, ensure_ascii=False)}

    def value(place: re.Match[str]) -> str:
        return escape(values.get(place[1]) or ",".join(filters.values_of(conditions.get(place[2], ()))))

    return _PLACE.sub(value, text)


def sends_filter(template: Any) -> bool:
    """Whether a template has a place for the filter of a query."""
    return "{filter" in str(template)


class RequestFailed(Exception):
    """A failed attempt. `again`: whether another one may help; `after_s`: the seconds to wait, as the search says."""

    def __init__(self, reason: str, again: bool = True, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.again, self.after_s = again, after_s


@dataclass
class RateLimitedClient:
    """Asks one search: never more than `per_second` times a second, up to `retries` times more when it fails.

    `ask` makes one attempt and raises RequestFailed when it fails; `name` is what messages call the search.
    """

    name: str
    ask: Ask
    per_second: float
    retries: int
    _free_at: float = field(default=0.0, repr=False)

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        time.sleep(max(0.0, self._free_at - time.monotonic()))

    def __call__(self, query: str, depth: int, conditions: QueryFilter = NO_FILTER) -> Any:
        """The answer. LiveError when there is none after all attempts."""
        for attempt in range(1, self.retries + 2):
            self.wait()
            self._free_at = time.monotonic() + 1 / self.per_second
            try:
                return self.ask(query, depth, conditions)
            except RequestFailed as failure:
                if attempt > self.retries or not failure.again:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    raise LiveError(f"{self.name} did not answer '{query[:60]}', asked {times}: {failure}") from None
                pause = min(_MOST_PAUSE_S, max(failure.after_s, 0.2 * 2 ** (attempt - 1)))
                self._free_at = max(self._free_at, time.monotonic() + pause)
        raise AssertionError("unreachable")


def secret(variable: str | None, name: str) -> str | None:
    """The value of the environment variable that holds a token. LiveError when it is not set."""
    if variable is None:
        return None
    value = os.environ.get(variable, "")
    if not value:
        raise LiveError(f"{name} needs a token: set the environment variable {variable}")
    return value


def asking_http(
    method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str], timeout_s: float
) -> Ask:
    """A function that sends a query and gives the JSON of the answer; connections are kept open between calls.

    `timeout_s` bounds the whole exchange. A filled `url` must keep the origin of the template, so that a token goes
    nowhere else.
    """
    client: list[Client] = []

    def ask(query: str, depth: int, conditions: QueryFilter = NO_FILTER, /) -> Any:
        address = filled_text(url, query, depth, conditions, lambda text: quote(text, safe="", errors="replace"))
        try:
            if not client:
                client.append(Client(url.partition("{")[0], headers, timeout_s=timeout_s))
            answer = client[0].send(method, address, None if body is None else fill_in(body, query, depth, conditions))
        except HttpError as error:
            raise RequestFailed(str(error), error.again, error.after_s) from None
        except BoundaryError as error:
            raise RequestFailed(f"'{url}' cannot be asked: {error}", again=False) from None
        try:
            return answer.json()
        except BoundaryError as error:
            raise RequestFailed(f"the answer is not JSON ({error})", again=False) from None

    return ask


def asking_program(program: Sequence[str], timeout_s: float) -> Ask:
    """A function that runs the program, without a shell, and reads what it prints: JSON, or JSON Lines as a list.

    The places in its words are replaced as in `fill_in`; the query also stands on its standard input.
    """

    def ask(query: str, depth: int, conditions: QueryFilter = NO_FILTER, /) -> Any:
        arguments = [filled_text(word, query, depth, conditions) for word in program]
        try:
            process = subprocess.run(
                arguments,
                input=f"{query}\n".encode(errors="replace"),
                capture_output=True,
                timeout=timeout_s,
                env=own_environment(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RequestFailed(f"no answer within {timeout_s:g} s") from None
        except (OSError, ValueError) as error:  # no such program; a NUL in its words
            raise RequestFailed(getattr(error, "strerror", None) or str(error), again=False) from None
        if process.returncode != 0:
            last = (process.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing on standard error"])[-1]
            raise RequestFailed(f"exit code {process.returncode} ({last[:120]})")
        return _read(process.stdout)

    return ask


def _read(printed: bytes) -> Any:
    try:
        return read_json(printed, max_bytes=_LARGEST_ANSWER)
    except BoundaryError:
        pass  # perhaps one value a line
    try:
        return list(read_json_lines(printed, max_bytes=_LARGEST_ANSWER))
    except BoundaryError:
        raise RequestFailed("what it prints is neither JSON nor JSON Lines", again=False) from None


def own_environment() -> dict[str, str]:
    """Return the environment for a program of the user, which may import from its own folder."""
    return {name: value for name, value in os.environ.items() if (name, value) != SAFE_PATH}
