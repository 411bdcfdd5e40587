"""Searches on the live index."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench import app
from ragbench.errors import ConfigError
from ragbench.studio.app import Studio, create_app, url
from ragbench.studio.guard import Access
from ragbench.studio.searching import split


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
    from ragbench.topics.load import load

    rest = [word for word in words if not word.startswith(("data.qrels", "data.queries"))]
    benchmark = load(app.compose([*rest, f"data.queries={studio.searching.topics_file}"]).config)
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
        ({"q": "a", "modified_after": "yesterday"}, "modified_after"),
        ({"q": "x" * 2001}, "longer than"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(place, asked: dict[str, str], said: str) -> None:
    _, client = place
    page = html.unescape(client.get(url("/search", **asked)).text)
    assert "Not possible." in page
    assert said in page


def test_words_are_split_as_in_a_shell() -> None:
    assert split("+exp=all 'tune=[a, b]'") == ["+exp=all", "tune=[a, b]"]
    with pytest.raises(ConfigError, match="not an override"):
        split("run --all")


def test_a_read_only_studio_searches_with_presets_only(words: tuple[str, ...], tmp_path: Path) -> None:
    studio = Studio(tmp_path, words, Access(read_only=True))
    client = TestClient(create_app(studio), base_url="http://127.0.0.1")
    client.cookies.set(studio.access.cookie, studio.access.token)
    refused = client.get(url("/search", q="lamps", left="+exp=lexical_only p4=on", right="+exp=lexical_only"))
    assert "presets only" in refused.text
    found = client.get(url("/search", q="lamps", left="+exp=lexical_only", right="+exp=lexical_only"))
    assert found.text.count('<ol class="hits">') == 2
    assert "Make this a topic" not in found.text
