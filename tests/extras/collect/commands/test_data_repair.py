"""`ragbench data repair`: new files with the names of today, and old files that stay whatever happens."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragbench.benchmark.load import load_benchmark
from ragbench.commands import cli
from ragbench.extras.collect.repair import rewritten, written_names
from ragbench.extras.remote.golden import read_cases


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
    assert "moved     a.md -> new-a.md, confidence 1.00" in out and "merged    merged.md -> book.md" in out
    assert "gone      old.md" in out and "nothing is written: add --write" in out
    assert sorted(path.name for path in place.iterdir()) == before


def test_repair_follows_sections_by_the_anchors_of_a_site(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = f"# Keys\n\n{prose(11)}\n\n## Rotate them\n\n{prose(12)}\n"
    (place / "before" / "keys.md").write_text(page)
    (place / "docs" / "access.md").write_text(page)
    (place / "queries.csv").write_text("text,relevant\nrotate,keys.md#rotate-them\n")
    assert repair("--write") == 0
    assert "moved     keys.md#rotate-them -> access.md#rotate-them, confidence" in capsys.readouterr().out
    assert (place / "queries.repaired.csv").read_text() == "text,relevant\nrotate,access.md#rotate-them\n"


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.json", '[{"q": "kept", "url": "a.md"}, {"q": "lost", "sources": [{"id": "old"}]}]'),
        ("g.json", '{"kept": ["a.md"], "lost": ["old.md"]}'),
        ("g.yaml", "- q: kept\n  url: a.md\n- q: lost\n  relevant:\n    - old.md\n"),
        ("g.csv", "question,url\nkept,a.md\nlost,old.md\n"),
    ],
)
def test_repair_leaves_a_golden_case_without_a_page(place: Path, capsys, name: str, text: str) -> None:
    (place / name).write_text(text)
    assert repair("--golden", name, "--write") == 0
    assert "gone      old" in capsys.readouterr().out
    (kept,), without = read_cases(place / name.replace("g.", "g.repaired."))
    assert (kept.expected, without) == (("new-a.md",), ["lost"])


GOLDEN = """\
# golden cases of the search
cases:
  - query: first   # the oldest
    expected:
      - a.md       # renamed
      - 'old.md'   # gone
      - "b.md"
    filter: {version: "1"}

  - query: second
    sources: [{id: c}, {path: merged.md}]
  - {q: third, relevant: [a.md, old.md, 12], note: a.md}
  - {q: fourth, url: "b.md"}
"""


def test_repair_of_a_golden_file_in_yaml_keeps_comments(place: Path) -> None:
    (place / "golden.yaml").write_text(GOLDEN)
    assert repair("--golden", "golden.yaml", "--write") == 0
    new = GOLDEN.replace("- a.md ", "- new-a.md ").replace("      - 'old.md'   # gone\n", "")
    new = new.replace('"b.md"', '"new-b.md"').replace("{id: c}", "{id: new-c}").replace("merged.md", "book.md")
    assert (place / "golden.repaired.yaml").read_text() == new.replace("[a.md, old.md, 12]", "[new-a.md, 12]")
    cases, _ = read_cases(place / "golden.repaired.yaml")
    assert [case.expected for case in cases] == [
        ("new-a.md", "new-b.md"),
        ("new-c", "book.md"),
        ("new-a.md", "12"),
        ("new-b.md",),
    ]


@pytest.mark.parametrize(
    ("name", "text", "new"),
    [
        ("g.json", '{"first": ["a.md", "old.md"], "second": "b"}', {"first": ("new-a.md",), "second": ("new-b",)}),
        (
            "g.json",
            '{"cases": [{"q": "first", "sources": [{"id": "a"}, {"docno": "b"}]}]}',
            {"first": ("new-a", "new-b")},
        ),
        ("g.yaml", "first: [a.md, old.md]\nsecond: b\n", {"first": ("new-a.md",), "second": ("new-b",)}),
        ("g.jsonl", '{"question": "first", "expected_ids": ["a.md"], "answer": "a.md"}\n', {"first": ("new-a.md",)}),
        ("g.csv", "question,url\nfirst,a.md; b\n", {"first": ("new-a.md", "new-b")}),
        ("g.jsonl", '// seed\n{"query": "first", "relevantDocIds": ["a.md"]}\n', {"first": ("new-a.md",)}),
        ("g.json", '{"s": {"c": [{"q": "first", "id": "a.md", "expected": {"ids": ["b"]}}]}}', {"first": ("new-b",)}),
        ("g.yaml", "s:\n  c:\n  - {q: first, expected_pages: [a.md]}\n", {"first": ("new-a.md",)}),
    ],
)
def test_repair_of_golden_files_of_every_form(place: Path, name: str, text: str, new: dict[str, Any]) -> None:
    (place / name).write_text(text)
    assert repair("--golden", name, "--write") == 0
    repaired = place / name.replace("g.", "g.repaired.")
    assert {case.query: case.expected for case in read_cases(repaired)[0]} == new
    assert (place / name).read_text() == text


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
    (place / "other.json").write_text('[{"id": "a.md", "text": "a"}]')
    assert repair("--golden", "other.json") == 2
    assert "other.json: no judgment names a document or section" in capsys.readouterr().err
    data = ("data=vault", "data.corpus=docs", "data.queries=queries.csv")
    assert cli.main(["data", "repair", *data, "--since", "v2"]) == 2
    assert "the documents are in no git repository, so that --since v2 is not known there" in capsys.readouterr().err


KILLED = """
import os, signal, sys
from pathlib import Path
from ragbench.base import files
from ragbench.benchmark.label_health import Followed
from ragbench.corpus.reader import parse_document
from ragbench.extras.collect import repair

flush, left = files.flush, 0

def counting(path):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    flush(path)

files.flush = counting
page, _ = parse_document("new-a", "new-a.md", b"words", 0.0)
fixes = repair.Repair({"a.md": Followed("a", "moved", ("new-a",), 1.0, "")}, {"new-a": page})
for number in range(1, 100):
    if not (child := os.fork()):
        left = number
        repair.write(Path(sys.argv[1]), fixes)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(number, os.WIFSIGNALED(status), flush=True)
    if not os.WIFSIGNALED(status):
        sys.exit(os.WEXITSTATUS(status))
"""


@pytest.mark.parametrize(("target", "least"), [("queries.csv", 2), ("qrels", 8)])
def test_repair_that_is_killed_leaves_the_old_files_and_no_part_of_new_ones(
    place: Path, target: str, least: int
) -> None:
    """A process is killed at its first write to the disk, another one at its second, until one ends."""
    (place / "qrels").mkdir()
    (place / "qrels" / "topics.jsonl").write_text('{"qid": "q0", "text": "query"}\n')
    for name in ("documents.qrels", "sections.qrels"):
        (place / "qrels" / name).write_text("q0 0 a.md 2\n")
    old = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    done = subprocess.run([sys.executable, "-c", KILLED, target], capture_output=True, text=True, check=True)
    *killed, last = [line.split()[1] for line in done.stdout.splitlines()]
    assert len(killed) >= least and set(killed) == {"True"} and last == "False"
    new = list(place.glob("q*.repaired*"))  # drafts begin with a dot
    assert new
    for path in new:
        if path.is_dir():
            assert {file.name for file in path.iterdir()} == {"topics.jsonl", "documents.qrels", "sections.qrels"}
            assert {file.read_text() for file in path.glob("*.qrels")} == {"q0 0 new-a.md 2\n"}
        else:
            assert path.read_text() == (place / "queries.csv").read_text().replace("a.md", "new-a.md").replace('"', "")
    assert {path: path.read_bytes() for path in old} == old
