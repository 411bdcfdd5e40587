"""`ragbench studio`."""

from __future__ import annotations

import argparse
import logging

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.extras.ship.commands.serve import add_address, url_of

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Open the studio in a browser: rank runs, compare queries, judge results, search, start experiments.

Listens on this machine only, unless you set --host, and requires the token in the printed address.
Settings (key=value) choose the results folder and the collection to search, as in other commands."""
EXAMPLES = """examples:
  ragbench studio
  ragbench studio data=vault data.corpus=~/notes data.queries=queries.csv
  ragbench studio --read-only --allow-host bench.example.org     read-only access through a proxy
  ragbench studio --host 0.0.0.0 --behind-proxy      requests come from a TLS proxy
"""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The address, who may ask, and overrides."""
    add_address(parser, 8150)
    parser.add_argument(
        "--read-only", action="store_true", help="disable judging, starting experiments and other writes"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="accept requests for this host name, for example from a proxy (repeatable)",
    )
    parser.add_argument(
        "--allow-commands", action="store_true", help="let forms specify programs to start and Python classes to import"
    )
    parser.add_argument(
        "--behind-proxy", action="store_true", help="confirm that a TLS proxy in front of --host encrypts traffic"
    )
    parser.add_argument("--browser", action="store_true", help="open the address in the default browser")
    console.add_overrides(parser)


def main(arguments: argparse.Namespace) -> int:
    """Bind, print the address, serve."""
    from ragbench.config import composition
    from ragbench.extras.ship.access import LOOPBACK, Session
    from ragbench.extras.ship.serving import server
    from ragbench.extras.ship.serving.messages import Limits
    from ragbench.extras.studio import link as studio_link
    from ragbench.extras.studio.app import Studio, create_app

    local = arguments.host in _LOOPBACK
    if not local and not arguments.behind_proxy:
        raise ConfigError(
            f"--host {arguments.host} lets other machines send the token unencrypted: put a proxy with TLS in front "
            "and add --behind-proxy"
        )
    settings = composition.compose(arguments.overrides)
    hosts = frozenset({*LOOPBACK, arguments.host.lower(), *(name.lower() for name in arguments.allow_host)})
    known_hosts = hosts if local or arguments.allow_host else None
    access = Session(
        known_hosts, read_only=arguments.read_only, commands=arguments.allow_commands, encrypted=arguments.behind_proxy
    )
    studio = Studio(settings.results, tuple(arguments.overrides), access)
    with server.bind(arguments.host, arguments.port) as bound:
        address = f"{url_of(arguments, bound)}/?token={access.token}"

        def ready() -> None:
            if not local:
                _LOG.warning("other machines reach this address; everyone with the token has your permissions")
            print(f"ragbench studio on {address}\nstop it with Ctrl-C", flush=True)
            if arguments.browser:
                import webbrowser

                webbrowser.open(address)

        with studio_link.announce(settings.results, address):
            server.run(create_app(studio), bound, ready, Limits())
    return 0
