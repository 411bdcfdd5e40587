"""A chat model behind a real HTTP server on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tenacity import wait_fixed

from ragbench.base.types import ConfigError, ModelError
from ragbench.extras.remote import chat, usage
from ragbench.extras.remote.chat import CachedChatModel, EndpointModel
from ragbench.models.chat import ChatSpec
from ragbench.models.resolve import Models
from tests.loopback import Loopback
from tests.naming import naming


class Server(Loopback):
    """Answers every request as `answer` says; `asked` are the bodies, `headers` the last headers."""

    parallel = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict] = []
        self.statuses: list[int] = []  # of the next answers
        self.headers: dict[str, str] = {}
        self.paths: list[str] = []
        self.location = ""
        self.status, self.body = 200, _answer("  It is so.\n")
        self.endpoint = f"{self.url}/v1"

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        self.headers = dict(headers)
        self.paths.append(path)
        if method == "GET":
            return 200, self.body
        self.asked.append(json.loads(body))
        status = self.statuses.pop(0) if self.statuses else self.status
        more = {"location": self.location} if self.location else {}
        return status, self.body, more


def _answer(text: object) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_WAIT_S", 0.001)
    usage.take_usage()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


def spec(server: Server, **more) -> ChatSpec:
    return ChatSpec(server.endpoint, "small", **more)


def test_complete_takes_the_first_choice(server: Server) -> None:
    model = EndpointModel(spec(server, max_tokens=7, temperature=0.5))
    assert model.complete("Why?") == "It is so."
    assert server.paths == ["/v1/chat/completions"]
    assert server.asked == [
        {"model": "small", "messages": [{"role": "user", "content": "Why?"}], "max_tokens": 7, "temperature": 0.5}
    ]
    assert "Authorization" not in server.headers


def test_key_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    model = EndpointModel(spec(server, key_variable="RAGBENCH_TEST_KEY"))
    with pytest.raises(ModelError, check=naming("RAGBENCH_TEST_KEY")):
        model.complete("Why?")
    monkeypatch.setenv("RAGBENCH_TEST_KEY", "open sesame")
    model.complete("Why?")
    assert server.headers["Authorization"] == "Bearer open sesame"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"oops", "status 500, 5 times"),
        (400, b"oops", "status 400"),
        (401, b"", "status 401"),
        (200, b"not json", "an answer without choices"),
        (200, b'{"choices": []}', "an answer without choices"),
        (200, b"[1]", "an answer without choices"),
        (200, _answer(None), "an empty answer"),
        (200, _answer("  "), "an empty answer"),
        (200, b" " * (2**20 + 1), "the answer is larger than 1 MB"),
        (200, b"[" * 200_000, "an answer without choices.*nested deeper"),
        (200, b'{"choices": [{"message": {"content": "a"}}], "usage": {"total_tokens": 1e999}}', "an answer without"),
        (200, b'{"choices": [{"message": {"content": "\\ud800"}}]}', "an answer without.*surrogate"),
        (200, b'{"choices": {"0": 1}}', "an answer without"),
    ],
)
def test_odd_answers_are_one_sentence(server: Server, status: int, body: bytes, reason: str) -> None:
    server.status, server.body = status, body
    with pytest.raises(ModelError, match=reason):
        EndpointModel(spec(server)).complete("Why?")


@pytest.mark.parametrize("counted", ["[1]", '"many"', '{"total_tokens": [1]}', '{"total_tokens": -1}', "null", "true"])
def test_odd_counts_of_tokens_are_no_tokens(server: Server, counted: str) -> None:
    server.body = _answer("Yes.")[:-1] + b', "usage": ' + counted.encode() + b"}"
    assert EndpointModel(spec(server)).complete("Why?") == "Yes."
    assert usage.take_usage()["chat:small"]["tokens"] == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_key_never_goes_to_another_origin(server: Server, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("RAGBENCH_TEST_KEY", "open sesame")
    with Server() as other:
        server.status, server.location = status, f"{other.endpoint}/chat/completions"
        with pytest.raises(ModelError, check=naming("redirection")):
            EndpointModel(spec(server, key_variable="RAGBENCH_TEST_KEY")).complete("Why?")
    assert server.headers["Authorization"] == "Bearer open sesame"
    assert other.paths == [] and other.headers == {}


def test_busy_server_is_asked_again_and_counted(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.statuses = [503, 429]
    server.body = json.dumps({**json.loads(_answer("Yes.")), "usage": {"total_tokens": 500}}).encode()
    model = CachedChatModel(spec(server), tmp_path / "answers.sqlite")
    assert model.complete("Why?") == "Yes." and len(server.asked) == 3
    assert model.complete("Why?") == "Yes." and len(server.asked) == 3
    monkeypatch.setenv(usage.CHAT_PRICE, "4")
    (entry,) = usage.take_usage().items()
    assert entry[0] == "chat:small" and entry[1]["ms_per_text"] > 0
    counted = {name: entry[1][name] for name in ("texts", "requests", "tokens", "usd", "usd_per_text")}
    assert counted == {"texts": 1, "requests": 3, "tokens": 500, "usd": 0.002, "usd_per_text": 0.002}


def test_server_is_not_asked_again_after_the_time(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "wait_random_exponential", lambda **options: wait_fixed(60))
    server.status = 503
    with pytest.raises(ModelError, check=naming("1 times")):
        EndpointModel(spec(server, timeout_s=5.0)).complete("Why?")


def test_cached_answer_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    assert [CachedChatModel(spec(server), path).complete(p) for p in ("a", "b", "a")] == ["It is so."] * 3
    assert len(server.asked) == 2
    # another process, so to speak; and the time limit shapes no answer
    assert CachedChatModel(spec(server, timeout_s=3.0), path).complete("a") == "It is so."
    assert len(server.asked) == 2
    CachedChatModel(spec(server, temperature=0.1), path).complete("a")
    CachedChatModel(ChatSpec(server.endpoint, "other"), path).complete("a")
    assert len(server.asked) == 4


def test_failure_is_not_cached(server: Server, tmp_path: Path) -> None:
    model = CachedChatModel(spec(server), tmp_path / "answers.sqlite")
    server.status = 503
    with pytest.raises(ModelError):
        model.complete("a")
    server.status = 200
    assert model.complete("a") == "It is so."


def test_models_hand_out_cached_and_bare_ones(server: Server, tmp_path: Path) -> None:
    cached, bare = Models(cache=tmp_path), Models(cache=tmp_path).uncached(1)
    for models, asked in ((cached, 1), (bare, 3)):
        for _ in range(2):
            assert models.chat(spec(server)).complete("a") == "It is so."
        assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"endpoint": "http://a:b@x/v1"}, "must hold no name or password"),
        ({"endpoint": "http://[::1"}, "must be an address such as"),
        ({"endpoint": "file:///etc/hosts"}, "must begin with http:// or https://, got 'file:///etc/hosts'"),
        ({"model": " "}, "model must not be blank"),
        ({"timeout_s": 0.0}, "timeout_s must be above 0, got 0"),
        ({"timeout_s": float("nan")}, "timeout_s must be finite and above 0"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"temperature": -1.0}, "temperature must be at least 0, got -1"),
    ],
)
def test_chat_spec_names_bad_parameters(parameters: dict, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ChatSpec(**{"endpoint": "http://localhost:1/v1", "model": "small", **parameters})
