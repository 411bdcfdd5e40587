"""One request to a search over HTTP."""

from __future__ import annotations

import email.utils
import json
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ragbench.live.answers import fill_in
from ragbench.live.asking import Unanswered

if TYPE_CHECKING:
    import httpx

_LARGEST_ANSWER = 20_000_000
_RETRIED = {408, 425, 429, 500, 502, 503, 504}


def asking(
    method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str], timeout_s: float
) -> Callable[[str, int], Any]:
    """A function that sends a query and gives the JSON of the answer; connections are kept open between calls.

    `timeout_s` bounds the whole exchange. Redirections are not followed, so that a token goes nowhere else.
    """
    import httpx

    client = httpx.Client(timeout=timeout_s, follow_redirects=False, headers=dict(headers))

    def ask(query: str, depth: int) -> Any:
        address = url.replace("{query}", quote(query, safe="")).replace("{depth}", str(depth))
        deadline = time.monotonic() + timeout_s
        try:
            with client.stream(method, address, json=None if body is None else fill_in(body, query, depth)) as response:
                content = _content(response, deadline)
                _check(response)
                return json.loads(content)
        except httpx.TimeoutException:
            raise Unanswered(f"no answer within {timeout_s:g} s") from None
        except httpx.InvalidURL as error:
            raise Unanswered(f"'{address}' is not an address ({error})", again=False) from None
        except httpx.HTTPError as error:
            raise Unanswered(str(error) or type(error).__name__) from None
        except ValueError:
            raise Unanswered("the answer is not JSON", again=False) from None

    weakref.finalize(ask, client.close)
    return ask


def _content(response: httpx.Response, deadline: float) -> bytes:
    content = b""
    for part in response.iter_bytes():
        content += part
        if time.monotonic() > deadline:
            raise Unanswered("the answer takes too long")
        if len(content) > _LARGEST_ANSWER:
            raise Unanswered(f"the answer is larger than {_LARGEST_ANSWER // 10**6} MB", again=False)
    return content


def _check(response: httpx.Response) -> None:
    if not response.is_success:
        after = response.headers.get("retry-after", "")
        raise Unanswered(f"status {response.status_code}", response.status_code in _RETRIED, _seconds(after))


def _seconds(retry_after: str) -> float:
    """The seconds of a Retry-After header, a number or a date; 0 for anything else."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
