"""`ragbench data pool`: the unjudged results of runs as a table to fill in."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.base import console
from ragbench.base.types import counted

DESCRIPTION = "Write the results of runs that have no judgment, best first, as a CSV file to fill in."
EXAMPLES = """examples:
  ragbench data pool results/runs/A                       every arm of a run, 20 deep, into pool.csv
  ragbench data pool results/runs/A other.trec --depth 10 --out todo.csv
then: ragbench judge pool.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Runs, depth and where to write."""
    console.add_runs(parser, "*")
    parser.add_argument("--depth", metavar="N", type=int, default=20, help="results per query and arm (default 20)")
    parser.add_argument("--out", default="pool.csv", metavar="FILE", help="output file (default pool.csv)")
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file and its grades")
    parser.add_argument("--by-topic", action="store_true", help="group the pairs by query")


def main(arguments: argparse.Namespace) -> int:
    """Read the runs, collect the unjudged pairs, write them."""
    from ragbench.benchmark.runs import file_names, read_run, renamed
    from ragbench.config.benchmark import load
    from ragbench.extras.collect import pool
    from ragbench.results import measurements
    from ragbench.workbench.runs import named_runs, split_words

    sources, settings = named_runs(arguments.words)
    measured = [measurements.load(source) for source in sources if source.is_dir()]
    # The data are those of the runs; data= may name the same data with more judgments.
    named = not measured or measurements.names_data(split_words(arguments.words)[1])
    config = settings.config if named else measured[0].shared_config
    benchmark = load(config)
    for results in measured:
        measurements.require_benchmark(results, benchmark, judged_since=True)
    docnos = {path: docno for docno, path in file_names(benchmark).items()}
    runs = {str(source): renamed(read_run(source), docnos) for source in sources if not source.is_dir()}
    for results in measured:
        runs |= {f"{results.folder}/{arm}": results.run(arm, measurements.SECTIONS) for arm in results.arms}
    rows = pool.pool(runs, benchmark.section_qrels, arguments.depth, arguments.by_topic)
    written = pool.write_pool(Path(arguments.out), rows, benchmark, replace=arguments.replace)
    pool.write_source(Path(arguments.out), benchmark, config)
    print(f"{counted(written, 'unjudged pair')} of {counted(len(runs), 'run')} in {arguments.out}")
    console.next_command(f"judge {arguments.out}")
    return 0
