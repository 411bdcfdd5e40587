"""Every example of `--help`, and every command of README and `docs/`, is run: on a handbook with its queries.

An example ends with 0, or as `OTHER_ENDS` says; a server answers until Ctrl-C. Servers and places of `stands_for` are
replaced by those of this machine.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragbench import commands
from ragbench.base.errors import RagbenchError
from ragbench.commands import cli
from ragbench.corpus.reader import read_vault
from ragbench.models import bundled
from tests.anserini_index import build
from tests.extras.collect.topics.conftest import ChatServer
from tests.extras.remote.live.conftest import Server
from tests.journeys.test_printed_commands import examples, typed
from tests.test_docs import ROOT, blocks, take

HANDBOOK, TEA = (ROOT / "tests" / "data" / name for name in ("phases", "tea"))
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
PAGES_ASKED = 5
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
    "list, list config, doctor, index, search, run, data, data pool, judge, compare",
    "report, diagnose, advise, track, track ui, atlas, export, refresh",
    "verify, serve, serve mcp, studio",
)
ELSEWHERE = {
    "agents": "tests/extras/ship/commands/test_agents.py",
    "ablate": "tests/experiment/test_ablate.py",
    "fit": "tests/extras/fit/commands/test_fit_ranker.py",
    "fit calibration": "tests/commands/test_fitting.py",
    "fit ranker": "tests/extras/fit/commands/test_fit_ranker_from_fusion.py",
    "gate": "tests/commands/test_gate.py",
    "init": "tests/journeys/test_printed_commands.py",
    "topics": "tests/extras/collect/topics",
    "tune": "tests/extras/fit/commands/test_tune.py",
}
"""Commands whose examples take minutes, people or another terminal, and the tests that run them."""

NOT_RUN = {
    "fit ranker": "takes 20 judged queries: tests/extras/fit/commands/test_fit_ranker_from_fusion.py",
    "gate results/runs/A": "takes two runs of one configuration: tests/commands/test_gate.py",
    "live=mcp": "starts a program of others: tests/extras/remote/live/test_live_arms.py",
    "live=opensearch": "needs a server: tests/extras/remote/live/test_live_arms.py",
    "ollama:": "needs a server: tests/test_plugins.py",
    "model=chat:": "needs a server: tests/extras/remote/test_endpoint.py",
    "model=rerank:": "needs a server: tests/extras/remote/test_endpoint.py",
    "source=pyserini:beir": "downloads an index: tests/extras/remote/live/test_anserini.py",
    "--confirm": "takes queries not used before: tests/experiment/test_comparisons.py",
    "opensearch://": "needs a server: tests/extras/engines/test_opensearch.py",
    "env:NOTES": "needs a server: tests/extras/engines/test_opensearch.py",
    "postgres://": "needs a server: tests/extras/engines/test_postgres.py",
}
SILENT = (["gate", "--pin"], ["serve", "mcp"])
"""Commands that print on standard error, or answers only."""

OTHER_ENDS = {
    "data check": (1,),  # the data have errors
    "gate": (1, 3),  # fewer queries than a gate needs
    "refresh": (130,),  # Ctrl-C
}


def in_order() -> list[str]:
    return [name for line in ORDER for name in line.split(", ")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with copies of the handbook where examples have documents, and queries of one relevant document.

    It has three runs of the test queries: the newest, and its copies A and B.
    """
    tmp_path = tmp_path_factory.mktemp("project")
    long = "\n\n".join(f"Step {number} of the rotation." for number in range(25))
    for copied in ("notes", "docs", "home/notes", "uv/vault"):
        place = Path(shutil.copytree(HANDBOOK, tmp_path / copied))
        (place / "guides").mkdir()
        (place / "guides" / "rotate-keys.md").write_text(f"# Rotate keys\n\n{long}\n", encoding="utf-8")
    rows = []
    for document in read_vault(HANDBOOK).documents[:PAGES_ASKED]:
        for start, split in (("what is", "train"), ("where is", "train"), ("the page on", "test"), ("about", "test")):
            text = f"{start} {document.title} {len(rows)}".replace(",", " ")
            rows.append((f"gate-{len(rows):02}", text, document.docno, split))
    headings = {document.docno: document.sections[-1].path[-1] for document in read_vault(HANDBOOK).documents}
    listed = [
        f"{qid},{text},{docno}.md{f'#{headings[docno]}' * (number % 2)},{split}"
        for number, (qid, text, docno, split) in enumerate(rows)
    ]
    (tmp_path / "questions.csv").write_text("\n".join(["qid,text,relevant,split", *listed]) + "\n", encoding="utf-8")
    others = [f"new-{qid},which page has {text},{docno}.md,test" for qid, text, docno, _ in rows[::2]]
    (tmp_path / "new.csv").write_text("\n".join(["qid,text,relevant,split", *others]) + "\n", encoding="utf-8")
    for copied in ("queries.csv", "uv/queries.csv"):
        shutil.copy(tmp_path / "questions.csv", tmp_path / copied)
    (tmp_path / "my-qrels").mkdir()
    topics = [{"qid": qid, "text": text, "type": "question", "split": split} for qid, text, _, split in rows]
    (tmp_path / "my-qrels" / "topics.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in topics))
    judged = "".join(f"{qid} 0 {docno} 1\n" for qid, _, docno, _ in rows)
    anchors = {document.docno: document.sections[-1].anchor for document in read_vault(HANDBOOK).documents}
    sections = "".join(f"{qid} 0 {docno}#{anchors[docno]} 1\n" for qid, _, docno, _ in rows[1::2])
    (tmp_path / "my-qrels" / "documents.qrels").write_text(judged, encoding="utf-8")
    (tmp_path / "other.qrels").write_text(sections, encoding="utf-8")
    (tmp_path / "ragbench.yaml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "tokens").write_text(f"ci {'s3cret' * 4}\n", encoding="utf-8")
    searches = [f"{text},{session}" for text in ("drop a queue", "rotate keys", "backup") for session in range(4)]
    opened = (("drop a queue", "queues"), ("rotate keys", "authentication"), ("backup", "backup"))
    log = [{"query": text, "session": f"{text} {n}", "clicked": docno} for text, docno in opened for n in range(4)]
    (tmp_path / "searches.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in log), encoding="utf-8")
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
    records = [{"id": each.docno, "contents": each.text} for each in read_vault(HANDBOOK).documents]
    build(records, tmp_path / "indexes", "-storeDocvectors").rename(tmp_path / "indexes" / "notes")
    shutil.copytree(TEA / "beir", tmp_path / "scifact")
    for name, copied in (("documents.jsonl", "cran.jsonl"), ("topics.txt", "cran.qry")):
        shutil.copy(TEA / "trec" / name, tmp_path / copied)
    (tmp_path / "cran.qrels").write_text("q2 0 tea/storing 2\nq3 0 coffee/grinding 1\n", encoding="utf-8")
    program = tmp_path / "search.sh"
    program.write_text('#!/bin/sh\necho \'[{"path": "caching.md"}]\'\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    model = bundled.find("all-MiniLM-L6-v2")
    files = model.locate() if model else None
    assert files is not None
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine").symlink_to(files.root)
    arms = shlex.join(part for name, words in ARMS.items() for part in ("--arm", f"{name}={words}"))
    with chdir(tmp_path):
        assert cli.main(shlex.split(f"run split=test {arms}")) == 0
    runs = tmp_path / "results" / "runs"
    for name in "AB":
        shutil.copytree(max(runs.iterdir()), runs / name)
    for name in ("other-system.trec", "other.trec"):
        shutil.copy(runs / "A" / "arms" / "baseline" / "sections.trec", tmp_path / name)
    return tmp_path


@pytest.fixture
def folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project as it was made, and as the working directory."""
    monkeypatch.setenv("HOME", str(project / "home"))
    monkeypatch.chdir(project)
    files = {path: path.read_bytes() for path in project.glob("*.*") if path.is_file()}
    kept = {*project.iterdir(), *(project / "results" / "runs").iterdir()}
    yield project
    for path in {*project.iterdir(), *(project / "results" / "runs").iterdir()} - kept:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for path, content in files.items():
        path.write_bytes(content)


@pytest.fixture
def stands_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What stands here for a server or a place that examples name."""
    with ExitStack() as stack:
        chat, live = stack.enter_context(ChatServer()), stack.enter_context(Server())
        chat.answer = answered
        live.answer = lambda path, parameters, body: (
            embedded(body) if body else {"hits": [{"path": "caching.md", "url": "caching"}]}
        )
        monkeypatch.setenv("OPENAI_BASE_URL", live.url)
        yield {
            "http://localhost:11434/v1": chat.endpoint,
            "https://docs.example.org/search.json": f"{live.url}/search.json",
            "http://localhost:8000/search": f"{live.url}/search",
            "http://mlflow.example:5000": f"sqlite:///{folder}/mlflow.db",
            "sqlite:////data/mlflow.db": f"sqlite:///{folder}/mlflow.db",
            "/data/results": str(folder / "results"),
            "/tmp/": f"{folder}/",
            "tune.trials=500": "tune.trials=2",
        }


def answered(prompt: str) -> str:
    """What a language model answers: a grade, a question on a section, or whether a section answers it."""
    if prompt.startswith("You judge"):
        return "1"
    if prompt.startswith("Below"):
        return "Which one comes last when somebody changes it?"
    return "yes" if "Step 24" in prompt else "no"


def embedded(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an endpoint of embeddings answers."""
    vectors = [[float(len(text)), float(text.count("a")), 1.0] for text in body["input"]]
    return {"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]}


def test_the_order_has_every_command() -> None:
    assert sorted([*in_order(), *ELSEWHERE]) == sorted(commands.everything())
    assert [path for path in ELSEWHERE.values() if not (HANDBOOK.parents[2] / path).exists()] == []


def test_every_example_runs(folder, stands_for, monkeypatch, capsys) -> None:
    runs = folder / "results" / "runs"
    kept = {*runs.iterdir()}

    def prepare(line: str) -> None:
        code = cli.main(shlex.split(line))
        assert code == 0, f"{line}: {capsys.readouterr().err}"

    wrong = []
    for name in in_order():
        for words in examples(name):
            for later in {*runs.iterdir()} - kept:
                shutil.rmtree(later)
            line = " ".join(words)
            if any(each in f"{line}$" for each in NOT_RUN):
                continue
            monkeypatch.setattr(sys, "stdin", io.StringIO("1\nq\n"))
            try:
                before(name, words, folder, stands_for, prepare)
                words = here(words, stands_for)
                capsys.readouterr()
                end = carried_out(words, capsys)
            except (AssertionError, SystemExit) as error:
                end = (-1, repr(error), "")
            allowed = OTHER_ENDS.get(" ".join(words[:2]), OTHER_ENDS.get(name, ()))
            if end[0] not in (0, *allowed) or "Traceback" in end[1]:
                wrong.append(f"ragbench {line}: exit code {end[0]}: {end[1][-600:]}{end[2][-600:]}")
    assert wrong == []


def before(
    name: str, words: list[str], folder: Path, stands_for: dict[str, str], prepare: Callable[[str], None]
) -> None:
    """Make what an example needs, and take away what it would not write over."""
    if words[0] == "topics":
        Path("topics.jsonl").unlink(missing_ok=True)
    if words[:2] == ["data", "pool"]:
        Path("pool.csv").unlink(missing_ok=True)
    if words[0] == "gate" and "--pin" not in words and "gate:" not in Path("ragbench.yaml").read_text("utf-8"):
        prepare("gate --pin @2/recommended")
    if words[0] == "export" and ("--out" not in words or "bundle" in words):
        shutil.rmtree("bundle", ignore_errors=True)
    for place, arm in (("bundle", "baseline"), ("bundle2", "recommended")):
        if place in words and words[0] != "export" and not Path(place).exists():
            prepare(f"export @1/{arm} --force --out {place}")
    if "notes.sqlite" in words and not Path("notes.sqlite").exists():
        prepare("export @1/recommended --format sqlite --force --out notes.sqlite")
    if "pool.csv" in words and not Path("pool.csv").exists():
        prepare("data pool @1 --depth 1")
    if "3f2a..." in words:
        import mlflow

        prepare("track @1")
        found = mlflow.search_runs(search_all_experiments=True)
        kept = found["tags.ragbench.folder"].map(lambda run: isinstance(run, str) and Path(run).is_dir())
        stands_for["3f2a..."] = found[kept & found["tags.mlflow.parentRunId"].isna()].run_id.iloc[0]


def here(words: Sequence[str], stands_for: Mapping[str, str]) -> list[str]:
    """The words with what stands for a server or a place; `verify` times two queries, so its limit is wide here."""
    known = re.compile("|".join(map(re.escape, stands_for)))
    patient = ["--latency-tolerance", "50"] if words[:1] == ["verify"] and "--latency-tolerance" not in words else []
    return [*(known.sub(lambda example: stands_for[example[0]], word) for word in words), *patient]


def carried_out(words: list[str], capsys, use: Callable[[str], None] | None = None) -> tuple[int, str, str]:
    """The exit code of a command, its errors and its output; `use` is what to do with the address of a server."""
    called = commands.call(words)
    assert called is not None or words == ["--version"]
    if called and (called.name in ("serve", "serve mcp", "studio", "track ui") or "--watch" in words):
        return served(called.name, words, use or search)
    code, said = cli.main(words), capsys.readouterr()
    remedy = re.search(
        r"(--allow-unknown-latency|--force)\b|such as (data\.queries=new\.csv)|\((arm=)'(\S+)'", said.err
    )
    more = shlex.split(remedy[remedy.lastindex or 0]) if remedy else []
    more = ["--arm", *more] if remedy and remedy[3] else more
    if code == 2 and more and more[0] not in words:  # what a refusal names
        return carried_out([*words, *more], capsys)
    return code, said.err, said.out


def search(address: str) -> None:
    """Send a server some searches."""
    with httpx.Client(base_url=address, timeout=60, headers={"authorization": "Bearer " + "s3cret" * 4}) as http:
        for text in ("drop a queue", "rotate keys", "why is a request slow", "backup"):
            http.post("/search", json={"query": text}).raise_for_status()


def served(name: str, words: list[str], ask: Callable[[str], None]) -> tuple[int, str, str]:
    """The same of a server in this process: it answers what is asked of its address, and ends at Ctrl-C."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        chosen = str(free.getsockname()[1])
    port = ["--port", chosen] if name not in ("serve mcp", "refresh") and "--port" not in words else []
    given = [chosen if previous == "--port" else word for previous, word in zip(["", *words], words, strict=False)]
    if name == "serve mcp":  # its input has ended
        with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as said:
            for stream in ("stdin", "stdout"):
                patch.setattr(sys, stream, io.TextIOWrapper(io.BytesIO()))
            return cli.main(given), said.getvalue(), ""
    out, err, over, failed = io.StringIO(), io.StringIO(), threading.Event(), list[BaseException]()

    def use() -> None:
        deadline = time.monotonic() + 60
        while not out.getvalue() and not over.wait(0.02) and time.monotonic() < deadline:
            pass
        try:
            address = re.search(r"https?://[^\s;]+", out.getvalue())
            if name == "serve" and address:
                ask(address[0].replace("0.0.0.0", "127.0.0.1"))
        except (AssertionError, httpx.HTTPError, subprocess.CalledProcessError) as error:
            failed.append(error)
        finally:
            if not over.is_set():
                os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background command inherits that it is ignored
    user = threading.Thread(target=use)
    with redirect_stdout(out), redirect_stderr(err):
        user.start()
        try:
            code = cli.main([*given, *port])
        finally:
            over.set()
            user.join()
            signal.signal(signal.SIGHUP, before)
    assert not failed, failed
    return code, err.getvalue(), out.getvalue()


FOREIGN = {
    "gh": "needs GitHub",
    "pip": "needs a package index",
    "python3 -m venv": "its environment is filled from a package index: tests/test_lock.py runs the server in it",
    "server/bin/": "runs in that environment",
    "ssh-keygen": "needs a key of the reader",
}
"""The beginnings of shell commands of pages that are not run, with the reason."""


@dataclass(frozen=True)
class Step:
    """A shell command of a page, of the block of this number."""

    block: int
    line: str
    words: tuple[str, ...]
    variables: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Why it is not run; empty if it is."""
        line = f"{' '.join(self.words)}$"
        own = self.words[0] in ("ragbench", "curl")
        known = [NOT_RUN[each] for each in NOT_RUN if own and each in line]
        return next(iter([*known, *(FOREIGN[each] for each in FOREIGN if line.startswith(each))]), "")


def steps() -> dict[str, list[Step]]:
    """The shell commands of README and of the pages of `docs/`, by page, in their order."""
    listed: dict[str, list[Step]] = {}
    for number, block in enumerate(blocks()):
        page = str(block.page.relative_to(ROOT))
        if block.kind == "bash" and (page == "README.md" or block.page.parent == ROOT / "docs"):
            listed.setdefault(page, []).extend(step for line in block.body.splitlines() for step in read(number, line))
    return listed


def read(block: int, line: str) -> Iterator[Step]:
    """The commands of ragbench in a line, without redirections; of another program the whole line."""
    words = shlex.split(re.sub(r"^source <\((.*)\)$", r"\1", line.strip()), comments=True)
    variables = dict(word.split("=", 1) for word in words[:1] if re.match(r"[A-Z_]+=", word))
    words = [word for word, before in zip(words, ["", *words], strict=False) if before not in (">", ">>", "<")]
    words = [word for word in words[len(variables) :] if word not in (">", ">>", "<")]
    if words[:1] != ["ragbench"]:
        yield from [Step(block, line, tuple(words), variables)] * bool(words)
        return
    ends = [place for place, word in enumerate(words) if word in ("&&", "||")]
    for start, end in zip([0, *(place + 1 for place in ends)], [*ends, len(words)], strict=True):
        if words[start] == "ragbench":
            yield Step(block, line, tuple(words[start:end]), variables)


def test_every_exception_is_needed() -> None:
    everything = [step for page in steps().values() for step in page]
    lines = [f"{' '.join(step.words)}$" for step in everything] + [f"{' '.join(words)}$" for words in examples()]
    assert len(everything) > 150
    assert [each for each in FOREIGN if not any(line.startswith(each) for line in lines)] == []
    assert [each for each in NOT_RUN if not any(each in line for line in lines)] == []
    named = re.findall(r"tests/\S+", " ".join([*FOREIGN.values(), *NOT_RUN.values()]))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def followed() -> set[tuple[str, ...]]:
    """The kinds of next steps that were run: names of commands with their options."""
    return set()


@pytest.mark.parametrize("page", sorted(steps()))
def test_every_command_of_a_page_runs(page, folder, stands_for, followed, tmp_path, monkeypatch, capsys) -> None:
    def prepare(line: str) -> None:
        code = cli.main(shlex.split(line))
        assert code == 0, f"{line}: {capsys.readouterr().err}"

    results = sorted((ROOT / "results").glob("**/*"))
    listed = [step for step in steps()[page] if not step.reason]
    new = any(step.words[:2] == ("ragbench", "init") for step in listed)
    if new:  # the page begins with a folder of notes
        for name in ("notes", "indexes"):
            shutil.copytree(name, tmp_path / name)
        for name in ("queries.csv", "questions.csv", "search.sh", "other-system.trec"):
            shutil.copy(name, tmp_path)
        monkeypatch.chdir(tmp_path)
    wrong, runs = [], folder / "results" / "runs"
    kept = {*runs.iterdir()}
    for place, step in enumerate(listed):
        if place and step.block != listed[place - 1].block:  # each block speaks of the reader's own newest run
            for later in {*runs.iterdir()} - kept:
                shutil.rmtree(later)
        asked = [*takewhile(lambda each: each.words[:2] != ("ragbench", "serve"), listed[place + 1 :])]
        try:
            if step.words[0] == "ragbench":
                words = here(step.words[1:], stands_for) + ["p6.depth=2"] * ("exp=all" in step.words)
                before(words[0], words, folder, stands_for, prepare)
                with monkeypatch.context() as patch:
                    patch.setattr(sys, "stdin", io.StringIO("1\nq\n"))
                    for variable in step.variables.items():
                        patch.setenv(*variable)
                    end = carried_out(typed(words) if new else words, capsys, partial(curl, asked))
                wrong += [f"{step.line} prints nothing"] if not end[2].strip() and words[:2] not in SILENT else []
                after = [word for each in listed[place + 1 : place + 2] for word in each.words[1:2]]
                for line in re.findall(r"^next: ragbench (.*)$", end[2], flags=re.M):
                    following = shlex.split(line)
                    if following[:1] != after:  # the page does not type it next
                        wrong += follow(typed(following) if new else following, followed, capsys)
            elif step.words[0] == "curl":
                sent = any(each.words[:2] == ("ragbench", "serve") for each in listed[:place])
                before("serve", ["serve", "bundle"], folder, stands_for, prepare)
                end = (0, "", "") if sent else served("serve", ["serve", "bundle"], partial(curl, [step]))
            else:
                done = subprocess.run(["bash", "-c", step.line], capture_output=True, text=True, check=False)
                end = (done.returncode, done.stderr, done.stdout)
        except (AssertionError, SystemExit) as error:
            end = (-1, repr(error), "")
        allowed = OTHER_ENDS.get(" ".join(step.words[1:3]), OTHER_ENDS.get(step.words[1], ()))
        if end[0] not in (0, *allowed) or "Traceback" in end[1]:
            wrong.append(f"{step.line}: exit code {end[0]}: {end[1][-600:]}{end[2][-600:]}")
    assert wrong == []
    assert sorted((ROOT / "results").glob("**/*")) == results  # they are written where a command is typed


def curl(asked: Sequence[Step], address: str) -> None:
    """Send a server what the page sends next."""
    if not shutil.which("curl"):
        return search(address)
    for step in asked:
        if step.words[0] == "curl":
            place = re.compile(r"^(https?://)?(localhost:\d+|[a-z.]+\.example\.org)")
            words = [place.sub(address, word).replace("$TOKEN", "s3cret" * 4) for word in step.words]
            subprocess.run([*words, "--fail"], check=True, capture_output=True)
    return None


def follow(words: list[str], followed: set[tuple[str, ...]], capsys) -> list[str]:
    """Run a printed next step of a new kind; all of them are parsed. Returns what is wrong."""
    try:
        take([word for word in words if not word.startswith("@")])
        kind = (words[0], *sorted(word.partition("=")[0] for word in words if word.startswith("-") or "=" in word))
        if kind in followed or words[0] in ("serve", "judge", "data"):  # those of judging: test_printed_commands
            return []
        followed.add(kind)
        if words[0] == "export":
            shutil.rmtree("bundle", ignore_errors=True)
        code, err, _ = carried_out(words, capsys)
    except (AssertionError, RagbenchError, SystemExit) as error:
        return [f"next: {shlex.join(words)}: {error!r}"]
    return [f"next: {shlex.join(words)}: exit code {code}: {err[-600:]}"] if code else []
