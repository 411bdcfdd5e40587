"""`ragbench data repair`: new files with the names of today, and old files that stay whatever happens."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragbench.benchmark.load import load_benchmark
from ragbench.commands import cli
from ragbench.extras.collect.repair import rewritten, written_names


def prose(seed: int, n: int = 60) -> str:
    chosen = random.Random(seed)
    return " ".join("".join(chosen.choices("abcdefghij", k=5)) for _ in range(n))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault without git: an earlier folder, and today with three pages renamed, one merged, one deleted."""
    monkeypatch.chdir(tmp_path)
    pages = {name: f"# On {name}s\n\n{prose(number)}\n" for number, name in enumerate(("a", "b", "c", "merged", "old"))}
    for name, text in pages.items():
        (tmp_path / "before").mkdir(exist_ok=True)
        (tmp_path / "before" / f"{name}.md").write_text(text)
    (tmp_path / "docs").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "docs" / f"new-{name}.md").write_text(pages[name])
    (tmp_path / "docs" / "book.md").write_text(f"# Book\n\n{prose(7, 200)}\n\n{pages['merged']}")
    rows = [f'q{n},query {n},"{relevant}"' for n, relevant in enumerate(("a.md", "b;c", "merged.md", "old.md"))]
    (tmp_path / "queries.csv").write_text("\n".join(["qid,text,relevant", *rows]) + "\n")
    return tmp_path


def repair(*more: str) -> int:
    data = ("data=vault", "data.corpus=docs", "data.queries=queries.csv")
    return cli.main(["data", "repair", *data, "--before", "before", *more])


def test_repair_prints_first_and_writes_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in place.iterdir())
    assert repair() == 0
    out = capsys.readouterr().out
    assert "label health: 0 of 5 judged names stand, 4 moved, 1 is gone" in out
    assert "moved     a.md -> new-a, confidence 1.00" in out and "merged    merged.md -> book" in out
    assert "gone      old.md" in out and "nothing is written: add --write" in out
    assert sorted(path.name for path in place.iterdir()) == before


def test_repair_writes_a_new_file_and_keeps_the_old(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = (place / "queries.csv").read_text()
    assert repair("--write") == 0
    assert (place / "queries.csv").read_text() == old
    new = (place / "queries.repaired.csv").read_text()
    assert new == ("qid,text,relevant\nq0,query 0,new-a.md\nq1,query 1,new-b;new-c\nq2,query 2,book.md\nq3,query 3,\n")
    benchmark = load_benchmark("vault", corpus=place / "docs", queries=place / "queries.repaired.csv")
    assert benchmark.document_qrels == {"q0": {"new-a": 1}, "q1": {"new-b": 1, "new-c": 1}, "q2": {"book": 1}}
    assert repair("--write") == 0
    assert (place / "queries.repaired-2.csv").read_text() == new


def test_repair_of_a_folder_of_judgments(place: Path) -> None:
    (place / "qrels").mkdir()
    (place / "qrels" / "topics.jsonl").write_text('{"qid": "q0", "text": "query"}\n')
    (place / "qrels" / "documents.qrels").write_text("q0 0 a 2\nq0 0 old 1\n")
    data = ["data=native", "data.corpus=docs", "data.qrels=qrels"]
    assert cli.main(["data", "repair", *data, "--before", "before", "--write"]) == 0
    assert (place / "qrels.repaired" / "documents.qrels").read_text() == "q0 0 new-a 2\n"
    assert (place / "qrels.repaired" / "topics.jsonl").exists()
    assert (place / "qrels" / "documents.qrels").read_text() == "q0 0 a 2\nq0 0 old 1\n"


def test_repair_of_a_golden_file(place: Path) -> None:
    cases = [{"query": "x", "expected": ["a.md", "old.md"], "filter": {"version": "1"}}, {"query": "y", "url": "b.md"}]
    (place / "golden.json").write_text(json.dumps(cases))
    assert repair("--golden", "golden.json", "--write") == 0
    assert json.loads((place / "golden.repaired.json").read_text()) == [
        {"query": "x", "expected": ["new-a.md"], "filter": {"version": "1"}},
        {"query": "y", "url": "new-b.md"},
    ]


@pytest.mark.parametrize(
    ("name", "text", "names", "new"),
    [
        ("a.qrels", "q1 0 a 1\nq1 0 b#x 2\n", ["a", "b#x"], "q1 0 A 1\nq1 0 B#X 2\n"),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t2\n", ["a"], "query-id\tcorpus-id\tscore\nq1\tA\t2\n"),
        ("q.tsv", "text\trelevant\nhow\ta\n", ["a"], "text\trelevant\nhow\tA\n"),
        ("q.jsonl", '{"text": "how", "relevant": "a"}\n', ["a"], '{"text": "how", "relevant": "A"}\n'),
        ("q.csv", 'text,relevant\nhow,"a ""some words"";b"\n', ["b"], 'text,relevant\nhow,"a ""some words"";B"\n'),
    ],
)
def test_rewritten_changes_only_names(tmp_path: Path, name: str, text: str, names: list[str], new: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert list(written_names(file)) == names
    assert rewritten(file, lambda name: [name.upper()]) == new


def test_repair_refuses_what_it_cannot_use(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "repair", "data=vault", "data.corpus=docs"]) == 2
    assert "no file of judgments is set" in capsys.readouterr().err
    assert repair("--since", "HEAD") == 2
    assert "use one of them" in capsys.readouterr().err
    assert repair("--golden", "none.json") == 2
    assert "none.json does not exist" in capsys.readouterr().err


WRITING = """
import sys
from pathlib import Path
from ragbench.base import files
from ragbench.commands import cli
flush = files.flush
def slow(path):
    print("writing", flush=True)
    sys.stdin.readline()
    flush(path)
files.flush = slow
cli.main("data repair data=vault data.corpus=docs data.queries=queries.csv --before before --write".split())
"""


def test_repair_that_is_killed_leaves_the_old_file_and_no_part_of_a_new_one(place: Path) -> None:
    old = (place / "queries.csv").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while "writing" not in process.stdout.readline():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert (place / "queries.csv").read_bytes() == old
    assert not list(place.glob("queries.repaired*"))
