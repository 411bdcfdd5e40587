"""One request to a search over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from ragbench.base.errors import BoundaryError
from ragbench.extras.remote.http import Client, HttpError
from ragbench.extras.remote.live.answers import fill_in
from ragbench.extras.remote.live.client import RequestFailed


def asking(
    method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str], timeout_s: float
) -> Callable[[str, int], Any]:
    """A function that sends a query and gives the JSON of the answer; connections are kept open between calls.

    `timeout_s` bounds the whole exchange. A filled `url` must keep the origin of the template, so that a token goes
    nowhere else.
    """
    client: list[Client] = []

    def ask(query: str, depth: int) -> Any:
        address = url.replace("{query}", quote(query, safe="", errors="replace")).replace("{depth}", str(depth))
        try:
            if not client:
                client.append(Client(url.partition("{")[0], headers, timeout_s=timeout_s))
            answer = client[0].send(method, address, None if body is None else fill_in(body, query, depth))
        except HttpError as error:
            raise RequestFailed(str(error), error.again, error.after_s) from None
        except BoundaryError as error:
            raise RequestFailed(f"'{url}' cannot be asked: {error}", again=False) from None
        try:
            return answer.json()
        except BoundaryError as error:
            raise RequestFailed(f"the answer is not JSON ({error})", again=False) from None

    return ask
