"""Each `next:` that ragbench prints works: from notes to a server, and from unjudged queries to a measured run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from ragbench import commands
from ragbench.commands import cli
from tests.docs.pages import ROOT, overrides

QUICK = ("latency.enabled=false", "tracking.enabled=false", "statistics.draws=500")
QUERIES = """text,relevant
how do programs prove their identity,authentication.md
counters,metrics.md
copies of the data at night,backup.md
why is a request slow,slow-requests.md
"""
# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with notes and the same four queries, with and without answers."""
    shutil.copytree(ROOT / "tests" / "data" / "phases", tmp_path / "notes")
    (tmp_path / "queries.csv").write_text(QUERIES, encoding="utf-8")
    unjudged = "\n".join(row.partition(",")[0] for row in QUERIES.splitlines())
    (tmp_path / "unjudged.csv").write_text(f"{unjudged}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def follow(line: str, capsys: pytest.CaptureFixture[str], until: str = "serve") -> list[str]:
    """Run a command, then each next one that is printed, up to one; returns the names of the commands."""
    names: list[str] = []
    while shlex.split(line)[0] != until:
        words = shlex.split(line)
        if words[:2] == ["judge", "pool.csv"] and "--merge" not in words:  # what a person does at the keyboard
            pool = Path("pool.csv")
            pool.write_text(pool.read_text(encoding="utf-8").replace(",,\n", ",1,\n"), encoding="utf-8")
        takes_settings = words[0] not in ("init", "export", "verify", "refresh") and overrides(words) is not None
        quick = QUICK if takes_settings else {"verify": ("--no-latency",)}.get(words[0], ())
        code = cli.main([*words, *quick])
        output = capsys.readouterr()
        assert code == 0, f"{line}: {output.out}{output.err}"
        names.append(commands.call(words).name)  # type: ignore[union-attr]
        printed = re.findall(r"^next: ragbench (.*)$", output.out, flags=re.M)
        if not printed or len(names) > 8:
            return names
        line = printed[0]
    return [*names, until]


@pytest.mark.slow
def test_next_steps_lead_from_notes_to_a_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Four queries leave the verdict open, so what more of them could show comes first.
    assert follow("init notes --queries queries.csv --yes", capsys) == ["init", "run", "data power"]
    assert follow("export @1/baseline --out bundle", capsys) == ["export", "verify", "serve"]
    (folder / "notes" / "zebra.md").write_text("# Zebra\n\nA zebra crossing.\n", encoding="utf-8")
    assert follow("refresh bundle", capsys) == ["refresh", "verify", "serve"]
    # An existing bundle is not overwritten, also by the next run.
    assert follow("run exp=lexical_only", capsys, until="diagnose")[-1] == "diagnose"
    assert cli.main(["run", "-m", "exp=lexical_only,baseline", *QUICK]) == 0
    kept = re.findall(r"to keep lexical_only: ragbench\s+(.*)$", capsys.readouterr().out, flags=re.M)
    assert kept == ["export @1/lexical_only --out bundle-2"]
    assert follow(kept[0], capsys, until="verify") == ["export", "verify"]
    assert (folder / "bundle-2").is_dir()


@pytest.mark.slow
def test_next_steps_lead_from_unjudged_queries_to_a_measured_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", "notes", "--queries", "unjudged.csv", "--yes"]) == 0
    capsys.readouterr()
    names = follow("run exp=lexical_only allow_unjudged=true", capsys)
    assert names == ["run", "data pool", "judge", "judge", "run", "data power"]  # of four queries: the verdict is open
    assert "relevant" not in (folder / "unjudged.csv").read_text() and (folder / "qrels" / "sections.qrels").is_file()


@pytest.mark.slow
def test_next_steps_lead_from_derived_topics_to_an_export(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = "data=vault data.corpus=notes"
    assert follow(f"topics derive {data}", capsys, until="export")[1:] == ["run", "data power"]
    assert follow(f"data check {data} data.queries=queries.csv", capsys, until="run")[-1] == "run"
