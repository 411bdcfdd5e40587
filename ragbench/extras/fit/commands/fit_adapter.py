"""`ragbench fit adapter`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.benchmark.split import TEST

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.config.settings import Settings
    from ragbench.evidence.statistics import Comparison
    from ragbench.extras.fit.adapter import AdapterSpec, Learned

DESCRIPTION = """Train a query-embedding adapter (a low-rank map) on judged queries, and report its gain.

It is saved only if it significantly improves the results of the held-out queries, and of the questions among them: an
adapter trained on text copied from pages helps such queries, but may hurt real questions. Passages are not embedded
again."""
EXAMPLES = """examples:
  ragbench fit adapter exp=recommended                print its gain
  ragbench fit adapter exp=recommended --write mine   save it, and print the setting that uses it
  ragbench fit adapter exp=recommended --no-test      do not use the test queries
"""
COMMAND = "fit adapter"
"""The name of this command in the record of comparisons."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How, where to keep it, overrides and output options."""
    parser.add_argument("--rank", type=int, metavar="N", help="rank of the low-rank map (default 16)")
    parser.add_argument("--epochs", type=int, metavar="N", help="number of training epochs (default 12)")
    parser.add_argument("--folds", type=int, metavar="N", help="number of cross-validation folds (default: 5)")
    parser.add_argument("--no-test", dest="test", action="store_false", help="do not confirm on the test queries")
    parser.add_argument("--write", metavar="NAME", help="save the adapter as an option with this name")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Learn, measure on held-out queries, keep what helps significantly."""
    import pandas as pd

    from ragbench.base import minimums, pinned_text
    from ragbench.base.bounds import as_options
    from ragbench.config import composition
    from ragbench.config.benchmark import load
    from ragbench.extras.fit import adapter, training
    from ragbench.extras.fit.adapted_encoder import GROUP, KEY

    training.check(arguments.write)
    settings = composition.compose(arguments.overrides)
    with as_options():
        options = {name: getattr(arguments, name) for name in ("rank", "epochs", "folds")}
        chosen = {name: value for name, value in options.items() if value is not None}
        spec = adapter.AdapterSpec(**chosen, seed=int(settings.config["seed"]))
    benchmark = load(settings.config)
    with console.progress(arguments.quiet or arguments.json):
        learned = adapter.learn(settings, benchmark, spec)
        asks = learned.are_questions
        measured = {"held-out queries": training.compare(learned.held_out, learned.before, settings)}
        if enough := asks.sum() >= minimums.PER_TYPE:
            measured["of them, questions"] = training.compare(learned.held_out[asks], learned.before[asks], settings)
        significant = enough and all(comparison.ci_low > 0 for comparison in measured.values())
        if significant and arguments.test and (test := _confirmation(settings, benchmark, learned, spec)) is not None:
            measured["test topics, once"] = test
    override, written = None, None
    if significant and arguments.write:
        written = training.write_pinned(GROUP, arguments.write, learned.adapter.text)
        override = f"{KEY}={pinned_text.named(arguments.write, learned.adapter.text)}"
    if arguments.json:
        console.print_json(
            {
                "topics": len(learned.topics),
                "questions": int(asks.sum()),
                "learned": bool(significant),
                "curve": learned.curve,
                "measured": measured,
                "spec": spec,
                "word": override,
                "written": written,
            }
        )
        return 0
    table = training.table(measured).drop(columns="p")
    console.print_table(table, f"nDCG@10, learned from {len(learned.topics)} training topics")
    curve = pd.DataFrame(learned.curve.items(), columns=["learned from", "nDCG@10"])
    console.print_table(curve, "Learning curve: held-out queries, by the number learned from")
    if not enough:
        print(
            f"Nothing learned, nothing changed: {asks.sum()} of the topics read like questions, and at least "
            f"{minimums.PER_TYPE} must show the gain. `ragbench topics threads` takes some from an issue tracker."
        )
    elif not significant:
        print("Nothing learned, nothing changed: the gain is not certain on all topics and on questions.")
    elif written is not None:
        print(f"written to {console.short_path(written)}; use it with: {override}")
    else:
        print("keep it with --write NAME")
    return 0


def _confirmation(
    settings: Settings, benchmark: Benchmark, learned_adapter: Learned, spec: AdapterSpec
) -> Comparison | None:
    """The adapter on the test topics; None where there are none with a relevant document."""
    from ragbench.extras.fit import adapter, training

    if TEST not in benchmark.splits or not (topics := adapter.judged(benchmark, TEST)):
        return None
    key = [settings.pipeline, settings.index, benchmark.collection, learned_adapter.adapter.text, spec]
    training.record_confirmation(benchmark, key, COMMAND, settings.name)
    learned, old = (
        adapter.with_adapter(settings, benchmark, settings_of_arm, topics)
        for settings_of_arm in (learned_adapter.adapter, None)
    )
    return training.compare(learned, old, settings)
