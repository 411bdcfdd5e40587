"""`ragbench fit ranker`: a ranker, from your own judged queries."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.options import as_options
from ragbench.base.types import short_path
from ragbench.benchmark.benchmark import TEST

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.config.settings import Settings
    from ragbench.evidence import statistics
    from ragbench.extras.fit.ranker import FinetunedRanker, Spec
    from ragbench.search.engine.pipeline import Arm
    from ragbench.search.stages.rank import Rank

DESCRIPTION = """Train a ranker (LambdaMART) on judged queries, and report its gain.

The command prints the gain on held-out queries and on held-out folders, the most important features, and
one confirmation on the test queries. Training starts from the configured `ranker`, with ranker=off from the fused
ranking, and the result is saved only if the gain is significant."""
EXAMPLES = """examples:
  ragbench fit ranker exp=recommended --write mine    train on your queries, for ranker=mine
  ragbench fit ranker ranker=off --write mine         start from the fused ranking, not from `ranker`
  ragbench run -m ranker=off,mine split=test           its verdict on the test queries, with latency
  ragbench fit ranker --no-test                       do not use the test queries
"""
COMMAND = "fit ranker"
"""The name of this command in the record of comparisons."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How to train, where to keep it, overrides and output options."""
    parser.add_argument("--rounds", type=int, default=200, metavar="N", help="maximum number of trees (default 200)")
    parser.add_argument("--no-test", dest="test", action="store_false", help="do not confirm on the test queries")
    parser.add_argument("--write", metavar="NAME", help="save the ranker as an option with this name")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Train on the queries of one collection, from the configured or the fused ranking, and report the gain."""
    from ragbench.config import composition
    from ragbench.extras.fit import ranker, training
    from ragbench.search.stages.rank import Rank

    training.check(arguments.write)
    settings = composition.compose(arguments.overrides)
    with as_options():
        spec = ranker.Spec(rounds=arguments.rounds, seed=settings.basics.seed)
    benchmark = settings.benchmark()
    start = settings.pipeline.first(Rank)
    with console.progress(arguments.quiet or arguments.json):
        arm = ranker.arm(settings, benchmark)
        judged = ranker.finetuning_sample(arm, benchmark, "train", start, spec)
        fitted = ranker.finetune(judged, start, spec)
        learned = fitted.learned
        gain = training.compare(learned.held_out, learned.fused, settings)
        adopted = gain.ci_low > 0
        test = _confirmation(arm, benchmark, fitted, start, spec, settings) if adopted and arguments.test else None
    by_folder = learned.by_folder
    others = None if by_folder is None else training.compare(by_folder, learned.fused, settings)
    written = []
    if adopted and arguments.write:
        comment = (
            f"Learned by `ragbench fit ranker` from {len(judged)} training topics of {benchmark.name} "
            f"({benchmark.digest[:12]}), starting from {fitted.start}: {learned.trees} trees. "
            f"The pipeline was: {arm.pipeline!r}"
        )
        written = training.write_order(arguments.write, fitted.stage, comment)
    if arguments.json:
        console.print_json(
            {
                "topics": len(judged),
                "start": fitted.start,
                "learned": adopted,
                "trees": learned.trees,
                "held_out": gain,
                "other_folders": others,
                "test": test,
                "importance": learned.importance,
                "spec": spec,
                "written": written,
            }
        )
        return 0
    _print(fitted, len(judged), {"held-out queries": gain, "held-out folders": others, "test topics, once": test})
    if not adopted:
        print("Nothing learned, nothing changed: the gain is not certain. Judge more topics, and try again.")
        return 0
    if (gain if test is None else test).ci_low > 0:
        print(f"The learned order is better than {'fusion' if start is None else fitted.start}.")
    else:
        print("The gain may be chance: keep what is configured, or judge more topics and learn again.")
    _say_written(written, arguments)
    return 0


def _say_written(written: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Where the order was written and how to compare it, or how to keep it."""
    if not written:
        print("save it with --write NAME and use it with ranker=NAME")
        return
    print(f"written to {short_path(written[0])}; ranker={arguments.write} uses it")
    overrides = [
        override for override in arguments.overrides if not override.startswith(("ranker=", "rank=", "split="))
    ]
    console.next_command(shlex.join(["run", "-m", *overrides, f"ranker=off,{arguments.write}", "split=test"]))


def _confirmation(
    arm: Arm,
    benchmark: Benchmark,
    result: FinetunedRanker,
    start: Rank | None,
    spec: Spec,
    settings: Settings,
) -> statistics.Comparison | None:
    """The order against its start on the test topics; None where there are none with a relevant document."""
    from ragbench.extras.fit import ranker, training

    if TEST not in benchmark.splits:
        return None
    judged = ranker.finetuning_sample(arm, benchmark, TEST, start, spec)
    key = [arm.pipeline.fingerprint, benchmark.collection, result.stage, spec]
    if not len(judged):
        return None
    training.record_confirmation(benchmark, key, COMMAND, arm.name)
    before = judged.fused if start is None else ranker.values_with(judged, start)
    return training.compare(ranker.values_with(judged, result.stage), before, settings)


def _print(result: FinetunedRanker, topics: int, measured: Mapping[str, statistics.Comparison | None]) -> None:
    import pandas as pd

    from ragbench.extras.fit import training

    learned, gain, others = result.learned, measured["held-out queries"], measured["held-out folders"]
    title = f"nDCG@10, learned from {topics} training topics, starting from {result.start} ({learned.trees} trees)"
    console.print_table(training.table(measured), title)
    read = pd.DataFrame(list(learned.importance.items())[:12], columns=["feature", "share of the gain of splits"])
    console.print_table(read, "What the model reads most", {"share of the gain of splits": ".1%"})
    if others is not None and gain is not None and others.difference < gain.difference / 2:
        print(
            "It gains less than half on folders that it has not learned from: it has partly\n"
            "learned which documents the topics are about. Expect the smaller gain for\n"
            "queries about other documents."
        )
