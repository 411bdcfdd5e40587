"""Text written by a language model behind an OpenAI-compatible endpoint; optional, and never needed for a run.

Any server that answers `POST <endpoint>/chat/completions` works, also a local one.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from tenacity import RetryError

from ragbench.base.bounds import Checked, Count, Holds, Name, Positive, Weight, as_options
from ragbench.base.errors import BoundaryError, ConfigError, ModelError, without_secret
from ragbench.base.query_memory import QueryMemory
from ragbench.boundary.capabilities import Capability, Needs
from ragbench.extras.remote.http import Client, HttpError, split_address
from ragbench.models import usage
from ragbench.models.store import Store, key_of
from ragbench.models.usage import Usage

_LARGEST_ANSWER = 2**20


def _is_address(text: str) -> bool:
    try:
        split_address(text)
    except BoundaryError:
        return False
    return True


Endpoint = Annotated[
    str,
    Holds(lambda text: text.startswith(("http://", "https://")), "must begin with http:// or https://"),
    Holds(without_secret, "must hold no name or password or key: use an environment variable"),
    Holds(_is_address, "must be an address such as http://localhost:11434/v1"),
    Needs(Capability.SENDS),
]
Secret = Annotated[Name, Needs(Capability.SENDS)]
"""The name of an environment variable whose value is sent."""


@dataclass(frozen=True)
class ChatSpec(Checked):
    """A model behind an endpoint, such as `http://localhost:11434/v1`.

    `timeout_s` (above 0) is how long an answer may take, `max_tokens` (at least 1) how long it may be, `temperature` at
    least 0. `key_variable` names the environment variable that holds the endpoint's key, where it wants one.
    """

    endpoint: Endpoint
    model: Name
    timeout_s: Positive = 10.0
    max_tokens: Count = 200
    temperature: Weight = 0.0
    key_variable: Secret | None = None


def spec_from_options(endpoint: str | None, model: str | None, key_variable: str | None) -> ChatSpec:
    """The model that `--endpoint`, `--model` and `--key-variable` name. ConfigError without an endpoint and a model."""
    if not endpoint or not model:
        raise ConfigError(
            "name the model with --endpoint and --model, such as --endpoint http://localhost:11434/v1 --model NAME; "
            "texts of the documents are sent to it"
        )
    with as_options():
        return ChatSpec(endpoint, model, timeout_s=60.0, key_variable=key_variable)


@dataclass(frozen=True)
class ChatFields(Checked):
    """The fields of `ChatSpec` for a stage that may ask a model; without an `endpoint` none of them is used."""

    # an OpenAI-compatible server, such as http://localhost:11434/v1; none is asked when null
    endpoint: Endpoint | None = None
    model: str = ""
    timeout_s: Positive = 10.0  # after this time the query goes on without an answer
    max_tokens: Count = 200
    temperature: Weight = 0.0
    key_variable: Secret | None = None  # environment variable that holds the endpoint's key

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.endpoint is not None and not self.model.strip():
            raise self.refused("model", f"must name a model of the endpoint {self.endpoint}")

    @property
    def models(self) -> tuple[ChatSpec, ...]:
        """The model that the stage asks; none without an endpoint."""
        return () if self.endpoint is None else (self.spec(self.endpoint),)

    def spec(self, endpoint: str) -> ChatSpec:
        """The specification of the model at an endpoint."""
        return ChatSpec(endpoint, self.model, self.timeout_s, self.max_tokens, self.temperature, self.key_variable)


class ChatModel(Protocol):
    """Answers a prompt with text."""

    def complete(self, prompt: str) -> str:
        """The answer, without outer white space. ModelError when there is none."""
        ...


class EndpointModel:
    """Asks the endpoint every time."""

    def __init__(self, spec: ChatSpec) -> None:
        self.spec = spec

    def complete(self, prompt: str) -> str:
        """The endpoint's answer; repeats the request while the endpoint is busy. ModelError without a text in time."""
        address = f"{self.spec.endpoint.rstrip('/')}/chat/completions"
        began = time.monotonic()
        client = self._client()
        try:
            for attempt in usage.attempts(self.spec.timeout_s, answered=True):
                with attempt:
                    left = began + self.spec.timeout_s - time.monotonic()
                    answer = client.send("POST", address, self._request_body(prompt), timeout_s=left).json()
                    requests = attempt.retry_state.attempt_number
            text = answer["choices"][0]["message"]["content"]
            used = answer.get("usage")
            tokens = usage.tokens_of(used.get("total_tokens")) if isinstance(used, dict) else 0
            usage.add_usage(usage.CHAT + self.spec.model, Usage(1, requests, tokens, time.monotonic() - began))
        except RetryError as error:
            last = error.last_attempt
            raise self._failure(f"{last.exception()}, {last.attempt_number} times") from None
        except HttpError as error:
            raise self._failure(str(error)) from None
        except BoundaryError as error:
            raise self._failure(f"an answer without choices[0].message.content, {error}") from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise self._failure("an answer without choices[0].message.content") from None
        finally:
            client.close()
        if not isinstance(text, str) or not text.strip():
            raise self._failure("an empty answer")
        return text.strip()

    def _client(self) -> Client:
        key, seconds = self._authorization(), self.spec.timeout_s
        try:
            return Client(self.spec.endpoint, key, timeout_s=seconds, max_bytes=_LARGEST_ANSWER)
        except BoundaryError as error:
            raise self._failure(str(error)) from None

    def _request_body(self, prompt: str) -> dict[str, Any]:
        return {
            "model": self.spec.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self.spec.max_tokens,
            "temperature": self.spec.temperature,
        }

    def _authorization(self) -> dict[str, str]:
        if self.spec.key_variable is None:
            return {}
        key = os.environ.get(self.spec.key_variable, "")
        if not key:
            raise ModelError(f"{self.spec.endpoint} wants a key: set the environment variable {self.spec.key_variable}")
        return {"Authorization": f"Bearer {key}"}

    def _failure(self, reason: str) -> ModelError:
        return ModelError(f"the chat endpoint {self.spec.endpoint} gave no text ({reason}): check it and its model")


class CachedChatModel:
    """Asks no question twice: answers are kept in a SQLite file; the key is everything that they depend on."""

    def __init__(self, spec: ChatSpec, path: Path) -> None:
        self.spec = spec
        self._model = EndpointModel(spec)
        self._store = Store(path, "answers")

    def complete(self, prompt: str) -> str:
        """The kept answer, else a new one."""
        spec = self.spec
        key = key_of("chat", spec.endpoint, spec.model, str(spec.max_tokens), repr(spec.temperature), prompt)
        found = self._store.read([key])
        if key in found:
            return found[key].decode()
        answer = self._model.complete(prompt)
        self._store.write({key: answer.encode()})
        return answer


class RememberingChatModel:
    """Keeps the latest answers of a model in memory."""

    def __init__(self, model: ChatModel, memory: QueryMemory, size: int) -> None:
        self.complete = memory.keep(model.complete, size)
