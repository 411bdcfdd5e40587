"""`ragbench fit`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console

if TYPE_CHECKING:
    from ragbench.config.settings import Settings
    from ragbench.evidence.statistics import Comparison
    from ragbench.fit.ranker import Values

DESCRIPTION = """Learn from judged topics.

order: an order of the hits. With --collections, one for collections that nobody has judged, learned from several
judged ones and measured on each site without it. Without, one for this collection, which starts from the order that is
configured (`rank`) and is kept only where it is surely better on topics left out: else nothing is learned."""
EXAMPLES = """examples:
  ragbench fit order exp=recommended --write mine    learn more from your topics, for rank=mine
  ragbench fit order --collections sites.yaml exp=recommended rank=off
  ragbench fit order --collections sites.yaml exp=recommended rank=off --write questions --sheet DATASHEET.md
sites.yaml lists collections; paths are relative to it:
  - name: uv-docs
    words: data=vault data.corpus=uv/vault data.queries=uv/queries.jsonl data.qrels=uv/qrels/test.tsv
    weight: 1          # how much a topic counts; also kind, site, split, about (facts for the data sheet)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to fit, what from, where to keep it, overrides and output options."""
    parser.add_argument("words", nargs="*", metavar="order|key=value", help=f"one of {', '.join(TASKS)}, and settings")
    parser.add_argument("--collections", metavar="FILE", help="a YAML list of judged collections to learn from")
    parser.add_argument("--depth", type=int, default=100, metavar="N", help="hits of each query to order (default 100)")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="trees (default 80 of each model; own topics: up to 200)"
    )
    parser.add_argument("--write", metavar="NAME", help="keep the order as an option of the configuration")
    parser.add_argument("--sheet", metavar="FILE", help="with --collections: write a data sheet in markdown")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Do the task."""
    from ragbench.base.errors import ConfigError
    from ragbench.commands.calibrate import check_option

    arguments.overrides = [word for word in arguments.words if "=" in word]
    tasks = [word for word in arguments.words if "=" not in word]
    if len(tasks) != 1 or tasks[0] not in TASKS:
        raise ConfigError(f"ragbench fit takes one of {', '.join(TASKS)}, got {' '.join(tasks) or 'none'}")
    if arguments.write is not None:
        check_option(arguments.write, ("on", "off", "builtin"))
    if arguments.sheet is not None and arguments.collections is None:
        raise ConfigError("--sheet describes an order of several collections: name them with --collections FILE")
    return TASKS[tasks[0]](arguments)


def _order(arguments: argparse.Namespace) -> int:
    return _own_order(arguments) if arguments.collections is None else _shared_order(arguments)


def _shared_order(arguments: argparse.Namespace) -> int:
    """Learn from several collections, print the gain on each without it, write model and data sheet."""
    from dataclasses import replace

    from ragbench.base.bounds import as_options
    from ragbench.base.fingerprint import plain
    from ragbench.config import composition
    from ragbench.evidence.policy import Policy
    from ragbench.fit import order, order_file, order_sheet

    collections = order.read(Path(arguments.collections))
    with as_options():
        rounds = order.SPEC.rounds if arguments.rounds is None else arguments.rounds
        spec = replace(order.SPEC, depth=arguments.depth, rounds=rounds)
    settings = [composition.compose([*arguments.overrides, *each.words]) for each in collections]
    with console.progress(arguments.quiet or arguments.json) as progress:
        parts = [order.part(each, made, spec, progress) for each, made in zip(collections, settings, strict=True)]
        learned = order.learn(parts, spec, progress)
    statistics = Policy.of(settings[0].config).statistics
    table = order.gains(learned, spec.seed, statistics.draws, statistics.confidence)
    written = []
    if arguments.write:
        topics = sum(len(part.sample) for part in learned.parts)
        comment = f"Learned by `ragbench fit order` from {topics} topics of {len(learned.parts)} collections."
        written = order_file.write(arguments.write, learned.stage, comment)
    if arguments.sheet is not None:
        sheet = Path(arguments.sheet)
        order_sheet.write(sheet, learned, table, arguments.write or "order", arguments.overrides)
        written.append(sheet)
    if arguments.json:
        rows = plain(table.astype(object).where(table.notna(), None).to_dict(orient="records"))
        importance = dict(learned.importance)
        console.print_json({"gains": rows, "importance": importance, "written": [str(each) for each in written]})
        return 0
    signed = dict.fromkeys(("gain", "low", "high"), "+.3f")
    console.print_table(table, "nDCG@10 of documents, each site ordered by an order of the others", signed)
    for path in written:
        print(f"written to {console.short_path(path)}")
    print(
        f"rank={arguments.write} uses it" if arguments.write else "keep it with --write NAME, and use it with rank=NAME"
    )
    return 0


def _own_order(arguments: argparse.Namespace) -> int:
    """Learn from the training topics of one collection, starting from the configured order; keep only a sure gain."""
    from dataclasses import asdict, replace

    from ragbench.base.bounds import as_options
    from ragbench.config import composition
    from ragbench.config.benchmark import load
    from ragbench.fit import before_rank, order_file, own_order, ranker
    from ragbench.results import ledger

    settings = composition.compose(arguments.overrides)
    with as_options():
        spec = ranker.Spec(depth=arguments.depth, seed=int(settings.config["seed"]))
        if arguments.rounds is not None:
            spec = replace(spec, rounds=arguments.rounds)
    benchmark = load(settings.config)
    start = own_order.start_of(settings)
    with console.progress(arguments.quiet or arguments.json) as progress:
        arm = before_rank.arm(settings, benchmark, progress, console.say)
        judged = own_order.sample(arm, benchmark, "train", start, spec, progress)
        found = own_order.learn(judged, start, spec, progress)
        gain = _comparison(found.held_out, found.before, settings)
        sure = gain.ci_low > 0
        test = None
        if sure and "test" in benchmark.splits:
            key = [arm.pipeline.fingerprint, benchmark.collection, found.stage, spec]
            ledger.look(settings.results, benchmark.digest, key, "fit order", [arm.name])
            unseen = own_order.sample(arm, benchmark, "test", start, spec, progress)
            test = own_order.confirm(unseen, start, found) if len(unseen) else None
    confirmed = _comparison(*test, settings) if test is not None else None
    written = []
    if sure and arguments.write:
        comment = (
            f"Learned by `ragbench fit order` from {len(judged)} training topics of {benchmark.name} "
            f"({benchmark.digest[:12]}), starting from {found.start}."
        )
        written = order_file.write(arguments.write, found.stage, comment)
    if arguments.json:
        console.print_json(
            {
                "topics": len(judged),
                "start": found.start,
                "learned": sure,
                "held_out": asdict(gain),
                "test": confirmed and asdict(confirmed),
                "written": [str(each) for each in written],
            }
        )
        return 0
    print(f"{len(judged)} training topics, starting from {found.start}. Topics left out: {_said(gain)}.")
    if not sure:
        print("Nothing learned, nothing changed: the gain is not sure. Judge more topics, and try again.")
        return 0
    if confirmed is not None:
        print(f"Test topics, once: {_said(confirmed)}.")
    if written:
        print(f"written to {console.short_path(written[0])}; rank={arguments.write} uses it")
    else:
        print("keep it with --write NAME, and use it with rank=NAME")
    return 0


def _said(gain: Comparison) -> str:
    return (
        f"nDCG@10 {gain.mean_baseline:.3f} to {gain.mean_candidate:.3f}, {gain.difference:+.3f} "
        f"[{gain.ci_low:+.3f}, {gain.ci_high:+.3f}]"
    )


def _comparison(candidate: Values, baseline: Values, settings: Settings) -> Comparison:
    from ragbench.evidence.policy import Policy

    return Policy.of(settings.config).compare([candidate], [baseline])[0]


TASKS: Mapping[str, Callable[[argparse.Namespace], int]] = {"order": _order}
