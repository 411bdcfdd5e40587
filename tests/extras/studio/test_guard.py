"""Whom the studio answers, and from where it takes forms."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from ragbench.extras.studio.app import Studio, create_app
from ragbench.extras.studio.guard import POLICY, cookie_of

FORMS = ("/judging/pool", "/judging/begin", "/judging/grade", "/search")


@pytest.fixture
def stranger(studio: Studio) -> TestClient:
    """A browser without the token."""
    return TestClient(create_app(studio), base_url="http://127.0.0.1", follow_redirects=False)


def test_forms_of_this_test_are_those_of_the_studio(studio: Studio) -> None:
    app = create_app(studio)
    posts = {
        path
        for path in ("/", "/judging", "/judging/pair", "/report.css", *FORMS)
        if TestClient(app, base_url="http://127.0.0.1", headers=entered(studio)).post(path).status_code != 405
    }
    assert posts == set(FORMS)


def entered(studio: Studio) -> dict[str, str]:
    return {"cookie": f"{cookie_of(studio.token)}={studio.token}", "origin": "http://127.0.0.1"}


def test_token_in_the_address_becomes_a_cookie(stranger: TestClient, studio: Studio) -> None:
    response = stranger.get(f"/search?q=a%20b&token={studio.token}")
    assert (response.status_code, response.headers["location"]) == (303, "/search?q=a+b")
    attributes = {part.strip().lower() for part in response.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict"} <= attributes
    assert stranger.get("/search").status_code == 200


@pytest.mark.parametrize(
    ("path", "cookie", "reason"),
    [
        ("/judging", "", "open the address that ragbench studio printed; it holds the token"),
        ("/static/studio.js", "", "open the address that ragbench studio printed; it holds the token"),
        ("/judging", "wrong", "open the address that ragbench studio printed; it holds the token"),
        ("/judging?token=wrong", "", "this token is of another session"),
    ],
)
def test_request_without_the_token_is_403(stranger: TestClient, studio: Studio, path, cookie: str, reason: str) -> None:
    response = stranger.get(path, headers={"cookie": f"{cookie_of(studio.token)}={cookie}"} if cookie else {})
    assert response.status_code == 403
    assert response.text.startswith(reason)


def test_token_in_the_address_leads_to_no_other_host(stranger: TestClient, studio: Studio) -> None:
    response = stranger.get(f"http://127.0.0.1//elsewhere.example/?token={studio.token}")
    assert response.headers["location"] == "/elsewhere.example/"


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", ""])
def test_other_host_name_is_400(browser: TestClient, host: str) -> None:
    response = browser.get("/judging", headers={"host": host})
    assert (response.status_code, response.text) == (400, "Invalid host header")


@pytest.mark.parametrize("host", ["127.0.0.1:8150", "localhost", "[::1]:80", "LOCALHOST:1"])
def test_names_of_this_machine_are_answered(browser: TestClient, host: str) -> None:
    assert browser.get("/judging", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/judging", "/static/studio.js", "/nothing-here", "/judging?token=x"])
def test_responses_have_a_strict_policy(browser: TestClient, path: str) -> None:
    headers = browser.get(path).headers
    assert headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", [*FORMS, "/anything"])
@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:81", "https://127.0.0.1", "null", ""])
def test_form_of_another_page_is_403(browser: TestClient, path: str, origin: str) -> None:
    response = browser.post(path, data={"q": "lamps"}, headers={"origin": origin})
    assert (response.status_code, response.text) == (
        403,
        "the form comes from another page: open the page of the studio\n",
    )


def test_large_form_is_413(browser: TestClient) -> None:
    assert browser.post("/search", data={"q": "x" * 70_000}).status_code == 413


def test_form_with_too_many_fields_is_400(browser: TestClient) -> None:
    assert browser.post("/search", data={f"f{number}": "x" for number in range(1001)}).status_code == 400


def test_tokens_differ_and_are_not_in_the_repr(studio: Studio) -> None:
    other = Studio(studio.root)
    assert studio.token != other.token and cookie_of(studio.token) != cookie_of(other.token)
    assert studio.token not in repr(studio)
