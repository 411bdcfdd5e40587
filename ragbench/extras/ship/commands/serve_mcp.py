"""`ragbench serve mcp`."""

from __future__ import annotations

import argparse

DESCRIPTION = """Answer searches of editors and agents over MCP from a bundle, on standard input and output.

Offers the tools `search`, `read`, `outline` and `related`. Over HTTP, with tokens, the same is
at /mcp of `ragbench serve`. SIGHUP, or --watch, loads the bundle again in the background: replace its
folder by renaming, never write into it."""
EXAMPLES = """examples:
  ragbench serve mcp bundle
  ragbench serve mcp bundle --max-top 20 --time-limit 5
  ragbench serve mcp bundle --log searches.jsonl      then: ragbench topics from-log searches.jsonl
  {"mcpServers": {"docs": {"command": "ragbench", "args": ["serve", "mcp", "/srv/bundle"]}}}   for most clients
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle and the limits."""
    from ragbench.extras.ship.commands.serve import add_limits

    parser.add_argument("bundle", help="the folder, or the SQLite file, that ragbench export wrote")
    add_limits(parser)


def main(arguments: argparse.Namespace) -> int:
    """Load, serve."""
    from ragbench.extras.ship.commands.serve import limits_of, start
    from ragbench.extras.ship.serving import mcp

    service, stop = start(arguments, limits_of(arguments))
    try:
        mcp.run(service)
    finally:
        stop()
        service.close()
    return 0
