"""Bodies beyond the limits of size and time, and requests that were meant for others."""

from __future__ import annotations

import asyncio

import pytest

from ragbench.extras.ship.access import Access
from ragbench.extras.ship.serving.http import Guard
from ragbench.extras.ship.serving.messages import Limits
from ragbench.extras.ship.serving.metrics import Metrics


def through(parts, headers=((b"host", b"localhost"),), **limits):
    """Send body parts (bytes; None: silence) through a guard to an application that answers with what it reads."""
    sent = []

    async def application(scope, receive, send) -> None:
        body = (await receive())["body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    messages = [
        part if part is None or isinstance(part, dict) else {"type": "http.request", "body": part, "more_body": True}
        for part in parts
    ]
    if isinstance(messages[-1], dict):
        messages[-1]["more_body"] = False

    async def receive():
        message = messages.pop(0)
        if message is None:
            await asyncio.sleep(3600)
        return message

    async def send(message) -> None:
        sent.append(message)

    guard = Guard(application, Limits(**limits), Metrics(lambda: 0), Access())
    asyncio.run(guard({"type": "http", "method": "POST", "headers": list(headers)}, receive, send))
    return (sent[0]["status"], sent[1]["body"], messages) if sent else None


def test_a_body_in_parts_arrives_whole() -> None:
    assert through([b"ab", b"cd", b""], max_body=4)[:2] == (200, b"abcd")


def test_a_body_that_grows_too_large_is_refused_before_all_of_it_is_read() -> None:
    status, body, left = through([b"abc", b"de", b"f"], max_body=4)
    assert (status, len(left)) == (413, 1)
    assert body == b'{"error":"the request is larger than 4 bytes: send less"}'


@pytest.mark.parametrize("length", [b"5", b"9" * 5000])
def test_a_body_that_is_announced_too_large_is_not_read(length: bytes) -> None:
    status, _, left = through([b"abcde"], [(b"host", b"localhost"), (b"content-length", length)], max_body=4)
    assert (status, len(left)) == (413, 1)


def test_a_body_that_never_ends_is_given_up() -> None:
    assert through([b"a", None], time_limit=0.05)[0] == 408


def test_a_client_that_leaves_gets_nothing() -> None:
    assert through([b"a", {"type": "http.disconnect"}]) is None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost:8000", 200),
        (b"LOCALHOST", 200),
        (b"127.0.0.1:1", 200),
        (b"[::1]:8000", 200),
        (b"evil.example", 400),
        (b"localhost.evil.example:8000", 400),
        (b"", 400),
    ],
)
def test_only_requests_for_this_machine(host: bytes, status: int) -> None:
    assert through([b""], [(b"host", host)])[0] == status


def test_one_client_has_its_share_and_health_is_no_part_of_it() -> None:
    """Two requests whose bodies never end, of one client that may have two; a third of it is refused."""

    async def application(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def endless():
        await asyncio.sleep(3600)

    async def session() -> list[int]:
        metrics = Metrics(lambda: 0)
        guard = Guard(application, Limits(per_client=2), metrics, Access())
        statuses: list[int] = []

        async def send(message) -> None:
            statuses.append(message.get("status"))

        async def empty():
            return {"type": "http.request", "body": b"", "more_body": False}

        def request(client: str, method: str, receive):
            headers = [(b"host", b"localhost")]
            return guard({"type": "http", "method": method, "client": (client, 1), "headers": headers}, receive, send)

        held = [asyncio.create_task(request("a", "POST", endless)) for _ in range(2)]
        await asyncio.sleep(0)
        await request("a", "POST", empty)
        await request("b", "POST", empty)
        await request("a", "GET", endless)
        for each in held:
            each.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        await request("a", "POST", empty)
        assert b'ragbench_searches_total{outcome="busy"} 1.0' in metrics.text()
        return [status for status in statuses if status is not None]

    assert asyncio.run(session()) == [429, 200, 200, 200]
