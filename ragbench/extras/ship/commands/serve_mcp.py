"""`ragbench serve mcp`."""

from __future__ import annotations

import argparse

DESCRIPTION = """Answer searches from editors and agents over MCP on stdin and stdout.

Provides the tools `search`, `read`, `outline` and `related`. For MCP over HTTP with tokens, use /mcp of
`ragbench serve`. SIGHUP or --watch reloads the bundle in the background. Replace the bundle folder with mv; do
not write into it."""
EXAMPLES = """examples:
  ragbench serve mcp bundle
  ragbench serve mcp bundle --max-top 20 --time-limit 5
  ragbench serve mcp bundle --log searches.jsonl      then: ragbench topics from-log searches.jsonl
  {"mcpServers": {"docs": {"command": "ragbench", "args": ["serve", "mcp", "/srv/bundle"]}}}   for most clients
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle and the limits."""
    from ragbench.extras.ship.commands.serve import add_limits

    parser.add_argument("bundle", help="bundle folder or SQLite file written by ragbench export")
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
