from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.commands import cli
from ragbench.corpus.reader import read_vault
from ragbench.extras.collect import search_log as log
from ragbench.extras.collect.search_log import LoggedSearch
from ragbench.extras.collect.topics import from_log
from ragbench.extras.collect.topics.from_log import Clicks, LogSpec, choose, finder, proportional, rates
from tests.naming import naming


def rows(path: Path, *objects: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in objects), encoding="utf-8")
    return path


def nobody(_: str) -> None:
    return None


def test_log_columns_have_usual_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('Search Term;Impressions\nrotate keys;1,200\n"log; in";3\n', encoding="utf-8")
    assert [(search.query, search.count) for search in log.read(tmp_path / "a.csv").searches] == [
        ("rotate keys", 1200),
        ("log; in", 3),
    ]
    rows(tmp_path / "b.ndjson", {"q": "x y", "user": 7, "timestamp": 1767225600000, "results": ["a", "b"]})
    (search,) = log.read(tmp_path / "b.ndjson").searches
    assert search == LoggedSearch("x y", "7", 1767225600.0, ("a", "b"))


def test_log_click_belongs_to_latest_search_of_session(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "a.jsonl",
        {"time": "2026-01-01T10:00:05Z", "session": "s", "opened": "b"},
        {"time": "2026-01-01T10:00:00Z", "session": "s", "query": "first", "shown": ["a"]},
        {"time": "2026-01-01T10:00:03Z", "session": "s", "query": "second", "shown": ["a", "b"]},
        {"time": "2026-01-01T10:00:06Z", "session": "other", "opened": "b"},
    )
    read = log.read(path)
    assert [(search.query, search.clicked) for search in read.searches] == [("first", set()), ("second", {"b"})]
    assert read.skipped == {"opened without a search": 1}


def test_log_skips_personal_data_and_unfinished_queries(tmp_path: Path) -> None:
    typed = [{"session": "s", "query": text} for text in ("ro", "rotate", "rotate a key", "other")]
    path = rows(tmp_path / "a.jsonl", *typed, {"query": "mail me@example.org"}, {"query": "??"})
    read = log.read(path)
    assert [search.query for search in read.searches] == ["rotate a key", "other"]
    assert read.skipped == {"unfinished": 2, "with a mail address": 1, "without a word": 1}


def test_log_keeps_query_continued_after_a_minute(tmp_path: Path) -> None:
    typed = [{"session": "s", "time": 60 * n, "query": text} for n, text in enumerate(("rotate", "rotate a key"))]
    assert len(log.read(rows(tmp_path / "a.jsonl", *typed)).searches) == 2


def test_log_merges_spellings_and_counts_session_once(tmp_path: Path) -> None:
    asked = [("a", "Rotate Keys"), ("a", "rotate keys"), ("b", "keys: rotate?"), ("c", "rotate keys"), ("d", "log in")]
    path = rows(tmp_path / "a.jsonl", *({"session": session, "query": query} for session, query in asked))
    made = choose(log.read(path), LogSpec(limit=5), nobody)
    assert made.queries == 2 and made.searches == 5
    assert {(topic.text, topic.type, topic.provenance) for topic in made.topics} == {
        ("Rotate Keys", "frequent", "log"),
        ("log in", "rare", "log"),
    }
    (only,) = choose(log.read(path), LogSpec(least_sessions=2), nobody).topics
    assert only.text == "Rotate Keys"
    with pytest.raises(BenchmarkError, check=naming("9 sessions")):
        choose(log.read(path), LogSpec(least_sessions=9), nobody)


def test_log_sample_has_quota_of_rare_queries() -> None:
    searches = [LoggedSearch(f"often {number}", count=number + 2) for number in range(40)]
    searches += [LoggedSearch(f"once {number}") for number in range(40)]
    read = log.Log(tuple(searches), {})
    made = choose(read, LogSpec(limit=20, tail=0.25), nobody)
    assert sum(topic.type == "rare" for topic in made.topics) == 5 and len(made.topics) == 20
    assert made.topics == choose(read, LogSpec(limit=20, tail=0.25), nobody).topics
    assert {topic.split for topic in made.topics} == {"train", "test"}


def test_proportional_draws_by_size() -> None:
    sizes = np.array([100.0, 1, 2, 3, 4])
    drawn = np.zeros(5)
    for seed in range(2000):
        places = proportional(sizes, 3, np.random.default_rng(seed))
        assert len(set(places)) == 3
        drawn[places] += 1
    # The first is certain; two of the others, of ten parts in all.
    assert drawn / 2000 == pytest.approx([1, 0.2, 0.4, 0.6, 0.8], abs=0.04)
    assert proportional(sizes, 9, np.random.default_rng(0)) == [0, 1, 2, 3, 4]


def test_rates_fall_with_rank() -> None:
    searches = [LoggedSearch("a", shown=("x", "y", "z"), clicked={"x"}, count=6)]
    searches += [
        LoggedSearch("b", shown=("x", "y", "z"), clicked={"z"}, count=3),
        LoggedSearch("c", shown=("x",), count=1),
    ]
    # Opened 6 of 10, 0 of 9, 3 of 9; the last two pooled: 3 of 18.
    assert rates(searches).tolist() == pytest.approx([0.6, 1 / 6, 1 / 6])


def test_clicks_are_relevant_at_expected_rate() -> None:
    clicks = Clicks()
    by_rank = np.array([0.5, 0.1])
    clicks.add(LoggedSearch("q", shown=("first", "second"), clicked={"second"}, count=8), by_rank)
    clicks.add(LoggedSearch("q", shown=("first", "second"), clicked={"first"}, count=3), by_rank)
    assert clicks.expected == pytest.approx({"first": 5.5, "second": 1.1})
    assert clicks.relevant() == ["second"]  # 8 of 1.1; the first 3 of 5.5


@pytest.mark.parametrize(
    "name", ["guides/keys.md", "https://docs.example.org/guides/keys/", "/guides/keys.html", "keys"]
)
def test_finder_finds_documents_by_names_of_logs(tmp_path: Path, name: str) -> None:
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "keys.md").write_text("# Keys\n", encoding="utf-8")
    assert finder(read_vault(tmp_path).documents)(name) == "guides/keys"


def test_log_keeps_similar_queries_in_one_split() -> None:
    searches = tuple(LoggedSearch(text) for text in ("rotate all api keys now", "rotate api keys now", "log in"))
    made = choose(log.Log(searches, {}), LogSpec(), nobody)
    groups = {topic.text: topic.group for topic in made.topics}
    assert groups["rotate api keys now"] == groups["rotate all api keys now"] != ""
    assert groups["log in"] == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"time": "noon", "query": "x"}', "a.jsonl:1: the time 'noon' cannot be read"),
        ('{"count": 0, "query": "x"}', "a.jsonl:1: the count must be a whole number of at least 1, got '0'"),
        ('{"shown": "[x", "query": "x"}', "a.jsonl:1: column 'shown' is not a list in JSON"),
        ('{"shown": [1], "query": "x"}', "a.jsonl:1: column 'shown' must be a list of names"),
        ('{"query": 5}', "a.jsonl:1: the query must be a text, got 5"),
        ('{"words": "x"}', "a.jsonl:1 has neither a query nor what was opened"),
        ('{"opened": "x", "session": "s"}', "holds no query: name its column query, text"),
    ],
)
def test_log_refuses_other_files_with_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError, check=naming(reason)):
        log.read(tmp_path / "a.jsonl")


@pytest.mark.slow
def test_from_log_command_writes_readable_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("keys", "login", "lamps"):
        (tmp_path / "notes" / f"{name}.md").write_text(f"# {name}\n\nAbout {name}.\n", encoding="utf-8")
    shown = ["login", "keys"]
    searches = [{"session": f"s{n}", "query": "rotate keys", "shown": shown, "clicked": "keys"} for n in range(3)]
    searches += [{"session": "t", "query": "gone", "shown": ["old"], "clicked": "old", "count": 2}]
    path = rows(tmp_path / "log.jsonl", *searches, {"query": "mail a@b.org"})
    data = ["data=vault", f"data.corpus={tmp_path / 'notes'}"]
    out = tmp_path / "topics.jsonl"
    assert cli.main(["topics", "from-log", str(path), *data, "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    assert "warning: 1 searches with a mail address are excluded" in printed.err
    assert "warning: 1 of 2 relevant documents of the log are not in this collection" in printed.err
    summary = json.loads(printed.out)
    assert (summary["topics"], summary["queries"], summary["judged_by_clicks"]) == (2, 2, 1)
    assert cli.main(["topics", *data, f"data.queries={out}", "--json"]) == 0
    assert {row["provenance"] for row in json.loads(capsys.readouterr().out)} == {"log"}
    assert cli.main(["topics", "from-log", str(path), *data, "--out", str(out), "--replace"]) == 0
    assert "weak judgments from clicks: 1 topic (opened by rank: " in capsys.readouterr().out


def test_from_log_command_refuses_impossible_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topics", "from-log", "x.csv", "--limit", "0"]) == 2
    assert "--limit must be at least 1, got 0" in capsys.readouterr().err
    assert cli.main(["topics", "from-log"]) == 2
    assert "file is missing: ragbench topics from-log --help" in capsys.readouterr().err
    with pytest.raises(ConfigError):
        from_log.LogSpec(tail=2.0)
