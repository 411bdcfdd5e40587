"""Embeddings and re-rankers behind an endpoint, by name: `openai:text-embedding-3-small`, `rerank:http://host/rerank`.

    openai:MODEL        POST <OPENAI_BASE_URL>/embeddings, with OPENAI_API_KEY where it is set, to any compatible server
    ollama:MODEL        POST <OLLAMA_HOST>/api/embed, by default on this machine
    rerank:URL          POST {query, texts} to URL: the form of text-embeddings-inference
    rerank:MODEL@URL    POST {model, query, documents} to URL: the form of Cohere, Jina, Voyage, vLLM and others
    chat:MODEL@URL      POST <URL>/chat/completions: a language model that orders the passages as one list

Texts are embedded in batches; a request is repeated while the server is busy or unreachable. The record of a run holds
the number of requests, their time and their cost (with RAGBENCH_USD_PER_MILLION_TOKENS). The server cuts texts, not
ragbench; only for `chat:` a passage is cut to `max_length` words and signs. The key in RERANK_API_KEY is sent to
re-rankers where it is set. When the server changes a model but not its name, remove the cache.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import progress
from ragbench.base.fingerprint import digest
from ragbench.base.types import BoundaryError, ModelError
from ragbench.boundary import paths
from ragbench.extras.remote import usage
from ragbench.extras.remote.chat import EndpointModel, ask, bearer
from ragbench.extras.remote.http import Client
from ragbench.extras.remote.usage import Usage
from ragbench.models import functions, resolve
from ragbench.models.chat import ChatModel, ChatSpec
from ragbench.models.texts import check_texts

BATCH, TIMEOUT_S = 64, 60.0
_LARGEST_ANSWER = 100_000_000
_DEFAULTS = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "ollama": ("OLLAMA_HOST", "http://localhost:11434"),
}
KEY = "RERANK_API_KEY"
_TASK = "Order the passages by how well they answer the question. Answer with their numbers only, best first: 3, 1, 2"
_NUMBER = re.compile(r"\d+")
_TOKENS_PER_NUMBER = 4  # digits, a comma, a space


class EndpointEncoder(functions.FunctionEncoder):
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
        address = self.base + ("/embeddings" if self.kind == "openai" else "/api/embed")
        headers = bearer("OPENAI_API_KEY") if self.kind == "openai" else {}
        tick = progress.ticks(f"asking {self.model}", len(texts))
        try:
            with Client(self.base, headers, timeout_s=TIMEOUT_S, max_bytes=_LARGEST_ANSWER) as client:
                for start in range(0, len(texts), BATCH):
                    batch = texts[start : start + BATCH]
                    began = time.perf_counter()
                    answer, requests = ask(client, address, {"model": self.model, "input": batch}, "embeddings")
                    read_vectors, tokens = self._read(answer, len(batch))
                    vectors += read_vectors
                    tick(len(batch))
                    usage.add_usage(self.name, Usage(len(batch), requests, tokens, time.perf_counter() - began))
        except BoundaryError as error:
            raise self._failure(str(error)) from None
        return vectors

    def _read(self, answer: Any, n: int) -> tuple[list[Any], int]:
        """The vectors of an answer in the order of the texts, and its tokens. Raises ModelError."""
        try:
            if self.kind == "ollama":
                vectors, tokens = list(answer["embeddings"]), usage.tokens_of(answer.get("prompt_eval_count"))
            else:
                rows = sorted(answer["data"], key=lambda row: row["index"])
                vectors = [row["embedding"] for row in rows]
                tokens = usage.total_tokens(answer)
        except (KeyError, TypeError, AttributeError):
            raise self._failure("an answer without embeddings") from None
        if len(vectors) != n:
            raise self._failure(f"{len(vectors)} vectors for {n} texts")
        if len(lengths := set(map(_length, vectors))) > 1 or 0 in lengths:
            raise self._failure("vectors that are not lists of numbers of one length")
        return vectors, tokens

    def _failure(self, reason: str) -> ModelError:
        return ModelError(f"{self.name} at {self.base} gave no vectors ({reason}): check the server, its model and key")


def of_spec(spec: resolve.EncoderSpec) -> EndpointEncoder:
    """The encoder of a specification."""
    return EndpointEncoder(spec.name, **spec.prefixes(spec.name), max_tokens=spec.max_tokens)


def _length(vector: Any) -> int:
    """The length of a list of numbers; 0 for anything else."""
    plain = isinstance(vector, list) and all(type(number) in (int, float) for number in vector)
    return len(vector) if plain else 0


def parts(name: str) -> tuple[str, str, str]:
    """Kind, model (empty where none is named) and address of a name. ModelError for an address that is none."""
    kind, _, remainder = name.partition(":")
    model, at, address = remainder.partition("@")
    if not at or "://" in model:
        model, address = "", remainder
    try:
        paths.split_address(address)
    except BoundaryError as error:
        raise ModelError(f"re-ranker '{name}' has no usable address ({error}): write {kind}:MODEL@http://...") from None
    if kind == "chat" and not model:
        raise ModelError(f"re-ranker '{name}' names no model: write chat:MODEL@{address}")
    return kind, model, address.rstrip("/")


def _chat_spec(name: str, depth: int = 100) -> ChatSpec:
    """The language model of a `chat:` name, whose answer may list `depth` numbers."""
    _, model, address = parts(name)
    key = KEY if os.environ.get(KEY) else None
    return ChatSpec(address, model, timeout_s=TIMEOUT_S, max_tokens=_TOKENS_PER_NUMBER * depth, key_variable=key)


class EndpointCrossEncoder(functions.FunctionCrossEncoder):
    """A cross-encoder behind an endpoint."""

    def __init__(self, name: str, max_length: int = 512) -> None:
        """`name` is `rerank:URL` or `rerank:MODEL@URL`."""
        _, self.model, self.address = parts(name)
        super().__init__(name, self._ask, self.address, max_length)

    def _ask(self, query: str, texts: list[str]) -> list[float]:
        began = time.perf_counter()
        try:
            with Client(self.address, bearer(KEY), timeout_s=TIMEOUT_S) as client:
                answer, requests = ask(client, self.address, self._request_body(query, texts), "scores")
        except BoundaryError as error:
            raise self._failure(str(error)) from None
        scores, tokens = self._read(answer, len(texts))
        usage.add_usage(self.name, Usage(len(texts), requests, tokens, time.perf_counter() - began))
        return scores

    def _request_body(self, query: str, texts: list[str]) -> dict[str, Any]:
        if not self.model:
            return {"query": query, "texts": texts, "raw_scores": True, "truncate": True}
        return {"model": self.model, "query": query, "documents": texts, "top_n": len(texts)}

    def _read(self, answer: Any, n: int) -> tuple[list[float], int]:
        """A logit for every text in the order of the texts, and the tokens counted. Raises ModelError."""
        try:
            rows = answer if isinstance(answer, list) else answer.get("results", answer.get("data"))
            by_index = {row["index"]: row["relevance_score" if self.model else "score"] for row in rows}
            scores = np.array([by_index[index] for index in range(n)], dtype=np.float64)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise self._failure(f"an answer without a score for each of {n} texts") from None
        if not np.isfinite(scores).all():
            raise self._failure("scores that are not finite")
        # Relevance between 0 and 1 becomes the logit that the stage expects; other scores are taken as logits.
        if self.model and ((scores >= 0) & (scores <= 1)).all():
            shares = np.clip(scores, 1e-7, 1 - 1e-7)
            scores = np.log(shares / (1 - shares))
        return scores.tolist(), usage.total_tokens(answer)

    def _failure(self, reason: str) -> ModelError:
        return ModelError(f"{self.name} gave no scores ({reason}): check the server, its model and {KEY}")


class ListReranker:
    """A language model that orders passages as one list (RankGPT; Sun et al., EMNLP 2023).

    What it says of a passage depends on the others, so its answers are kept by whole lists and never by pairs. Scores
    are log-odds of ranks: they mean an order and nothing more. Passages that it omits follow in the order given.
    """

    weights: Mapping[str, str] = {}

    def __init__(self, name: str, model: ChatModel, max_length: int = 512) -> None:
        self.name, self.max_length = name, max_length
        self.digest = digest(["list", name, max_length, _TASK])
        self._model = model

    def __repr__(self) -> str:
        return f"ListReranker({self.name!r})"

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Scores, shape (n,), higher is better. ModelError for an answer that names no passage."""
        (question,), texts = check_texts([query]), check_texts(passages)
        if not texts:
            return np.empty(0, dtype=np.float32)
        listed = [
            f"[{number}] {functions.cut_words(text, self.max_length)}" for number, text in enumerate(texts, start=1)
        ]
        answer = self._model.complete("\n\n".join([_TASK, f"Question: {question}", *listed]))
        named = [int(number) - 1 for number in _NUMBER.findall(answer) if len(number) < 6]
        order = [index for index in dict.fromkeys(named) if 0 <= index < len(texts)]
        if not order:
            raise ModelError(f"{self.name} named none of {len(texts)} passages ('{answer[:60]}'): take another model")
        order += [index for index in range(len(texts)) if index not in set(order)]
        ranks = np.empty(len(texts))
        ranks[order] = np.arange(len(texts))
        odds: NDArray[np.float32] = np.log((len(texts) - ranks) / (ranks + 1)).astype(np.float32)
        return odds


def reranker_of_spec(spec: resolve.CrossEncoderSpec) -> EndpointCrossEncoder:
    """The cross-encoder of a specification."""
    return EndpointCrossEncoder(spec.name, spec.max_length)


def list_reranker(spec: resolve.CrossEncoderSpec, chat: Callable[[ChatSpec], ChatModel] | None) -> ListReranker:
    """The language model that orders passages; `chat` gives language models (None: without a cache)."""
    return ListReranker(spec.name, (chat or EndpointModel)(_chat_spec(spec.name)), spec.max_length)
