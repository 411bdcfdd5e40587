"""`ragbench data comparisons`: earlier comparisons on these queries, and the unused queries."""

from __future__ import annotations

import argparse
import time

from ragbench.base import console

DESCRIPTION = "List the earlier comparisons on the queries of a benchmark, and count the judged queries not used yet."
EXAMPLES = """examples:
  ragbench data comparisons
  ragbench data comparisons data=vault data.corpus=notes data.queries=queries.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data, output options."""
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the record of comparisons and print it."""
    import pandas as pd

    from ragbench.config import composition
    from ragbench.results import comparisons

    benchmark = composition.compose(arguments.overrides).benchmark()
    rows = [
        (
            number,
            time.strftime("%Y-%m-%d %H:%M", time.gmtime(comparison["at"])),
            comparison["command"],
            len(comparison["queries"]),
            ", ".join(comparison["arms"]),
        )
        for number, comparison in enumerate(comparisons.recorded(benchmark.name), start=1)
    ]
    table = pd.DataFrame(rows, columns=["comparison", "when (UTC)", "command", "queries", "arms"])
    if arguments.json:
        console.print_json(table)
        return 0
    if rows:
        console.print_table(table, f"Comparisons on queries of '{benchmark.name}'")
    else:
        print(f"no arms were compared on queries of '{benchmark.name}' yet")
    used = comparisons.used(benchmark.name)
    unused = sum(topic.qid not in used for topic in benchmark.with_answer(benchmark.topics))
    print(f"judged queries not used yet: {unused} (for ragbench run --confirm RUN/ARM)")
    return 0
