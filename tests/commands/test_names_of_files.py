"""Screens and files for people name a document of a folder by its file, not by an id without extension."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Topic
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.extras.collect.topics.collected import CollectedTopics


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Notes of which two have one text, and a query that one of them has word for word."""
    (tmp_path / "notes" / "guide").mkdir(parents=True)
    for name in ("proxy", "copy"):
        page = "# Proxy\n\nSee [ports](ports.md).\n\n## Port\n\nThe port of the proxy is number eighty.\n"
        (tmp_path / "notes" / "guide" / f"{name}.md").write_text(page, "utf-8")
    (tmp_path / "notes" / "guide" / "ports.md").write_text("# Ports\n\nAll ports of the network.\n", "utf-8")
    queries = "text,relevant,split\nthe port of the proxy is number eighty,guide/proxy.md#Port,test\n"
    (tmp_path / "queries.csv").write_text(queries, "utf-8")
    data = [f"data.corpus={tmp_path / 'notes'}", f"data.queries={tmp_path / 'queries.csv'}"]
    return ["data=vault", *data, f"paths.results={tmp_path}"]


def bare(text: str) -> list[str]:
    """Names of the notes that have no extension."""
    return re.findall(r"guide/(?:proxy|copy|ports)(?!\.md)", text)


def test_search_and_check_name_files(words: list[str], tmp_path: Path, capsys) -> None:
    assert cli.main(["search", "port of the proxy", "exp=lexical_only", f"paths.index={tmp_path}", *words]) == 0
    out = capsys.readouterr().out
    assert "guide/proxy.md" in out and not bare(out)
    cli.main(["data", "check", "--json", *words])
    out = capsys.readouterr().out
    assert {"duplicate-document", "verbatim-query"} <= {found["code"] for found in json.loads(out)}
    assert "guide/proxy.md" in out and not bare(out)


def test_collected_topics_name_files_that_are_read_again(words: list[str], tmp_path: Path, capsys) -> None:
    topics = (Topic("a", "which ports", "factual", "test"), Topic("b", "eighty", "factual", "test"))
    documents, sections = {"a": {"guide/ports": 2}, "b": {"guide/proxy": 1}}, {"b": {"guide/proxy#port": 1}}
    collected = CollectedTopics(topics, documents, sections, {})
    out = tmp_path / "topics.jsonl"
    collected.by_file(composition.compose(words).documents()).write(out)
    text = out.read_text("utf-8")
    assert '["guide/ports.md"]' in text and '["guide/proxy.md#port"]' in text
    cli.main(["data", "check", "--json", *words[:2], f"data.queries={out}", words[-1]])
    assert "unknown-" not in capsys.readouterr().out
