"""`ragbench pool`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = (
    "Write the section-query pairs that runs return and nobody has judged, best first, as a CSV a person can fill."
)
EXAMPLES = """examples:
  ragbench pool results/runs/A                       every arm of a run, 20 deep, into pool.csv
  ragbench pool results/runs/A other.trec --depth 10 --out todo.csv
then: ragbench judge pool.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Runs, depth and where to write."""
    parser.add_argument(
        "words", nargs="*", metavar="run|key=value", help="results folders (default: the newest), run files"
    )
    parser.add_argument("--depth", type=int, default=20, help="how deep to look into each run (default 20)")
    parser.add_argument("--out", default="pool.csv", metavar="FILE", help="the file to write (default pool.csv)")
    parser.add_argument("--replace", action="store_true", help="write over grades in an existing file")
    parser.add_argument("--by-topic", action="store_true", help="keep the pairs of a topic together")


def main(arguments: argparse.Namespace) -> int:
    """Read the runs, collect the unjudged pairs, write them."""
    from ragbench import app
    from ragbench.benchmark import pool
    from ragbench.experiment import results, store
    from ragbench.topics.load import load

    overrides = [word for word in arguments.words if "=" in word and not Path(word).exists()]
    settings = app.compose(overrides)
    given = [Path(word) for word in arguments.words if word not in overrides]
    runs: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for source in given or [store.latest(settings.results, console.say)]:
        loaded = results.load(source) if source.is_dir() else None
        files = [loaded.arm_path(arm) / results.SECTIONS for arm in loaded.arms] if loaded else [source]
        runs |= {f"{source.name}/{file.parent.name}/{file.name}": pool.read_run(file) for file in files}
    benchmark = load(settings.config)
    rows = pool.pool(runs, benchmark.section_qrels, arguments.depth, arguments.by_topic)
    written = pool.write_pool(Path(arguments.out), rows, benchmark, replace=arguments.replace)
    print(f"{written} unjudged pairs of {len(runs)} runs in {arguments.out}; grade: ragbench judge {arguments.out}")
    return 0
