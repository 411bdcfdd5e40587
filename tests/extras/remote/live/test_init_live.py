"""From a search that runs to a verdict: `init --live` asks it one query and writes the arm `today`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jmespath
import pytest

from ragbench.base.types import LiveError
from ragbench.commands import cli
from ragbench.config import project
from ragbench.extras.remote.live.response_mapping import infer_mapping
from ragbench.results import measurements, store
from tests.tables import rows

HANDBOOK = Path(__file__).parents[3] / "data" / "phases"
QUICK = ("latency.queries=2", "latency.rounds=1", "latency.warmup=0", "latency.cold_start=false")


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(HANDBOOK, tmp_path / "notes")
    rows = ["how do programs prove their identity,authentication.md", "counters,metrics.md"]
    (tmp_path / "asked.csv").write_text("\n".join(["text,relevant", *rows]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("answer", "keys", "matched"), rows("remote_live_init_live", "init_finds_the_hits_of_an_answer")
)
def test_init_finds_the_hits_of_an_answer(answer, keys: dict[str, str], matched: int) -> None:
    proposal = infer_mapping(answer, lambda name: name.partition("#")[0] in ("a.md", "b.md"))
    assert len(jmespath.search(proposal.keys["hits"], answer)) == proposal.hits
    assert (proposal.keys, proposal.matched) == (keys, matched)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [({"hits": []}, "has no list of hits"), ("nothing", "no list of hits"), ([{"n": 1}], "names no document")],
)
def test_init_refuses_an_answer_without_hits(answer, reason: str) -> None:
    with pytest.raises(LiveError, match=reason):
        infer_mapping(answer, lambda name: False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_init_and_run_give_a_verdict_on_a_live_search(workdir: Path, server, capsys) -> None:
    names = ["/help/metrics.html", "/help/authentication.html", "/blog/news.html"]
    server.answer = lambda path, parameters, body: {"results": [{"url": name, "score": 1.0} for name in names]}
    assert cli.main(["init", "notes", "--yes", "--queries", "asked.csv", "--live", f"{server.url}/search"]) == 0
    out = capsys.readouterr().out
    assert f"queried {server.url}/search for '" in out
    proposed = "live.hits=results, live.document=url, live.prefix=help, live.score=score"
    assert f"3 hits, 2 of them match documents here ({proposed})" in out
    assert server.requests[0][0] == "/search" and server.requests[0][1]["q"]
    arms = project.read(workdir / "ragbench.yaml").arms
    assert list(arms) == ["today", "baseline", "recommended"]

    assert "next: ragbench run --trust" in out
    command = ["run", "tracking.enabled=false", *QUICK, "statistics.draws=1000"]
    assert cli.main(command) == 2
    assert "add --trust if you agree" in capsys.readouterr().err
    assert cli.main([*command, "--trust"]) == 0
    results = measurements.load(store.latest(workdir / "results"))
    assert results.arms == ["today", "baseline", "recommended"]
    assert sorted(results.values("today", "RR")) == pytest.approx([0.5, 1.0])  # authentication comes second
    assert "Unplaced@10" in set(results.per_query["measure"])


def test_init_takes_queries_from_a_log(workdir: Path, server, capsys) -> None:
    server.answer = lambda path, parameters, body: {"hits": [{"path": "metrics.md"}]}
    searches = [{"query": f"question {word}", "session": word} for word in ("one", "two", "three")]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, searches)), encoding="utf-8")
    assert cli.main(["init", "notes", "--yes", "--log", "log.jsonl", "--live", f"{server.url}/?text={{query}}"]) == 0
    assert "topics.jsonl: 3 queries, 0 with an answer, 3 without" in capsys.readouterr().out
    assert project.read(workdir / "ragbench.yaml").values["data.queries"] == "topics.jsonl"
    assert "text" in server.requests[0][1]


def test_init_without_queries_offers_the_log(workdir: Path, server, capsys) -> None:
    server.answer = lambda path, parameters, body: {"hits": [{"path": "metrics.md"}]}
    assert cli.main(["init", "notes", "--yes", "--live", server.url]) == 0
    out = capsys.readouterr().out
    assert (
        "next: ragbench topics from-log FILE" in out and "topics" not in project.read(workdir / "ragbench.yaml").values
    )


def test_init_writes_nothing_for_a_dead_search(workdir: Path, server, capsys) -> None:
    server.failures = [(404, {})] * 9
    assert cli.main(["init", "notes", "--yes", "--live", server.url]) == 2
    assert "did not answer" in capsys.readouterr().err and not (workdir / "ragbench.yaml").exists()
