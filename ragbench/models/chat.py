"""Text written by a language model: what a stage must know to ask one; optional, and never needed for a run.

The models themselves are behind endpoints, which `ragbench.extras.remote` asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from ragbench.base.options import Constraint, Count, Name, Positive, Validated, Weight
from ragbench.base.query_cache import QueryCache
from ragbench.base.types import BoundaryError, without_secret
from ragbench.boundary.paths import split_address


def _is_address(text: str) -> bool:
    try:
        split_address(text)
    except BoundaryError:
        return False
    return True


Endpoint = Annotated[
    str,
    Constraint(lambda text: text.startswith(("http://", "https://")), "must begin with http:// or https://"),
    Constraint(without_secret, "must hold no name or password or key: use an environment variable"),
    Constraint(_is_address, "must be an address such as http://localhost:11434/v1"),
]


@dataclass(frozen=True)
class ChatSpec(Validated):
    """A model behind an endpoint, such as `http://localhost:11434/v1`.

    `timeout_s` (above 0) is how long an answer may take, `max_tokens` (at least 1) how long it may be, `temperature` at
    least 0. `key_variable` names the environment variable that holds the endpoint's key, where it wants one.
    """

    endpoint: Endpoint
    model: Name
    timeout_s: Positive = 10.0
    max_tokens: Count = 200
    temperature: Weight = 0.0
    key_variable: Name | None = None


@dataclass(frozen=True)
class ChatFields(Validated):
    """The fields of `ChatSpec` for a stage that may ask a model; without an `endpoint` none of them is used."""

    # an OpenAI-compatible server, such as http://localhost:11434/v1; null: none
    endpoint: Endpoint | None = None
    model: str = ""  # name of the language model
    timeout_s: Positive = 10.0  # after this time the query continues without a hypothesis
    max_tokens: Count = 200  # maximum tokens of an answer
    temperature: Weight = 0.0  # 0: always the likeliest answer
    key_variable: Name | None = None  # environment variable with the endpoint's key

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


class RememberingChatModel:
    """Keeps the latest answers of a model in memory."""

    def __init__(self, model: ChatModel, memory: QueryCache, size: int) -> None:
        self.complete = memory.keep(model.complete, size)
