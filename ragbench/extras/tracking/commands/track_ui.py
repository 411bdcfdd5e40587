"""`ragbench track ui`: open MLflow with the store that the runs were written to."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import subprocess
import sys
import time

from ragbench.base import console
from ragbench.base.types import ConfigError, TrackingError, redacted

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Open MLflow with the store that the runs were written to, on this machine only.

MLflow shows the parameters, measures, files and data of each arm, and compares arms side by side."""
EXAMPLES = """examples:
  ragbench track ui
  ragbench track ui --port 5005 paths.results=/data/results
"""

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Port, and overrides that say where the store is."""
    parser.add_argument("--port", metavar="N", type=int, default=5000, help="port on 127.0.0.1 (default 5000)")
    console.add_overrides(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run MLflow's server, and print its pages as soon as it accepts connections."""
    from ragbench.config import composition
    from ragbench.extras.tracking import store, write

    _require_free(arguments.port)
    settings = composition.compose(arguments.overrides)
    target = store.target_of(settings)
    store.check(target)
    _LOG.info("MLflow is starting")
    pages = write.pages(target)
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": target.uri,  # it may contain a password: not an argument, which others see
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # evaluation jobs: 8 more processes
    }
    if not arguments.verbose:
        environment.setdefault("PYTHONWARNINGS", "ignore")  # of the packages of MLflow's server
    options = (f"--port={arguments.port}", "--workers=1", "--uvicorn-opts=--log-level warning")
    command = [sys.executable, "-m", "mlflow", "ui", *options]
    with subprocess.Popen(command, env=environment) as server:
        try:
            while server.poll() is None and not _accepts(arguments.port):
                time.sleep(_POLL_SECONDS)
            if server.returncode is None:
                print(f"MLflow runs for {redacted(target.uri)}; stop it with Ctrl-C")
                for title, page in pages.items():
                    print(f"{title}: http://{_HOST}:{arguments.port}{page}", flush=True)
            elif server.returncode == 0:
                raise TrackingError("MLflow's server ended before it accepted a connection: see its log above")
            code = server.wait()
        except KeyboardInterrupt:
            server.terminate()
            return 0
    return code if code >= 0 else 128 - code  # ended by a signal


def _require_free(port: int) -> None:
    """Raise ConfigError for a port that cannot be listened on."""
    if not 1 <= port <= 65_535:
        raise ConfigError(f"--port must be between 1 and 65535, got {port}")
    try:
        socket.create_server((_HOST, port)).close()
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "refused"
        raise ConfigError(f"cannot listen on {_HOST} port {port} ({reason}): choose another with --port") from None


def _accepts(port: int) -> bool:
    """Return True if something accepts a connection on the port."""
    try:
        socket.create_connection((_HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
