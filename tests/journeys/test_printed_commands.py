"""Commands that ragbench prints work as printed: every `next:` of four journeys, and the examples of `--help`."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragbench import commands
from ragbench.commands import cli
from tests.test_docs import overrides, parsed

HANDBOOK = Path(__file__).resolve().parents[1] / "data" / "phases"
QUICK = ("latency.enabled=false", "tracking.enabled=false", "statistics.draws=500")
ROWS = (
    "how do programs prove their identity,authentication.md",
    "counters,metrics.md",
    "copies of the data at night,backup.md",
    "why is a request slow,slow-requests.md",
)
# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with notes and the same four questions, with and without answers."""
    shutil.copytree(HANDBOOK, tmp_path / "notes")
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant", *ROWS]) + "\n", encoding="utf-8")
    unjudged = "\n".join(["text", *(row.partition(",")[0] for row in ROWS)])
    (tmp_path / "unjudged.csv").write_text(f"{unjudged}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(words: list[str]) -> list[str]:
    """The words with those that make a run quick, where the command takes settings."""
    takes = overrides(words) is not None and words[0] not in ("init", "export", "verify", "refresh")
    more = QUICK if takes else {"verify": ("--no-latency",)}.get(words[0], ())
    return [*words, *more]


def follow(line: str, capsys: pytest.CaptureFixture[str], until: str = "serve") -> list[str]:
    """Type a command, then each next one that is printed, up to one; the commands without their words."""
    done: list[str] = []
    while shlex.split(line)[0] != until:
        words = shlex.split(line)
        if words[:2] == ["judge", "pool.csv"] and "--merge" not in words:  # what a person does at the keyboard
            pool = Path("pool.csv")
            pool.write_text(pool.read_text(encoding="utf-8").replace(",,\n", ",1,\n"), encoding="utf-8")
        code = cli.main(typed(words))
        said = capsys.readouterr()
        assert code == 0, f"{line}: {said.out}{said.err}"
        done.append(commands.call(words).name)  # type: ignore[union-attr]
        follows = re.findall(r"^next: ragbench (.*)$", said.out, flags=re.M)
        if not follows or len(done) > 8:
            return done
        line = follows[0]
    return [*done, until]


def test_every_next_step_from_notes_to_a_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert follow("init notes --queries queries.csv --yes", capsys) == ["init", "run", "export", "verify", "serve"]
    (folder / "notes" / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    assert follow("refresh bundle", capsys) == ["refresh", "verify", "serve"]
    # What is there is not written over, also by the next run.
    assert follow("run exp=lexical_only", capsys, until="diagnose")[-1] == "diagnose"
    assert follow("run -m exp=lexical_only,baseline", capsys, until="verify") == ["run", "export", "verify"]
    assert (folder / "bundle-2").is_dir()


@pytest.mark.slow
def test_every_next_step_from_unjudged_queries_to_a_comparison(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", "notes", "--queries", "unjudged.csv", "--yes"]) == 0
    capsys.readouterr()
    done = follow("run exp=lexical_only allow_unjudged=true", capsys, until="export")
    assert done == ["run", "data pool", "judge", "judge", "run", "export"]
    assert "relevant" not in (folder / "unjudged.csv").read_text() and (folder / "qrels" / "sections.qrels").is_file()


@pytest.mark.slow
def test_every_next_step_from_a_table_of_topics_to_a_comparison(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = "data=vault data.corpus=notes"
    assert follow(f"topics derive {data}", capsys, until="export") == ["topics", "run", "export"]
    assert follow(f"data check {data} data.queries=queries.csv", capsys, until="run") == ["data", "run"]


def examples(*names: str) -> Iterator[list[str]]:
    """The words of every example of `--help`, of some commands or of all, without what is said about it."""
    for name in names or commands.everything():
        called = commands.call(name.split())
        assert called is not None
        for line in getattr(importlib.import_module(called.module), "EXAMPLES", "").splitlines():
            for part in re.split(r" && |\)|\bthen: | \| ", line):
                if found := re.search(r"\bragbench (.*)", part):
                    yield shlex.split(re.split(r" {2,}", found[1])[0])


def test_every_example_of_the_help_is_one_that_ragbench_takes() -> None:
    found = list(examples())
    assert len(found) > 170
    for words in found:
        parsed(words)
