"""`ragbench serve` (Ship it): serve a bundle over HTTP, or to editors and agents over MCP."""

from __future__ import annotations

import argparse
import logging
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.options import as_options
from ragbench.base.types import ConfigError, counted

if TYPE_CHECKING:
    from ragbench.extras.ship.serving.service import SearchService

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Answer searches over HTTP from a bundle: POST /search, GET /documents/ID, GET /health,
GET /openapi.json, and MCP (streamable HTTP) at /mcp.

Listens on this machine only. To listen on another --host, add --token-file; callers then send
Authorization: Bearer TOKEN. A refreshed or replaced bundle is loaded in the background without dropping
requests. Replace the bundle folder with mv; do not write into it."""
EXAMPLES = """examples:
  ragbench serve bundle
  ragbench serve bundle --log searches.jsonl            then: ragbench topics from-log searches.jsonl
  ragbench serve notes.sqlite                           SQLite file; the ranker re-orders its results
  ragbench serve 'postgres://localhost/docs?schema=notes'
  ragbench serve bundle --time-limit 2 --max-top 20
  ragbench serve bundle --host 0.0.0.0 --token-file token      behind a proxy with TLS
  curl -s localhost:8000/search -H 'content-type: application/json' -d '{"query": "rotate a key", "top_n": 3}'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle, the address, the limits."""
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1: this machine only)",
    )
    add_port(parser, 8000)
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the bearer token that callers send")
    parser.add_argument(
        "--max-body", type=int, default=65_536, metavar="BYTES", help="maximum size of a request body (default 65536)"
    )
    add_bundle(parser)


def add_port(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the port, as everything that listens has it."""
    parser.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=port,
        help=f"port to listen on, 0 for any free port (default {port})",
    )


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """What `serve` and `serve mcp` share: the bundle and the limits of a search."""
    parser.add_argument(
        "bundle", help="bundle folder, SQLite file written by ragbench export, or address of a database it loaded"
    )
    parser.add_argument(
        "--max-top", type=int, default=100, metavar="N", help="maximum number of results for one search (default 100)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="maximum time for one request (default 10)"
    )
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="append queries, results and opened documents to a .jsonl file (default: no log)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Bind, load, serve."""
    from ragbench.extras.ship.access import read_token
    from ragbench.extras.ship.serving import server
    from ragbench.extras.ship.serving.http import create_app

    token = read_token(arguments.token_file.expanduser()) if arguments.token_file else None
    with server.bind(arguments.host, arguments.port) as bound:
        local = server.is_local(bound)
        if not local and token is None:
            raise ConfigError(f"--host {arguments.host} lets other machines search: add --token-file FILE")
        service = open_service(arguments)
        if not local:
            _LOG.warning("the token is sent unencrypted: put a proxy with TLS in front")
        health = service.health()
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        bound.listen()  # so that who reads the address can connect at once
        print(
            f"ragbench serves {health.bundle} ({counted(health.documents, 'document')}) on "
            f"http://{host}:{bound.getsockname()[1]}; stop it with Ctrl-C",
            flush=True,
        )
        server.run(create_app(service, token), bound, service.limits.time_limit)
    return 0


def open_service(arguments: argparse.Namespace) -> SearchService:
    """The service over the bundle, with the limits that the options set. Raises ConfigError for impossible ones."""
    from ragbench.extras.ship.address import parse_location
    from ragbench.extras.ship.serving.messages import MessageLimits
    from ragbench.extras.ship.serving.search_log import SearchLog
    from ragbench.extras.ship.serving.service import SearchService

    with as_options():
        given = vars(arguments)
        limits = MessageLimits(
            **{field.name: given[field.name] for field in fields(MessageLimits) if field.name in given}
        )
    location = parse_location(arguments.bundle)
    folder = location if isinstance(location, str) else location.expanduser()
    log = SearchLog(arguments.log.expanduser()) if arguments.log is not None else None
    return SearchService(folder, limits, os.environ.get("SEARCH_MODE"), log)
