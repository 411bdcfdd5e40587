"""`ragbench reference`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench import console

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark

DESCRIPTION = "Measure the presets and both one-at-a-time ablations and write the reference tables."
EXAMPLES = """examples:
  ragbench reference                                    into results/REFERENCE.md
  ragbench reference --out /tmp/REFERENCE.md latency.queries=10
  ragbench reference --presets baseline,all --no-ablations
"""

_PRESETS = "baseline,dense_only,lexical_only,phase1,phase2,phase3,phase4,all"
_ABLATIONS = {
    "Leaving each proposal out of `all`, test split": ("+exp=all", "design=leave_one_out"),
    "Adding each proposal to `baseline`, test split": ("+exp=baseline", "design=add_one"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Presets, what to leave out, where to write."""
    parser.add_argument("--presets", default=_PRESETS, help=f"comma-separated experiments (default {_PRESETS})")
    parser.add_argument("--no-ablations", action="store_true", help="only the presets")
    parser.add_argument("--out", metavar="FILE", help="the file to write (default: REFERENCE.md in the results folder)")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run everything, then write one file."""
    from ragbench import app
    from ragbench.benchmark.load import load
    from ragbench.experiment.results import write_text
    from ragbench.experiment.run import run
    from ragbench.report import reference

    sweep = [f"+exp={arguments.presets}", "split=all", *arguments.overrides]
    settings = app.compose(sweep, sweep=True)
    benchmark = load(settings[0].config["data"])
    with console.progress(arguments.quiet or arguments.json) as progress:
        presets = run(settings, benchmark, command="reference", progress=progress, say=console.say)
    commands = [f"ragbench run -m {' '.join(sweep)}"]
    verdicts: dict[str, pd.DataFrame] = {}
    for title, overrides in {} if arguments.no_ablations else _ABLATIONS.items():
        words = [*overrides, "split=test", *arguments.overrides]
        verdicts[title] = _ablation(words, benchmark, arguments.quiet or arguments.json)
        commands.append(f"ragbench ablate {' '.join(words)}")
    path = Path(arguments.out) if arguments.out else settings[0].results / "REFERENCE.md"
    write_text(path, reference.document(presets, verdicts, commands))
    print(f"wrote {path}")
    return 0


def _ablation(words: Sequence[str], benchmark: Benchmark, quiet: bool) -> pd.DataFrame:
    from ragbench import app
    from ragbench.experiment import ablate
    from ragbench.experiment.run import run

    (base,) = app.compose(words)
    ablation = ablate.plan(base, lambda overrides: app.compose(overrides)[0])
    with console.progress(quiet) as progress:
        results = run(ablation.settings, benchmark, command="ablate", progress=progress, say=console.say)
    return ablate.verdicts(ablation, results)
