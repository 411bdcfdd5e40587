"""Searches on the live index."""

from __future__ import annotations

import html
import json
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.base.errors import ConfigError
from ragbench.config import composition
from ragbench.extras.ship.access import Session
from ragbench.extras.studio.app import Studio, create_app, url
from ragbench.extras.studio.searching import split


@pytest.fixture
def place(words: tuple[str, ...], tmp_path: Path) -> tuple[Studio, TestClient]:
    studio = Studio(tmp_path, words)
    client = TestClient(create_app(studio), base_url="http://127.0.0.1")
    client.cookies.set(studio.access.cookie, studio.access.token)
    return studio, client


def test_two_configurations_side_by_side_say_why(place) -> None:
    _, client = place
    page = client.get(url("/search", q="how do lamps know when the sun sets", right="+exp=lexical_only")).text
    assert page.count('<ol class="hits">') == 2
    assert "found by dense" in page
    assert "<mark>" in page
    assert "onerror=" not in page.replace("&#34;", '"').replace("&lt;img src=x onerror=", "")
    filtered = client.get(
        url("/search", q="lamps", left="+exp=lexical_only", right="+exp=lexical_only", product="guides")
    )
    assert "guides/" in filtered.text
    assert "reference/" not in filtered.text


def test_a_search_becomes_a_topic_that_data_queries_reads(place, words: tuple[str, ...]) -> None:
    studio, client = place
    said = {"csrf": studio.access.csrf, "query": "switch  lamps", "relevant": ["guides/schedules"]}
    page = client.post("/search/topic", data=said)
    assert "1 topic in" in page.text
    assert client.post("/search/topic", data=said).status_code == 422
    client.post("/search/topic", data={"csrf": studio.access.csrf, "query": "what is not judged"})
    from ragbench.config.benchmark import load

    rest = [word for word in words if not word.startswith(("data.qrels", "data.queries"))]
    benchmark = load(composition.compose([*rest, f"data.queries={studio.searching.topics_file}"]).config)
    assert [topic.text for topic in benchmark.topics] == ["switch lamps", "what is not judged"]
    assert list(benchmark.document_qrels.values()) == [{"guides/schedules": 1}]
    assert all(json.loads(line) for line in studio.searching.topics_file.read_text().splitlines())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"q": "a", "left": "p6=maybe"}, "p6"),
        ({"q": "a", "left": "--json"}, "not an override"),
        ({"q": "a", "left": "'"}, "quote"),
        ({"q": "a", "left": "live=command"}, "cannot be changed here"),
        ({"q": "a", "left": "++paths.index=/tmp/x"}, "cannot be changed here"),
        ({"q": "a", "right": "data.corpus=/"}, "cannot be changed here"),
        ({"q": "a", "left": "hyde=on hyde.endpoint=http://127.0.0.1:9/v1 hyde.model=m"}, "hyde.endpoint sends texts"),
        ({"q": "a", "left": "index.encoder.name=/models/x"}, "index.encoder.name reads files"),
        ({"q": "a", "left": "fuse._target_=this.X"}, "names code to import"),
        ({"q": "a", "left": "name=${oc.env:HOME}"}, "can read the environment"),
        ({"q": "a", "modified_after": "yesterday"}, "modified_after"),
        ({"q": "x" * 2001}, "longer than"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(place, asked: dict[str, str], said: str) -> None:
    _, client = place
    page = html.unescape(client.get(url("/search", **asked)).text)
    assert "Not possible." in page
    assert said in page


def test_a_form_may_name_a_server_but_no_program(place, server) -> None:
    studio, client = place
    words = f"exp=lexical_only hyde=on hyde.endpoint={server.url}/v1 hyde.model=m"
    said = {"csrf": studio.access.csrf, "q": "lamps", "right": "exp=lexical_only"}
    server.answer = lambda path, parameters, body: {"choices": [{"message": {"content": "a lamp"}}]}
    page = client.get(url("/search", q="lamps", left=words, right="exp=lexical_only")).text
    assert "press Search" in page or "not allowed here" in page
    client.get(url("/experiments", command="run", words=words))
    assert server.requests == []
    page = client.post("/search", data={**said, "left": words}).text
    assert page.count('<ol class="hits">') == 2 and server.requests
    refused = client.post("/search", data={**said, "left": "fuse._target_=this.X"}).text
    assert "names code to import" in refused and "this" not in sys.modules
    assert client.post("/search", data={**said, "csrf": "x", "left": words}).status_code == 403


def test_a_pure_search_has_an_address(place) -> None:
    studio, client = place
    said = {"csrf": studio.access.csrf, "q": "lamps", "left": "exp=lexical_only", "right": "exp=lexical_only"}
    answer = client.post("/search", data=said, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/search?q=lamps&left=exp%3Dlexical_only&right=exp%3Dlexical_only",
    )


def test_what_the_operator_has_named_is_not_asked_by_an_address(words: tuple[str, ...], tmp_path: Path, server) -> None:
    own = ("exp=lexical_only", "hyde=on", f"hyde.endpoint={server.url}/v1", "hyde.model=m")
    server.answer = lambda path, parameters, body: {"choices": [{"message": {"content": "a lamp"}}]}
    studio = Studio(tmp_path, (*words, *own))
    client = TestClient(create_app(studio), base_url="http://127.0.0.1")
    client.cookies.set(studio.access.cookie, studio.access.token)
    assert "hyde.endpoint sends texts to a server: press Search" in client.get("/search?q=lamps").text
    assert server.requests == []
    assert '<ol class="hits">' in client.post("/search", data={"csrf": studio.access.csrf, "q": "lamps"}).text
    assert server.requests


@pytest.mark.parametrize("docno", ["../../etc/passwd", "/etc/passwd", "a\0b", ""])
def test_a_topic_names_documents_and_no_other_files(place, docno: str) -> None:
    studio, client = place
    said = {"csrf": studio.access.csrf, "query": "q", "relevant": [docno]}
    assert client.post("/search/topic", data=said).status_code == 422
    said = {"csrf": studio.access.csrf, "query": "a\0b"}
    assert client.post("/search/topic", data=said).status_code == 422
    assert not studio.searching.topics_file.exists()


def test_words_are_split_as_in_a_shell() -> None:
    assert split("+exp=all 'tune=[a, b]'") == ["+exp=all", "tune=[a, b]"]
    with pytest.raises(ConfigError, match="not an override"):
        split("run --all")


def test_a_read_only_studio_searches_with_presets_only(words: tuple[str, ...], tmp_path: Path) -> None:
    studio = Studio(tmp_path, words, Session(read_only=True))
    client = TestClient(create_app(studio), base_url="http://127.0.0.1")
    client.cookies.set(studio.access.cookie, studio.access.token)
    refused = client.get(url("/search", q="lamps", left="+exp=lexical_only p4=on", right="+exp=lexical_only"))
    assert "presets only" in refused.text
    found = client.get(url("/search", q="lamps", left="+exp=lexical_only", right="+exp=lexical_only"))
    assert found.text.count('<ol class="hits">') == 2
    assert "Save as a query" not in found.text
