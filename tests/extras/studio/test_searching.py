"""Searches on the live index: one query in two configurations."""

from __future__ import annotations

import html
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.base.types import ConfigError
from ragbench.config import available
from ragbench.extras.studio.app import Studio
from ragbench.extras.studio.searching import split

SECRET = "s3cret-of-the-environment"


def test_search_shows_two_configurations_and_the_reasons(browser: TestClient) -> None:
    page = browser.post("/search", data={"q": "how do lamps know when the sun sets", "right": "+exp=lexical_only"}).text
    assert page.count('<ol class="hits">') == 2
    assert "found by dense" in page
    assert "<mark>" in page


def test_search_shows_hostile_texts_as_text(browser: TestClient) -> None:
    page = browser.post(
        "/search",
        data={"q": "document.title broken <b onmouseover>", "left": "+exp=lexical_only", "right": "+exp=lexical_only"},
    ).text
    assert "&lt;script&gt;" in page and "&lt;b onmouseover&gt;" in page
    assert "<script>document" not in page and "<b onmouseover" not in page and "<img" not in page


def test_address_fills_in_the_form_and_searches_nothing(browser: TestClient, studio: Studio) -> None:
    page = browser.get("/search", params={"q": "lamps", "left": "exp=lexical_only", "right": "p6=on"}).text
    assert 'value="lamps"' in page and 'value="exp=lexical_only"' in page and 'value="p6=on"' in page
    assert '<ol class="hits">' not in page
    assert len(studio.searching._arms) == 0


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server):
    """A module, a program, a variable and a server that leave a trace when they are used; returns whether any was."""
    monkeypatch.setenv("RAGBENCH_SECRET", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    (tmp_path / "evil_of_address.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: started.append(given))

    def sprung() -> bool:
        executed = "evil_of_address" in sys.modules or (tmp_path / "executed").exists()
        return bool(started or server.requests or executed)

    return sprung


CODE, VARIABLE, OPERATOR = "names code to import", "can read the environment", "cannot be changed here"
HOSTILE = [
    *((f"{name}={{_target_: evil_of_address.X}}", CODE) for name in ("fuse", "cut", "+mine")),
    *((f"{name}._target_=evil_of_address.X", CODE) for name in ("fuse", "p6", "expansion", "hyde")),
    *((f"{key}=${{oc.env:RAGBENCH_SECRET}}", VARIABLE) for key in ("name", "index.encoder.name", "fuse.k")),
    ("++hydra.searchpath=[file:///tmp]", CODE),
    ("live=http live.url=http://127.0.0.1:9/?q={query} live.hits=h live.text=t", OPERATOR),
    ("live=command 'live.program=[touch,executed]' live.hits=h live.text=t", OPERATOR),
    ("source=command:touch", OPERATOR),
    ("tracking.uri=http://127.0.0.1:9", OPERATOR),
    ("data.corpus=/", OPERATOR),
    ("++paths.index=/tmp/x", OPERATOR),
    ("--json", "not an override"),
    ("'", "a quote in the overrides is not closed"),
    ("p6=maybe", "p6 cannot be 'maybe'"),
    ("no_such_key=1", "no_such_key"),
]


@pytest.mark.parametrize(("typed", "reason"), HOSTILE, ids=[typed for typed, _ in HOSTILE])
@pytest.mark.parametrize("side", ["left", "right"])
def test_form_with_forbidden_words_is_refused_for_the_reason(browser, trap, typed: str, reason: str, side: str) -> None:
    other = {"left": "right", "right": "left"}[side]
    page = browser.post("/search", data={"q": "lamps", side: typed, other: "exp=lexical_only"})
    assert reason in html.unescape(page.text).partition("Not possible")[2]
    assert "Not possible." in page.text and '<ol class="hits">' not in page.text
    assert not trap() and SECRET not in page.text


def test_switches_of_the_hostile_words_exist() -> None:
    """A renamed switch would be refused as an unknown key, and its case would test nothing."""
    known = available.read()
    keys = {*known.by_group, *(parameter.key.partition(".")[0] for parameter in known.parameters)}
    named = {typed.partition("=")[0].partition(".")[0] for typed, _ in HOSTILE}
    assert named - keys == {"+mine", "++hydra", "++paths", "source", "--json", "'", "no_such_key"}


@pytest.mark.parametrize(
    "typed",
    [
        *(typed for typed, _ in HOSTILE),
        "hyde=on hyde.endpoint={server}/v1 hyde.model=m",
        "expansion=on expansion.endpoint={server}/v1 expansion.model=m",
        "index.encoder.name=openai:small",
        "index.encoder.name=owner/model",
    ],
)
def test_address_uses_nothing_that_it_names(browser: TestClient, trap, server, typed: str) -> None:
    typed = typed.replace("{server}", server.url)
    response = browser.get("/search", params={"q": "lamps", "left": typed, "right": "exp=lexical_only"})
    assert response.status_code == 200
    assert not trap() and SECRET not in response.text


@pytest.mark.parametrize("switch", ["hyde", "expansion"])
def test_form_may_name_a_server(browser: TestClient, server, switch: str) -> None:
    server.answer = lambda path, parameters, body: {"choices": [{"message": {"content": "a lamp"}}]}
    typed = f"{switch}=on {switch}.endpoint={server.url}/v1 {switch}.model=m"
    page = browser.post("/search", data={"q": "lamps", "left": typed, "right": "exp=lexical_only"})
    assert page.text.count('<ol class="hits">') == 2 and server.requests


@pytest.mark.parametrize(
    ("query", "reason"), [("x" * 2001, "longer than 2000"), (" ", "the query is empty"), ("", "the query is empty")]
)
def test_query_outside_its_limits_is_refused(browser: TestClient, query: str, reason: str) -> None:
    page = browser.post("/search", data={"q": query, "left": "exp=lexical_only", "right": "exp=lexical_only"}).text
    assert "Not possible." in page and reason in page


def test_overrides_are_split_as_in_a_shell() -> None:
    assert split("+exp=all 'tune=[a, b]'") == ["+exp=all", "tune=[a, b]"]
    with pytest.raises(ConfigError, match="not an override"):
        split("run --all")
