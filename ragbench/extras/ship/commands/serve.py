"""`ragbench serve`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.bounds import as_options
from ragbench.base.errors import ConfigError
from ragbench.base.formatting import counted

if TYPE_CHECKING:
    from socket import socket

    from ragbench.extras.ship.serving.messages import Limits
    from ragbench.extras.ship.serving.service import SearchService

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Answer searches over HTTP from a bundle: POST /search, GET /documents, GET /health,
GET /metrics, GET /openapi.json, and MCP (streamable HTTP) at /mcp.

Listens on this machine only. To listen on another --host, add --token-file; callers then send
Authorization: Bearer TOKEN. SIGHUP or --watch reloads the bundle in the background without dropping requests.
Replace the bundle folder with mv; do not write into it."""
EXAMPLES = """examples:
  ragbench serve bundle
  ragbench serve bundle --port 8080 --watch
  ragbench serve bundle --watch --corpus ~/notes        re-index changed notes within seconds
  ragbench serve bundle --log searches.jsonl            then: ragbench topics from-log searches.jsonl
  ragbench serve --engine 'postgres://localhost/docs?schema=notes'
  ragbench serve notes.sqlite                           SQLite file; the ranker re-orders its results
  ragbench serve bundle --time-limit 2 --queue 16 --max-top 20
  ragbench serve bundle --host 0.0.0.0 --token-file tokens --rate 600/minute      behind a proxy with TLS
  curl -s localhost:8000/search -H 'content-type: application/json' -d '{"query": "rotate a key", "top_n": 3}'
"""

_POLL_SECONDS = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle, the address, the limits."""
    parser.add_argument("bundle", nargs="?", help="bundle folder or SQLite file written by ragbench export")
    parser.add_argument(
        "--engine", metavar="ADDRESS", help="instead of a bundle: address of a search loaded by ragbench export"
    )
    add_http(parser)
    add_limits(parser)


def add_http(parser: argparse.ArgumentParser) -> None:
    """The address, who may ask, and limits of a request over HTTP."""
    add_address(parser, 8000)
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file of accepted bearer tokens, one per line",
    )
    parser.add_argument("--rate", metavar="N/TIME", help="rate limit per token, such as 600/minute")
    parser.add_argument(
        "--max-body", type=int, default=65_536, metavar="BYTES", help="maximum size of a request body (default 65536)"
    )
    parser.add_argument(
        "--per-client",
        type=int,
        default=32,
        metavar="N",
        help="maximum number of parallel searches for one caller (default 32)",
    )
    parser.add_argument(
        "--drain",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="time to keep serving after SIGTERM, while /readyz returns 503 (default 0)",
    )


def add_address(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the options of everything that listens: an address and a port."""
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1: this machine only)",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=port,
        help=f"port to listen on, 0 for any free port (default {port})",
    )


def url_of(arguments: argparse.Namespace, bound: socket) -> str:
    """The address that callers use."""
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    return f"http://{host}:{bound.getsockname()[1]}"


def add_limits(parser: argparse.ArgumentParser) -> None:
    """The options that `serve` and `mcp` share."""
    parser.add_argument(
        "--max-top", type=int, default=100, metavar="N", help="maximum number of results for one search (default 100)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="maximum time for one request (default 10)"
    )
    parser.add_argument(
        "--queue", type=int, default=64, metavar="N", help="maximum number of waiting requests (default 64)"
    )
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="number of search threads (default 1)")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="number of threads for one model call (default: all CPUs)"
    )
    parser.add_argument("--watch", action="store_true", help="reload the bundle whenever it changes")
    parser.add_argument(
        "--corpus", type=Path, metavar="PATH", help="with --watch: folder of source documents to re-index on change"
    )
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="append queries, results and opened documents to a .jsonl file (default: no log)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Bind, load, serve."""
    from ragbench.extras.ship.access import LOOPBACK, Access, Rate, Tokens
    from ragbench.extras.ship.serving import server
    from ragbench.extras.ship.serving.http import create_app

    limits = limits_of(arguments)
    tokens = Tokens(arguments.token_file.expanduser()) if arguments.token_file else None
    rate = Rate(arguments.rate) if arguments.rate else None
    with server.bind(arguments.host, arguments.port) as bound:
        local = server.is_local(bound)
        if not local and tokens is None:
            raise ConfigError(f"--host {arguments.host} lets other machines search: add --token-file FILE")
        service, stop = start(arguments, limits)
        health = service.health()

        def ready() -> None:
            if not local:
                _LOG.warning("tokens are sent unencrypted: put a proxy with TLS in front")
            label = f"{health.bundle} ({counted(health.documents, 'document')})"
            print(f"ragbench serves {label} on {url_of(arguments, bound)}; stop it with Ctrl-C", flush=True)

        def leaving() -> None:
            service.leaving = True

        # A page that pretends to be this machine has no token.
        access = Access(LOOPBACK if tokens is None else None, tokens, rate)
        try:
            server.run(create_app(service, access), bound, ready, limits, leaving)
        finally:
            stop()
            service.close()
    return 0


def limits_of(arguments: argparse.Namespace) -> Limits:
    """The limits that the options set. Raises ConfigError for impossible ones."""
    from ragbench.extras.ship.serving.messages import Limits

    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"--threads must be at least 1, got {arguments.threads}")
    with as_options():
        given = vars(arguments)
        return Limits(**{field.name: given[field.name] for field in fields(Limits) if field.name in given})


def _place(arguments: argparse.Namespace) -> Path | str:
    """The folder or file of what is served, or the address of an engine."""
    from ragbench.extras.ship import address

    engine = getattr(arguments, "engine", None)
    if (arguments.bundle is None) == (engine is None):
        raise ConfigError("name what to serve: a bundle, a file of ragbench export, or --engine ADDRESS")
    location = address.parse_location(engine or arguments.bundle)
    return location if isinstance(location, str) else location.expanduser()


def start(arguments: argparse.Namespace, limits: Limits) -> tuple[SearchService, Callable[[], None]]:
    """The service over the bundle, reloaded on SIGHUP or, with --watch, on changes; and what stops the reloading."""
    from ragbench.extras.ship.serving.reload import RefreshProcess, Reloader, signature
    from ragbench.extras.ship.serving.search_log import SearchLog
    from ragbench.extras.ship.serving.service import SearchService

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the bundle that is being loaded is new enough
    folder = _place(arguments)
    if arguments.corpus is not None and not arguments.watch:
        raise ConfigError("--corpus goes with --watch: add --watch, or run ragbench refresh once")
    current_signature = signature(folder)
    log = SearchLog(arguments.log.expanduser()) if arguments.log is not None else None
    mode = os.environ.get("SEARCH_MODE")
    service = SearchService(folder, limits, arguments.threads, mode, log)
    reloader = Reloader(service, current_signature, _POLL_SECONDS if arguments.watch else None)
    signal.signal(signal.SIGHUP, lambda *_: reloader.ask())
    corpus = arguments.corpus
    follower = RefreshProcess(folder, corpus.expanduser()) if corpus is not None else None

    def stop() -> None:
        if follower is not None:
            follower.stop()
        reloader.stop()

    return service, stop
