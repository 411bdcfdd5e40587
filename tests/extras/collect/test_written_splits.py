"""Splits go into the file of queries that the next command reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.load import load_benchmark
from ragbench.commands import cli
from ragbench.extras.collect.topics.topics_file import write_splits

SIDES = {"a b": "train", "c": "test"}


def test_a_table_keeps_all_else(tmp_path: Path) -> None:
    path = tmp_path / "queries.csv"
    path.write_text('Text;relevant\n"a  b";"x.md;y.md"\nc\n', encoding="utf-8")
    write_splits(path, SIDES)
    assert path.read_text(encoding="utf-8") == 'Text;relevant;split\na  b;"x.md;y.md";train\nc;;test\n'
    write_splits(path, {"a b": "test", "c": "train"})
    assert path.read_text(encoding="utf-8") == 'Text;relevant;split\na  b;"x.md;y.md";test\nc;;train\n'


def test_lines_of_json_keep_all_else(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "a b", "need": "n"}\n{"query": "c", "split": "train"}\n', encoding="utf-8")
    write_splits(path, SIDES)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows == [{"query": "a b", "need": "n", "split": "train"}, {"query": "c", "split": "test"}]
    with pytest.raises(BenchmarkError, match="is packed"):
        write_splits(tmp_path / "queries.csv.gz", SIDES)


def test_what_is_written_is_what_the_next_command_reads(
    vault_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queries.csv").write_text("text\n" + "\n".join(f"question {n}" for n in range(8)) + "\n", encoding="utf-8")
    data = ["data=vault", f"data.corpus={vault_folder}", "data.queries=queries.csv"]
    assert cli.main(["data", "split", "--write", *data]) == 0
    typed = f"data=vault data.corpus={vault_folder} data.queries=queries.csv"
    said = f"wrote the splits of 8 topics into queries.csv\nnext: ragbench run split=train {typed}\n"
    assert capsys.readouterr().out.endswith(said)
    read = load_benchmark("vault", corpus=vault_folder, queries="queries.csv")
    assert sorted(topic.split for topic in read.topics) == ["test"] * 4 + ["train"] * 4
