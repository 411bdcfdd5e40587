"""`ragbench search`."""

from __future__ import annotations

import argparse

from ragbench import console

DESCRIPTION = "Search the collection with a pipeline. --explain shows what every stage did with each hit."
EXAMPLES = """examples:
  ragbench search "how do I rotate an api key"
  ragbench search "STR-2031" +exp=phase3 --explain
  ragbench search "how do I add a tool" --hypothesis "To add a tool, register it in the server and describe its input."
  ragbench search "retention" data=vault data.corpus=~/notes --top 5 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The query, overrides and output options."""
    parser.add_argument("query", help="what to search for")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="how many hits (default 10)")
    parser.add_argument("--hypothesis", metavar="TEXT", help="embed this supposed answer instead of the query (HyDE)")
    parser.add_argument("--explain", action="store_true", help="show the contribution of every stage")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Search and print."""
    from ragbench import app
    from ragbench.errors import ConfigError

    if arguments.top < 1:
        raise ConfigError(f"--top must be at least 1, got {arguments.top}")
    if not arguments.query.strip():
        raise ConfigError("the query is empty: say what to search for")
    if arguments.hypothesis is None:
        settings = app.compose(arguments.overrides)
    else:
        settings = app.compose([*arguments.overrides, "hyde=on"])
        settings = settings.with_value("hyde.text", arguments.hypothesis).check()
    from ragbench.benchmark.load import load
    from ragbench.engine.answer import answer, as_mapping, show
    from ragbench.workshop import Workshop

    benchmark = load(settings.config["data"], topics=False)
    with console.progress(arguments.quiet or arguments.json) as progress:
        (arm,) = Workshop.of(settings, benchmark, progress, console.say).arms([settings])
        arm.index.prepare(arm.pipeline.needs)
        found = answer(arguments.query, arm.pipeline, arm.index, arguments.top, explain=True)
    if arguments.json:
        console.print_json(as_mapping(found))
    else:
        show(found, in_full=arguments.explain)
    return 0
