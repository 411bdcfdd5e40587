"""A second bundle takes part in a share of the searches, and the log says which one people prefer."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

import ragbench
from ragbench.base.errors import ConfigError
from ragbench.benchmark.search_log import Search, read
from ragbench.commands import cli
from ragbench.extras.ship.interleaved import preference
from ragbench.extras.ship.serving.canary import CanarySpec, Draft
from ragbench.extras.ship.serving.mcp import create_server
from ragbench.extras.ship.serving.search_log import SearchLog
from ragbench.extras.ship.serving.service import SearchService

QUERY = "how do programs prove their identity"


@pytest.fixture
def hits(small_bundle: Path):
    with ragbench.load(small_bundle) as docs:
        found = docs.search(QUERY, 6)
    distinct = list({hit.docno: replace(hit, guaranteed=False) for hit in found}.values())
    assert len(distinct) >= 4
    return distinct


def test_teams_take_turns_and_no_document_comes_twice(hits) -> None:
    for seed in range(20):
        drafted = Draft(random.Random(seed))(hits, hits[::-1], 0)
        assert sorted(hit.docno for hit in drafted.hits) == sorted(hit.docno for hit in hits)
        assert [hit.rank for hit in drafted.hits] == list(range(1, len(hits) + 1))
        teams = [drafted.teams[hit.docno] for hit in drafted.hits]
        pairs = [set(teams[place : place + 2]) for place in range(0, len(teams) - 1, 2)]
        assert all(pair == {"a", "b"} for pair in pairs)
        best = {"a": hits[0].docno, "b": hits[-1].docno}
        assert drafted.hits[0].docno == best[teams[0]]


def test_equal_bundles_win_equally_often(hits) -> None:
    """The same lists on both sides: which team has the first document is a coin."""
    teams = [Draft(random.Random(seed))(hits, hits, 0).teams[hits[0].docno] for seed in range(400)]
    assert 160 < teams.count("b") < 240


def test_what_the_query_names_belongs_to_neither(hits) -> None:
    drafted = Draft(random.Random(1))(hits, hits[::-1], 2)
    assert [hit.docno for hit in drafted.hits[:2]] == [hit.docno for hit in hits[:2]]
    assert [drafted.teams[hit.docno] for hit in hits[:2]] == ["-", "-"]


def test_a_canary_that_finds_nothing_leaves_the_answer(hits) -> None:
    assert [hit.docno for hit in Draft(random.Random(1))(hits, [], 0).hits] == [hit.docno for hit in hits]


def test_from_the_searches_of_people_to_a_verdict(small_bundle: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "searches.jsonl"
    service = SearchService(small_bundle, log=SearchLog(path), canary=CanarySpec(small_bundle, 1.0))

    async def person() -> None:
        async with Client(create_server(service)) as client:
            await client.call_tool("search", {"query": QUERY, "top_n": 4})
            row = json.loads(path.read_text().splitlines()[-1])
            assert len(row["teams"]) == len(row["shown"]) and len(set(row["versions"])) == 1
            await client.call_tool("get_document", {"docno": row["shown"][row["teams"].index("b")]})

    for _ in range(10):
        asyncio.run(person())
    service.close()
    assert cli.main(["compare", "canary", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["searches"], said["canary"], said["first"], said["verdict"]) == (10, 10, 0, "the canary is preferred")
    assert said["difference"]["n"] == 10
    assert cli.main(["compare", "canary", str(path)]) == 0
    assert "difference +1.000 [+0.295, +1.000]: the canary is preferred" in capsys.readouterr().out
    assert len(read(path).searches) == 10


def test_without_a_share_the_first_answers_alone_and_is_not_marked(small_bundle: Path, tmp_path: Path, ask) -> None:
    path = tmp_path / "searches.jsonl"
    service = SearchService(small_bundle, log=SearchLog(path), canary=CanarySpec(small_bundle, 0.0))
    ask(service, lambda client: client.post("/search", json={"query": QUERY}))
    service.close()
    assert "teams" not in json.loads(path.read_text())
    assert cli.main(["compare", "canary", str(path)]) == 2


def test_wins_are_counted_by_session_and_for_the_latest_versions() -> None:
    def search(session: str, opened: str, versions: tuple[str, str] = ("1", "2")) -> Search:
        return Search("q", session, shown=("x", "y", "z"), clicked=set(opened), teams="ab-", versions=versions)

    old = [search("s", "y", ("0", "2"))] * 3
    found = preference(
        [*old, search("s", "x"), search("s", "y"), search("t", "y"), search("u", "z"), search("v", "xy")]
    )
    assert (found.searches, found.first, found.canary, found.ties, found.others) == (5, 1, 2, 1, 3)
    assert (found.difference.n, found.difference.mean) == (3, pytest.approx((0 + 1 + 0) / 3))
    assert found.verdict == "no preference is shown"


def test_a_few_equal_sessions_prove_nothing() -> None:
    def verdict(n: int) -> str:
        each = {"shown": ("x", "y"), "clicked": {"y"}, "teams": "ab"}
        return preference([Search("q", f"session {number}", **each) for number in range(n)]).verdict

    assert (verdict(0), verdict(4), verdict(10)) == (*["no preference is shown"] * 2, "the canary is preferred")


def test_what_cannot_be_a_canary_is_refused(small_bundle: Path, tmp_path: Path, capsys) -> None:
    with pytest.raises(ConfigError, match="--canary is judged by what users open: add --log FILE"):
        SearchService(small_bundle, canary=CanarySpec(small_bundle, 0.5))
    log = ["--log", str(tmp_path / "a.jsonl")]
    words = ["serve", str(small_bundle), "--port", "0", "--canary", str(small_bundle), *log]
    for more, said in (
        (["--share", "many"], "--share must be a share such as 5% or 0.05, got many"),
        (["--share", "500%"], "share must be"),
        (["--watch", "--corpus", str(tmp_path)], "omit --corpus"),
    ):
        assert cli.main([*words, *more]) == 2
        assert said in capsys.readouterr().err
