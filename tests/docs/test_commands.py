"""Shell commands run: those on README and docs/, in the order of each page, and the examples of `--help`.

They run in a project with a handbook in `notes/`, its queries, and three finished runs. Servers and places that a
command names are replaced by those of `stands_for`; `NOT_RUN` says which commands are not run, and why.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragbench import commands
from ragbench.commands import cli
from ragbench.corpus.reader import read_vault
from ragbench.models import bundled
from tests.docs.pages import ROOT, blocks, compose, name, parsed
from tests.extras.collect.topics.conftest import ChatServer
from tests.extras.remote.live.conftest import Server
from tests.ports import free_port

HANDBOOK, TEA = (ROOT / "tests" / "data" / folder for folder in ("phases", "tea"))
# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

PROJECT = """\
data: vault
data.corpus: notes
data.queries: queries.csv
"""
QUICK = """\
latency.queries: 2
latency.rounds: 1
latency.warmup: 0
latency.cold_start: false
tracking.enabled: false
statistics.draws: 500
"""
SEARCH = ("tune.trials=2", "tune.folds=0", "tune.starts=[]")
ARMS = {
    "baseline": "exp=baseline",
    "recommended": "exp=recommended",
    "phase1": "exp=phase1",
    "phase3": "exp=phase3",
    "hybrid": "exp=plain_hybrid",
    "rerank": "exp=baseline rerank=on rerank.depth=5",
    "all": "exp=all p6.depth=5",
    "lexical_only": "exp=lexical_only",
    "dense_only": "exp=dense_only",
}
NOT_RUN = {
    "python ": "commands of a checkout",
    "make ": "commands of a checkout",
    ".venv/": "commands of a checkout",
    "git ": "needs a repository",
    "gh ": "needs GitHub",
    "pip ": "needs a package index",
    "podman ": "needs containers",
    "server/bin/": "runs in an environment that a package index fills",
    "ssh-keygen": "needs a key of the reader",
    "ragbench fit ": "takes 20 judged queries: tests/extras/fit",
    "ranker=off,mine": "takes a ranker that was fitted: tests/extras/fit/commands",
    "ragbench gate results/runs/A": "takes two runs of one configuration: tests/extras/export/commands/test_gate.py",
    "live=opensearch": "needs a server: tests/extras/engines",
    "opensearch://": "needs a server: tests/extras/engines",
    "postgres://": "needs a server: tests/extras/engines",
    "env:NOTES": "needs a server: tests/extras/engines",
    "live=mcp": "starts a program of others",
    "ollama:": "needs a server: tests/extras/remote",
    "model=chat:": "needs a server: tests/extras/remote",
    "model=rerank:": "needs a server: tests/extras/remote",
    "--since v2.0": "needs a repository: tests/benchmark/test_follow.py",
    "--before ../docs-of-last-year": "takes an earlier copy: tests/extras/collect/commands/test_data_repair.py",
    "ablate exp=all": "takes a minute; another ablation is on the same page",
    "execution.address=": "needs a cluster: tests/experiment/test_execution.py",
    "--confirm": "takes queries that were not used before: tests/experiment/test_comparisons.py",
}
"""Parts of commands that are not run, with the reason."""

PARSED = {"ablate", "gate", "init", "run", "serve", "topics", "track", "tune"}
"""Commands whose examples of `--help` are parsed and composed only: they take minutes, or another folder.

Pages run `run`, `serve` and `track` in many forms."""

SILENT = ("gate --pin", "serve mcp", "refresh")
OTHER_ENDS = {
    "data check": (1,),  # the data have errors
    "gate": (1, 3),  # fewer queries than a gate needs
}
"""Exit codes that a command may have beside 0."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, with a run of the test queries and its copies A and B."""
    root = tmp_path_factory.mktemp("project")
    (root / "results").mkdir()
    for kept in ("cache", "index"):  # of all pages
        (root / "results" / kept).symlink_to(tmp_path_factory.mktemp(kept))
    for copied in ("notes", "docs", "home/notes", "hugoDocs/content/en"):
        folder = Path(shutil.copytree(HANDBOOK, root / copied))
        (folder / "guides").mkdir()
        steps = "\n\n".join(f"Step {number} of the rotation." for number in range(25))
        (folder / "guides" / "rotate-keys.md").write_text(f"# Rotate keys\n\n{steps}\n", encoding="utf-8")
    _write_queries(root)
    (root / "ragbench.yaml").write_text(f"{PROJECT}{QUICK}", encoding="utf-8")
    (root / "token").write_text("s3cret" * 4, encoding="utf-8")
    _write_logs(root)
    shutil.copytree(TEA / "beir", root / "scifact")
    for file, copied in (("documents.jsonl", "cran.jsonl"), ("topics.txt", "cran.qry")):
        shutil.copy(TEA / "trec" / file, root / copied)
    (root / "cran.qrels").write_text("q2 0 tea/storing 2\nq3 0 coffee/grinding 1\n", encoding="utf-8")
    (root / "search.sh").write_text('#!/bin/sh\necho \'[{"path": "caching.md"}]\'\n', encoding="utf-8")
    (root / "search.sh").chmod(0o755)
    model = bundled.find("all-MiniLM-L6-v2")
    files = model.locate() if model else None
    assert files is not None
    (root / "models").mkdir()
    (root / "models" / "mine").symlink_to(files.root)
    arms = shlex.join(part for arm, words in ARMS.items() for part in ("--arm", f"{arm}={words}"))
    with chdir(root):
        assert cli.main(shlex.split(f"run split=test {arms}")) == 0
    runs = root / "results" / "runs"
    for copied in "AB":
        shutil.copytree(max(runs.iterdir()), runs / copied)
    for file in ("other-system.trec", "other.trec"):
        shutil.copy(runs / "A" / "arms" / "baseline" / "sections.trec", root / file)
    return root


def _write_queries(root: Path) -> None:
    """Twenty queries with one relevant document or section each, as a table and as judgments."""
    documents = read_vault(HANDBOOK).documents[:5]
    kinds = (("what is", "train"), ("where is", "train"), ("the page on", "test"), ("about", "test"))
    rows = []
    lines = []
    for index, document in enumerate(documents):
        for number, (start, split) in enumerate(kinds, start=index * 4):
            text = "how do I rotate a key" if number == 7 else f"{start} {document.title} {number}"
            qid = f"gate-{number:02}"
            rows.append((qid, text, document.docno, split))
            anchor = f"#{document.sections[-1].anchor}" if number % 2 else ""
            lines.append(f"{qid},{text},{document.docno}.md{anchor},{split}")
    table = "\n".join(["qid,text,relevant,split", *lines])
    for file in ("queries.csv", "questions.csv"):
        (root / file).write_text(f"{table}\n", encoding="utf-8")
    others = [f"new-{qid},which page has {text},{docno}.md,test" for qid, text, docno, _ in rows[::2]]
    (root / "new.csv").write_text("\n".join(["qid,text,relevant,split", *others]) + "\n", encoding="utf-8")
    judgments = root / "my-qrels"
    judgments.mkdir()
    topics = [{"qid": qid, "text": text, "type": "question", "split": split} for qid, text, _, split in rows]
    (judgments / "topics.jsonl").write_text("".join(f"{json.dumps(topic)}\n" for topic in topics), encoding="utf-8")
    judged = "".join(f"{qid} 0 {docno} 1\n" for qid, _, docno, _ in rows)
    (judgments / "documents.qrels").write_text(judged, encoding="utf-8")


def _write_logs(root: Path) -> None:
    """Searches with clicks, and issues with an answer that links to a page."""
    clicked = (("drop a queue", "queues"), ("rotate keys", "authentication"), ("backup", "backup"))
    log = [{"query": text, "session": f"{text} {n}", "clicked": docno} for text, docno in clicked for n in range(4)]
    (root / "searches.jsonl").write_text("".join(f"{json.dumps(search)}\n" for search in log), encoding="utf-8")
    searches = [f"{text},{session}" for text, _ in clicked for session in range(4)]
    (root / "export.csv").write_text("\n".join(["query,session", *searches]) + "\n", encoding="utf-8")
    answer = {"author": {"login": "bob"}, "body": "See https://docs.example.org/caching."}
    issue = {"body": "The copy at the edge is old and does not go away.", "author": {"login": "ada"}}
    titles = [f"Why is copy {n} of the cdn stale" for n in range(3)]
    issues = [{"number": n, "title": title, "comments": [answer]} | issue for n, title in enumerate(titles)]
    (root / "issues.json").write_text(json.dumps(issues), encoding="utf-8")


@pytest.fixture
def folder(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project as the working directory; all copies have the same embeddings and indexes."""
    copy = tmp_path / "project"
    shutil.copytree(project, copy, symlinks=True)
    monkeypatch.setenv("HOME", str(copy / "home"))
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def stands_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What stands here for a server or a place that commands name."""
    with ExitStack() as stack:
        chat, live = stack.enter_context(ChatServer()), stack.enter_context(Server())
        chat.answer = _answer
        live.answer = lambda path, parameters, body: (
            _embeddings(body) if body else {"hits": [{"path": "caching.md", "url": "caching"}]}
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
            "exp=baseline,phase1,all": "exp=baseline,phase1",  # each worker reads the models of its arms
        }


def _answer(prompt: str) -> str:
    """What a language model answers: a grade, a question on a section, or whether a section answers it."""
    if prompt.startswith("You judge"):
        return "1"
    if prompt.startswith("Below"):
        return "Which one comes last when somebody changes it?"
    return "yes" if "Step 24" in prompt else "no"


def _embeddings(body: Mapping[str, Any]) -> Mapping[str, Any]:
    vectors = [[float(len(text)), float(text.count("a")), 1.0] for text in body["input"]]
    return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}


def reason(line: str) -> str:
    """Why a command is not run; empty if it is."""
    return next((why for part, why in NOT_RUN.items() if part in line), "")


def lines_of_pages() -> dict[str, list[list[str]]]:
    """The commands of every page that are run, by block."""
    shown = [block for block in blocks() if block.page.parent == ROOT / "docs" or block.page.name == "README.md"]
    pages: dict[str, list[list[str]]] = {}
    for page, of_page in groupby(shown, lambda block: name(block.page)):
        lines = [[line for line in block.commands if not (block.reason or reason(line))] for block in of_page]
        pages[page] = [block for block in lines if block]
    return {page: lines for page, lines in pages.items() if lines}


def examples(command: str) -> Iterator[list[str]]:
    """The words of the examples of a command's `--help`."""
    called = commands.call(command.split())
    assert called is not None
    for line in getattr(called.module, "EXAMPLES", "").splitlines():
        for part in re.split(r" && |\)|\bthen: | \| ", line):
            if example := re.search(r"\bragbench (.*)", part):
                yield shlex.split(re.split(r" {2,}", example[1])[0])


class Shell:
    """Runs commands as a reader types them, and remembers the server that was started last."""

    def __init__(
        self, stands_for: dict[str, str], capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.stands_for, self.capsys, self.patch = stands_for, capsys, patch
        self.server: subprocess.Popen[str] | None = None
        self.address = ""

    def run(self, line: str) -> str:
        """Run one line; returns what is wrong, or nothing."""
        words = shlex.split(re.sub(r"^source <\((.*)\)$", r"\1", line), comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            variable, _, value = words.pop(0).partition("=")
            self.patch.setenv(variable, value)
        if words[0] == "curl":
            return self._curl(words)
        if words[0] != "ragbench":
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
            return f"{line}: {done.stderr[-600:]}" if done.returncode else ""
        wrong = ""
        for part in re.split(r" (?:&&|\|\|) ", line):
            words = shlex.split(part.partition(" > ")[0].partition(" | ")[0], comments=True)
            if words[:1] == ["ragbench"]:
                wrong = wrong or self.ragbench(words[1:])
        return wrong

    def ragbench(self, words: list[str]) -> str:
        """Run a call of ragbench; returns what is wrong, or nothing."""
        self._prepare(words)
        known = re.compile("|".join(map(re.escape, self.stands_for)))
        words = [known.sub(lambda hit: self.stands_for[hit[0]], word) for word in words]
        if words[:1] == ["verify"] and "--latency-tolerance" not in words:  # two queries are timed
            words = [*words, "--latency-tolerance", "50"]
        if words[:1] == ["tune"]:  # `tune=...` replaces what the project file sets there
            words = [*words, *(word for word in SEARCH if word.partition("=")[0] not in " ".join(words))]
        called = commands.call(words) if words and not words[0].startswith("-") else None
        if called and (called.name in ("serve", "studio", "track ui") or "--watch" in words):
            return self._serve(words)
        self.capsys.readouterr()
        try:
            code = self._main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        printed = self.capsys.readouterr()
        if code == 2 and (more := self._remedy(printed.err)) and more[0] not in words:
            return self.ragbench([*words, *more])
        line = shlex.join(words)
        ends = next((codes for start, codes in OTHER_ENDS.items() if line.startswith(start)), ())
        if code not in (0, *ends) or "Traceback" in printed.err:
            return f"{line}: exit code {code}: {printed.err[-600:]}{printed.out[-600:]}"
        if words[0] == "init":
            with Path("ragbench.yaml").open("a", encoding="utf-8") as file:
                file.write(QUICK)
        if not printed.out.strip() and not line.startswith(SILENT):
            return f"{line} prints nothing"
        for step in re.findall(r"^next: ragbench (.*)$", printed.out, flags=re.M):
            compose([word for word in shlex.split(step) if not word.startswith("@")])
        return ""

    def _main(self, words: list[str]) -> int:
        with pytest.MonkeyPatch.context() as patch:
            empty = words[:2] == ["serve", "mcp"]
            answers = io.TextIOWrapper(io.BytesIO(b"" if empty else b"1\nq\n"))
            patch.setattr(sys, "stdin", answers)
            if empty:
                patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
            return cli.main(words)

    @staticmethod
    def _remedy(error: str) -> list[str]:
        """The words that a refusal names."""
        if named := re.search(r"--force\b", error):
            return [named[0]]
        if arm := re.search(r"\(arm='(\S+)'", error):
            return ["--arm", arm[1]]
        return ["data.queries=new.csv"] if "such as data.queries=new.csv" in error else []

    def _prepare(self, words: list[str]) -> None:
        """Make what a command needs, and remove what it would not overwrite."""

        def run(line: str) -> None:
            assert cli.main(shlex.split(line)) == 0, f"{line}: {self.capsys.readouterr().err}"

        if words[0] == "topics":
            Path("topics.jsonl").unlink(missing_ok=True)
        if words[:2] == ["data", "pool"]:
            Path("pool.csv").unlink(missing_ok=True)
        if words[0] == "gate" and "--pin" not in words and "gate:" not in Path("ragbench.yaml").read_text("utf-8"):
            run("gate --pin @2/recommended")
        if words[0] == "export" and ("--out" not in words or "bundle" in words):
            shutil.rmtree("bundle", ignore_errors=True)
        for bundle, arm in (("bundle", "baseline"), ("bundle2", "recommended")):
            if bundle in words and words[0] != "export" and not Path(bundle).exists():
                run(f"export @1/{arm} --force --out {bundle}")
        if "notes.sqlite" in words and not Path("notes.sqlite").exists():
            run("export @1/recommended --format sqlite --force --out notes.sqlite")
        if "pool.csv" in words and not Path("pool.csv").exists():
            run("data pool @1 --depth 1")
        if "3f2a..." in words:
            import mlflow

            run("track @1")
            tracked = mlflow.search_runs(search_all_experiments=True)
            self.stands_for["3f2a..."] = tracked[tracked["tags.mlflow.parentRunId"].isna()].run_id.iloc[0]

    def _serve(self, words: list[str]) -> str:
        """Start a server and wait for its first line, which has its address."""
        self.stop()
        port = str(free_port())
        if "--port" in words:
            words[words.index("--port") + 1] = port
        elif "--watch" not in words:
            words = [*words, "--port", port]
        self.server = subprocess.Popen(
            [sys.executable, "-m", "ragbench", *words],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
            env={**os.environ, "PYTHONPATH": str(ROOT), "BROWSER": "true"},
        )
        assert self.server.stdout is not None and self.server.stderr is not None
        line = self.server.stdout.readline()
        if not line:
            return f"{shlex.join(words)}: {self.server.stderr.read()[-600:]}"
        if address := re.search(r"https?://[^\s;]+", line):
            self.address = address[0].replace("0.0.0.0", "127.0.0.1")
        if words[0] == "serve":
            headers = {"authorization": f"Bearer {Path('token').read_text('utf-8').strip()}"}
            search = {"json": {"query": "backup"}, "headers": headers, "timeout": 60}
            httpx.post(f"{self.address}/search", **search).raise_for_status()
        return ""

    def _curl(self, words: list[str]) -> str:
        if self.server is None and (wrong := self.ragbench(["serve", "bundle"])):
            return wrong
        host = re.compile(r"^(https?://)?(localhost:\d+|127\.0\.0\.1:\d+|[a-z.]+\.example\.org)")
        token = Path("token").read_text("utf-8").strip()
        words = [host.sub(self.address, word).replace("$TOKEN", token) for word in words]
        if not shutil.which("curl"):
            return ""
        done = subprocess.run([*words, "--fail"], check=False, capture_output=True, text=True)
        return f"{shlex.join(words)}: {done.stderr}" if done.returncode else ""

    def stop(self) -> None:
        """End the server as Ctrl-C does."""
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.communicate(timeout=60)
            self.server = None


@contextmanager
def shell(stands_for: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[list[str]], None]]:
    """A function that runs the lines of a block, and the end of the server that they started."""
    wrong: list[str] = []

    def run(lines: list[str]) -> None:
        for line in lines:
            try:
                outcome = typed.run(line)
            except (AssertionError, httpx.HTTPError) as error:
                outcome = f"{line}: {error!r}"
            wrong.extend([outcome] * bool(outcome))

    with pytest.MonkeyPatch.context() as patch:
        typed = Shell(stands_for, capsys, patch)
        try:
            yield run
        finally:
            typed.stop()
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("page", lines_of_pages())
def test_commands_of_page_run(page: str, folder: Path, stands_for: dict[str, str], capsys) -> None:
    before = sorted((ROOT / "results").glob("**/*"))
    runs = {*(folder / "results" / "runs").iterdir()}
    if any(line.startswith("ragbench init") for block in lines_of_pages()[page] for line in block):
        (folder / "ragbench.yaml").unlink()  # the page begins with a folder of notes
    with shell(stands_for, capsys) as run:
        for block in lines_of_pages()[page]:
            for later in {*(folder / "results" / "runs").iterdir()} - runs:  # a block speaks of its own newest run
                shutil.rmtree(later)
            run(block)
    assert sorted((ROOT / "results").glob("**/*")) == before  # results are written where a command is typed


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in commands.everything() if command.split()[0] not in PARSED])
def test_examples_of_help_run(command: str, folder: Path, stands_for: dict[str, str], capsys) -> None:
    lines = [f"ragbench {shlex.join(words)}" for words in examples(command)]
    with shell(stands_for, capsys) as run:
        run([line for line in lines if not reason(line)])


def test_examples_of_help_parse() -> None:
    for command in commands.everything():
        for words in examples(command):
            parsed(words)
