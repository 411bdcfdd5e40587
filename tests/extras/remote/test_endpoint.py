"""Re-rankers behind an endpoint: both forms of requests, lists by a language model, keys, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragbench
from ragbench.base.types import ModelError
from ragbench.config import composition
from ragbench.config.trust import SENDS, beyond_plain
from ragbench.extras.remote import chat, endpoint, usage
from ragbench.models.resolve import CrossEncoderSpec, Models, check_name, load_cross_encoder
from tests.loopback import Loopback
from tests.naming import naming

PASSAGES = ["a harbour", "ships shelter in a harbour", "bread is baked"]
QUERY = "where do ships shelter"


def shared(query: str, text: str) -> float:
    return len(set(query.split()) & set(text.split())) / 10


class Server(Loopback):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, dict[str, Any], str | None]] = []
        self.replies: Any = None
        self.busy = 0

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        request = json.loads(body)
        self.asked.append((path, request, headers["Authorization"]))
        if self.busy:
            self.busy -= 1
            return 503, "busy"
        if self.replies is not None:
            return 200, self.replies
        if "texts" in request:
            return 200, [
                {"index": n, "score": shared(request["query"], text)} for n, text in enumerate(request["texts"])
            ]
        if "documents" in request:
            rows = [(shared(request["query"], text), n) for n, text in enumerate(request["documents"])]
            results = [{"index": n, "relevance_score": score} for score, n in sorted(rows, reverse=True)]
            return 200, {"results": results, "usage": {"total_tokens": 42}}
        return 200, {"choices": [{"message": {"content": "2 > 1"}}], "usage": {"total_tokens": 9}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(chat, "_WAIT_S", 0.001)
    monkeypatch.delenv(endpoint.KEY, raising=False)
    usage.take_usage()
    with Server() as running:
        yield running


def address(server: Server, path: str) -> str:
    return f"{server.url}{path}"


def test_reranker_without_a_model_reads_logits(server: Server) -> None:
    model = load_cross_encoder(CrossEncoderSpec(f"rerank:{address(server, '/rerank')}"))
    assert model.score(QUERY, PASSAGES).tolist() == pytest.approx([0.0, 0.2, 0.0])
    ((path, request, key),) = server.asked
    assert (path, key) == ("/rerank", None)
    assert request == {"query": QUERY, "texts": PASSAGES, "raw_scores": True, "truncate": True}


def test_reranker_with_a_model_reads_relevance_and_counts_tokens(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(endpoint.KEY, "secret")
    monkeypatch.setenv(usage.PRICE, "2.0")
    name = f"rerank:small@{address(server, '/v2/rerank')}"
    scores = Models(cache=tmp_path).cross_encoder(CrossEncoderSpec(name)).score(QUERY, PASSAGES)
    assert (1 / (1 + np.exp(-scores))).tolist() == pytest.approx([0.0, 0.2, 0.0], abs=1e-6)
    ((path, request, key),) = server.asked
    assert (path, key, request["model"], request["top_n"]) == ("/v2/rerank", "Bearer secret", "small", 3)
    used = usage.take_usage()[name]
    assert (used["texts"], used["requests"], used["tokens"]) == (3, 1, 42)
    assert used["usd"] == pytest.approx(2.0 * 42 / 1e6)
    again = Models(cache=tmp_path).cross_encoder(CrossEncoderSpec(name)).score(QUERY, PASSAGES[::-1])
    assert again.tolist() == scores.tolist()[::-1] and len(server.asked) == 1


def test_list_reranker_orders_whole_lists(server: Server, tmp_path: Path) -> None:
    spec = CrossEncoderSpec(f"chat:small@{address(server, '/v1')}", max_length=5)
    scores = Models(cache=tmp_path).cross_encoder(spec).score(QUERY, [*PASSAGES, "word " * 40])
    assert np.argsort(-scores).tolist() == [1, 0, 2, 3]  # those that it left out stay in their order
    ((path, request, _),) = server.asked
    prompt = request["messages"][0]["content"]
    assert path == "/v1/chat/completions" and QUERY in prompt and "[2] ships shelter in a harbour" in prompt
    assert prompt.endswith("[4] word word word word word")
    Models(cache=tmp_path).cross_encoder(spec).score(QUERY, [*PASSAGES, "word " * 40])
    assert len(server.asked) == 1
    Models(cache=tmp_path).cross_encoder(spec).score(QUERY, PASSAGES[::-1])  # another list is another question
    assert len(server.asked) == 2


def test_busy_server_is_asked_again_and_a_silent_one_refused(server: Server) -> None:
    name = f"rerank:{address(server, '/rerank')}"
    server.busy = 2
    assert load_cross_encoder(CrossEncoderSpec(name)).score(QUERY, PASSAGES).shape == (3,)
    assert usage.take_usage()[name]["requests"] == 3
    server.busy = 99
    with pytest.raises(ModelError, check=naming("503", "5 times")):
        load_cross_encoder(CrossEncoderSpec(name)).score(QUERY, PASSAGES)


@pytest.mark.parametrize(
    "replies",
    [
        [],
        {},
        [1, 2, 3],
        [{"index": 0, "score": 1}, {"index": 0, "score": 2}, {"index": 1, "score": 3}],
        [{"index": n, "score": "high"} for n in range(3)],
        [{"index": n, "score": None} for n in range(3)],
        [{"index": [n], "score": 1.0} for n in range(3)],
        {"results": 5},
    ],
)
def test_odd_answers_are_one_sentence(server: Server, replies: Any) -> None:
    server.replies = replies
    with pytest.raises(ModelError, check=naming("score")):
        load_cross_encoder(CrossEncoderSpec(f"rerank:{address(server, '/rerank')}")).score(QUERY, PASSAGES)


def test_answer_without_numbers_is_one_sentence(server: Server) -> None:
    server.replies = {"choices": [{"message": {"content": "All of them are good."}}]}
    with pytest.raises(ModelError, check=naming("none of 3 passages")):
        load_cross_encoder(CrossEncoderSpec(f"chat:small@{address(server, '/v1')}")).score(QUERY, PASSAGES)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rerank:nowhere", "has no usable address"),
        ("rerank:m@http://a:b@host/x", "has no usable address"),
        ("chat:http://localhost/v1", "names no model"),
        ("openai:small", "no cross-encoder 'openai:small'"),
    ],
)
def test_unusable_names_are_refused_before_a_run(name: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        check_name(name, "cross-encoder")


def test_rerank_stage_needs_leave_to_send() -> None:
    settings = composition.compose(["p6=on", "p6.model=rerank:small@http://localhost:8080/rerank"])
    assert settings.config["p6"]["model"] == "rerank:small@http://localhost:8080/rerank"
    assert beyond_plain(settings.config)["p6.model"][0] == SENDS


def test_rerank_stage_orders_by_the_answer(server: Server) -> None:
    """A function with the same scores gives the same order."""

    def by_shared_words(query: str, passages: list[str]) -> list[float]:
        return [shared(query, text) for text in passages]

    ragbench.reranker(by_shared_words)
    spec = CrossEncoderSpec(f"rerank:{address(server, '/rerank')}")
    mine = load_cross_encoder(CrossEncoderSpec("by_shared_words")).score(QUERY, PASSAGES)
    assert load_cross_encoder(spec).score(QUERY, PASSAGES).tolist() == mine.tolist()
