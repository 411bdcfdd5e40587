"""Every example of `--help` is run, in one project: a handbook, its queries, three runs and what examples name besides.

An example ends with 0, or as `OTHER_ENDS` says; a server answers until Ctrl-C. Servers and places of `stands_for` are
replaced by those of this machine.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragbench import commands
from ragbench.commands import cli
from ragbench.corpus.reader import read_vault
from ragbench.models import bundled
from tests.extras.collect.topics.conftest import ChatServer
from tests.extras.remote.live.conftest import Server
from tests.journeys.test_printed_commands import examples

HANDBOOK = Path(__file__).resolve().parents[1] / "data" / "phases"
# MLflow and the libraries below it warn of each other.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROJECT = """\
data: vault
data.corpus: notes
data.queries: queries.csv
latency.queries: 2
latency.rounds: 1
latency.warmup: 0
latency.cold_start: false
tracking.enabled: false
statistics.draws: 500
tune.trials: 2
tune.folds: 0
tune.starts: []
"""
ARMS = {
    "baseline": "exp=baseline",
    "recommended": "exp=recommended",
    "phase1": "exp=phase1",
    "phase3": "exp=phase3",
    "hybrid": "exp=plain_hybrid",
    "rerank": "exp=baseline rerank=on",
    "all": "exp=all",
    "lexical_only": "exp=lexical_only",
    "dense_only": "exp=dense_only",
}
ORDER = (
    "list, list config, doctor, completion, index, search, run, data, data pool, judge, compare",
    "compare fusions, compare encoders, report, diagnose, advise, track, track ui, atlas, export, refresh, rollback",
    "verify, serve, serve mcp, studio",
)
ELSEWHERE = {
    "agents": "tests/extras/ship/commands/test_agents.py",
    "ablate": "tests/experiment/test_ablate.py",
    "compare canary": "tests/extras/ship/serving/test_canary.py",
    "fit": "tests/extras/fit/commands/test_fit.py",
    "fit adapter": "tests/extras/fit/test_adapter.py",
    "fit calibration": "tests/commands/test_fitting.py",
    "fit ranker": "tests/extras/fit/commands/test_learn_ranker.py",
    "fit weights": "tests/commands/test_fitting.py",
    "gate": "tests/commands/test_gate.py",
    "init": "tests/journeys/test_printed_commands.py",
    "topics": "tests/extras/collect/topics",
    "tune": "tests/extras/fit/commands/test_tune.py",
}
"""Commands whose examples take minutes, people or another terminal, and the tests that run them."""

NOT_RUN = {
    "atlas fetch": "downloads packages from their registry",
    "atlas measure": "takes minutes: tests/workbench/test_atlas_campaign.py",
    "compare canary": "takes the searches of days: tests/extras/ship/serving/test_canary.py",
    "--confirm": "takes queries not used before: tests/experiment/test_comparisons.py",
    "execution=ray": "starts a cluster: tests/extras/remote/test_execution_ray.py",
    "qdrant://": "needs a server: tests/extras/engines/test_aliased.py",
    "postgres://": "needs a server: tests/extras/engines/test_postgres.py",
}
OTHER_ENDS = {
    "data check": (1,),  # the data have errors
    "refresh": (130,),  # Ctrl-C
}


def in_order() -> list[str]:
    return [name for line in ORDER for name in line.split(", ")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with copies of the handbook where examples have documents, and 76 queries of one relevant document."""
    for copied in ("notes", "docs", "home/notes", "uv/vault"):
        shutil.copytree(HANDBOOK, tmp_path / copied)
    rows = []
    for document in read_vault(HANDBOOK).documents:
        for start, split in (("what is", "test"), ("where is", "test"), ("the page on", "train"), ("about", "train")):
            text = f"{start} {document.title} {len(rows)}".replace(",", " ")
            rows.append((f"gate-{len(rows):02}", text, document.docno, split))
    listed = [f"{qid},{text},{docno}.md,{split}" for qid, text, docno, split in rows]
    (tmp_path / "questions.csv").write_text("\n".join(["qid,text,relevant,split", *listed]) + "\n", encoding="utf-8")
    others = [f"new-{qid},which page has {text},{docno}.md,test" for qid, text, docno, _ in rows[::2]]
    (tmp_path / "new.csv").write_text("\n".join(["qid,text,relevant,split", *others]) + "\n", encoding="utf-8")
    for copied in ("queries.csv", "uv/queries.csv"):
        shutil.copy(tmp_path / "questions.csv", tmp_path / copied)
    (tmp_path / "my-qrels").mkdir()
    topics = [{"qid": qid, "text": text, "type": "question", "split": split} for qid, text, _, split in rows]
    (tmp_path / "my-qrels" / "topics.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in topics))
    judged = "".join(f"{qid} 0 {docno} 1\n" for qid, _, docno, _ in rows)
    for name in ("my-qrels/documents.qrels", "other.qrels"):
        (tmp_path / name).write_text(judged, encoding="utf-8")
    (tmp_path / "ragbench.yaml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "tokens").write_text("ci " + "s3cret" * 4, encoding="utf-8")
    searches = [f"{text},{session}" for text in ("drop a queue", "rotate keys", "backup") for session in range(4)]
    (tmp_path / "export.csv").write_text("\n".join(["query,session", *searches]) + "\n", encoding="utf-8")
    answer = {"author": {"login": "bob"}, "body": "See https://docs.example.org/caching."}
    issue = {"body": "The copy at the edge is old and does not go away.", "author": {"login": "ada"}}
    issues = [
        {"number": n, "title": f"Why is copy {n} of the cdn stale", "comments": [answer]} | issue for n in range(3)
    ]
    (tmp_path / "issues.json").write_text(json.dumps(issues), encoding="utf-8")
    (tmp_path / "collections").mkdir()
    for name, begin in (
        ("sites.yaml", "- name: {0}-docs\n  words: "),
        ("collections/collections.yaml", "{0}:\n  data: "),
    ):
        site = f"{begin}data=vault data.corpus={tmp_path}/{{0}} data.queries={tmp_path}/questions.csv\n"
        (tmp_path / name).write_text(site.format("notes") + site.format("docs"), encoding="utf-8")
    model = bundled.find("all-MiniLM-L6-v2")
    files = model.locate() if model else None
    assert files is not None
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine").symlink_to(files.root)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stands_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What stands here for a server or a place that examples name."""
    with ExitStack() as stack:
        chat, live = stack.enter_context(ChatServer()), stack.enter_context(Server())
        chat.answer = lambda prompt: "1" if "grade" in prompt.lower() else "yes"
        live.answer = lambda path, parameters, body: embedded(body) if body else {"hits": [{"path": "caching.md"}]}
        monkeypatch.setenv("OPENAI_BASE_URL", live.url)
        yield {
            "http://localhost:11434/v1": chat.endpoint,
            "https://docs.example.org/search.json": f"{live.url}/search.json",
            "http://localhost:8000/search": f"{live.url}/search",
            "http://mlflow.example:5000": f"sqlite:///{folder}/mlflow.db",
            "sqlite:////data/mlflow.db": f"sqlite:///{folder}/mlflow.db",
            "lancedb:///srv/notes": f"lancedb://{folder}/srv/notes",
            "/data/results": str(folder / "results"),
            "/tmp/": f"{folder}/",
        }


def embedded(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an endpoint of embeddings answers."""
    vectors = [[float(len(text)), float(text.count("a")), 1.0] for text in body["input"]]
    return {"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]}


def test_the_order_has_every_command() -> None:
    assert sorted([*in_order(), *ELSEWHERE]) == sorted(commands.everything())
    assert [path for path in ELSEWHERE.values() if not (HANDBOOK.parents[2] / path).exists()] == []


def test_every_example_runs(folder, stands_for, monkeypatch, capsys) -> None:
    runs = folder / "results" / "runs"

    def prepare(line: str) -> None:
        code = cli.main(shlex.split(line))
        assert code == 0, f"{line}: {capsys.readouterr().err}"

    arms = shlex.join(part for name, words in ARMS.items() for part in ("--arm", f"{name}={words}"))
    for _ in range(3):
        prepare(f"run split=train {arms}")  # the test queries are left to --confirm
    kept = {shutil.copytree(max(runs.iterdir()), runs / name) for name in "AB"} | {*runs.iterdir()}
    for name in ("other-system.trec", "other.trec"):
        shutil.copy(runs / "A" / "arms" / "baseline" / "sections.trec", name)
    wrong = []
    for name in in_order():
        follows = False
        for words in examples(name):
            for later in {*runs.iterdir()} - kept if not follows else ():
                shutil.rmtree(later)
            follows = words[0] == "run" != name  # `ragbench run ... && ragbench compare fusions`
            shutil.copy("questions.csv", "queries.csv")  # `data split --write` writes splits into it
            line = shlex.join(words)
            if any(each in line for each in NOT_RUN):
                continue
            monkeypatch.setattr(sys, "stdin", io.StringIO("1\nq\n"))
            try:
                before(name, words, folder, stands_for, prepare)
                for example, here in stands_for.items():
                    words = [word.replace(example, here) for word in words]
                capsys.readouterr()
                called = commands.call(words)
                assert called is not None
                serves = called.name in ("serve", "serve mcp", "studio", "track ui") or "--watch" in words
                end = served(called.name, words) if serves else ended(words, capsys)
            except (AssertionError, SystemExit, httpx.HTTPError, subprocess.TimeoutExpired) as error:
                end = (-1, repr(error))
            allowed = OTHER_ENDS.get(" ".join(words[:2]), OTHER_ENDS.get(name, ()))
            if end[0] not in (0, *allowed) or "Traceback" in end[1]:
                wrong.append(f"ragbench {line}: exit code {end[0]}: {end[1][-600:]}")
    assert wrong == []


def before(
    name: str, words: list[str], folder: Path, stands_for: dict[str, str], prepare: Callable[[str], None]
) -> None:
    """Make what an example needs, and take away what it would not write over."""
    Path("topics.jsonl").unlink(missing_ok=True)
    if name in ("export", "verify"):
        shutil.rmtree("bundle", ignore_errors=True)
    for place, arm in (("bundle", "baseline"), ("bundle2", "recommended")):
        if place in words and not Path(place).exists():
            prepare(f"export @1/{arm} --force --out {place}")
    if name == "rollback":
        shutil.rmtree("bundle")
        prepare("export @1/baseline --force --out bundle")
        changed = Path(shutil.copytree(HANDBOOK, folder / "changed", dirs_exist_ok=True))
        for number in range(5):
            (changed / f"zebra-{number}.md").write_text(
                f"# Zebra {len(words)} {number}\n\nCrossing.\n", encoding="utf-8"
            )
            prepare("refresh bundle --corpus changed")
        shutil.rmtree(changed)
    if "notes.sqlite" in words and not Path("notes.sqlite").exists():
        prepare("export @1/recommended --format sqlite --force --out notes.sqlite")
    if "pool.csv" in words and not Path("pool.csv").exists():
        prepare("data pool @1 --depth 1")
    if "--model-grades" in words:
        sample = Path("pool.sample.csv")
        sample.write_text(sample.read_text(encoding="utf-8").replace(",,\n", ",1,\n"), encoding="utf-8")
    if "--effects" in words:
        for corpus in ("uv/vault", "docs", "notes"):
            prepare(
                f"ablate exp=baseline design=add_one factors=[p2,p9,p12] latency.enabled=false data.corpus={corpus}"
            )
    if "3f2a..." in words:
        import mlflow

        prepare("track @1")
        found = mlflow.search_runs(search_all_experiments=True)
        stands_for["3f2a..."] = found[found["tags.mlflow.parentRunId"].isna()].run_id.iloc[0]


def ended(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a command, and its errors."""
    code, said = cli.main(words), capsys.readouterr().err
    remedy = re.search(r"(--cost-open|--force)\b|such as (data\.queries=new\.csv)|\((arm=)'(\S+)'", said)
    more = shlex.split(remedy[remedy.lastindex or 0]) if remedy else []
    more = ["--arm", *more] if remedy and remedy[3] else more
    if code == 2 and more and more[0] not in words:  # what a refusal names
        return ended([*words, *more], capsys)
    return code, said


def served(name: str, words: list[str]) -> tuple[int, str]:
    """The same of a server: it answers if it is one of searches, and ends at Ctrl-C or at the end of its input."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        chosen = str(free.getsockname()[1])
    port = ["--port", chosen] if name != "serve mcp" and "--port" not in words and words[0] != "refresh" else []
    given = [chosen if previous == "--port" else word for previous, word in zip(["", *words], words, strict=False)]
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "ragbench", *given, *port]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        if name == "serve mcp":
            process.stdin.close()
        else:
            address = re.search(r"https?://[^\s;]+", process.stdout.readline())
            if name == "serve" and address:
                token = {"authorization": "Bearer " + "s3cret" * 4}
                for text in ("drop a queue", "rotate keys", "why is a request slow", "backup"):
                    answer = httpx.post(f"{address[0]}/search", json={"query": text}, headers=token, timeout=60)
                    assert answer.status_code == 200, answer.text
            process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        return process.wait(60), said
