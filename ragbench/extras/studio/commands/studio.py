"""`ragbench studio` (Measure and compare): judge results in a browser, and compare the results of one query."""

from __future__ import annotations

import argparse

from ragbench.base import console
from ragbench.extras.ship.commands.serve import add_port

DESCRIPTION = """Open the studio in a browser: judge results, and search one query in two configurations side by side.

Listens on this machine only, and requires the token in the printed address.
Settings (key=value) choose the results folder and the collection to search, as in other commands."""
EXAMPLES = """examples:
  ragbench studio
  ragbench studio --browser
  ragbench studio data=vault data.corpus=~/notes data.queries=queries.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The port and overrides."""
    add_port(parser, 8150)
    parser.add_argument("--browser", action="store_true", help="open the address in the default browser")
    console.add_overrides(parser)


def main(arguments: argparse.Namespace) -> int:
    """Bind, print the address, serve."""
    from ragbench.config import composition
    from ragbench.extras.ship.serving import server
    from ragbench.extras.studio.app import Studio, create_app

    studio = Studio(composition.compose(arguments.overrides).results, tuple(arguments.overrides))
    with server.bind("127.0.0.1", arguments.port) as bound:
        bound.listen()
        address = f"http://127.0.0.1:{bound.getsockname()[1]}/?token={studio.token}"
        print(f"ragbench studio on {address}\nstop it with Ctrl-C", flush=True)
        if arguments.browser:
            import webbrowser

            webbrowser.open(address)
        server.run(create_app(studio), bound, seconds=10)
    return 0
