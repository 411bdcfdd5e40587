"""`ragbench learn-ranker`."""

from __future__ import annotations

import argparse
import shlex
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragbench.base import console
from ragbench.boundary.yaml import read_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.config.arm_builder import Progress
    from ragbench.config.settings import Settings
    from ragbench.evidence.statistics import Comparison
    from ragbench.fit.ranker import Learned, Sample, Spec
    from ragbench.search.engine.executor import Arm
    from ragbench.search.stages.rank import Rank

DESCRIPTION = """Learn an order of the hits on the training topics (LambdaMART) and say what it brings.

Prints the gain on topics left out, a learning curve, the gain on folders left out, what the model reads, and one
confirmation on the test topics. Refuses where the learned order is not better than fusion on topics left out."""
EXAMPLES = """examples:
  ragbench learn-ranker                      learn for the configured pipeline and say what it brings
  ragbench learn-ranker --write mine         keep it as conf/rank/mine.yaml, for rank=mine
  ragbench run -m rank=off,mine split=test   its verdict on the test topics, with time
  ragbench learn-ranker --no-test            leave the test topics unread
"""
_STAGE = "rank"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How to learn, where to keep the model, overrides and output options."""
    parser.add_argument("--depth", type=int, default=100, metavar="N", help="hits of each query to order (default 100)")
    parser.add_argument("--rounds", type=int, default=200, metavar="N", help="trees at most (default 200)")
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="parts of the topics to leave out in turn")
    parser.add_argument("--recency", action="store_true", help="let it read how old a document is")
    parser.add_argument("--no-test", action="store_true", help="do not confirm on the test topics")
    parser.add_argument("--write", metavar="NAME", help="keep the model as an option of the configuration")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Learn on the train split, estimate by cross-validation, confirm on test, print or write."""
    from ragbench.base.bounds import as_options
    from ragbench.base.errors import BenchmarkError
    from ragbench.commands.calibrate import check_option
    from ragbench.config import composition
    from ragbench.config.benchmark import load
    from ragbench.fit import before_rank, ranker

    if arguments.write is not None:
        check_option(arguments.write, ("on", "off", "builtin"))
    settings = composition.compose(arguments.overrides)
    seed = int(settings.config["seed"])
    with as_options():
        names = ("depth", "rounds", "folds", "recency")
        spec = ranker.Spec(**{name: getattr(arguments, name) for name in names}, seed=seed)
    benchmark = load(settings.config)
    with console.progress(arguments.quiet or arguments.json) as progress:
        arm = before_rank.arm(settings, benchmark, progress)
        sample = before_rank.sample(arm, benchmark, "train", spec.depth, spec.features, progress)
        learned = ranker.learn(sample, spec, progress)
        gain = _comparison(learned.held_out, learned.fused, settings)
        if not learned.pays:
            raise BenchmarkError(
                f"learned from {len(sample)} topics, the order is not better than fusion on topics left out "
                f"({gain.mean_candidate:.3f} against {gain.mean_baseline:.3f}): keep fusion, and judge more topics"
            )
        stage = learned.rank(spec)
        confirmation = None if arguments.no_test else _confirmation(arm, benchmark, stage, spec, settings, progress)
    by_folder = None if learned.by_folder is None else _comparison(learned.by_folder, learned.fused, settings)
    written = _write(arguments.write, stage, learned, sample, benchmark, arm) if arguments.write else None
    if arguments.json:
        console.print_json(
            {
                "topics": len(sample),
                "trees": learned.trees,
                "held_out": asdict(gain),
                "other_folders": by_folder and asdict(by_folder),
                "test": confirmation and asdict(confirmation),
                "curve": [asdict(point) for point in learned.curve],
                "more_25": learned.more(),
                "importance": dict(learned.importance),
                "spec": asdict(spec),
                "written": written and str(written),
            }
        )
        return 0
    _print(learned, sample, gain, by_folder, confirmation)
    print(_conclusion(gain if confirmation is None else confirmation))
    if written:
        print(f"written to {console.short_path(written)}; rank={arguments.write} uses it")
        given = [word for word in arguments.overrides if not word.startswith(("rank=", "split="))]
        console.next_command(shlex.join(["run", "-m", *given, f"rank=off,{arguments.write}", "split=test"]))
    else:
        print("keep it with --write NAME, and use it with rank=NAME")
    return 0


def _conclusion(gain: Comparison) -> str:
    """What the gain means for who has to decide."""
    if gain.ci_low > 0:
        return "The learned order is better than fusion."
    return "The gain may be chance: keep rank=off, or judge more topics and learn again."


def _comparison(
    candidate: Sequence[float] | Any, baseline: Sequence[float] | Any, settings: Settings, share: float = 1.0
) -> Comparison:
    """Compare; `share` of 1 - confidence is what this look may err in."""
    from dataclasses import replace

    from ragbench.evidence.policy import Policy

    return replace(Policy.of(settings.config), share=share).compare([candidate], [baseline])[0]


def _confirmation(
    arm: Arm, benchmark: Benchmark, stage: Rank, spec: Spec, settings: Settings, progress: Progress
) -> Comparison | None:
    """The model against fusion on the test topics; None where there are none with a relevant document."""
    from ragbench.fit import before_rank, ranker

    if "test" not in benchmark.splits:
        return None
    from ragbench.results import ledger

    sample = before_rank.sample(arm, benchmark, "test", spec.depth, spec.features, progress)
    key = [arm.pipeline.fingerprint, benchmark.collection, stage.describe(), spec]
    ledger.look(settings.ledger, benchmark.digest, key, "learn-ranker", [arm.name])
    share = ledger.share(ledger.turn(settings.ledger, benchmark.digest, key, "learn-ranker"))
    return _comparison(ranker.values_with(sample, stage), sample.fused, settings, share) if len(sample) else None


def _print(
    learned: Learned, sample: Sample, gain: Comparison, by_folder: Comparison | None, confirmation: Comparison | None
) -> None:
    import pandas as pd

    rows = [("topics left out", gain), ("folders left out", by_folder), ("test topics, once", confirmation)]
    table = [
        {
            "measured on": name,
            "topics": each.n,
            "fused": each.mean_baseline,
            "learned": each.mean_candidate,
            "gain": f"{each.difference:+.4f} [{each.ci_low:+.4f}, {each.ci_high:+.4f}]",
            "p": each.p_value,
        }
        for name, each in rows
        if each is not None
    ]
    title = f"nDCG@10, learned from {len(sample)} training topics ({learned.trees} trees)"
    console.print_table(pd.DataFrame(table), title)
    curve = pd.DataFrame([asdict(point) | {"gain": point.learned - point.fused} for point in learned.curve])
    console.print_table(curve, "Learning curve: topics left out, by the number learned from", {"gain": "+.4f"})
    if (more := learned.more()) is not None:
        print(f"25 more labelled topics would bring about {more:+.3f}.")
    read = pd.DataFrame(list(learned.importance.items())[:12], columns=["feature", "share of the gain of splits"])
    console.print_table(read, "What the model reads most", {"share of the gain of splits": ".1%"})
    if by_folder is not None and by_folder.difference < gain.difference / 2:
        print(
            "It gains less than half on folders that it has not learned from: it has partly\n"
            "learned which documents the topics are about. Expect the smaller gain for\n"
            "queries about other documents."
        )


def _write(name: str, stage: Rank, learned: Learned, sample: Sample, benchmark: Benchmark, arm: Arm) -> Path:
    """Keep the model as conf/rank/<name>.yaml."""
    import yaml

    from ragbench.base.errors import ConfigError
    from ragbench.commands.calibrate import write_option

    comment = (
        f"Learned by `ragbench learn-ranker` from {len(sample)} training topics of {benchmark.name} "
        f"({benchmark.digest[:12]}): {learned.trees} trees. The pipeline was: {arm.pipeline!r}"
    )
    numbers = yaml.safe_dump({"prior": stage.prior, "depth": stage.depth}, sort_keys=False)
    model = textwrap.indent(stage.model, "  ", lambda line: bool(line.strip()))
    values = f"{numbers}model: |\n{model}"
    if read_yaml(values)["model"] != stage.model:
        raise ConfigError(f"cannot write --write {name}: the model cannot be kept as YAML")
    return write_option(_STAGE, name, type(stage), comment, values)
