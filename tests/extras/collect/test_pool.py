from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.native import load_native
from ragbench.benchmark.runs import read_run
from ragbench.extras.collect.pool import COLUMNS, PoolRow, pool, read_pool, write_pool

TEA = Path(__file__).parents[2] / "data" / "tea"
RUNS = {
    "dense": {"q1": [("tea/brewing#time", 0.9), ("tea/brewing#water", 0.8)], "q2": [("index#hot-drinks", 0.5)]},
    "lexical": {"q1": [("tea/brewing#water", 9.0), ("index#hot-drinks", 8.0), ("tea/brewing#", 7.0)], "q2": []},
}


@pytest.fixture(scope="module")
def benchmark_tea() -> Benchmark:
    return load_native(TEA / "vault", TEA / "qrels")


def test_pool_orders_best_first() -> None:
    assert pool(RUNS, {}) == [
        PoolRow("q1", "tea/brewing#water", 1, 2),
        PoolRow("q1", "tea/brewing#time", 1, 1),
        PoolRow("q2", "index#hot-drinks", 1, 1),
        PoolRow("q1", "index#hot-drinks", 2, 1),
        PoolRow("q1", "tea/brewing#", 3, 1),
    ]
    assert [row.qid for row in pool(RUNS, {}, by_topic=True)] == ["q1", "q1", "q1", "q1", "q2"]


def test_pool_skips_judged_and_deep_pairs() -> None:
    assert pool(RUNS, {"q1": {"tea/brewing#water": 0}, "q2": {"tea/brewing#time": 1}}, depth=1) == [
        PoolRow("q1", "tea/brewing#time", 1, 1),
        PoolRow("q2", "index#hot-drinks", 1, 1),
    ]
    with pytest.raises(ConfigError):
        pool(RUNS, {}, depth=0)


def test_pool_file_hides_systems_and_ranks(benchmark_tea: Benchmark, tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    assert write_pool(path, pool(RUNS, {}), benchmark_tea, snippet_chars=30) == 5
    file = read_pool(path)
    assert file.columns == COLUMNS
    assert file.rows[0] == {
        "qid": "q1",
        "query": "how hot for sencha",
        "need": "The water temperature for green tea.",
        "path": "tea/brewing.md",
        "section": "tea/brewing#water",
        "heading": "Water",
        "text": "Eighty degrees for the unoxidi ...",
        "grade": "",
        "note": "",
    }
    assert file.rows[4]["heading"] == "Brewing tea" and file.rows[4]["text"].startswith("Leaves want water")


def test_write_pool_keeps_grades(benchmark_tea: Benchmark, tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    write_pool(path, pool(RUNS, {}), benchmark_tea)
    write_pool(path, pool(RUNS, {}), benchmark_tea)
    path.write_text(path.read_text().replace('then taste.",,', 'then taste.",2,'))
    with pytest.raises(BenchmarkError):
        write_pool(path, pool(RUNS, {}), benchmark_tea)
    (row,) = (row for row in read_pool(path).rows if row["grade"])
    merged = replace(benchmark_tea, section_qrels={row["qid"]: {row["section"]: 2}})
    write_pool(path, pool(RUNS, {}), merged)
    path.write_text(path.read_text().replace('then taste.",,', 'then taste.",2,'))
    write_pool(path, pool(RUNS, {}), benchmark_tea, replace=True)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"a": {"q9": [("index#hot-drinks", 1.0)]}}, "the runs answer topic q9"),
        ({"a": {"q1": [("index#gone", 1.0)]}}, "has no section 'index#gone'"),
        ({"a": {"q1": [("index", 1.0)]}}, "has no section 'index': pool section-level runs"),
    ],
)
def test_write_pool_refuses_runs_of_other_collection(
    runs: dict[str, dict[str, list[tuple[str, float]]]], message: str, benchmark_tea: Benchmark, tmp_path: Path
) -> None:
    with pytest.raises(BenchmarkError, match=message):
        write_pool(tmp_path / "pool.csv", pool(runs, {}), benchmark_tea)
    assert not (tmp_path / "pool.csv").exists()


def test_read_run_takes_trec_form(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q Q0 b 2 1.5 t\nq Q0 a 1 2e0 t\nq Q0 c 3 1.5 t\n\np Q0 a 1 -1 t\n")
    assert read_run(path) == {"q": [("a", 2.0), ("b", 1.5), ("c", 1.5)], "p": [("a", -1.0)]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 a 1 1.0", "run:1 must have six fields"),
        ("q Q0 a 1 best t", "run:1: score 'best' is not a number"),
        ("q Q0 a 1 1_000 t", "run:1: score '1_000' is not a number"),
        ("q Q0 a 1 nan t", "run:1: score 'nan' is not a number"),
        ("q Q0 a 1 2 t\nq Q0 a 2 2 t", "run:2 returns a for q again"),
    ],
)
def test_read_run_names_line_of_broken_runs(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text(line)
    with pytest.raises(BenchmarkError, match=message):
        read_run(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,section\nq,a#b\n", "is not a pool: it has no column 'grade'"),
        ("qid,section,grade\nq,,1\n", "pool.csv:2 lacks a qid or a section"),
        ("qid,section,grade\nq,a#b,1\nq,a#b,1\n", r"pool.csv:3 has a#b for q again \(first in line 2\)"),
    ],
)
def test_read_pool_names_line_of_broken_pools(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_text(text)
    with pytest.raises(BenchmarkError, match=message):
        read_pool(path)
