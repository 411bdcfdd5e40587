"""Tokens, rates and pages of other hosts."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ragbench.base.errors import ConfigError
from ragbench.extras.ship.access import LOOPBACK, Access, Rate, Tokens

FIRST, SECOND = "a" * 16, "b" * 512


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# who may ask\n\n{FIRST}\nci {SECOND}   # the build\n")
    return path


def caller(tokens: Tokens, header: bytes | None) -> str | None:
    return Access(None, tokens).caller(header, "192.0.2.1")


def test_a_token_has_a_name(file: Path) -> None:
    tokens = Tokens(file)
    assert caller(tokens, f"Bearer {FIRST}".encode()) == "token-3"
    assert caller(tokens, f"bearer  {SECOND} ".encode()) == "ci"


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ci",
        FIRST.encode(),
        f"Basic {FIRST}".encode(),
        f"Bearer {FIRST}a".encode(),
        b"\xff",
    ],
)
def test_whoever_has_no_token_is_nobody(file: Path, header: bytes | None) -> None:
    assert caller(Tokens(file), header) is None


def test_without_tokens_a_caller_is_an_address() -> None:
    assert Access().caller(b"Bearer x", "192.0.2.1") == "192.0.2.1"


def test_tokens_are_exchanged_while_it_serves(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = Tokens(file)
    file.write_text("new " + "c" * 20)
    assert tokens.name_of(FIRST.encode()) is None
    assert tokens.name_of(b"c" * 20) == "new"
    with caplog.at_level(logging.ERROR):
        file.write_text("half")
        assert tokens.name_of(b"c" * 20) == "new"
    assert "the earlier tokens stay valid" in caplog.text
    assert "half" not in caplog.text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no token"),
        (b"# none\n", "holds no token"),
        (b"secret\n", "line 1: a token has 16 to 512 ASCII characters"),
        (b"x" * 513, "line 1: a token has 16 to 512"),
        ("é".encode() * 20, "line 1: a token has 16 to 512"),
        (b"a b c", "line 1 has 3 words"),
        (b"a " + b"t" * 20 + b"\na " + b"u" * 20, "line 2 repeats a name or a token"),
        (b"a " + b"t" * 20 + b"\nb " + b"t" * 20, "line 2 repeats a name or a token"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_bad_files_are_one_sentence_without_a_token(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        Tokens(path)
    assert "ttt" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Tokens(tmp_path / "none")


def test_a_rate_is_of_one_caller() -> None:
    rate = Rate("2/hour")

    async def ask() -> list[int]:
        return [await rate.wait(who) for who in ("a", "a", "a", "b")]

    first, second, third, other = asyncio.run(ask())
    assert (first, second, other) == (0, 0, 0)
    assert 3_000 < third <= 3_600


@pytest.mark.parametrize("words", ["", "often", "-1/minute", "0/second", "600"])
def test_a_bad_rate_is_one_sentence(words: str) -> None:
    with pytest.raises(ConfigError, match="--rate must"):
        Rate(words)


@pytest.mark.parametrize(
    ("origin", "invited"),
    [
        (None, True),
        (b"http://localhost:8000", True),
        (b"https://127.0.0.1", True),
        (b"http://[::1]:8000", True),
        (b"null", False),
        (b"https://evil.example", False),
        (b"http://localhost.evil.example:8000", False),
        (b"http://localhost@evil.example", False),
    ],
)
def test_pages_of_other_hosts_may_not_ask(origin: bytes | None, invited: bool) -> None:
    assert Access(LOOPBACK).is_invited(origin) is invited
    assert Access(None).is_invited(origin)


def test_every_way_in_wants_the_token(service, ask, file: Path) -> None:
    access = Access(None, Tokens(file), Rate("3/hour"))
    body = {"query": "keys", "top_n": 1}

    async def talk(client):
        known = {"authorization": f"Bearer {FIRST}"}
        refused = [
            await client.post("/search", json=body),
            await client.get("/health"),
            await client.get("/metrics"),
            await client.get("/documents"),
            await client.get("/openapi.json"),
            await client.get("/nowhere"),
            await client.post("/search", json=body, headers={"authorization": "Bearer " + "z" * 16}),
        ]
        answered = [await client.post("/search", json=body, headers=known) for _ in range(4)]
        return refused, answered

    refused, answered = ask(service, talk, access)
    assert {response.status_code for response in refused} == {401}
    assert refused[0].headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer TOKEN" in refused[0].json()["error"]
    assert [response.status_code for response in answered] == [200, 200, 200, 429]
    assert "token-3 may make 3 per 1 hour requests" in answered[3].json()["error"]
    assert int(answered[3].headers["retry-after"]) > 3_000


def test_the_description_says_that_a_token_is_needed(service, ask, file: Path) -> None:
    async def talk(client):
        return (await client.get("/openapi.json", headers={"authorization": f"Bearer {FIRST}"})).json()

    described = ask(service, talk, Access(None, Tokens(file)))
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert described["paths"]["/search"]["post"]["security"] == [{"HTTPBearer": []}]
