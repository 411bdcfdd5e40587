"""Texts of a language model behind an OpenAI-compatible endpoint: `POST <endpoint>/chat/completions`, also a local one.

A request is repeated while the endpoint is busy; answers are kept in a SQLite file where the models have a cache.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from ragbench.base.types import BoundaryError, ModelError
from ragbench.extras.remote import usage
from ragbench.extras.remote.http import Client, HttpError
from ragbench.extras.remote.usage import Usage
from ragbench.models import store
from ragbench.models.chat import ChatModel, ChatSpec

_LARGEST_ANSWER = 2**20
_ATTEMPTS = 5
_WAIT_S = 0.5
"""Before the second attempt; doubled each time."""


def attempts(within_s: float = float("inf"), answered: bool = False) -> Retrying:
    """Attempts that are repeated after failures that may pass, with growing waits; none begins later than `within_s`.

    With `answered`, only when a server answered that it is busy, not when none did.
    """

    def may_pass(error: BaseException) -> bool:
        return isinstance(error, HttpError) and error.again and bool(error.status or not answered)

    return Retrying(
        stop=stop_after_attempt(_ATTEMPTS) | stop_before_delay(within_s),
        wait=wait_random_exponential(multiplier=_WAIT_S, max=20),
        retry=retry_if_exception(may_pass),
    )


def ask(client: Client, address: str, body: Any, model: str) -> tuple[Any, int]:
    """The JSON answer to a request, repeated after failures that may pass, and how many requests it took.

    Raises BoundaryError with the reason; `model` names what an answer lacks that is not JSON.
    """
    try:
        for attempt in attempts():
            with attempt:
                answer = client.send("POST", address, body)
                return answer.json(), attempt.retry_state.attempt_number
    except RetryError as error:
        raise BoundaryError(f"{error.last_attempt.exception()}, {_ATTEMPTS} times") from None
    except HttpError as error:
        raise BoundaryError(f"{error}: {error.body}" if error.body else str(error)) from None
    except BoundaryError as error:
        raise BoundaryError(f"an answer without {model}, {error}") from None
    raise AssertionError("tenacity ends with an answer or an error")


def bearer(variable: str) -> dict[str, str]:
    """The header with the key in an environment variable; none where it is not set."""
    key = os.environ.get(variable, "")
    return {"Authorization": f"Bearer {key}"} if key else {}


class EndpointModel:
    """Asks the endpoint every time."""

    def __init__(self, spec: ChatSpec) -> None:
        self.spec = spec

    def complete(self, prompt: str) -> str:
        """The endpoint's answer; repeats the request while the endpoint is busy. ModelError without a text in time."""
        address = f"{self.spec.endpoint.rstrip('/')}/chat/completions"
        body = {
            "model": self.spec.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self.spec.max_tokens,
            "temperature": self.spec.temperature,
        }
        began = time.monotonic()
        try:
            with self._client() as client:
                for attempt in attempts(self.spec.timeout_s, answered=True):
                    with attempt:
                        left_s = began + self.spec.timeout_s - time.monotonic()
                        answer = client.send("POST", address, body, timeout_s=left_s).json()
                        requests = attempt.retry_state.attempt_number
            text = answer["choices"][0]["message"]["content"]
            seconds, tokens = time.monotonic() - began, usage.total_tokens(answer)
            usage.add_usage(usage.CHAT + self.spec.model, Usage(1, requests, tokens, seconds))
        except RetryError as error:
            last = error.last_attempt
            raise self._failure(f"{last.exception()}, {last.attempt_number} times") from None
        except HttpError as error:
            raise self._failure(str(error)) from None
        except BoundaryError as error:
            raise self._failure(f"an answer without choices[0].message.content, {error}") from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise self._failure("an answer without choices[0].message.content") from None
        if not isinstance(text, str) or not text.strip():
            raise self._failure("an empty answer")
        return text.strip()

    def _client(self) -> Client:
        variable, seconds = self.spec.key_variable, self.spec.timeout_s
        headers = {} if variable is None else bearer(variable)
        if variable is not None and not headers:
            raise ModelError(f"{self.spec.endpoint} wants a key: set the environment variable {variable}")
        try:
            return Client(self.spec.endpoint, headers, timeout_s=seconds, max_bytes=_LARGEST_ANSWER)
        except BoundaryError as error:
            raise self._failure(str(error)) from None

    def _failure(self, reason: str) -> ModelError:
        return ModelError(f"the chat endpoint {self.spec.endpoint} gave no text ({reason}): check it and its model")


class CachedChatModel:
    """Asks no question twice: answers are kept in a SQLite file; the key is everything that they depend on."""

    def __init__(self, spec: ChatSpec, path: Path) -> None:
        self.spec = spec
        self._model = EndpointModel(spec)
        self._store = store.Store(path, "answers")

    def complete(self, prompt: str) -> str:
        """The kept answer, else a new one."""
        spec = self.spec
        key = store.key_of("chat", spec.endpoint, spec.model, str(spec.max_tokens), repr(spec.temperature), prompt)
        cached = self._store.read([key])
        if key in cached:
            return cached[key].decode()
        answer = self._model.complete(prompt)
        self._store.write({key: answer.encode()})
        return answer


def open_model(spec: ChatSpec, cache: Path | None) -> ChatModel:
    """The model of a specification, which keeps its answers in the file `cache` (None: nowhere)."""
    return EndpointModel(spec) if cache is None else CachedChatModel(spec, cache)
