"""Whom the studio answers, and what it lets be written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Route

from ragbench.extras.ship.access import Session
from ragbench.extras.studio.app import Studio, create_app
from ragbench.extras.studio.guard import FRAMED, POLICY

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def stranger(studio: Studio) -> TestClient:
    return TestClient(create_app(studio), base_url="http://127.0.0.1", follow_redirects=False)


def test_only_who_brings_the_token_gets_in(stranger: TestClient, studio: Studio) -> None:
    assert stranger.get("/").status_code == 403
    assert stranger.get("/?token=wrong").status_code == 403
    entered = stranger.get(f"/?q=a&token={studio.access.token}")
    assert entered.status_code == 303
    assert entered.headers["location"] == "/?q=a"
    assert {"httponly", "samesite=strict"} <= {
        each.strip().lower() for each in entered.headers["set-cookie"].split(";")
    }
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("encrypted", [False, True])
def test_behind_a_proxy_the_cookie_is_sent_encrypted_only(studio: Studio, encrypted: bool) -> None:
    session = replace(studio.access, encrypted=encrypted)
    client = TestClient(
        create_app(replace(studio, access=session)), base_url="http://127.0.0.1", follow_redirects=False
    )
    entered = client.get(f"/?token={session.token}")
    assert ("secure" in entered.headers["set-cookie"].lower()) == encrypted


def test_the_token_leads_to_no_other_host(stranger: TestClient, studio: Studio) -> None:
    entered = stranger.get(f"http://127.0.0.1//elsewhere.example/?token={studio.access.token}")
    assert entered.headers["location"] == "/elsewhere.example/"


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", ""])
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8150", "localhost", "[::1]:80", "LOCALHOST:1"])
def test_this_machine_is_answered_by_its_names(stranger: TestClient, studio: Studio, host: str) -> None:
    cookie = f"{studio.access.cookie}={studio.access.token}"
    assert stranger.get("/", headers={"host": host, "cookie": cookie}).status_code == 200


def test_every_page_has_a_strict_policy(client: TestClient) -> None:
    for path in ("/", "/static/studio.js", "/nothing-here"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY


def test_a_report_is_framed_in_an_origin_of_its_own(client: TestClient, arms) -> None:
    answer = client.get(f"/runs/{arms['base'].run}/report")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == FRAMED
    assert "allow-same-origin" not in FRAMED


def writes(studio: Studio) -> list[str]:
    routes = [route for route in create_app(studio).routes if isinstance(route, Route)]
    return [route.path.replace("{", "").replace("}", "") for route in routes if "POST" in (route.methods or ())]


def test_no_write_without_the_token_of_the_form(client: TestClient, studio: Studio) -> None:
    for path in [*writes(studio), "/anything"]:
        assert client.post(path, data={"a": "b"}).status_code == 403, path
        assert client.post(path, data={"csrf": studio.access.token}).status_code == 403, path
        assert client.post(path, json={"csrf": studio.access.csrf}).status_code == 415, path
        good = {"csrf": studio.access.csrf}
        assert client.post(path, data=good, headers={"origin": "http://evil.example"}).status_code == 403, path


def test_nothing_is_written_in_a_read_only_studio(reader: TestClient, studio: Studio) -> None:
    for path in [*writes(studio), "/anything"]:
        assert reader.post(path, data={"csrf": studio.access.csrf}).text == "this studio is read-only\n"
    assert reader.get("/").status_code == 200


def test_a_form_has_a_size(client: TestClient, studio: Studio) -> None:
    assert client.post("/anything", data={"csrf": studio.access.csrf, "a": "x" * 70_000}).status_code == 413


def test_a_form_has_so_many_fields(client: TestClient, studio: Studio) -> None:
    fields = {f"f{number}": "x" for number in range(1000)}
    answer = client.post("/anything", data={"csrf": studio.access.csrf, **fields})
    assert (answer.status_code, answer.text) == (413, "the form has more than 1000 fields: send less\n")
    answer = client.post("/judging/pool", data={"csrf": studio.access.csrf, "run": "x", "depth": "9" * 5000})
    assert answer.status_code == 422


def test_tokens_differ_and_are_not_shown() -> None:
    one, two = Session(), Session()
    assert one.token != two.token
    assert one.token not in repr(one)
    assert one.cookie != two.cookie
