from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ragbench.base.errors import ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.extras.collect.topics.answer_candidates import unjudged_sections


def test_unjudged_sections_come_first_for_topics_without_an_answer(benchmark_small: Benchmark) -> None:
    rows = unjudged_sections(benchmark_small, 3)
    assert rows[0].qid == "t5"  # nothing is relevant to it
    pairs = {(row.qid, row.section) for row in rows}
    judged = {(qid, section) for qid, grades in benchmark_small.section_qrels.items() for section in grades}
    assert pairs and not pairs & judged
    assert max(row.best_rank for row in rows) <= 3
    with pytest.raises(ConfigError, match="--depth must be at least 1, got 0"):
        unjudged_sections(benchmark_small, 0)


def test_the_command_writes_a_pool_that_judge_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    for name in ("keys", "lamps", "pumps"):
        text = f"# {name}\n\nAll about {name}, in plain words.\n"
        (tmp_path / "notes" / f"{name}.md").write_text(text, encoding="utf-8")
    (tmp_path / "queries.csv").write_text("text,relevant\nwords of keys,\n", encoding="utf-8")
    data = ["data=vault", f"data.corpus={tmp_path / 'notes'}", f"data.queries={tmp_path / 'queries.csv'}"]
    out = tmp_path / "pool.csv"
    assert cli.main(["topics", "find-evidence", *data, "--out", str(out), "--depth", "2"]) == 0
    assert f"2 unjudged pairs of 1 topic in {out}" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert rows[0]["section"] == "keys#keys" and rows[0]["grade"] == ""
    graded = out.read_text(encoding="utf-8").replace('plain words.",,', 'plain words.",3,')
    out.write_text(graded, encoding="utf-8")
    assert cli.main(["judge", str(out), "--merge", *data, f"data.qrels={tmp_path / 'qrels'}"]) == 0
    assert "2 added" in capsys.readouterr().out
