"""The bearer token, host names, pages of other hosts, and bodies that are too large or too slow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError
from ragbench.extras.ship.access import Guard, read_token
from tests.tables import rows

TOKEN = "s3cret" * 4
SEARCH = {"query": "keys", "top_n": 1}


def test_token_is_read_without_the_line_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert read_token(tmp_path / "token") == TOKEN


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "one token"),
        (b"secret\n", "one token"),
        (b"x" * 513, "one token"),
        ("é".encode() * 20, "one token"),
        (b"t" * 20 + b"\n" + b"u" * 20, "one token"),
        (b"name " + b"t" * 20, "one token"),
        (b"\xff\xfe", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_token_file_is_refused_without_quoting_it(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason) as error:
        read_token(path)
    assert "ttt" not in str(error.value) and "secret" not in str(error.value)


@pytest.mark.parametrize(
    "header", ["", "Bearer", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}a", f"Bearer {TOKEN[:-1]}", "Bearer \xff"]
)
def test_search_without_the_token_is_401(service, ask, header: str) -> None:
    response = ask(
        service,
        lambda client: client.post("/search", json=SEARCH, headers={"authorization": header.encode("latin-1")}),
        TOKEN,
    )
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert "Authorization: Bearer TOKEN" in response.json()["error"]


def test_search_with_the_token_is_answered(service, ask) -> None:
    async def talk(client):
        headers = ({"authorization": f"Bearer {TOKEN}"}, {"authorization": f"bearer  {TOKEN} "})
        return [await client.post("/search", json=SEARCH, headers=value) for value in headers]

    assert [response.status_code for response in ask(service, talk, TOKEN)] == [200, 200]


def test_token_is_required_for_every_path(service, ask) -> None:
    async def talk(client):
        paths = ("/health", "/documents/security", "/openapi.json", "/", "/nowhere", "/mcp")
        return [(await client.get(path)).status_code for path in paths] + [(await client.post("/mcp")).status_code]

    assert set(ask(service, talk, TOKEN)) == {401}


def test_openapi_describes_the_token(service, ask) -> None:
    described = ask(
        service, lambda client: client.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}), TOKEN
    ).json()
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert described["paths"]["/search"]["post"]["security"] == [{"HTTPBearer": []}]


@pytest.mark.parametrize(
    ("origin", "status"),
    rows("ship_serving_access", "pages_of_other_hosts_are_403_without_a_token"),
)
def test_pages_of_other_hosts_are_403_without_a_token(service, ask, origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"origin": origin}
    response = ask(service, lambda client: client.post("/search", json=SEARCH, headers=headers))
    assert response.status_code == status
    assert status == 200 or "another host" in response.json()["error"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 400),
        ("localhost.evil.example:8000", 400),
        ("", 400),
    ],
)
def test_requests_for_other_host_names_are_400(service, ask, host: str, status: int) -> None:
    response = ask(service, lambda client: client.get("/health", headers={"host": host}))
    assert response.status_code == status
    assert status == 200 or "host" in response.text.lower()


def test_token_admits_any_host_name(service, ask) -> None:
    headers = {"host": "search.example.org", "origin": "https://example.org", "authorization": f"Bearer {TOKEN}"}
    assert ask(service, lambda client: client.get("/health", headers=headers), TOKEN).status_code == 200


@pytest.mark.parametrize("path", ["/search", "/mcp"])
@pytest.mark.parametrize("announced", [True, False])
def test_large_body_is_413(make_service, ask, path: str, announced: bool) -> None:
    async def pieces():
        for _ in range(10):
            yield b'{"query": "a"}          '

    async def talk(client):
        async with client._transport.app.router.lifespan_context(client._transport.app):
            content = b"x" * 200 if announced else pieces()
            headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            return await client.post(path, content=content, headers=headers)

    assert ask(make_service(max_body=100), talk).status_code == 413


def test_slow_body_is_408(make_service, ask) -> None:
    async def endless():
        yield b'{"query'
        await asyncio.sleep(3600)

    async def talk(client):
        return await client.post("/search", content=endless(), headers={"content-type": "application/json"})

    response = ask(make_service(time_limit=0.05), talk)
    assert response.status_code == 408
    assert "took longer than 0.05 s to arrive" in response.json()["error"]


def test_guard_waits_for_a_disconnection_after_the_body() -> None:
    """The time limit is of the body: an application may listen for the end of the connection as long as it wants."""

    async def application(scope, receive, send) -> None:
        assert (await receive())["body"] == b"ab"
        await send(await receive())

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    async def send(message) -> None:
        sent.append(message)

    messages, sent = [{"type": "http.request", "body": b"ab", "more_body": False}], []
    asyncio.run(Guard(application, None, 0.01)({"type": "http", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "http.disconnect"}]
