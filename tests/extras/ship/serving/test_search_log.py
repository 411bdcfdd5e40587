"""What is logged of searches, over HTTP and MCP, and that nothing is by default."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from pathlib import Path

import pytest
from mcp import Client

from ragbench.base.types import ConfigError
from ragbench.extras.collect import search_log as topics_log
from ragbench.extras.ship.commands import serve
from ragbench.extras.ship.serving.mcp import create_server
from ragbench.extras.ship.serving.search_log import SearchLog
from ragbench.extras.ship.serving.service import SearchService
from tests.naming import naming

QUERY = "how do programs prove their identity"


@pytest.fixture
def logged(small_bundle: Path, tmp_path: Path):
    path = tmp_path / "searches.jsonl"
    service = SearchService(small_bundle, log=SearchLog(path))
    yield service, path
    service.close()


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_log_of_mcp_has_one_session(logged) -> None:
    service, path = logged

    async def talk() -> str:
        async with Client(create_server(service)) as client:
            await client.call_tool("search", {"query": QUERY})
            options = {"top_n": 1, "format": "json"}
            result = await client.call_tool("search", {"query": "mail me@example.org", "options": options})
            docno = result.structured_content["hits"][0]["docno"]
            await client.call_tool("read", {"path": docno})
            await client.call_tool("search", {"query": " "})
            return docno

    docno = asyncio.run(talk())
    searched, read = lines(path)
    assert searched["query"] == QUERY and len(searched["shown"]) >= 1
    assert read == {"time": read["time"], "session": searched["session"], "opened": docno}
    assert set(searched) == {"time", "session", "query", "shown"} and len(searched["session"]) == 16
    assert path.stat().st_mode & 0o777 == 0o600
    (search,) = topics_log.read(path).searches
    assert search.query == QUERY and search.clicked == {docno}


def test_log_of_http_keeps_no_address(logged, ask) -> None:
    service, path = logged

    async def talk(client):
        await client.post("/search", json={"query": QUERY, "top_n": 2}, headers={"X-Forwarded-For": "81.2.3.4"})
        await client.get("/documents/security")

    ask(service, talk)
    searched, *_ = lines(path)
    assert set(searched) == {"time", "session", "query", "shown"}
    assert len(searched["session"]) == 16
    assert "81.2.3.4" not in path.read_text() and "127.0.0.1" not in path.read_text()


def test_log_loses_only_the_line_of_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    log = SearchLog(path)
    log.log_search("s", "one", ["a"])
    whole = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda handle, content: whole(handle, content[:30]))
        log.log_search("s", "two", ["a"])
    log.log_search("s", "three", ["a"])
    with path.open("a") as stream:
        stream.write('{"time": "2026-')  # of a service that was killed
    SearchLog(path).log_search("s", "four", ["a"])
    read = topics_log.read(path)
    assert [search.query for search in read.searches] == ["one", "three", "four"]
    assert read.skipped == {"not JSON": 2}


def test_log_that_cannot_be_written_is_refused_at_once_and_later_reported_once(tmp_path: Path, caplog) -> None:
    with pytest.raises(ConfigError, check=naming("a.txt", ".jsonl")):
        SearchLog(tmp_path / "a.txt")
    with pytest.raises(ConfigError, check=naming("a.jsonl")):
        SearchLog(tmp_path / "no" / "a.jsonl")
    (tmp_path / "logs").mkdir()
    log = SearchLog(tmp_path / "logs" / "a.jsonl")
    (tmp_path / "logs" / "a.jsonl").unlink()
    (tmp_path / "logs").rmdir()
    with caplog.at_level(logging.ERROR):
        log.log_search("s", "x", ["a"])
        log.log_read("s", "a")
    assert len(caplog.records) == 1


def test_log_is_off_by_default() -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert parser.parse_args(["bundle"]).log is None
