"""`ragbench list terms`."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.base.numbers import counted

DESCRIPTION = "Show the terms of the collection's vocabulary nearest to a text, and which of them P1 would append."
EXAMPLES = """examples:
  ragbench list terms "auth"
  ragbench list terms "slow queries" --top 20 p1.threshold=0.6
  ragbench list terms "token" data=vault data.corpus=~/notes data.queries=questions.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The text, overrides and output options."""
    parser.add_argument("text", help="a query or a word")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="how many terms (default 10)")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Look up and print."""
    import pandas as pd

    from ragbench.config import composition
    from ragbench.search.stages.expand_terms import ExpandTerms

    if arguments.top < 1:
        raise ConfigError(f"--top must be at least 1, got {arguments.top}")
    if not arguments.text.strip():
        raise ConfigError("the text is empty: pass a text to look up")
    settings = composition.compose(["p1=on", *arguments.overrides])
    stage = settings.pipeline.first(ExpandTerms)
    if stage is None:
        raise ConfigError("p1 is off, so no vocabulary exists: remove p1=off")
    from ragbench.benchmark.load import load
    from ragbench.config.arm_builder import ArmBuilder
    from ragbench.search.engine.pipeline import clean

    benchmark = load(settings.config["data"], topics=False)
    with console.progress(arguments.quiet or arguments.json) as progress:
        (arm,) = ArmBuilder.of(settings, benchmark, progress, console.say).arms([settings])
        vocabulary = arm.index.vocabulary
        text = clean(arguments.text)
        (vector,) = arm.index.encoder.encode_queries([text])
        near = vocabulary.nearest(vector, arguments.top)
        appended = {term for term, _ in stage.nearest_terms(text, vector, vocabulary)}
    rows = [{"term": term, "cosine": cosine, "appended": term in appended} for term, cosine in near]
    if arguments.json:
        console.print_json({"text": text, "size": len(vocabulary), "terms": rows})
        return 0
    frame = pd.DataFrame(rows, columns=["term", "cosine", "appended"])
    frame["appended"] = ["yes" if flag else "" for flag in frame["appended"]]
    console.print_table(frame, f"nearest of {counted(len(vocabulary), 'term')} to '{text}'")
    return 0
