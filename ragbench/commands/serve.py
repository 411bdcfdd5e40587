"""`ragbench serve`."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench import console

if TYPE_CHECKING:
    from ragbench.serving.limits import Limits
    from ragbench.serving.service import SearchService

DESCRIPTION = """Answer searches over HTTP from a bundle: POST /search, GET /health, GET /metrics, GET /openapi.json.

Listens on this machine only unless --host says otherwise; there is no authentication. SIGHUP, or --watch, loads the
bundle again in the background and no request is dropped: replace its folder by renaming, never write into it."""
EXAMPLES = """examples:
  ragbench serve bundle
  ragbench serve bundle --port 8080 --watch
  ragbench serve bundle --watch --corpus ~/notes        a changed note is found a moment later
  ragbench serve bundle --log searches.jsonl            then: ragbench topics from-log searches.jsonl
  ragbench serve bundle --time-limit 2 --queue 16 --max-top 20
  curl -s localhost:8000/search -H 'content-type: application/json' -d '{"query": "rotate a key", "top_n": 3}'
"""

_POLL_SECONDS = 0.25
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bundle, the address, the limits."""
    parser.add_argument("bundle", type=Path, help="the folder that ragbench export wrote")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine only)"
    )
    parser.add_argument(
        "--port", type=int, default=8000, help="port to listen on, 0 for any that is free (default 8000)"
    )
    parser.add_argument(
        "--max-body", type=int, default=65_536, metavar="BYTES", help="size of a request (default 65536)"
    )
    parser.add_argument(
        "--head-limit", type=float, default=5.0, metavar="SECONDS", help="time of a request's head (default 5)"
    )
    parser.add_argument(
        "--per-client", type=int, default=32, metavar="N", help="searches of one address at once (default 32)"
    )
    add_limits(parser)


def add_limits(parser: argparse.ArgumentParser) -> None:
    """What both services take."""
    parser.add_argument("--max-top", type=int, default=100, metavar="N", help="hits of one answer (default 100)")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="time of one request (default 10)"
    )
    parser.add_argument("--queue", type=int, default=64, metavar="N", help="requests that may wait (default 64)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="threads that search (default 1)")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads of one call of a model (default: all processors)"
    )
    parser.add_argument("--watch", action="store_true", help="load the bundle again whenever its folder changes")
    parser.add_argument(
        "--corpus", type=Path, metavar="PATH", help="with --watch, take in files of this folder as they change"
    )
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="add what is asked, shown and read to a .jsonl file (default: nothing)"
    )


def main(arguments: argparse.Namespace) -> int:
    """Bind, load, serve."""
    from ragbench.serving import listen
    from ragbench.serving.guard import LOOPBACK
    from ragbench.serving.http import create_app

    limits = limits_of(
        arguments, max_body=arguments.max_body, head_limit=arguments.head_limit, per_client=arguments.per_client
    )
    local = arguments.host in _LOOPBACK
    with listen.bind(arguments.host, arguments.port) as bound:
        service, stop = start(arguments, limits)
        port = bound.getsockname()[1]
        shown = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        about = service.health()

        def ready() -> None:
            if not local:
                console.say("warning: anyone who reaches this address may search; there is no authentication")
            said = f"{about.bundle} ({about.documents} documents) on http://{shown}:{port}; stop it with Ctrl-C"
            print(f"ragbench serves {said}", flush=True)

        try:
            listen.run(create_app(service, LOOPBACK if local else None), bound, ready, limits)
        finally:
            stop()
            service.close()
    return 0


def limits_of(arguments: argparse.Namespace, **more: Any) -> Limits:
    """The limits that the options set. Raises ConfigError for impossible ones."""
    from ragbench.bounds import as_options
    from ragbench.errors import ConfigError
    from ragbench.serving.limits import Limits

    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"--threads must be at least 1, got {arguments.threads}")
    with as_options():
        return Limits(
            max_top=arguments.max_top,
            time_limit=arguments.time_limit,
            workers=arguments.workers,
            queue=arguments.queue,
            **more,
        )


def start(arguments: argparse.Namespace, limits: Limits) -> tuple[SearchService, Callable[[], None]]:
    """The service over the bundle, reloaded on SIGHUP or, with --watch, on its own; and what stops the reloading."""
    from ragbench.errors import ConfigError
    from ragbench.serving.follow import Follower
    from ragbench.serving.reload import Reloader, signature
    from ragbench.serving.search_log import SearchLog
    from ragbench.serving.service import SearchService

    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what is being loaded is new enough
    folder = arguments.bundle.expanduser()
    if arguments.corpus is not None and not arguments.watch:
        raise ConfigError("--corpus goes with --watch: add --watch, or run ragbench refresh once")
    seen = signature(folder)
    log = SearchLog(arguments.log.expanduser()) if arguments.log is not None else None
    service = SearchService(folder, limits, arguments.threads, os.environ.get("SEARCH_MODE"), log)
    reloader = Reloader(service, console.say, seen, _POLL_SECONDS if arguments.watch else None)
    signal.signal(signal.SIGHUP, lambda *_: reloader.ask())
    follower = Follower(folder, arguments.corpus.expanduser(), console.say) if arguments.corpus is not None else None

    def stop() -> None:
        if follower is not None:
            follower.stop()
        reloader.stop()

    return service, stop
