from __future__ import annotations

import sys
import time

import pytest

from ragbench.base.types import LiveError
from ragbench.extras.remote.live import client
from ragbench.extras.remote.live.client import HitReading, LiveHit, RateLimitedClient, RequestFailed, fill_in, secret
from tests.naming import naming


def test_templates_are_filled_everywhere_and_a_lone_depth_is_a_number() -> None:
    template = {"q": "about {query}", "size": "{depth}", "in": [{"k": "{depth} of {query}"}, 3, None]}
    assert fill_in(template, 'a "b"', 7) == {"q": 'about a "b"', "size": 7, "in": [{"k": '7 of a "b"'}, 3, None]}


def test_hits_are_read_where_the_expressions_say() -> None:
    reading = HitReading(hits="hits.hits", document="_source.path", text="_source.parts", score="_score")
    answer = {"hits": {"hits": [{"_source": {"path": "a", "parts": ["x", "y", None]}, "_score": 2}, {"_score": True}]}}
    assert reading.read(answer, 1) == [LiveHit("a", "", "x y", 2.0)]
    with pytest.raises(LiveError, check=naming("hit 2")):
        reading.read(answer, 2)
    with pytest.raises(LiveError, check=naming("no list of hits")):
        reading.read({"hits": {}}, 1)


def test_get_request_has_the_query_in_its_address(server) -> None:
    server.answer = lambda path, parameters, body: {"path": path, **parameters}
    ask = client.asking_http("GET", f"{server.url}/s?q={{query}}&n={{depth}}", None, {"X-Key": "k"}, 5)
    assert ask("a&b c/ü", 3) == {"path": "/s", "q": "a&b c/ü", "n": "3"}
    assert server.requests[0][2]["X-Key"] == "k"


def test_post_request_has_the_query_in_its_body(server) -> None:
    server.answer = lambda path, parameters, body: body
    ask = client.asking_http("POST", f"{server.url}/s", {"q": "{query}"}, {}, 5)
    assert ask('say "x"', 3) == {"q": 'say "x"'}


@pytest.mark.parametrize(("status", "again"), [(503, True), (429, True), (404, False), (302, False)])
def test_client_retries_passing_failures_only(server, status: int, again: bool) -> None:
    server.failures = [(status, {"Retry-After": "2", "Location": "/elsewhere"})]
    with pytest.raises(RequestFailed) as raised:
        client.asking_http("GET", f"{server.url}/{{query}}", None, {}, 5)("x", 1)
    assert f"status {status}" in str(raised.value)
    assert raised.value.again is again and raised.value.after_s == 2
    assert len(server.requests) == 1


def test_slow_unreachable_and_odd_answers_are_named(server) -> None:
    server.answer = lambda path, parameters, body: b"<html>"
    ask = client.asking_http("GET", f"{server.url}/{{query}}", None, {}, 5)
    with pytest.raises(RequestFailed, check=naming("JSON")):
        ask("x", 1)
    server.answer = lambda path, parameters, body: time.sleep(1)
    with pytest.raises(RequestFailed, check=naming("within")):
        client.asking_http("GET", f"{server.url}/{{query}}", None, {}, 0.1)("x", 1)
    with pytest.raises(RequestFailed, check=naming("refused")):
        client.asking_http("GET", "http://127.0.0.1:9/{query}", None, {}, 5)("x", 1)


PROGRAM = """
import json, sys
print(json.dumps({"words": sys.argv[1:], "read": sys.stdin.read()}))
"""


def test_program_gets_the_query_as_argument_and_input() -> None:
    ask = client.asking_program([sys.executable, "-c", PROGRAM, "{depth}", "{query}; rm x"], 20)
    assert ask("$HOME", 4) == {"words": ["4", "$HOME; rm x"], "read": "$HOME\n"}


def test_json_lines_are_a_list() -> None:
    assert client.asking_program([sys.executable, "-c", 'print(\'{"a": 1}\\n\\n{"a": 2}\')'], 20)("", 1) == [
        {"a": 1},
        {"a": 2},
    ]


@pytest.mark.parametrize(
    ("program", "reason", "again"),
    [
        (["-c", "import sys; sys.exit('no index\\nno hope')"], r"exit code 1 \(no hope\)", True),
        (["-c", "print('hits: 3')"], "neither JSON nor JSON Lines", False),
        (["-c", "import time; time.sleep(9)"], r"no answer within 0\.5 s", True),
    ],
)
def test_failing_program_is_one_sentence(program: list[str], reason: str, again: bool) -> None:
    with pytest.raises(RequestFailed, match=reason) as raised:
        client.asking_program([sys.executable, *program], 0.5 if "sleep" in program[1] else 20)("x", 1)
    assert raised.value.again is again
    with pytest.raises(RequestFailed):
        client.asking_program(["/no/such/program"], 1)("x", 1)


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_requests_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    times: list[float] = []
    ask = RateLimitedClient("x", lambda *asked: times.append(clock.now), per_second=4, retries=0)
    for _ in range(3):
        ask("q", 1)
    assert times == [100.0, 100.25, 100.5]
    ask.wait()
    assert clock.now == 100.75


def test_retries_wait_longer_or_as_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    times: list[float] = []
    waits = iter([0, 0, 5, 999, 0])

    def fail(*asked: object) -> None:
        times.append(clock.now)
        raise RequestFailed("busy", after_s=next(waits))

    with pytest.raises(LiveError, check=naming("5 times: busy")):
        RateLimitedClient("the shop", fail, per_second=1000, retries=4)("keys", 1)
    assert times == pytest.approx([100, 100.2, 100.6, 105.6, 135.6])


def test_lasting_failures_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*asked: object) -> None:
        raise RequestFailed("status 404", again=False)

    with pytest.raises(LiveError, check=naming("once")):
        RateLimitedClient("the shop", refuse, per_second=1, retries=9)("keys", 1)


def test_token_comes_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "s3cret")
    assert secret("SHOP_TOKEN", "the shop") == "s3cret" and secret(None, "the shop") is None
    monkeypatch.delenv("SHOP_TOKEN")
    with pytest.raises(LiveError, check=naming("SHOP_TOKEN")):
        secret("SHOP_TOKEN", "the shop")


def test_filter_fills_its_places() -> None:
    template = {"q": "{query}", "filters": "{filter}", "v": "{filter.version}", "k": "{filter.kind}"}
    conditions = {"version": 3.2, "kind": ["a", "b"]}
    assert fill_in(template, "{depth}", 7, conditions) == {
        **{"q": "{depth}", "filters": conditions, "v": "3.2", "k": "a,b"}
    }
    assert fill_in(template, "x", 7) == {"q": "x", "v": "", "k": ""}
    assert fill_in("only {filter}", "x", 7, {"version": "é"}) == 'only {"version": "é"}'
