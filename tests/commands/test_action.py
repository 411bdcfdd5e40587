"""The GitHub action: its steps run by hand from a clean clone, on repositories of notes and of another search."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.extras.remote.test_comment import Forge

ROOT = Path(__file__).resolve().parent.parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step.get("name"): step for step in ACTION["runs"]["steps"]}
WORDS = [f"w{letter}rd" for letter in "abcdefghijklmn"]


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "notes")
    return git(folder, "rev-parse", "HEAD")


class Job:
    """A job of CI: the steps of the action, one after the other, with the outputs and the summary as files."""

    def __init__(self, folder: Path, clone: Path, binaries: Path, inputs: Mapping[str, str]) -> None:
        self.folder, self.temp = folder, folder.parent / "runner"
        self.temp.mkdir()
        defaults = {name: str(given["default"]) for name, given in ACTION["inputs"].items()}
        self.inputs = {**defaults, "folder": ".", "base": "", "token": "s3cret", **inputs}
        self.environment = {
            **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")},
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(clone),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "GITHUB_OUTPUT": str(self.temp / "output"),
        }

    def run(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        outputs = self.temp / "output"
        code = outputs.read_text("utf-8").strip().removeprefix("code=") if outputs.is_file() else ""
        values = {f"inputs.{key}": value for key, value in self.inputs.items()} | {"steps.gate.outputs.code": code}
        given = {
            key: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], value)
            for key, value in STEPS[name].get("env", {}).items()
        }
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
            **{"cwd": self.folder, "env": self.environment | given | more},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "repository" / "docs"
    (folder / "notes").mkdir(parents=True)
    for word in WORDS:
        text = f"# The {word}\n\nAll about {word} and its care.\n\n## Repair of {word}\n\nTake a {word} apart first.\n"
        (folder / "notes" / f"{word}.md").write_text(text, encoding="utf-8")
    rows = [f"care of {word},{word}.md,test" for word in WORDS]
    (folder / "queries.csv").write_text("\n".join(["text,relevant,split", *rows]) + "\n", encoding="utf-8")
    project = {"data": "vault", "data.corpus": "notes", "data.queries": "queries.csv", "split": "all"}
    (folder / "ragbench.yaml").write_text(yaml.safe_dump(project), encoding="utf-8")
    git(folder.parent, "init", "-q")
    return folder


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """`ragbench` and `python` of this environment, as `install` would have left them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (("ragbench", "-m ragbench "), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" {words}"$@"\n')
        (folder / name).chmod(0o755)
    return folder


def commented(job: Job, forge: Forge) -> str:
    """The comment that the step writes."""
    event = job.temp / "event.json"
    event.write_text('{"pull_request": {"number": 7}}', "utf-8")
    variables = {"GITHUB_API_URL": forge.url, "GITHUB_REPOSITORY": "owner/docs", "GITHUB_EVENT_PATH": str(event)}
    done = job.run("comment", **variables)
    assert done.returncode == 0 and "::warning::" not in done.stdout, done.stdout + done.stderr
    return str(forge.sent[-1][2])


@pytest.mark.slow
def test_action_comments_on_renamed_merged_and_deleted_pages(notes: Path, binaries: Path) -> None:
    """Their author moved the labels of two renamed pages and of the merged one; the third follows its page in Git."""
    base = commit(notes)
    pages, queries = notes / "notes", notes / "queries.csv"
    for word in WORDS[:3]:
        (pages / f"{word}.md").rename(pages / f"{word}-guide.md")
        if word != WORDS[2]:
            queries.write_text(queries.read_text("utf-8").replace(f"{word}.md", f"{word}-guide.md"), "utf-8")
    merged = (pages / f"{WORDS[3]}.md").read_text("utf-8")
    (pages / f"{WORDS[3]}.md").unlink()
    into = pages / f"{WORDS[4]}.md"
    into.write_text(f"{into.read_text('utf-8')}\n{merged}", "utf-8")
    queries.write_text(queries.read_text("utf-8").replace(f"{WORDS[3]}.md", f"{WORDS[4]}.md"), "utf-8")
    (pages / f"{WORDS[5]}.md").write_text("# Moved\n\nThis page is gone.\n", "utf-8")
    commit(notes)
    job = Job(notes, ROOT, binaries, {"base": base, "arm": "exp=lexical_only statistics.draws=2000"})
    done = job.run("gate")
    assert done.returncode == 0, done.stderr
    with Forge("github", []) as forge:
        text = commented(job, forge)
    assert text.startswith("<!-- ragbench: gate -->\n## Search gate is inconclusive: 1 query lost\n")
    assert f"- `care of {WORDS[5]}`: `{WORDS[5]}.md` was at 1, is not in 10" in text
    assert "label health: " in text
    assert "| documents, nDCG@10 |" in text and "**What to do.** Repair the judgments of pages that moved (" in text
    assert not any(f"`care of {word}`" in text for word in WORDS[:5])
    assert (job.temp / "summary").read_text("utf-8") in text
    outcome = job.run("outcome")
    assert (outcome.returncode, outcome.stdout.startswith("::warning::")) == (0, True)
    assert git(notes, "worktree", "list").count("\n") == 0


@pytest.mark.slow
def test_action_fails_a_change_that_empties_notes(notes: Path, binaries: Path) -> None:
    base = commit(notes)
    for word in WORDS[:12]:
        (notes / "notes" / f"{word}.md").write_text("# Note\n\nTo be written.\n", encoding="utf-8")
    job = Job(notes, ROOT, binaries, {"base": base, "arm": "exp=lexical_only statistics.draws=2000"})
    assert job.run("gate").returncode == 0
    assert "## Search gate fails: 1" in (job.temp / "gate.md").read_text("utf-8")
    assert job.run("outcome").returncode == 1


def test_action_says_why_nothing_was_compared(notes: Path, binaries: Path) -> None:
    (notes / "ragbench.yaml").unlink()
    base = commit(notes)
    job = Job(notes, ROOT, binaries, {"base": base})
    assert job.run("gate").returncode == 0
    assert "has no docs/ragbench.yaml: nothing can be compared" in (job.temp / "summary").read_text("utf-8")
    assert job.run("outcome").returncode == 2
    assert job.run("comment").stdout.startswith("::warning::the comment could not be written")


BATCH = """\
import json, pathlib, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "hits": pathlib.Path("hits").read_text().split()}))
"""


def golden_repository(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "golden.json").write_text(json.dumps({"rotate a key": "guide/keys.md"}), "utf-8")
    (folder / "batch.py").write_text(BATCH, "utf-8")
    (folder / "hits").write_text("guide/keys.md guide/a.md", "utf-8")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is committed, and nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "clone"
    git(ROOT, "clone", "--quiet", "--no-local", "--depth", "1", f"file://{ROOT}", str(folder))
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """The programs of an environment without packages."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv" / "bin"


LOST = "- `rotate a key`: `guide/keys.md` was at 1, is not in 10; at 1 is now `guide/b.md`"


@pytest.mark.slow
def test_action_from_a_clean_clone_comments_on_a_golden_file(tmp_path: Path, clone: Path, empty: Path) -> None:
    """It installs from an index what the lock has and no more."""
    golden_repository(tmp_path / "repository")
    job = Job(tmp_path / "repository", clone, empty, {"golden": "golden.json", "search": "python batch.py"})
    installed = job.run("install")
    assert installed.returncode == 0, installed.stderr
    packages = empty.parent / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    assert not (packages / "scipy").exists() and not (packages / "mlflow").exists()
    subprocess.run(
        [empty / "ragbench", "gate", "--golden", "golden.json", "--search", "python batch.py", "--write-baseline"],
        **{"cwd": job.folder, "env": job.environment, "check": True},
    )
    (job.folder / "hits").write_text("guide/b.md guide/a.md", "utf-8")
    assert job.run("gate").returncode == 0
    with Forge("github", []) as forge:
        text = commented(job, forge)
    assert "## Search gate fails: 1 query lost" in text and LOST in text
    assert job.run("outcome").returncode == 1


@pytest.mark.slow
def test_workflow_of_the_page_works_as_it_is(tmp_path: Path, clone: Path, empty: Path) -> None:
    """The wheel and the lock in `search`, as the page says; `node` is a program that prints hits."""
    page = (ROOT / "docs" / "ci-gate.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(on: pull_request\n.*?)```", page, re.S)
    steps = [step for step in yaml.safe_load(block)["jobs"]["search"]["steps"] if "run" in step]
    repository = tmp_path / "repository"
    golden_repository(repository)
    (repository / "search").mkdir()
    (repository / "search" / "gate.txt").write_bytes((clone / "requirements" / "gate.txt").read_bytes())
    wheel = ["wheel", "--quiet", "--no-deps", "-w", repository / "search", clone]
    subprocess.run([empty / "pip", *wheel], check=True, cwd=tmp_path)
    (empty / "node").write_text("#!/bin/sh\necho '[\"guide/b.md\"]'\n")
    (empty / "node").chmod(0o755)
    (repository / "golden.baseline.json").write_text(
        '{"depth": 10, "surfaces": {"search": [{"query": "rotate a key", "ranks": {"guide/keys.md": 1}}]}}', "utf-8"
    )
    job = Job(repository, clone, empty, {})
    (job.temp / "event.json").write_text('{"pull_request": {"number": 7}}', "utf-8")
    with Forge("github", []) as forge:
        place = {"GITHUB_API_URL": forge.url, "GITHUB_REPOSITORY": "owner/docs", "GITHUB_TOKEN": "s3cret"}
        environment = {**job.environment, **place, "GITHUB_EVENT_PATH": str(job.temp / "event.json")}
        codes = [
            subprocess.run(["bash", "-e", "-c", step["run"]], cwd=repository, env=environment, check=False).returncode
            for step in steps
        ]
    assert codes == [0, 1, 0]
    assert LOST in forge.sent[0][2] and LOST in (job.temp / "summary").read_text("utf-8")


def test_action_is_pinned_and_gives_no_token_to_the_search() -> None:
    used = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) for name in used)  # a tag can be moved
    with_token = [name for name, step in STEPS.items() if "inputs.token" in str(step.get("env"))]
    assert with_token == ["comment"]
    named = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert named == set(ACTION["inputs"])
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert not any("${{" in script for script in scripts)  # an input is not code
