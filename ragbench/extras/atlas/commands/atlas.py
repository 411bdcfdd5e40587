"""`ragbench atlas`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import console

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.extras.atlas.tables import Atlas

DESCRIPTION = """Show the measured effect of each change on other collections, and predict its effect on yours.

Without an action it prints one screen. A prediction is not a verdict: measure on your own queries to decide."""
EXAMPLES = """examples:
  ragbench atlas                             every change: its effects, and the prediction for a new collection
  ragbench atlas --questions people          by real user questions only
  ragbench atlas --base baseline             presets against the baseline
  ragbench atlas show recommended            effects of one change by collection, and their moderators
  ragbench atlas add @1                      add your run: later predictions use it
  ragbench atlas fetch --out collections     documentation from published packages, pinned and checked
  ragbench atlas measure collections/collections.yaml --groups switches recommended
  ragbench atlas page --out docs             the tables and figures of the documentation
"""

_ACTIONS = ("screen", "show", "add", "fetch", "measure", "page")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The action, what it takes, and options."""
    parser.add_argument("action", nargs="?", default="screen", metavar="ACTION", help=f"{', '.join(_ACTIONS)}")
    parser.add_argument("words", nargs="*", metavar="WORD key=value", help="a change, runs, names, files")
    parser.add_argument("--questions", choices=("people", "authors", "derived"), help="only queries of this kind")
    parser.add_argument("--base", metavar="PRESET", help="plain_hybrid (default), baseline or recommended")
    parser.add_argument(
        "--groups", nargs="+", metavar="GROUP", default=(), help="measure: only these groups of changes"
    )
    parser.add_argument(
        "--kind", metavar="KIND", default="documentation", help="add: kind of the documents (default: documentation)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="fetch, measure, page: output folder")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    from ragbench.base.errors import ConfigError
    from ragbench.base.suggestions import did_you_mean

    if arguments.action not in _ACTIONS:
        raise ConfigError(f"unknown action '{arguments.action}'{did_you_mean(arguments.action, list(_ACTIONS))}")
    _doing = {"screen": _screen, "show": _show, "add": _add, "fetch": _fetch, "measure": _measure, "page": _page}
    return _doing[arguments.action](arguments)


def _base(arguments: argparse.Namespace) -> str:
    from ragbench.base.errors import ConfigError
    from ragbench.extras.atlas.changes import BASE, BASES

    base = arguments.base or BASE
    if base not in BASES:
        raise ConfigError(f"--base must be one of {', '.join(BASES)}, got {base}")
    return str(base)


def _screen(arguments: argparse.Namespace) -> int:
    from ragbench.extras.atlas import page as atlas_page
    from ragbench.extras.atlas.tables import WORDS, Atlas

    atlas, base = Atlas.load(), _base(arguments)
    frame = atlas_page.known(atlas, base, arguments.questions)
    if arguments.json:
        console.print_json({"base": base, "questions": arguments.questions, "changes": frame.to_dict(orient="records")})
        return 0
    whose = WORDS[arguments.questions] if arguments.questions else "all kinds of queries"
    print(f"Changes of {base} on {len(atlas.collections)} collections, {whose}: nDCG@10 of documents")
    print()
    for line in atlas_page.lines(frame):
        print(line)
    print()
    print("helps: collections with a gain; mean: pooled [95% CI]; new: 95% prediction interval of another collection")
    print("These are predictions, not verdicts: measure your own queries. - : fewer than 10 collections, not pooled")
    console.next_command("atlas show recommended")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from ragbench.base.errors import ConfigError
    from ragbench.base.suggestions import did_you_mean
    from ragbench.config.catalogue import label
    from ragbench.extras.atlas import page as atlas_page
    from ragbench.extras.atlas.tables import WORDS, Atlas

    atlas, base = Atlas.load(), _base(arguments)
    names = atlas.changes(base)
    for change in arguments.words:
        if change not in names:
            raise ConfigError(f"the atlas has no change '{change}' of {base}{did_you_mean(change, names, 'changes')}")
    for change in arguments.words or ["recommended"]:
        frame = atlas_page.by_collection(atlas, change, base, arguments.questions)
        if arguments.json:
            console.print_json({"change": change, "base": base, "collections": frame.to_dict(orient="records")})
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
    from ragbench.extras.atlas.tables import own_folder
    from ragbench.results import measured_data, measurements
    from ragbench.workbench.runs import named_runs

    folders, _ = named_runs(arguments.words)
    for folder in folders:
        run = measurements.load(folder)
        benchmark = measured_data.benchmark_of(run, judged_since=True)
        facts: dict[str, Any] = {"kind": arguments.kind, "command": f"ragbench {run.record['command']}"}
        added = ingest.add(run, benchmark, facts, arguments.questions)
        effects = added.effects
        if arguments.json:
            console.print_json(effects.to_dict(orient="records"))
            continue
        print(f"added {len(effects)} effects on '{benchmark.name}' to {console.short_path(own_folder())}")
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from ragbench.extras.atlas import fetch

    folder = arguments.out or Path("collections")
    written = fetch.fetch(folder, arguments.words)
    if arguments.json:
        console.print_json(written)
        return 0
    for name, facts in written.items():
        print(f"{name}: {facts['source']}, {facts['licence']}")
    console.next_command(f"atlas measure {console.short_path(folder / fetch.LIST)}")
    return 0


def _measure(arguments: argparse.Namespace) -> int:
    from ragbench.base.errors import ConfigError
    from ragbench.extras.atlas import workbench as campaign

    paths = [Path(argument) for argument in arguments.words if "=" not in argument]
    overrides = [argument for argument in arguments.words if "=" in argument]
    if not paths:
        raise ConfigError("measure takes a file that lists collections: ragbench atlas fetch writes one")
    listed = [collection for path in paths for collection in campaign.collections(path)]
    with console.progress(arguments.quiet or arguments.json) as progress:
        atlas = campaign.measure(listed, overrides, arguments.groups, progress)
    folder = arguments.out or Path("atlas")
    atlas.write(folder)
    return _said(atlas, folder, arguments)


def _said(atlas: Atlas, folder: Path, arguments: argparse.Namespace) -> int:
    effects: pd.DataFrame = atlas.effects
    if arguments.json:
        console.print_json({"out": str(folder), "collections": len(atlas.collections), "effects": len(effects)})
        return 0
    print(f"{len(effects)} effects on {len(atlas.collections)} collections in {console.short_path(folder)}")
    return 0


def _page(arguments: argparse.Namespace) -> int:
    from ragbench.extras.atlas import page as atlas_page
    from ragbench.extras.atlas.tables import Atlas

    for path in atlas_page.write(Atlas.load(), arguments.out or Path("docs")):
        print(console.short_path(path))
    return 0
