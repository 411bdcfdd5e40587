"""`ragbench atlas`."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.base.suggestions import did_you_mean
from ragbench.extras.atlas import page as atlas_page
from ragbench.extras.atlas.changes import BASE, BASES
from ragbench.extras.atlas.tables import WORDS, Atlas, own_folder

DESCRIPTION = """Show the measured effect of each change on other collections, and predict its effect on yours.

Without an action it lists all changes. A prediction is not a verdict: measure on your own queries to decide."""
EXAMPLES = """examples:
  ragbench atlas                             every change: its effects, and the prediction for a new collection
  ragbench atlas --questions people          by real user questions only
  ragbench atlas --base baseline             presets against the baseline
  ragbench atlas show recommended            effects of one change on each collection
  ragbench atlas add @1                      add your run: later predictions use it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, what it takes, and options."""
    parser.add_argument(
        "action",
        nargs="?",
        default="screen",
        metavar="ACTION",
        help="show (one change), add (a run); default: all changes",
    )
    parser.add_argument("words", nargs="*", metavar="WORD key=value", help="a change, or runs")
    parser.add_argument(
        "--questions",
        choices=("people", "authors", "derived"),
        help="user queries, queries of authors, or synthetic queries (default: all)",
    )
    parser.add_argument(
        "--base", metavar="PRESET", help="preset that is changed: plain_hybrid (default), baseline or recommended"
    )
    parser.add_argument(
        "--kind", metavar="KIND", default="documentation", help="add: kind of the documents (default: documentation)"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    actions = {"screen": _screen, "show": _show, "add": _add}
    if arguments.action not in actions:
        raise ConfigError(f"unknown action '{arguments.action}'{did_you_mean(arguments.action, actions)}")
    return actions[arguments.action](arguments)


def _base(arguments: argparse.Namespace) -> str:
    base = arguments.base or BASE
    if base not in BASES:
        raise ConfigError(f"--base must be one of {', '.join(BASES)}, got {base}")
    return str(base)


def _screen(arguments: argparse.Namespace) -> int:
    atlas, base = Atlas.load(), _base(arguments)
    frame = atlas_page.effects_table(atlas, base, arguments.questions)
    if arguments.json:
        console.print_json({"base": base, "questions": arguments.questions, "changes": frame})
        return 0
    whose = WORDS[arguments.questions] if arguments.questions else "all kinds of queries"
    print(f"Changes of {base} on {len(atlas.collections)} collections, {whose}: nDCG@10 of documents", end="\n\n")
    print(*atlas_page.lines(frame), sep="\n", end="\n\n")
    print("gains: collections with a gain; mean: pooled effect; PI: prediction interval for a new collection")
    print("-: fewer than 10 collections, not pooled. Predictions are not verdicts: measure on your own queries")
    console.next_command("atlas show recommended")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from ragbench.config.catalogue.names import label

    atlas, base = Atlas.load(), _base(arguments)
    names = atlas.changes(base)
    for change in arguments.words:
        if change not in names:
            raise ConfigError(f"the atlas has no change '{change}' of {base}{did_you_mean(change, names, 'changes')}")
    for change in arguments.words or ["recommended"]:
        frame = atlas_page.by_collection(atlas, change, base, arguments.questions)
        if arguments.json:
            console.print_json({"change": change, "base": base, "collections": frame})
            continue
        table = frame.assign(**{"topics of": frame["topics of"].replace(WORDS)})
        table = table.rename(columns={"topics of": "kind of queries", "topics": "queries"})
        title = f"{label(change)} compared with {base}: change in document nDCG@10 [95% CI]"
        console.print_table(table, title, dict.fromkeys(("effect", "low", "high"), "+.3f"))
        for line in atlas_page.kinds(atlas, change, base) + atlas_page.moderators(atlas, change, base):
            print(line)
    return 0


def _add(arguments: argparse.Namespace) -> int:
    from ragbench.extras.atlas import ingest
    from ragbench.results import measured_data, measurements
    from ragbench.workbench.runs import named_runs

    folders, _ = named_runs(arguments.words)
    for folder in folders:
        run = measurements.load(folder)
        benchmark = measured_data.benchmark_of(run, judged_since=True)
        facts = {"kind": arguments.kind, "command": f"ragbench {run.record['command']}"}
        effects = ingest.add(run, benchmark, facts, arguments.questions).effects
        if arguments.json:
            console.print_json(effects)
            continue
        print(f"added {len(effects)} effects on '{benchmark.name}' to {console.short_path(own_folder())}")
    return 0
