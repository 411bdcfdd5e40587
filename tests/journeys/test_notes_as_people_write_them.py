"""Notes, queries and runs as people write them, each by the command that a user types, with the right result."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragbench
from ragbench.base.types import ResultsError
from ragbench.commands.cli import main
from ragbench.corpus.reader import read_vault
from ragbench.index.chunking import HeaderChunker
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.texts import PassageTemplate

NOTES = {
    "farm/hives.md": "# Hives\n\nA beekeeper opens them on warm days. See [honey](honey.md).\n\n## Frames\n\nTen.\n",
    "farm/honey.md": "# Honey\n\nHoney is extracted in July.\n",
    "farm/wax.md": "# Wax\n\nWax melts over water.\n",
}
DATA = ("data=vault", "data.corpus=notes")
LEXICAL = (*DATA, "topics=derived", "exp=lexical_only")

Write = Callable[[dict[str, str]], None]
Call = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A function that writes files below a folder, where commands then run; notes of a farm are there."""
    monkeypatch.chdir(tmp_path)

    def files(contents: dict[str, str]) -> None:
        for name, text in contents.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text, encoding="utf-8")

    files({f"notes/{name}": text for name, text in NOTES.items()})
    return files


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """A function that runs a command, which must succeed, and returns what it prints."""

    def printed(*words: str) -> str:
        capsys.readouterr()
        code = main(list(words))
        output = capsys.readouterr()
        assert code == 0, output.err + output.out
        return output.out

    return printed


def hits(call: Call, query: str, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(call("search", query, *LEXICAL, "--json", *more))["hits"]
    return found


def test_init_counts_pages_without_dependencies_and_build_output(write: Write, call: Call) -> None:
    page = "# Hives\n\nCopy of a page.\n"
    write({f"notes/{name}/hives.md": page for name in ("node_modules/bees", "vendor/bees", "dist", "old")})
    write({"notes/package.json": "{}", "notes/.gitignore": "old/\n"})
    output = " ".join(call("init", "notes", "--yes").split())
    assert "3 documents" in output
    assert all(named in output for named in ("node_modules/", "dist/", "old/"))
    assert [hit["path"] for hit in hits(call, "hives")] == ["farm/hives.md"]


def test_evaluate_keeps_pairs_of_distances_in_order_and_names_growing_scores(caplog: pytest.LogCaptureFixture) -> None:
    qrels = {"q1": {"hive": 1}, "q2": {"wax": 1}}
    distances = {"q1": {"hive": 0.1, "wax": 0.4, "honey": 0.9}, "q2": {"wax": 0.2, "hive": 0.3}}
    pairs = {qid: list(found.items()) for qid, found in distances.items()}
    summary = ragbench.evaluate({"dict": distances, "pairs": pairs}, qrels, ["RR"]).summary()
    assert summary["RR"].tolist() == pytest.approx([(1 / 3 + 1 / 2) / 2, 1.0])
    assert "run 'dict': in 2 of 2 queries the scores grow" in caplog.text and "distances" in caplog.text


def test_parts_of_a_long_table_show_its_header(write: Write, call: Call) -> None:
    header = "| colony | weight in kg | honey in kg |\n| --- | --- | --- |\n"
    rows = "".join(f"| colony-{n:03} | {n % 9 + 20} | {n % 7} |\n" for n in range(400))
    write({"notes/f/colonies.md": f"# Colonies\n\n{header}{rows}"})
    row = "| colony-387 | 20 | 2 |"
    shown = next(hit["text"] for hit in hits(call, "weight of colony-387", "--top", "3") if row in hit["text"])
    assert shown.startswith(header)
    context = call("search", "weight of colony-387", *LEXICAL, "--top", "3", "--max-tokens", "3000")
    passage = next(part for part in re.split(r"^\[\d+\] .*\n", context, flags=re.M) if row in part)
    assert passage.startswith(header)
    documents = read_vault(Path("notes")).documents
    Path("chunks").mkdir()
    build_chunks(Path("chunks"), documents, [HeaderChunker().chunk(document) for document in documents])
    embedded = PassageTemplate().passages(ChunkTable(Path("chunks")))
    assert all(header in passage for passage in embedded if "| colony-" in passage)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("search", "stings", *LEXICAL), ("init", "notes", "--yes")], ids=["search", "init"])
def test_commands_print_on_any_terminal(write: Write, words: tuple[str, ...]) -> None:
    write({"notes/h/🐝.md": "# 🐝 Bees “wild” ✓\n\nA bee stings → once.\n"})
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ragbench", *words]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    output = done.stdout.decode("ascii")
    assert ("h/?.md" in output and "stings ? once" in output) if words[0] == "search" else "4 documents" in output


@pytest.mark.slow
def test_two_runs_at_once_are_both_recorded(write: Write) -> None:
    write({"queries.csv": "text,relevant\nwarm days,hives.md\nextracted,honey.md\nmelts,wax.md\n"})
    command = [sys.executable, "-m", "ragbench", "run", "exp=lexical_only", *DATA, "data.queries=queries.csv"]
    command += ["split=all", "latency.enabled=false"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
    printed = [run.communicate()[0].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], printed
    folders = [path.parent.parent.parent for path in Path("results/runs").glob("*/arms/*/done.json")]
    assert len(set(folders)) == 2
    with closing(sqlite3.connect("results/mlflow.db")) as tracked:
        assert tracked.execute("select status from runs").fetchall() == [("FINISHED",)] * 2


@pytest.mark.parametrize("query", ["if", "for", "not", "while"])
def test_search_finds_pages_named_by_stop_words(write: Write, call: Call, query: str) -> None:
    names = {"if": "Runs a block once.", "for": "Repeats a block.", "not": "Turns true into false.", "while": "Waits."}
    write({f"notes/j/{name}.md": f"# {name.title()}\n\n{text}\n" for name, text in names.items()})
    assert hits(call, query)[0]["path"] == f"j/{query}.md"


def test_drafts_drawings_and_images_are_left_out(write: Write, call: Call) -> None:
    encoded = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 60
    drawing = "==\u26a0  Switch to EXCALIDRAW VIEW \u26a0==\n\n# Excalidraw Data\n\n## Text Elements\nStand ^a1B2c3\n\n"
    drawing += "%%\n## Drawing\n```compressed-json\n"
    write(
        {
            "notes/k/plan.md": "---\ndraft: true\n---\n# Plan\n\nBuy the orchard.\n",
            "notes/k/stand.excalidraw.md": f"{drawing}{encoded}\n```\n%%\n",
            "notes/k/photo.md": f"# Photo\n\n![A skep](data:image/png;base64,{encoded})\n",
        }
    )
    output = call("init", "notes", "--yes")
    assert "5 documents, 5 chunks" in output and "draft: true" in output and "Portuguese" not in output
    assert hits(call, "orchard") == [] and hits(call, encoded[:40]) == []
    assert [hit["text"].split() for hit in hits(call, "stand skep")] == [["Stand"], ["#", "Photo", "![A", "skep]()"]]


@pytest.mark.parametrize(
    "query", ["honey AND (extracted OR july)~2", "title:honey^3 +july -", "hon\u00adey \u200bextracted"]
)
def test_operators_and_invisible_signs_of_a_query_do_no_harm(write: Write, call: Call, query: str) -> None:
    assert hits(call, query)[0]["path"] == "farm/honey.md"


def test_evaluate_names_ids_that_pandas_made_fractions() -> None:
    run = pd.DataFrame({"qid": [1.0, 1.0, 2.0], "docno": ["hive", "wax", "wax"], "score": [2.0, 1.0, 1.0]})
    with pytest.raises(ResultsError, match=r"it has 1\.0, 2\.0, the judgments 1, 2"):
        ragbench.evaluate({"frame": run}, {"1": {"hive": 1}, "2": {"wax": 1}}, ["RR"])
