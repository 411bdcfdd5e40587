"""`ragbench serve mcp`: answer searches of editors and agents over MCP from a bundle."""

from __future__ import annotations

import argparse

from ragbench.extras.ship.commands.serve import add_bundle, open_service

DESCRIPTION = """Answer searches from editors and agents over MCP on stdin and stdout.

Provides the tools `search`, `read`, `outline` and `related`. For MCP over HTTP with a token, use /mcp of
`ragbench serve`. A refreshed or replaced bundle is loaded in the background. Replace the bundle folder with mv;
do not write into it."""
EXAMPLES = """examples:
  ragbench serve mcp bundle
  ragbench serve mcp bundle --max-top 20 --time-limit 5
  ragbench serve mcp bundle --log searches.jsonl      then: ragbench topics from-log searches.jsonl
  {"mcpServers": {"docs": {"command": "ragbench", "args": ["serve", "mcp", "/srv/bundle"]}}}   for most clients
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle and the limits."""
    add_bundle(parser)


def main(arguments: argparse.Namespace) -> int:
    """Load, serve."""
    from ragbench.extras.ship.serving import mcp

    mcp.run(open_service(arguments))
    return 0
