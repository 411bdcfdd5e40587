"""A search that runs elsewhere is an arm like any other: measured, compared, reported, and failing when it fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.base.types import ArmsFailed, ConfigError, LiveError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.config.benchmark import load
from ragbench.config.settings import Settings
from ragbench.evaluation.measures import UNPLACED
from ragbench.experiment.run import run
from ragbench.extras.remote.live.stages import LiveCommand, LiveHttp, LiveMcp
from ragbench.extras.report import html
from ragbench.report import tables
from ragbench.results import measurements
from ragbench.results.measurements import ARMS
from tests.naming import naming

HANDBOOK = Path(__file__).parents[3] / "data" / "phases"
QUESTIONS = (
    ("how do programs prove their identity", "authentication.md"),
    ("counters", "metrics.md"),
    ("copies of the data at night", "backup.md"),
    ("why is a request slow", "slow-requests.md"),
)
FAST = ("live.per_second=1000.0",)


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    rows = [f"{text},{docno}" for text, docno in QUESTIONS]
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant", *rows]), encoding="utf-8")
    return ["data=vault", f"data.corpus={HANDBOOK}", f"data.queries={tmp_path / 'queries.csv'}"]


@pytest.fixture
def arm(settings_of, tmp_path: Path, data: list[str]):
    def make(name: str, *overrides: str) -> Settings:
        return settings_of(tmp_path / "results", *data, f"name={name}", *overrides)

    return make


def measured(*arms: Settings) -> measurements.Measurements:
    return run(arms, load(arms[0].config))


def documents_by_query(results_: measurements.Measurements, arm: str) -> dict[str, list[str]]:
    return {qid: [name for name, _ in hits] for qid, hits in results_.run(arm).items()}


@pytest.fixture
def service(small_bundle: Path):
    command = [sys.executable, "-m", "ragbench", "serve", str(small_bundle), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield re.search(r"http://\S+(?=;)", process.stdout.readline())[0]
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_served_bundle_is_measured_as_its_pipeline(arm, service: str) -> None:
    served = arm("served", "live=ragbench", f"live.url={service}/search", *FAST)
    both = measured(arm("ours", "cut.top_n=10"), served)
    assert documents_by_query(both, "served") == documents_by_query(both, "ours")
    assert set(both.latency.loc[both.latency["arm"] == "served", "stage"]) == {"live (end to end)", "total"}
    page = html.render(both)
    assert "live (end to end)" in page and f"ask {service}/search for 10 hits, end to end" in page


@pytest.mark.slow
def test_live_arm_beside_cold_starts_is_timed_and_reported(
    arm, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No process is started for the search that runs elsewhere, so it has no memory: the page says nothing there."""
    cold = "latency.cold_start=true"
    today = arm("today", "live=ragbench", f"live.url={service}/search", cold, *FAST)
    results_ = measured(arm("ours", cold), today)
    assert set(results_.peak_memory_mb) == {"ours"}
    parts = html.Parts()
    page = html.render(results_, parts)
    assert parts.missing == {} and ARMS["memory"].head[0] in page
    tables.show(results_)
    assert "today" in capsys.readouterr().out


def opensearch(path: str, parameters: dict, body: dict) -> dict:
    assert path == "/docs/_search" and body["size"] == 10
    query = body["query"]["multi_match"]["query"]
    names = ["metrics.md", "https://other.org/pages/unknown/", "authentication.md", "metrics.md"]
    hits = [{"_score": 9.0 - n, "_source": {"path": name, "text": query}} for n, name in enumerate(names)]
    return {"took": 3, "hits": {"total": {"value": len(hits)}, "hits": hits}}


def test_opensearch_answers_are_read(arm, server) -> None:
    server.answer = opensearch
    results_ = measured(arm("today", "live=opensearch", f"live.url={server.url}/docs/_search", *FAST))
    ranked = documents_by_query(results_, "today")
    assert set(map(tuple, ranked.values())) == {("metrics", "?https://other.org/pages/unknown/", "authentication")}
    reciprocal = results_.values("today", "RR")
    assert sorted(reciprocal) == pytest.approx([0, 0, 1 / 3, 1])  # a hit that could not be placed keeps its rank
    assert set(results_.values("today", UNPLACED)) == {0.1}
    top = results_.arm_tables(measurements.TOP, ("qid", "rank", "docno", "title"))
    assert list(top["docno"][:3]) == ["metrics", "https://other.org/pages/unknown/", "authentication"]


def test_meilisearch_answers_are_read_and_the_token_not_stored(
    arm, server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (HANDBOOK / "queues.md").read_text(encoding="utf-8").split("\n\n")[-1]
    server.answer = lambda path, parameters, body: {
        "hits": [{"url": "/help/elsewhere", "content": text, "_rankingScore": 0.9}],
        "query": body["q"],
    }
    monkeypatch.setenv("SEARCH_TOKEN", "t0p-s3cret")
    url = f"live.url={server.url}/indexes/docs/search"
    keys = ("live.token_variable=SEARCH_TOKEN", "live.headers={X-Api-Key: env:SEARCH_TOKEN}")
    results_ = measured(arm("meili", "live=meilisearch", url, *keys, *FAST))
    assert {name for names in documents_by_query(results_, "meili").values() for name in names} == {"queues"}
    assert {headers["Authorization"] for _, _, headers, _ in server.requests} == {"Bearer t0p-s3cret"}
    assert {headers["X-Api-Key"] for _, _, headers, _ in server.requests} == {"t0p-s3cret"}
    html.write(results_)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"t0p-s3cret" not in path.read_bytes(), path


def test_mcp_server_at_an_address_is_an_arm(arm, mcp_address: str) -> None:
    fields = ("live.hits=notes", "live.document=file", "live.max_unmatched=1", "latency.enabled=false")
    results_ = measured(arm("agent", "live=mcp", f"live.url={mcp_address}", *fields, *FAST))
    assert {names[0] for names in documents_by_query(results_, "agent").values()} == {"?guides/schedules.md"}
    assert len(documents_by_query(results_, "agent")) == len(QUESTIONS)


def test_failing_arm_has_no_score_and_the_others_have(arm, server) -> None:
    server.failures = [(500, {})] * 100
    down = arm("down", "live=http", f"live.url='{server.url}/?q={{query}}'", "live.retries=1", *FAST)
    with pytest.raises(ArmsFailed, check=naming("down")):
        measured(arm("ours", "latency.enabled=false"), down)
    measured_arms = [path.parent.name for path in (down.results / "runs").glob("*/arms/*/per_query.parquet")]
    assert len(measured_arms) == 1 and measured_arms[0].startswith("ours")
    with pytest.raises(LiveError, check=naming("asked 2 times")):
        measured(down)


@pytest.mark.slow
def test_rate_limit_is_no_part_of_the_time(arm, server) -> None:
    server.answer = lambda path, parameters, body: {"hits": []}
    slow = arm("slow", "live=http", f"live.url='{server.url}/?q={{query}}'", "live.per_second=4.0", "latency.rounds=2")
    total = measured(slow).latency.set_index("stage")["p50"]["total"]
    assert total < 250  # milliseconds between two requests


def test_live_search_refuses_masked_topics(arm, server) -> None:
    live = arm("today", "live=http", f"live.url='{server.url}/?q={{query}}'", "topics=derived")
    with pytest.raises(ConfigError, check=naming("masked")):
        measured(live)


def test_live_arm_is_not_exported(arm, server, capsys: pytest.CaptureFixture[str]) -> None:
    results_ = measured(arm("today", "live=http", f"live.url='{server.url}/?q={{query}}'", "latency.enabled=false"))
    assert cli.main(["export", str(results_.folder)]) == 2
    assert "arm 'today' is a live search, which runs elsewhere already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: LiveHttp(url="http://x/search", hits="h", document="d"), "url or body must hold {query}"),
        (lambda: LiveHttp(url="http://me:pw@x/{query}", hits="h", document="d"), "url must hold no name or password"),
        (lambda: LiveHttp(url="ftp://x/{query}", hits="h", document="d"), "url must begin with http"),
        (lambda: LiveHttp(url="http://x/{query}", hits="h[", document="d"), "hits must be a JMESPath expression"),
        (lambda: LiveHttp(url="http://x/{query}", hits="h"), "document must name the field of a hit"),
        (lambda: LiveCommand(program=(), hits="h", document="d"), "program must hold at least 1"),
        (lambda: LiveMcp(hits="h", document="d"), "url or program must be given, and only one"),
    ],
)
def test_unusable_live_settings_are_one_sentence(make, reason: str) -> None:
    with pytest.raises(ConfigError, check=naming(reason)):
        make()


def test_live_stage_answers_state_by_state(index, server) -> None:
    from ragbench.base.rankings import QueryState
    from ragbench.base.types import Query

    server.answer = lambda path, parameters, body: {"hits": [{"path": parameters["q"]}, {"path": "index"}]}
    stage = LiveHttp(url=f"{server.url}/?q={{query}}", hits="hits", document="path", per_second=1e6)
    states = [QueryState(Query("a", "guides/schedules")), QueryState(Query("b", "nowhere at all"))]
    first, second = stage(states, index)
    assert [name for _, _, name in first.hits_with_unmatched()] == ["", ""]
    assert second.unmatched == ((0, "nowhere%20at%20all"),)
    assert second.notes == ("1 of 2 hits are in no document of the collection: nowhere%20at%20all",)
    assert [stage([state], index)[0] for state in states] == [first, second]


def test_benchmark_and_pipeline_know_a_live_search(arm) -> None:
    live = arm("x", "live=ragbench", "p6=on")
    assert live.pipeline.live and [name for name, _ in live.pipeline] == ["live"]
    assert not arm("y").pipeline.live
    assert isinstance(load(live.config), Benchmark)


def test_live_search_of_other_names_is_refused_and_found_with_their_prefix(arm, server) -> None:
    names = {query: f"notes/{docno}" for query, docno in QUESTIONS}
    server.answer = lambda path, parameters, body: {"hits": [{"path": names[parameters["q"]]}]}
    words = ("live=http", f"live.url={server.url}/?q={{query}}", "live.hits=hits", "live.document=path", *FAST)
    with pytest.raises(LiveError, match=r"it names notes/.*, the collection .*live\.prefix"):
        measured(arm("theirs", *words))
    found = measured(arm("theirs", *words, "live.prefix=notes"))
    assert found.values("theirs", "RR").eq(1.0).all()
