"""Embeddings behind an endpoint, by name: `openai:text-embedding-3-small`, `ollama:nomic-embed-text`.

    openai:MODEL   POST <OPENAI_BASE_URL>/embeddings, with OPENAI_API_KEY where it is set; any compatible server works
    ollama:MODEL   POST <OLLAMA_HOST>/api/embed, by default on this machine

Texts are sent in batches; a request is repeated while the server is busy or unreachable. The record of a run holds the
number of requests, their time and their cost (with RAGBENCH_USD_PER_MILLION_TOKENS). The server cuts texts, not
ragbench. When the server changes a model but not its name, remove the cache.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from ragbench.base.errors import BoundaryError, ModelError
from ragbench.base.progress import ticks
from ragbench.extras.remote import usage
from ragbench.extras.remote.chat import ask
from ragbench.extras.remote.http import Client
from ragbench.extras.remote.usage import Usage
from ragbench.models.functions import FunctionEncoder
from ragbench.models.resolve import EncoderSpec

BATCH, TIMEOUT_S = 64, 60.0
_LARGEST_ANSWER = 100_000_000
_DEFAULTS = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "ollama": ("OLLAMA_HOST", "http://localhost:11434"),
}


class EndpointEncoder(FunctionEncoder):
    """An encoder behind an endpoint."""

    def __init__(self, name: str, query_prefix: str = "", passage_prefix: str = "", max_tokens: int = 512) -> None:
        """`name` is `openai:MODEL` or `ollama:MODEL`."""
        self.kind, _, self.model = name.partition(":")
        variable, default = _DEFAULTS[self.kind]
        base = os.environ.get(variable) or default
        self.base = (base if "://" in base else f"http://{base}").rstrip("/")
        super().__init__(name, self._ask, self.base, query_prefix, passage_prefix, max_tokens)

    def _cut(self, text: str) -> str:
        return text

    def _ask(self, texts: list[str]) -> list[Any]:
        vectors: list[Any] = []
        try:
            client = Client(self.base, self._headers(), timeout_s=TIMEOUT_S, max_bytes=_LARGEST_ANSWER)
        except BoundaryError as error:
            raise self._failure(str(error)) from None
        tick = ticks(f"asking {self.model}", len(texts))
        try:
            for start in range(0, len(texts), BATCH):
                batch = texts[start : start + BATCH]
                began = time.perf_counter()
                answer, requests = self._answer(client, batch)
                read_vectors, tokens = self._read(answer, len(batch))
                vectors += read_vectors
                tick(len(batch))
                usage.add_usage(self.name, Usage(len(batch), requests, tokens, time.perf_counter() - began))
        finally:
            client.close()
        return vectors

    def _headers(self) -> dict[str, str]:
        key = os.environ.get("OPENAI_API_KEY", "") if self.kind == "openai" else ""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _answer(self, client: Client, batch: Sequence[str]) -> tuple[Any, int]:
        """The answer to a batch, and how many requests it took. Raises ModelError."""
        address = self.base + ("/embeddings" if self.kind == "openai" else "/api/embed")
        try:
            return ask(client, address, {"model": self.model, "input": list(batch)}, "embeddings")
        except BoundaryError as error:
            raise self._failure(str(error)) from None

    def _read(self, answer: Any, n: int) -> tuple[list[Any], int]:
        """The vectors of an answer in the order of the texts, and its tokens. Raises ModelError."""
        try:
            if self.kind == "ollama":
                vectors, tokens = list(answer["embeddings"]), answer.get("prompt_eval_count")
            else:
                rows = sorted(answer["data"], key=lambda row: row["index"])
                vectors = [row["embedding"] for row in rows]
                used = answer.get("usage")
                tokens = used.get("total_tokens") if isinstance(used, dict) else 0
        except (KeyError, TypeError, AttributeError):
            raise self._failure("an answer without embeddings") from None
        if len(vectors) != n:
            raise self._failure(f"{len(vectors)} vectors for {n} texts")
        if len(lengths := set(map(_length, vectors))) > 1 or 0 in lengths:
            raise self._failure("vectors that are not lists of numbers of one length")
        return vectors, usage.tokens_of(tokens)

    def _failure(self, reason: str) -> ModelError:
        return ModelError(f"{self.name} at {self.base} gave no vectors ({reason}): check the server, its model and key")


def of_spec(spec: EncoderSpec) -> EndpointEncoder:
    """The encoder of a specification."""
    return EndpointEncoder(spec.name, **spec.prefixes(spec.name), max_tokens=spec.max_tokens)


def _length(vector: Any) -> int:
    """The length of a list of numbers; 0 for anything else."""
    plain = isinstance(vector, list) and all(type(number) in (int, float) for number in vector)
    return len(vector) if plain else 0
